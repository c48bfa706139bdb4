"""Passes over a list of pairs. tests/operators has the sums and products, for every kind of problem."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.pair_lists import PairList
from symrelu.kernels.pair_passes import Entries, Visited, pass_over_pairs, square_norm_of_gram

SIGNS = np.array([1.0, 1.0, -1.0])


def whole_pass(U, signs, **settings):
    """Return a pass over all pairs, as zeros of M."""
    n = len(U)
    nothing = Entries(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, U.dtype))
    listed = PairList(n * np.arange(n + 1), np.tile(np.arange(n, dtype=np.int32), n))
    visited = Visited(nothing, nothing, listed, U.dtype.type(1), False)
    return pass_over_pairs(U, signs, U, visited, **settings)


@pytest.mark.parametrize("mostly_negative", [True, False])
def test_the_positive_ones_of_a_list_are_summed_up(mostly_negative):
    U = np.random.default_rng(0).standard_normal((150, 3))
    X = (U * SIGNS) @ U.T
    product, sums = whole_pass(U, SIGNS, mostly_negative=mostly_negative)
    assert_allclose(product, -np.maximum(0, X) @ U)
    assert sums.active == np.count_nonzero(X > 0)
    assert_allclose(sums.positive, np.sum(np.maximum(0, X) ** 2))
    assert_allclose(sums.negative, np.sum(np.minimum(0, X) ** 2))


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, 9), (np.float64, 75)])
@given(seed=st.integers(0, 2**32 - 1), rank=st.integers(1, 70), part=st.floats(0, 1))
def test_no_positive_pair_is_missed_where_rounding_decides(dtype, largest, seed, rank, part):
    """Rows of any length, most of them orthogonal to each other up to the rounding of float32."""
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((30, rank))
    U[10:] -= np.outer(U[10:] @ U[0], U[0]) / (U[0] @ U[0])
    U[10:] += 1e-7 * rng.standard_normal((20, 1)) * U[0]
    U *= 10 ** (largest * part * rng.uniform(-1, 1, (30, 1)))
    U[5] = 0
    U, signs = U.astype(dtype), rng.choice([-1.0, 1.0], rank).astype(dtype)
    rounded, exact = (whole_pass(U, signs, mostly_negative=flag) for flag in (True, False))
    assert rounded[1] == exact[1]
    assert_array_equal(rounded[0], exact[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_square_norm_of_the_gram_matrix(dtype):
    U = np.random.default_rng(1).standard_normal((5000, 3)).astype(dtype)
    X = (U[:500].astype(float) * SIGNS) @ U[:500].astype(float).T
    assert_allclose(square_norm_of_gram(U[:500], SIGNS.astype(dtype)), np.sum(X**2))
    gram = U.astype(float).T @ U.astype(float)
    assert_allclose(square_norm_of_gram(U, SIGNS.astype(dtype)), SIGNS @ gram**2 @ SIGNS)
