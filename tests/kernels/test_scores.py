"""Entries of X by pairs and the largest of each row, against NumPy."""

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.kernels import scores, threads
from symrelu.kernels.scores import NO_ITEM, largest_of_rows, pair_scores, select_largest, smooth_block

pytestmark = pytest.mark.blas_threads

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@DTYPES
@given(seed=st.integers(0, 1000), n=st.integers(1, 30), rank=st.integers(1, 5), count=st.integers(0, 50))
def test_pairs(dtype, seed, n, rank, count):
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((2, n, rank)).astype(dtype)
    i, j = rng.integers(0, n, (2, count))
    found = pair_scores(np.asarray(left, order="F"), right, i, j)
    assert found.dtype == dtype
    assert_allclose(found, (left.astype(float) @ right.T)[i, j], rtol=0, atol=50 * np.finfo(dtype).eps)


@DTYPES
@given(seed=st.integers(0, 1000), rows=st.integers(1, 4), n=st.integers(1, 60), k=st.integers(1, 70))
def test_the_largest_entries_of_a_row(dtype, seed, rows, n, k):
    """Few different values, so that there are ties; minus infinity is no entry."""
    rng = np.random.default_rng(seed)
    block = rng.integers(-3, 4, (rows, n)).astype(dtype)
    block[block == -3] = -np.inf
    items = np.full((rows, k), NO_ITEM)
    values = np.full((rows, k), -np.inf, dtype)
    select_largest(block, items, values)
    for row in range(rows):
        order = np.argsort(-block[row], kind="stable")[:k]
        order = order[block[row, order] > -np.inf]
        assert_array_equal(items[row, : len(order)], order)
        assert_array_equal(values[row, : len(order)], block[row, order])
        assert (items[row, len(order) :] == NO_ITEM).all()
        assert (values[row, len(order) :] == -np.inf).all()


@pytest.fixture
def factors():
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, 150, 33))  # with few columns, BLAS rounds alike in blocks of any size


def test_the_same_bits_for_any_number_of_threads(factors, monkeypatch):
    left, right = factors
    rows = np.arange(150)
    i, j = np.random.default_rng(1).integers(0, 150, (2, 5000))
    monkeypatch.setattr(scores, "_PAIRS_AT_ONCE", 100)
    results = []
    for count in (1, 2, 3, 4, 8, 16):
        monkeypatch.setattr(threads, "allowed_threads", lambda count=count: count)
        results.append((pair_scores(left, right, i, j), *largest_of_rows(left, right, rows, 7)))
    for result in results[1:]:
        for part, expected in zip(result, results[0], strict=True):
            assert_array_equal(part, expected)


@pytest.mark.parametrize("megabytes", [1e-9, 0.01, 1000])
def test_excluded_pairs_and_little_memory(factors, megabytes):
    left, right = factors
    excluded = sparse.csr_array(np.random.default_rng(2).random((150, 150)) < 0.5)
    rows = np.array([3, 140, 3, 0])
    with sklearn.config_context(working_memory=megabytes):
        items, values = largest_of_rows(left, right, rows, 5, excluded)
    X = np.where(excluded.toarray() | np.eye(150, dtype=bool), -np.inf, left @ right.T)[rows]
    order = np.argsort(-X, axis=1)[:, :5]
    assert_array_equal(items, order)
    assert_allclose(values, np.take_along_axis(X, order, axis=1), rtol=1e-12)


def test_no_rows_and_no_pairs(factors):
    left, right = factors
    nothing = np.empty(0, np.int64)
    assert pair_scores(left, right, nothing, nothing).shape == (0,)
    items, values = largest_of_rows(left, right, nothing, 3)
    assert items.shape == values.shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, ">f8", ">f4"])
def test_factors_of_types_that_are_not_compiled_for(factors, dtype):
    left, right = (factor.astype(dtype) for factor in factors)
    i, j = np.arange(10), np.arange(10)[::-1]
    found = pair_scores(left, right, i, j)
    assert found.dtype == dtype
    exact = left.astype(float) @ right.astype(float).T
    assert_allclose(found.astype(float), exact[i, j], rtol=2e-3, atol=1e-2)
    items, values = largest_of_rows(left, right, i, 2)
    assert values.dtype == dtype
    np.fill_diagonal(exact, -np.inf)
    assert_array_equal(items[:, 0], exact[i].argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_smooth_relu_is_exact_on_both_sides(dtype):
    """Far below zero, the formula itself would return 0."""
    x = np.concatenate([-np.logspace(8, -8, 50), [0.0], np.logspace(-8, 8, 50)]).astype(dtype)
    exact = x.astype(np.longdouble)
    expected = np.where(exact < 0, 0.5 / (np.sqrt(exact**2 + 1) - exact), (exact + np.sqrt(exact**2 + 1)) / 2)
    block = np.stack([x, x])
    smooth_block(block, np.array([1, 3], dtype), np.ones(len(x), dtype))
    assert_allclose(block, np.outer([1, 3], expected), rtol=4 * np.finfo(dtype).eps)
    assert np.all(np.diff(block) >= 0)


def test_scales_apply_to_pairs_and_to_rows_alike():
    rng = np.random.default_rng(0)
    left, scales = rng.standard_normal((30, 4)), rng.uniform(0.5, 2, 30)
    X = left @ left.T
    expected = np.outer(scales, scales) * (X + np.sqrt(X**2 + 1)) / 2
    i, j = rng.integers(0, 30, (2, 200))
    assert_allclose(pair_scores(left, left, i, j, scales), expected[i, j], rtol=1e-10)
    items, values = largest_of_rows(left, left, np.arange(30), 5, None, scales)
    np.fill_diagonal(expected, -np.inf)
    assert_array_equal(items, np.argsort(-expected, axis=1)[:, :5])
    assert_allclose(values, -np.sort(-expected, axis=1)[:, :5], rtol=1e-10)
