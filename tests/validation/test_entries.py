"""Unknown entries: nothing about their values matters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import decompose, metrics, select_rank, validation

UNKNOWN = [0.0, 1.0, -3.0, 1e-20, 1e20, 1e120, 1e170, 1e308, np.nan, np.inf, -np.inf]


def hidden_and_known():
    """Return a matrix of 12 items and a mask of some of its pairs."""
    factor = np.random.default_rng(3).standard_normal((12, 3))
    M = np.maximum(0, factor @ factor.T)
    mask = np.zeros((12, 12), bool)
    mask[[0, 2, 2, 11], [1, 9, 4, 11]] = True
    return M, mask | mask.T


def forms(M, mask):
    """Return M and its mask dense and sparse, crossed; a stored zero is no other thing than none."""
    return [
        (kind(M), how(mask)) for kind in (np.array, sparse.csr_array) for how in (np.array, sparse.csr_array)
    ]


def assert_same(one, other):
    assert_array_equal(one.U, other.U)
    assert one.status is other.status
    for name in ("relative_error", "objective", "norm", "n_iter"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("value", UNKNOWN)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_about_an_unknown_entry_changes_a_fit(value, dtype):
    M, mask = hidden_and_known()
    other = M.copy()
    other[mask] = value
    np.fill_diagonal(other, value)
    with np.errstate(over="ignore"):
        M, other = M.astype(dtype), other.astype(dtype)
    settings = {"diagonal": "ignore", "random_state": 0, "max_iter": 20, "n_negative": 1}
    for (one, mask_one), (two, _) in zip(forms(M, mask), forms(other, mask), strict=True):
        assert_same(decompose(one, 3, mask=mask_one, **settings), decompose(two, 3, mask=mask_one, **settings))


@pytest.mark.parametrize("value", UNKNOWN)
def test_nothing_about_an_unknown_entry_changes_a_judgement(value):
    M, mask = hidden_and_known()
    other = M.copy()
    other[mask] = value
    np.fill_diagonal(other, value)
    U = np.random.default_rng(0).standard_normal((12, 3))
    settings = {"diagonal": "ignore", "random_state": 0, "max_iter": 5}
    for (one, mask_one), (two, _) in zip(forms(M, mask), forms(other, mask), strict=True):
        known = {"mask": mask_one, "diagonal": "ignore"}
        for metric in (metrics.relative_error, metrics.half_squared_error):
            assert metric(one, U, **known) == metric(two, U, **known)
        assert metrics.parameters_per_pair(one, 3, **known) == metrics.parameters_per_pair(two, 3, **known)
        tables = [select_rank(A, [1, 2], mask=mask_one, n_repeats=2, **settings).table for A in (one, two)]
        assert tables[0] == tables[1]


@pytest.mark.parametrize("value", UNKNOWN)
def test_what_a_fit_saw_does_not_change_the_error_on_what_it_did_not_see(value):
    M, mask = hidden_and_known()
    other = np.where(mask, M, value)
    U = np.random.default_rng(0).standard_normal((12, 3))
    for (one, mask_one), (two, _) in zip(forms(M, mask), forms(other, mask), strict=True):
        assert metrics.held_out_error(one, U, mask=mask_one) == metrics.held_out_error(two, U, mask=mask_one)


@pytest.mark.parametrize("value", UNKNOWN)
def test_nothing_about_an_unknown_similarity_changes_a_new_row(value):
    M, mask = hidden_and_known()
    solution = decompose(M, 3, random_state=0, max_iter=30)
    rows, unknown = M[:5].copy(), mask[:5]
    rows[unknown] = value
    for (one, mask_one), (two, _) in zip(forms(M[:5], unknown), forms(rows, unknown), strict=True):
        assert_array_equal(solution.transform(one, mask_one), solution.transform(two, mask_one))
        assert solution.score(one, mask_one) == solution.score(two, mask_one)


@pytest.mark.parametrize(("dtype", "value"), [(np.float32, 1e20), (np.float64, 1e120), (np.float64, 1e170)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_huge_diagonal_that_is_ignored_does_not_end_a_fit(dtype, value, kind):
    factor = np.random.default_rng(0).standard_normal((40, 4))
    M = np.maximum(0, factor @ factor.T).astype(dtype)
    np.fill_diagonal(M, value)
    solution = decompose(kind(M), 4, diagonal="ignore", random_state=0)
    assert solution.relative_error <= 1e-4
    assert solution.n_iter > 0


@given(st.integers(0, 2**32 - 1), st.sampled_from(UNKNOWN), st.booleans())
def test_unknown_entries_are_taken_out_and_no_others(seed, value, ignored):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    mask = np.triu(rng.random((n, n)) < 0.4)
    mask |= mask.T
    truth = np.triu(rng.integers(0, 3, (n, n))).astype(float)
    truth = np.maximum(truth, truth.T)
    unknown = mask | (ignored & np.eye(n, dtype=bool))
    given_M, diagonal = np.where(unknown, value, truth), "ignore" if ignored else "fit"
    expected = np.where(unknown, 0.0, truth)
    if not expected.any():
        return
    for M, a_mask in forms(given_M, mask):
        checked, _ = validation.check_observed(M, a_mask, diagonal)
        assert_array_equal(checked.toarray() if sparse.issparse(checked) else checked, expected)
