"""Inner products and scaled sums of arrays, against the formula in longdouble."""

import machine_code
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels import vectors
from symrelu.kernels.threads import compile_rounds
from symrelu.kernels.vectors import (
    add_scaled,
    combined,
    compile_for,
    concatenated,
    cross_gram,
    inner,
    inner_each,
    product,
    scale_columns,
)

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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=SEEDS, n=st.integers(0, 40), count=st.integers(0, 9), order=ORDERS)
def test_several_arrays_at_once(dtype, seed, n, count, order):
    A, *others = (draw(seed + k, (n, 3), dtype, order) for k in range(count + 1))
    assert_allclose(inner_each(A, others), [inner(A, B) for B in others], rtol=0, atol=1e-14 * (n + 1) * 9)
    weights = np.linspace(-2, 3, count)
    exact = -0.5 * A.astype(float) + sum(w * B.astype(float) for w, B in zip(weights, others, strict=True))
    found = combined(-0.5, A, weights.tolist(), others)
    assert found.dtype == dtype
    assert_allclose(found, exact, rtol=0, atol=8 * np.finfo(dtype).eps * (count + 1) * 15)


@pytest.mark.blas_threads
def test_threads_do_not_change_a_bit(monkeypatch):
    A, *others = (draw(k, (70_000, 4), np.float32, "C") for k in range(4))
    assert A.size > vectors._WHOLE
    found = []
    for count in (1, 3):
        monkeypatch.setattr(vectors, "workers_for", lambda work, count=count: count)
        made = (
            inner_each(A, others),
            combined(2.0, A, [1.0, -1.0, 0.5], others),
            product(A, np.eye(4, dtype="f")[::-1]),
        )
        found.append(made)
    for one, several in zip(*found, strict=True):
        assert_array_equal(one, several)
    assert_allclose(found[0][0], [np.sum(A.astype(float) * B) for B in others], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=SEEDS, n=st.integers(0, 40), rank=st.integers(1, 5), orders=st.tuples(ORDERS, ORDERS))
def test_long_arrays_and_small_ones(dtype, seed, n, rank, orders):
    A, B = (draw(seed + k, (n, rank), dtype, order) for k, order in enumerate(orders))
    small = draw(seed + 2, (rank, 3), dtype, "C")
    weights = np.arange(rank).astype(dtype)
    tolerance = 20 * np.finfo(dtype).eps * (n + 5)
    assert_array_equal(scale_columns(A, weights), A * weights)
    assert_allclose(product(A, small), A.astype(float) @ small, rtol=0, atol=tolerance)
    assert_allclose(cross_gram(A, B), A.astype(float).T @ B, rtol=0, atol=tolerance)
    exact = cross_gram(A, B, np.float64)
    assert exact.dtype == np.float64
    assert_allclose(exact, A.astype(float).T @ B.astype(float), rtol=0, atol=1e-13 * (n + 5))


def test_the_parts_of_a_long_array_are_put_together():
    A, B = (draw(k, (3 * vectors._WHOLE // 4 + 5, 4), np.float64, "C") for k in range(2))
    small = draw(2, (4, 4), np.float64, "C")
    assert_allclose(cross_gram(A, B), A.T @ B, rtol=1e-10)
    assert_allclose(product(A, small), A @ small, rtol=1e-10, atol=1e-12)
    assert_array_equal(scale_columns(A, small[0]), A * small[0])


@pytest.mark.parametrize("sizes", [[], [0], [3, 0, 2], [100, 1, 300]])
def test_arrays_one_after_the_other(sizes, monkeypatch):
    monkeypatch.setattr(vectors, "_WHOLE", 16)
    parts = [np.arange(size, dtype=np.int32) + k for k, size in enumerate(sizes)]
    together = concatenated(parts, np.int32)
    assert together.dtype == np.int32
    assert_array_equal(together, np.concatenate([np.empty(0, np.int32), *parts]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_is_compiled_before_a_fit(dtype):
    machine_code.forget()
    compile_for(np.dtype(dtype))
    compile_rounds()
    before = machine_code.present()
    for size in (3, 2**17 + 1):
        arrays = [np.ones(size, dtype)] * 11
        inner(arrays[0], arrays[1])
        for count in (1, 10, 11):
            inner_each(arrays[0], arrays[:count])
            combined(1.0, arrays[0], [1.0] * count, arrays[:count])
        add_scaled(arrays[0], 1.0, arrays[1])
        scale_columns(arrays[0][:, None], arrays[1][:1])
        product(arrays[0][:, None], np.ones((1, 2), dtype))
    assert machine_code.present() == before
