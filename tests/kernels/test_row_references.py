"""How far rows have moved, and their cosines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.kernels.integer_rows import SCALE, rounding_of_rows
from symrelu.kernels.row_products import TOGETHER, inner_products, lay_out, padded_row
from symrelu.kernels.row_references import (
    EDGES,
    integer_directions,
    movement,
    new_references,
    refer,
    rounding_of_products,
    sample_cosines,
)

SIGNS = np.array([1.0, 1.0, -1.0])
ROUNDING = rounding_of_rows(3)


def rows(n, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, 3)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_movement_is_the_distance_from_the_line_through_the_row(dtype):
    U, V = rows(2000, dtype=dtype), rows(2000, 1, dtype)
    V[np.sum(U * V, axis=1) < 0] *= -1
    references = new_references(U, SIGNS)
    cosines = np.sum(U * V, axis=1) / (np.linalg.norm(U, axis=1) * np.linalg.norm(V, axis=1))
    assert_allclose(movement(references, V), np.sqrt(1 - cosines.astype(float) ** 2), atol=2 * ROUNDING)
    assert movement(references, U).max() <= ROUNDING
    refer(references, np.array([5, 7]), V)
    moved = movement(references, V)
    assert max(moved[[5, 7]]) <= ROUNDING < moved[6]


def test_lengths_do_not_matter_but_directions_do():
    U = rows(300)
    references = new_references(U, SIGNS)
    scales = 10 ** np.random.default_rng(1).uniform(-200, 150, (300, 1))
    assert movement(references, U * scales).max() <= ROUNDING
    assert_array_equal(movement(references, -U), np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 31, 32, 70])
def test_integer_directions(columns, dtype):
    U = np.random.default_rng(0).standard_normal((300, columns)).astype(dtype)
    lengths = np.linalg.norm(U.astype(float), axis=1, keepdims=True)
    expected = np.rint(SCALE * (U / lengths))
    U[7], expected[7] = 0, 0
    for scale in (1, 2.0**-100, 2.0**100):
        found = integer_directions(U * dtype(scale))
        assert_array_equal(found[:, :columns], expected)
        assert not found[:, columns:].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3, 17, 64, 500])
def test_rounding_of_products(columns, dtype):
    """Oracle: integers, whose products are exact. The bound must hold, and not be far too large either."""
    largest = 2 ** np.finfo(dtype).nmant
    integers = np.random.default_rng(columns).integers(-largest, largest, (100, columns))
    U, others, exact = integers.astype(dtype), np.arange(1, 100, dtype=np.int32), integers.astype(object)
    own, found = padded_row(U), np.empty(len(others) + TOGETHER - 1, dtype)
    lay_out(U, 0, np.ones(columns, dtype), own)
    inner_products(own, U, others, 0, len(others), found)
    lengths = np.linalg.norm(integers.astype(float), axis=1)
    errors = [abs(int(found[j - 1]) - exact[0] @ exact[j]) / (lengths[0] * lengths[j]) for j in others.tolist()]
    assert max(errors) <= rounding_of_products(columns, dtype) <= 20 * columns * max(errors)


@given(st.integers(1, 40), st.integers(0, 1000), st.floats(1e-6, 1))
def test_products_change_by_at_most_the_bound(rank, seed, size):
    """That of any two rows, times positive numbers, is close to that of their references."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], rank)
    U = rng.standard_normal((30, rank))
    references = new_references(U, signs)
    V = U + size * rng.standard_normal(U.shape)
    moved = movement(references, V)
    integers = references.packed.transpose(0, 2, 1, 3).reshape(64, -1)[:30, :rank] / SCALE
    longest = 1 + rounding_of_rows(rank)
    assert np.linalg.norm(integers, axis=1).max() <= longest
    V *= np.sum(integers * V, axis=1, keepdims=True) / np.sum(V * V, axis=1, keepdims=True)
    change = (V * signs) @ V.T - (integers * signs) @ integers.T
    moved, change = moved[np.isfinite(moved)], change[np.isfinite(moved)][:, np.isfinite(moved)]
    bound = longest * (moved + moved[:, None]) + moved * moved[:, None]
    assert (np.abs(change) <= bound + 1e-12).all()


def test_a_row_of_zeros_may_stay_zero_but_not_move():
    U = rows(4)
    U[[1, 2]] = 0
    references = new_references(U, SIGNS)
    U[2, 0], U[3] = 1e-300, 0
    moved = movement(references, U)
    assert_array_equal(moved[1:], [0, np.inf, 0])
    assert moved[0] <= ROUNDING


@pytest.mark.parametrize("n", [1, 20, 3000])
def test_cosines_are_counted_at_zeros_of_the_matrix_only(n):
    U = rows(n, seed=n)
    U[0] = 0  # has no cosines
    known = sparse.csr_array((np.random.default_rng(1).random((n, n)) < 0.1).astype(float))
    sampled = np.unique(np.linspace(0, n - 1, 32).astype(int))
    lengths = np.linalg.norm(U, axis=1)
    lengths[0] = np.inf
    cosines = (U[sampled] * SIGNS) @ U.T / np.outer(lengths[sampled], lengths)
    counted = (known[sampled].toarray() == 0) & (lengths < np.inf) & (lengths[sampled] < np.inf)[:, None]
    expected = np.histogram(cosines[counted], EDGES)[0]
    # A row of zeros among the sampled ones has only cosines of zero, which count as the lowest positive ones.
    zero = np.searchsorted(EDGES, 0.0)
    found = sample_cosines(U, SIGNS, known)
    assert found.sum() >= expected.sum()
    assert np.abs(np.delete(found - expected, [zero, zero - 1])).max(initial=0) <= 1


def test_cosines_of_huge_rows_stay_inside_the_counts():
    """In float32 a product with a row longer than 3.4e38 is infinite."""
    U = np.full((40, 4), 3e38, np.float32)
    counts = sample_cosines(U, np.ones(4, np.float32), sparse.csr_array((40, 40)))
    assert counts.sum() == counts[-1] == 32 * 40
