"""Inner products of a row with several others, and sums of multiples of rows, for rows of any length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import TypingError
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.row_products import (
    TOGETHER,
    add_multiples,
    inner_products,
    lay_out,
    padded_row,
    write_sum,
)

LENGTHS = [0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 64, 65, 130]
TYPES = [np.float32, np.float64]


def rows_of(columns, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.standard_normal((50, columns)).astype(dtype), rng.choice([-1, 1], columns).astype(dtype)


def products(i, signs, rows, chosen):
    padded, out = padded_row(rows), np.full(len(chosen) + TOGETHER - 1, np.nan, rows.dtype)
    lay_out(rows, i, signs, padded)
    inner_products(padded, rows, np.append([49, 48], chosen).astype(chosen.dtype), 2, len(chosen), out)
    return out[: len(chosen)]


def sum_of(rows, weights, *parts):
    total, out = padded_row(rows), np.full((2, rows.shape[1]), np.nan, rows.dtype)
    for chosen in parts:
        add_multiples(rows, chosen, weights[chosen], len(chosen), total)
    write_sum(total, out, 1)
    return out[1]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", LENGTHS)
def test_against_numpy(columns, dtype, index):
    rng, rows, signs = rows_of(columns, dtype)
    for count in range(7):
        chosen, exact = rng.integers(50, size=count).astype(index), rows.astype(float)
        tolerance = {"rtol": 0, "atol": 100 * np.finfo(dtype).eps}
        assert_allclose(products(7, signs, rows, chosen), exact[chosen] @ (exact[7] * signs), **tolerance)
        weights = rng.standard_normal(50).astype(dtype)
        assert_allclose(sum_of(rows, weights, chosen), weights[chosen] @ exact[chosen], **tolerance)


@pytest.mark.parametrize("dtype", TYPES)
@given(columns=st.sampled_from(LENGTHS), seed=st.integers(0, 1000), at=st.integers(0, 20))
def test_neither_order_nor_company_changes_a_bit(dtype, columns, seed, at):
    rng, rows, signs = rows_of(columns, dtype, seed)
    chosen = rng.permutation(50)[:20].astype(np.int32)
    found = products(0, signs, rows, chosen)
    assert_array_equal(found[at:], products(0, signs, rows, chosen[at:]))
    exchanged = [products(j, signs, rows, np.zeros(1, np.int32))[0] for j in chosen]
    assert_array_equal(found, exchanged)
    weights = rng.standard_normal(50).astype(dtype)
    assert_array_equal(sum_of(rows, weights, chosen), sum_of(rows, weights, chosen[:at], chosen[at:]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("columns", [3, 8, 21])
def test_only_what_has_a_number_that_is_not_finite_is_not_finite(columns, bad):
    _, rows, signs = rows_of(columns, np.float64)
    chosen = np.arange(10, dtype=np.int32)
    rows[4, -1] = bad
    found = products(20, signs, rows, chosen)
    assert_array_equal(np.isfinite(found), chosen != 4)
    total = sum_of(rows, np.ones(50), chosen)
    assert_array_equal(np.isfinite(total), np.arange(columns) < columns - 1)


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda rows: rows[:, ::2], lambda rows: rows.astype(np.float32)]
)
def test_arrays_of_another_layout_or_type_are_refused(change):
    """Otherwise other numbers would be read than were passed."""
    _, rows, signs = rows_of(64, np.float64)
    padded, out, chosen = padded_row(rows), np.empty(8), np.arange(5, dtype=np.int32)
    lay_out(rows, 7, signs, padded)
    with pytest.raises(TypingError, match="are required, got"):
        inner_products(padded, change(rows), chosen, 0, 5, out)
    with pytest.raises(TypingError, match="are required, got"):
        add_multiples(change(rows), chosen, np.ones(5), 5, padded)
