"""Passes over a list of pairs. tests/operators has the sums and products, for every kind of problem."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.pair_lists import PairList
from symrelu.kernels.pair_passes import positive_pairs, square_norm_of_gram

SIGNS = np.array([1.0, 1.0, -1.0])


def test_positive_pairs_of_a_list():
    U = np.random.default_rng(0).standard_normal((40, 3))
    X = (U * SIGNS) @ U.T
    i, j = np.triu_indices(40)
    listed = PairList(np.concatenate([[0], np.cumsum(np.bincount(i))]), j.astype(np.int32))
    found = positive_pairs(U, U * SIGNS, listed)
    rows = np.repeat(np.arange(40), np.diff(found.indptr))
    assert_array_equal(np.stack([rows, found.indices], axis=1), np.argwhere(np.triu(X > 0)))
    assert_allclose(found.values, X[rows, found.indices])
    assert_array_equal(found.mirrored.rows, np.nonzero(np.triu(X > 0, 1).T)[1])
    assert_allclose(found.values[found.mirrored.places], X.T[np.triu(X > 0, 1).T])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_square_norm_of_the_gram_matrix(dtype):
    U = np.random.default_rng(1).standard_normal((5000, 3)).astype(dtype)
    X = (U[:500].astype(float) * SIGNS) @ U[:500].astype(float).T
    assert_allclose(square_norm_of_gram(U[:500], U[:500] * SIGNS.astype(dtype)), np.sum(X**2))
    gram = U.astype(float).T @ U.astype(float)
    assert_allclose(square_norm_of_gram(U, U * SIGNS.astype(dtype)), SIGNS @ gram**2 @ SIGNS)
