"""The kernels of the small linear systems, against numpy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels import row_systems
from symrelu.kernels.row_systems import factorise, solve_rows, solve_systems, substitute, whitening

SEEDS = st.integers(0, 2**32 - 1)
TOLERANCE = {np.float64: 1e-9, np.float32: 1e-3}


def solved(A, b):
    """Return the solution by Cholesky factors; what the kernels must not read is NaN."""
    n = len(b)
    L = np.full((n + 2, n + 2), np.nan, A.dtype)
    L[:n, :n] = np.where(np.tri(n, dtype=bool), A, np.nan)
    x = np.append(b, np.full(2, np.nan, b.dtype))
    factorise(L, n)
    substitute(L, x, n)
    assert np.isnan(x[n:]).all()
    assert np.isnan(L[n:]).all()
    assert np.isnan(L[~np.tri(n + 2, dtype=bool)]).all()
    return x[:n]


@given(seed=SEEDS, n=st.integers(0, 8), dtype=st.sampled_from([np.float64, np.float32]))
def test_definite_systems(seed, n, dtype):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n))
    A, b = (B @ B.T + np.eye(n)).astype(dtype), rng.standard_normal(n).astype(dtype)
    x = solved(A, b)
    assert x.dtype == dtype
    assert_allclose(x, np.linalg.solve(A.astype(np.float64), b), rtol=0, atol=TOLERANCE[dtype])


def positive_pivots(A):
    """Return which unknowns stay where each one without a positive pivot is left out, in their order."""
    kept = []
    for j in range(len(A)):
        explained = A[j, kept] @ np.linalg.solve(A[np.ix_(kept, kept)], A[kept, j])
        pivot = A[j, j] - explained
        assume(abs(pivot) > 1e-3)  # nearer to zero, rounding may decide either way
        if pivot > 0:
            kept.append(j)
    return kept


@given(seed=SEEDS, n=st.integers(1, 8))
def test_indefinite_systems_are_solved_without_the_unknowns_that_have_no_pivot(seed, n):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A, b = A + A.T, rng.standard_normal(n)
    kept = positive_pivots(A)
    expected = np.zeros(n)
    expected[kept] = np.linalg.solve(A[np.ix_(kept, kept)], b[kept])
    assert_allclose(solved(A, b), expected, rtol=0, atol=1e-6 * max(1, np.abs(expected).max()))


def test_pivots_that_rounding_took_away_leave_their_unknowns_at_zero():
    A = np.array([[4.0, 2, 0], [2, 1, 0], [0, 0, 9]])
    A[1, 1] -= 1e-9  # not definite any more
    assert_array_equal(solved(A, np.array([8.0, 5, 18])), [2, 0, 2])


def solved_rows(support, V, ridge, right, first=0, last=None):
    """Return the solutions of the systems of the rows of a boolean matrix; NaN where none was asked for."""
    indptr = np.append(0, np.cumsum(support.sum(axis=1))).astype(np.int64)
    indices = np.nonzero(support)[1].astype(np.int32)
    C = whitening(ridge)
    last = len(support) if last is None else last
    asked = (first <= np.arange(len(support))) & (np.arange(len(support)) < last)
    sides = tuple(np.where(asked[:, None], right[:, k] @ C, np.nan) for k in range(right.shape[1]))
    sides = tuple(side.astype(V.dtype) for side in sides)
    solve_rows(first, last, indptr, indices, V @ C, sides)
    return np.stack([side @ C.T for side in sides], axis=1)


@given(seed=SEEDS, rank=st.integers(1, 6), dtype=st.sampled_from([np.float64, np.float32]))
def test_whitening(seed, rank, dtype):
    B = np.random.default_rng(seed).standard_normal((rank, rank))
    ridge = (B @ B.T + np.eye(rank)).astype(dtype)
    C = whitening(ridge)
    assert C.dtype == dtype
    assert_allclose(C @ C.T @ ridge, np.eye(rank), rtol=0, atol=TOLERANCE[dtype])


def test_whitening_leaves_out_pivots_that_rounding_took_away():
    assert_array_equal(whitening(np.diag([4.0, -1e-18, 0.0])), np.diag([0.5, 0, 0]))


def test_a_column_of_zeros_stays_zero():
    """That of the factor, and so those of the ridge and the right-hand sides."""
    rng = np.random.default_rng(0)
    support = rng.random((9, 9)) < rng.random((9, 1))
    V, right = rng.standard_normal((9, 4)), rng.standard_normal((9, 2, 4))
    V[:, 1] = right[:, :, 1] = 0
    assert_array_equal(solved_rows(support, V, V.T @ V + 0.1 * np.eye(4), right)[:, :, 1], 0)


@given(
    seed=SEEDS,
    n=st.integers(1, 12),
    rank=st.integers(1, 6),
    columns=st.integers(1, 3),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_rows_shorter_and_longer_than_the_rank(seed, n, rank, columns, dtype):
    """Fewer entries than columns go by Woodbury's identity, the others by the system itself."""
    rng = np.random.default_rng(seed)
    support = rng.random((n, n)) < rng.random((n, 1))  # rows of any length
    V = rng.standard_normal((n, rank)).astype(dtype)
    ridge = (V.T @ V / n + np.eye(rank)).astype(dtype)
    right = rng.standard_normal((n, columns, rank)).astype(dtype)
    out = solved_rows(support, V, ridge, right)
    for i, row in enumerate(support):
        system = (V[row].T @ V[row] + ridge).astype(np.float64)
        assert_allclose(out[i], np.linalg.solve(system, right[i].T).T, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7])
def test_each_length_of_rows(length):
    """With three columns, both branches and the border between them for certain."""
    rng = np.random.default_rng(length)
    support = np.tile(np.arange(7) < length, (7, 1))
    V, right = rng.standard_normal((7, 3)), rng.standard_normal((7, 2, 3))
    ridge = np.diag([0.5, 1.0, 2.0])
    expected = np.linalg.solve(V[:length].T @ V[:length] + ridge, right.transpose(0, 2, 1)).transpose(0, 2, 1)
    assert_allclose(solved_rows(support, V, ridge, right), expected, rtol=1e-10, atol=1e-12)


def test_only_the_rows_asked_for_are_written():
    rng = np.random.default_rng(0)
    support = rng.random((9, 9)) < 0.5
    V, right = rng.standard_normal((9, 3)), rng.standard_normal((9, 2, 3))
    all_rows = solved_rows(support, V, np.eye(3), right)
    some = solved_rows(support, V, np.eye(3), right, 2, 5)
    assert_array_equal(some[2:5], all_rows[2:5])
    assert np.isnan(np.delete(some, slice(2, 5), axis=0)).all()


def test_rows_with_more_entries_than_one_product_takes():
    rng = np.random.default_rng(0)
    support = np.ones((300, 300), bool)
    support[1, 7:] = False
    V, right = rng.standard_normal((300, 3)), rng.standard_normal((300, 1, 3))
    found = solved_rows(support, V, np.eye(3), right)
    for i in (0, 1, 299):
        system = V[support[i]].T @ V[support[i]] + np.eye(3)
        assert_allclose(found[i, 0], np.linalg.solve(system, right[i, 0]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_solution_does_not_depend_on_the_rows_that_are_solved_with_it(dtype):
    """Workers get different slices of the rows."""
    rng = np.random.default_rng(0)
    support = rng.random((40, 40)) < rng.random((40, 1)) ** 3
    V, right = (rng.standard_normal(shape).astype(dtype) for shape in ((40, 6), (40, 2, 6)))
    ridge = np.eye(6, dtype=dtype) + (V.T @ V) / 40
    together = solved_rows(support, V, ridge, right)
    for i in range(40):
        assert_array_equal(solved_rows(support, V, ridge, right, i, i + 1)[i], together[i])


@pytest.mark.parametrize("workers", [1, 3])
def test_systems_from_ridge_to_solutions(workers, monkeypatch):
    """More rows than a share has; each with its own number of entries, and some without."""
    monkeypatch.setattr(row_systems, "workers_for", lambda work: workers)
    rng = np.random.default_rng(0)
    n, rank = 600, 5
    support = rng.random((n, n)) < 0.02 * rng.random((n, 1))
    indptr = np.append(0, np.cumsum(support.sum(axis=1))).astype(np.int64)
    V, right = rng.standard_normal((n, rank)), rng.standard_normal((2, n, rank))
    ridge = V.T @ V / n + np.eye(rank)
    C = whitening(ridge)
    sides = [right[0], right[1]]
    sides[1].flags.writeable = False  # one of them only
    found = solve_systems(indptr, np.nonzero(support)[1].astype(np.int32), V @ C, C, sides)
    expected = [np.linalg.solve(V[row].T @ V[row] + ridge, right[:, i].T).T for i, row in enumerate(support)]
    assert_allclose(np.stack(found, axis=1), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_systems_are_solved_one_by_one(dtype):
    """With more than 128 columns; rows without entries, with fewer and with more than columns."""
    rng = np.random.default_rng(0)
    n, rank = 300, 130
    support = rng.random((n, n)) < np.linspace(0, 1, n)[:, None]
    V, right = rng.standard_normal((n, rank)).astype(dtype), rng.standard_normal((n, 2, rank)).astype(dtype)
    found = solved_rows(support, V, np.eye(rank, dtype=dtype), right)
    for i in range(0, n, 13):
        system = V[support[i]].T.astype(float) @ V[support[i]] + np.eye(rank)
        expected = np.linalg.solve(system, right[i].T.astype(float)).T
        assert_allclose(found[i], expected, rtol=0, atol=TOLERANCE[dtype])


def test_nan_shows():
    """A zero would be taken for a solution."""
    assert np.isnan(whitening(np.diag([1.0, np.nan, 1.0]) + 0.1)).any()
    V = np.ones((3, 2))
    V[1, 0] = np.nan
    for support in (np.eye(3, dtype=bool), np.ones((3, 3), bool)):
        assert not np.isfinite(solved_rows(support, V, np.eye(2), np.ones((3, 1, 2)))[1]).all()
