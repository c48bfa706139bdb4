"""Regularised degrees, against their formula."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu.graphs.degrees import divide_new_rows, root_degrees

RNG = np.random.default_rng(0)
B = RNG.random((9, 9)) * (RNG.random((9, 9)) < 0.4)
B = B + B.T
np.fill_diagonal(B, 0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("regularization", [0.5, 1.0])
def test_roots(kind, regularization):
    expected = np.sqrt(B.sum(axis=1) + regularization * B.sum() / 9)
    assert_allclose(root_degrees(kind(B), regularization), expected)


def test_float32_is_added_up_in_float64():
    big = np.full((2, 2), 2.0**24, np.float32)
    big[0, 1] = big[1, 0] = 1
    assert_allclose(root_degrees(big, 0.0) ** 2, 2.0**24 + 1, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_of_the_graph_are_divided_as_the_graph(kind):
    roots = root_degrees(B)
    assert_allclose(divide_new_rows(kind(B[:4]), roots).toarray(), (B / np.outer(roots, roots))[:4])
