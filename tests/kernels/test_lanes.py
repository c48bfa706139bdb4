"""Sums of products of vectors, lane by lane."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.lanes import LANES, UNROLLED, subtract_products


@njit
def subtract(out, place, left, i, left_step, right, j, right_step, rounds):
    subtract_products(out, place, left, i, left_step, right, j, right_step, rounds)


@given(
    st.integers(0, 1000), st.integers(1, 5), st.integers(0, 3), st.integers(1, 3),
    st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_sums_of_products(seed, rounds, first, step, dtype):
    rng = np.random.default_rng(seed)
    count = UNROLLED * rounds
    left, right, out = (
        rng.standard_normal((size, LANES)).astype(dtype) for size in (first + step * count, count + 2, 4)
    )
    expected = out.astype(float)
    products = left[first : first + step * count : step].astype(float) * right[2 : 2 + count]
    expected[3] -= products.sum(axis=0)
    subtract(out, 3, left, first, step, right, 2, 1, rounds)
    assert_allclose(out, expected, rtol=0, atol=100 * count * np.finfo(dtype).eps)
    assert_array_equal(out[:3], expected[:3].astype(dtype))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_lanes_do_not_meet(bad):
    left, out = np.ones((UNROLLED, LANES)), np.zeros((1, LANES))
    left[1, 2] = bad
    subtract(out, 0, left, 0, 1, np.ones((UNROLLED, LANES)), 0, 1, 1)
    assert not np.isfinite(out[0, 2])
    assert_array_equal(np.delete(out[0], 2), -UNROLLED)
