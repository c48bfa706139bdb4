"""Passes over a list of pairs. tests/operators has the sums and products, for every kind of problem."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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


@given(seed=st.integers(0, 2**32 - 1), rank=st.integers(1, 40), exponent=st.floats(0, 120))
def test_no_positive_pair_is_missed_where_rounding_decides(seed, rank, exponent):
    """Rows of any length, most of them orthogonal to each other up to the rounding of float32."""
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((30, rank))
    U[10:] -= np.outer(U[10:] @ U[0], U[0]) / (U[0] @ U[0])
    U[10:] += 1e-7 * rng.standard_normal((20, 1)) * U[0]
    U *= 10 ** (exponent * rng.uniform(-1, 1, (30, 1)))
    U[5] = 0
    i, j = np.triu_indices(30)
    listed = PairList(np.concatenate([[0], np.cumsum(np.bincount(i))]), j.astype(np.int32))
    signs = rng.choice([-1.0, 1.0], rank)
    found = positive_pairs(U, U * signs, listed)
    everything = positive_pairs(U, U * signs, listed, np.zeros(30))  # with widths, float32 is not asked
    for one, other in zip(found[:3], everything[:3], strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_square_norm_of_the_gram_matrix(dtype):
    U = np.random.default_rng(1).standard_normal((5000, 3)).astype(dtype)
    X = (U[:500].astype(float) * SIGNS) @ U[:500].astype(float).T
    assert_allclose(square_norm_of_gram(U[:500], U[:500] * SIGNS.astype(dtype)), np.sum(X**2))
    gram = U.astype(float).T @ U.astype(float)
    assert_allclose(square_norm_of_gram(U, U * SIGNS.astype(dtype)), SIGNS @ gram**2 @ SIGNS)
