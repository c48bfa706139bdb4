"""Axes with orthonormal products, and the shortest minimum, against scipy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import null_space
from scipy.optimize import minimize

from symrelu.kernels.least_norm import orthonormal_axes, shortest_minimum

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.tuples(st.integers(3, 12), st.integers(1, 5))


def random_columns(rng, n, rank, dependent):
    """Columns of very different sizes, the last ``dependent`` ones sums of the others."""
    V = rng.standard_normal((n, rank))
    for k in range(rank - dependent, rank):
        V[:, k] = V[:, : rank - dependent] @ rng.standard_normal(rank - dependent)
    return V * 10.0 ** rng.integers(-3, 4, rank)


@given(seed=SEEDS, shape=SHAPES, penalised=st.booleans())
def test_products_of_the_axes_are_orthonormal(seed, shape, penalised):
    rng = np.random.default_rng(seed)
    n, rank = shape
    assume(n >= rank)
    V = random_columns(rng, n, rank, 0)
    penalty = rng.random(rank) if penalised else np.zeros(rank)
    P, products, gram = orthonormal_axes(V, penalty, np.ones(rank))
    assert P.shape == (rank, rank)
    assert_allclose(products, V @ P, atol=1e-8)
    assert_allclose(gram, products.T @ products, atol=1e-8)
    whole = np.vstack([products, penalty[:, None] * P])
    assert_allclose(whole.T @ whole, np.eye(rank), atol=0.1)
    assert np.linalg.matrix_rank(P / np.linalg.norm(P, axis=0), tol=1e-12) == rank


@given(seed=SEEDS, n=st.integers(6, 12), rank=st.integers(2, 5), dependent=st.integers(1, 4))
def test_dependent_columns_leave_fewer_axes_and_the_shortest_coordinates(seed, n, rank, dependent):
    assume(dependent < rank)
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, rank - dependent)) @ rng.standard_normal((rank - dependent, rank))
    assume(np.linalg.cond(V.T @ V + null_space(V) @ null_space(V).T) < 1e4)
    stretch = 10.0 ** rng.uniform(-1, 1, rank)
    P, products, _ = orthonormal_axes(V, np.zeros(rank), stretch)
    assert P.shape == (rank, rank - dependent)
    assert_allclose(products, V @ P, atol=1e-8)
    # |stretch u| is least where stretch u is orthogonal to stretch times every direction without products.
    lengths = stretch[:, None] * P
    assert_allclose(lengths.T @ (stretch[:, None] * null_space(V)), 0, atol=1e-7 * np.linalg.norm(lengths))


def random_minimum(rng, n, axes, unknown):
    """A point c that is taken for a minimum, its products, and similarities that agree with it."""
    B, c = rng.standard_normal((n, axes)), rng.standard_normal(axes)
    x = B @ c
    coded = np.where(x > 0, rng.integers(0, 2, n) * np.abs(x), 0.0)
    coded[rng.random(n) < unknown] = -1.0
    return B, c, x, coded


def held_and_walls(x, coded, reached):
    """The items whose products must stay, and those whose products must stay on their side.

    ``reached`` items may have products above their similarity.
    """
    held = ((coded > 0) & ~reached) | ((coded == 0) & (x > 0))
    return held, (coded >= 0) & ~held


def beyond(products, coded):
    """Return how far products are on the wrong side: above zero, or below their similarity."""
    return np.where(coded > 0, coded - products, products)


def shortest_by_scipy(c, x, coded, reached, B, lengths):
    held, wall = held_and_walls(x, coded, reached)
    sides = np.where(coded[wall] > 0, 1.0, -1.0)[:, None]
    basis = null_space(B[held]) if held.any() else np.eye(len(c))
    below = {
        "type": "ineq",
        "fun": lambda y: -beyond(B[wall] @ (c + basis @ y), coded[wall]),
        "jac": lambda y: sides * B[wall] @ basis,
    }
    result = minimize(
        lambda y: np.sum((lengths @ (c + basis @ y)) ** 2) / 2,
        np.zeros(basis.shape[1]),
        jac=lambda y: (lengths @ basis).T @ lengths @ (c + basis @ y),
        constraints=[below] if wall.any() else [],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return c + basis @ result.x


@given(
    seed=SEEDS,
    n=st.integers(1, 8),
    axes=st.integers(2, 5),
    unknown=st.sampled_from([0.0, 0.4]),
    at_least=st.booleans(),
)
def test_the_shortest_minimum_is_that_of_a_quadratic_program(seed, n, axes, unknown, at_least):
    rng = np.random.default_rng(seed)
    B, c, x, coded = random_minimum(rng, n, axes, unknown)
    reached = (coded > 0) & (rng.random(n) < 0.7) & at_least
    coded = np.where(reached, coded * rng.uniform(0.1, 1, n), coded)
    lengths = np.eye(axes) + 0.3 * rng.standard_normal((axes, axes))
    assume(np.linalg.cond(lengths) < 100)
    held, wall = held_and_walls(x, coded, reached)
    shortest = shortest_minimum(c, coded, held, B, lengths)
    assert_allclose(B[held] @ shortest, x[held], atol=1e-9)
    assert (beyond(B @ shortest, coded)[wall] <= 1e-9).all()
    if held.sum() >= axes:  # in general position: nothing is free to move
        assert_allclose(shortest, c, atol=1e-9)
    else:
        expected = np.linalg.norm(lengths @ shortest_by_scipy(c, x, coded, reached, B, lengths))
        assert_allclose(np.linalg.norm(lengths @ shortest), expected, atol=1e-5 * np.linalg.norm(lengths @ c))


def test_without_similarities_the_shortest_is_zero():
    B = np.random.default_rng(0).standard_normal((6, 3))
    c = np.linalg.lstsq(B, -np.ones(6))[0]
    shortest = shortest_minimum(c, np.zeros(6), np.zeros(6, bool), B, np.eye(3))
    assert_allclose(shortest, np.zeros(3), atol=1e-11)


def test_nothing_moves_where_the_items_determine_everything():
    B, c = np.random.default_rng(0).standard_normal((6, 3)), np.ones(3)
    assert shortest_minimum(c, np.abs(B @ c) + 1, np.ones(6, bool), B, np.eye(3)) is c


@pytest.mark.parametrize(("held", "expected"), [(True, [0.5, 0.0]), (False, [0.0, 0.0])])
def test_a_zero_that_is_not_held_may_fall(held, expected):
    """The product of an active zero stays; one that is above zero by rounding alone may fall."""
    B, c = np.array([[1.0, 0.0]]), np.array([0.5, 1.0])
    shortest = shortest_minimum(c, np.zeros(1), np.array([held]), B, np.eye(2))
    assert_allclose(shortest, expected, atol=1e-11)


@pytest.mark.parametrize(("m", "expected"), [(0.25, [0.25, 0.0]), (0.5, [0.5, 0.0]), (0.75, [0.5, 0.0])])
def test_a_similarity_that_is_not_held_falls_as_far_as_it_may(m, expected):
    """Down to m; not at all if rounding, here a large error, left it below m."""
    B, c = np.array([[1.0, 0.0]]), np.array([0.5, 1.0])
    shortest = shortest_minimum(c, np.array([m]), np.zeros(1, bool), B, np.eye(2))
    assert_allclose(shortest, expected, atol=1e-11)


def test_a_minimum_far_from_the_shortest_leaves_no_rounding_behind():
    """Projected once, c left 1e-7 of its length: here as much as the result."""
    held, flat, lengths = np.array([[0.6, 0.8]]), np.array([-0.8, 0.6]), np.diag([1e6, 1.0])
    found = shortest_minimum(held[0] + 1e4 * flat, np.ones(1), np.ones(1, bool), held, lengths)
    expected = np.linalg.solve([held[0], flat @ lengths**2], [1, 0])
    assert_allclose(found, expected, rtol=1e-10, atol=1e-18)
