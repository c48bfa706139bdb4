"""Inner products and scaled sums of arrays, against the formula in longdouble."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.vectors import add_scaled, inner

SEEDS = st.integers(0, 2**32 - 1)
ORDERS = st.sampled_from(["C", "F"])


def draw(seed, shape, dtype, order):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype, order=order)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=SEEDS, n=st.integers(0, 40), rank=st.integers(1, 7), orders=st.tuples(ORDERS, ORDERS))
def test_inner_product(dtype, seed, n, rank, orders):
    A, B = (draw(seed + k, (n, rank), dtype, order) for k, order in enumerate(orders))
    exact = np.sum(A.astype(np.longdouble) * B)
    size = np.sum(np.abs(A.astype(float) * B))
    assert_allclose(inner(A, B), float(exact), rtol=0, atol=1e-15 * (size + 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=SEEDS, n=st.integers(0, 40), weight=st.floats(-1e3, 1e3), orders=st.tuples(ORDERS, ORDERS))
def test_scaled_sum(dtype, seed, n, weight, orders):
    A, B = (draw(seed + k, (n, 3), dtype, order) for k, order in enumerate(orders))
    before = A.copy(), B.copy()
    found = add_scaled(A, weight, B)
    assert found.dtype == dtype
    eps = np.finfo(dtype).eps
    assert_allclose(
        found, A.astype(float) + weight * B.astype(float), rtol=0, atol=4 * eps * (abs(weight) + 1) * 5
    )
    assert_array_equal(A, before[0])  # states share their arrays
    assert_array_equal(B, before[1])


def test_products_beyond_the_range_of_float32():
    A = np.full((3, 2), 1e30, np.float32)
    assert_allclose(inner(A, A), 6e60, rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_shows(value):
    A = np.ones((4, 2))
    A[2, 1] = value
    assert not np.isfinite(inner(A, A))
    assert not np.isfinite(add_scaled(np.ones((4, 2)), 2.0, A)[2, 1])
