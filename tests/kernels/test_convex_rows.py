"""The kernels of the convex problems of new rows, against their cost written out."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.convex_rows import add_partial_grams, differentiate_rows, move_rows

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 8))
WEIGHTS = st.sampled_from([1.0, 0.25, 3.0])
LONGEST = 100.0
ENOUGH = 0.01


def gaps(X, coded, at_least):
    """Return what a product exceeds its similarity by, as far as that counts."""
    return np.minimum(0, X - coded) if at_least else X - coded


def cost(X, coded, zero_weight, at_least):
    """Return the cost of each row."""
    squares = np.where(coded > 0, gaps(X, coded, at_least) ** 2, zero_weight * np.maximum(0, X) ** 2)
    return np.sum(np.where(coded < 0, 0.0, squares), axis=1) / 2


def derivative(X, coded, zero_weight, at_least):
    """Return the derivative of the cost by each product."""
    of_zeros = np.where(coded == 0, zero_weight * np.maximum(0, X), 0.0)
    return np.where(coded > 0, gaps(X, coded, at_least), of_zeros)


def active_entries(X, coded, at_least):
    """Return where the cost has curvature."""
    return ((coded == 0) & (X > 0)) | ((coded > 0) & ((coded > X) | (not at_least)))


def random_rows(rng, shape):
    """Return products and coded similarities: a third positive, a third zero, a third unknown."""
    coded = np.choose(rng.integers(0, 3, shape), [rng.uniform(0.1, 2, shape), 0.0, -1.0])
    return rng.standard_normal(shape), coded


@given(seed=SEEDS, shape=SHAPES, zero_weight=WEIGHTS, at_least=st.booleans())
def test_the_excess_is_the_derivative_of_the_cost(seed, shape, zero_weight, at_least):
    X, coded = random_rows(np.random.default_rng(seed), shape)
    # Differences across the corners of the derivative say nothing.
    assume((np.abs(X) > 1e-3).all() and (np.abs(X - coded) > 1e-3).all())
    excess, active = np.full(shape, np.nan), np.zeros(shape, np.uint8)
    differentiate_rows(X, coded, zero_weight, at_least, excess, active)
    h = 1e-4
    for j in range(shape[1]):
        step = h * (np.arange(shape[1]) == j)
        above, below = (cost(X + sign * step, coded, zero_weight, at_least) for sign in (1, -1))
        slope = (above - below) / (2 * h)
        assert_allclose(excess[:, j], slope, rtol=0, atol=1e-9)
    assert_array_equal(excess[coded < 0], 0)


@given(seed=SEEDS, shape=SHAPES, at_least=st.booleans())
def test_entries_that_change_sides_are_counted(seed, shape, at_least):
    rng = np.random.default_rng(seed)
    X, coded = random_rows(rng, shape)
    excess, active = np.empty(shape), np.zeros(shape, np.uint8)
    before = active_entries(X, coded, at_least)
    assert_array_equal(differentiate_rows(X, coded, 1.0, at_least, excess, active), before.sum(axis=1))
    assert_array_equal(active, before)
    assert_array_equal(differentiate_rows(X, coded, 1.0, at_least, excess, active), 0)
    other = rng.standard_normal(shape)
    changed = differentiate_rows(other, coded, 1.0, at_least, excess, active)
    assert_array_equal(changed, (before != active_entries(other, coded, at_least)).sum(axis=1))


def descent(rng, shape, zero_weight, at_least):
    """Return a problem of each row, with directions along which its cost falls at first."""
    X, coded = random_rows(rng, shape)
    Z = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3, (shape[0], 1))
    penalty_slopes, penalty_curvatures = rng.standard_normal(shape[0]), rng.uniform(0.1, 1, shape[0])
    slopes = np.sum(derivative(X, coded, zero_weight, at_least) * Z, axis=1) + penalty_slopes
    sign = -np.sign(slopes)
    return X, Z * sign[:, None], coded, -np.abs(slopes), penalty_slopes * sign, penalty_curvatures


def moved(X, Z, coded, zero_weight, at_least, slopes, penalty_slopes, penalty_curvatures):
    """Return the new products and the lengths of the steps."""
    X, steps = X.copy(), np.full(len(X), np.nan)
    move_rows(X, Z, coded, zero_weight, at_least, slopes, penalty_slopes, penalty_curvatures, steps)
    return X, steps


@given(seed=SEEDS, shape=SHAPES, zero_weight=WEIGHTS, at_least=st.booleans())
def test_a_move_ends_where_the_slope_has_nearly_vanished(seed, shape, zero_weight, at_least):
    X, Z, coded, slopes, linear, square = descent(np.random.default_rng(seed), shape, zero_weight, at_least)
    new, steps = moved(X, Z, coded, zero_weight, at_least, slopes, linear, square)
    assert (steps > 0).all()
    assert (steps <= LONGEST).all()
    assert_allclose(new, X + steps[:, None] * Z, rtol=0, atol=1e-12 * max(1, np.abs(Z).max()))
    left = np.sum(derivative(new, coded, zero_weight, at_least) * Z, axis=1) + linear + steps * square
    scale = ENOUGH * np.abs(slopes) + 1e-9
    assert (left <= scale).all()
    assert ((left >= -scale) | (steps == LONGEST)).all()


@given(seed=SEEDS, shape=SHAPES, at_least=st.booleans())
def test_rows_are_moved_apart_from_each_other(seed, shape, at_least):
    problem = descent(np.random.default_rng(seed), shape, 1.0, at_least)
    X, Z, coded, *scalars = problem
    together, steps = moved(X, Z, coded, 1.0, at_least, *scalars)
    for i in range(shape[0]):
        own = slice(i, i + 1)
        alone, step = moved(X[own], Z[own], coded[own], 1.0, at_least, *(values[own] for values in scalars))
        assert_array_equal(alone, together[own])
        assert_array_equal(step, steps[own])


def one_entry(x, z, m, at_least=False):
    """Move one product along one direction, without a penalty; return the length of the step."""
    X, Z, coded = np.array([[x]]), np.array([[z]]), np.array([[m]])
    slopes = derivative(X, coded, 1.0, at_least)[:, 0] * Z[:, 0]
    return moved(X, Z, coded, 1.0, at_least, slopes, np.zeros(1), np.zeros(1))[1][0]


def test_single_products():
    assert_allclose(one_entry(0.0, 0.5, 2.0), 4.0)  # to the similarity
    assert_allclose(one_entry(0.0, 8.0, 2.0), 0.25)
    assert one_entry(1.0, -2.0, 0.0) == 1.0  # a zero costs nothing once its product is negative
    assert one_entry(1.0, 2.0, -1.0) == 1.0  # what is unknown decides nothing
    assert one_entry(0.0, 1e-3, 1.0) == LONGEST  # 1000 would be the lowest
    assert_allclose(one_entry(0.0, 0.5, 2.0, at_least=True), 4.0)
    assert one_entry(0.0, 8.0, 2.0, at_least=True) == 1.0  # a similarity costs nothing once it is reached


@given(SEEDS, st.integers(1, 4), st.integers(1, 700), st.integers(1, 4), st.sampled_from([1.0, 0.25]))
def test_partial_grams(seed, rows, n, rank, weight):
    """More items than are gathered at once, added and subtracted."""
    rng = np.random.default_rng(seed)
    B, changes = rng.standard_normal((n, rank)), rng.integers(-1, 2, (rows, n)).astype(np.int8)
    hessians = rng.standard_normal((rows, rank, rank))
    expected = hessians + weight * np.einsum("ij,ja,jb->iab", changes.astype(float), B, B)
    add_partial_grams(hessians, B, changes, weight)
    assert_allclose(hessians, expected, rtol=0, atol=1e-12 * n)
