"""Passes over a list of pairs. tests/operators has the sums and products, for every kind of problem."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.integer_rows import SCALE
from symrelu.kernels.pair_lists import PairList
from symrelu.kernels.pair_passes import (
    ENTRIES_AT_ONCE,
    Entries,
    Visited,
    begin_row,
    compute_entries,
    directions,
    new_desk,
    pass_over_pairs,
    square_norm_of_gram,
)
from symrelu.kernels.row_references import full_slack, rounding_of_products

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


def entries_at(chosen, values):
    """Return the entries of a matrix at the places that are chosen, by row."""
    indptr = np.append(0, np.cumsum(chosen.sum(axis=1)))
    return Entries(indptr, np.nonzero(chosen)[1].astype(np.int32), values[chosen])


@pytest.mark.parametrize("at_least", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("rank", "columns"), [(3, 2), (17, 5), (8, 40)])
def test_rows_of_any_length_are_those_of_the_formulas(rank, columns, dtype, at_least):
    """Rows with none to 200 entries of each kind; the kernel computes 64 at once."""
    rng = np.random.default_rng(rank)
    n, weight = 420, 0.3
    U, V = rng.standard_normal((n, rank)).astype(dtype), rng.standard_normal((n, columns)).astype(dtype)
    signs = rng.choice([-1.0, 1.0], rank).astype(dtype)
    X = (U.astype(np.float64) * signs) @ U.T
    M = rng.random((n, n)).astype(dtype)
    kinds = rng.random((n, n)) / np.linspace(1e-3, 1, n)[:, None]  # so that the last rows are long
    support, unknown = kinds < 0.4, (kinds >= 0.4) & (kinds < 0.75)
    zeros = ~support & ~unknown
    for chosen in (support, unknown, zeros & (X > 0)):
        assert chosen.sum(axis=1).min() <= 64 < 2 * 64 < chosen.sum(axis=1).max()
    listed = PairList(*entries_at(zeros & (X > -1), X)[:2])
    visited = Visited(entries_at(support, M), entries_at(unknown, M), listed, dtype(weight), at_least)
    product, sums = pass_over_pairs(U, signs, V, visited)
    short = support & ((X < M) | (not at_least))
    residual = np.where(short, M - X, 0) - np.where(zeros, weight * np.maximum(0, X), 0)
    tolerance = {np.float64: 1e-12, np.float32: 1e-5}[dtype]
    assert_allclose(product, residual @ V, rtol=0, atol=tolerance * np.abs(residual @ V).max())
    expected = {
        "fit": np.sum((M - X)[short] ** 2),
        "error": np.sum((M - np.maximum(0, X))[short] ** 2),
        "positive": np.sum(X[zeros & (X > 0)] ** 2),
        "negative": np.sum(X[zeros & (X <= 0)] ** 2),
        "free": np.sum(X[unknown] ** 2) + np.sum((X**2 - M.astype(np.float64) ** 2)[support & ~short]),
        "active": np.count_nonzero(zeros & (X > 0)),
        "inner": np.sum(((M - X) * X)[short]),
    }
    assert_allclose(list(sums), list(expected.values()), rtol=20 * tolerance)


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


@njit
def entries_of_row(i, U, signs, columns, first, size, rounded):
    desk = new_desk(U, rounded)
    begin_row(i, U, signs, rounded, desk)
    count = compute_entries(columns, first, size, U, rounded, desk)
    return desk.columns[:count].copy(), desk.values[:count].copy()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 7, 61, ENTRIES_AT_ONCE])
@pytest.mark.parametrize("rank", [1, 5, 33, 64])
def test_only_entries_that_are_not_clearly_negative_are_computed(rank, size, dtype):
    """All that are positive, and none with a cosine below a thousandth less than zero."""
    rng = np.random.default_rng(size)
    U, signs = rng.standard_normal((150, rank)).astype(dtype), rng.choice([-1, 1], rank).astype(dtype)
    rounded, everything = (directions(U, signs, wanted=flag) for flag in (True, False))
    X, lengths = (U.astype(float) * signs) @ U.T, np.linalg.norm(U, axis=1)
    cosines = X / np.outer(lengths, lengths)
    for i in range(20):
        columns = rng.permutation(150).astype(np.int32)
        given = columns[3 : 3 + size]
        written, values = entries_of_row(i, U, signs, columns, 3, size, rounded)
        assert_array_equal(written, given[np.isin(given, written)])
        assert_allclose(values, X[i, written], rtol=0, atol=1e-4)
        assert set(given[cosines[i, given] > 0]) <= set(written)
        assert (cosines[i, written] > -1e-3).all()
        assert_array_equal(entries_of_row(i, U, signs, columns, 3, size, everything)[0], given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 64, 1000])
def test_clearly_negative_is_what_no_rounding_makes_positive(rank, dtype):
    """Neither that of the integers nor that of X."""
    threshold = int(directions(np.ones((1, rank), dtype), np.ones(rank, dtype), wanted=True).least)
    assert -threshold >= SCALE**2 * (full_slack(0.0, rank) + rounding_of_products(rank, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_square_norm_of_the_gram_matrix(dtype):
    U = np.random.default_rng(1).standard_normal((5000, 3)).astype(dtype)
    X = (U[:500].astype(float) * SIGNS) @ U[:500].astype(float).T
    assert_allclose(square_norm_of_gram(U[:500], SIGNS.astype(dtype)), np.sum(X**2))
    gram = U.astype(float).T @ U.astype(float)
    assert_allclose(square_norm_of_gram(U, SIGNS.astype(dtype)), SIGNS @ gram**2 @ SIGNS)
