"""Momentum: its weights, its points, and the rate that they promise on a convex problem."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from symrelu.solvers.momentum import extrapolate, extrapolation_weight


@given(k=st.integers(1, 10**6), momentum=st.floats(0.0, 1.0))
def test_the_weight_is_the_fraction_of_the_paper(k, momentum):
    expected = Fraction(momentum) * Fraction(k - 1, k + 2)
    assert_allclose(extrapolation_weight(momentum, k), float(expected), rtol=1e-15)


@given(k=st.integers(0, 10**6))
def test_weights_grow_from_zero_and_stay_below_the_momentum(k):
    assert extrapolation_weight(0.7, 0) == extrapolation_weight(0.7, 1) == 0
    assert extrapolation_weight(0.7, k) <= extrapolation_weight(0.7, k + 1) < 0.7


@given(weight=st.floats(1e-6, 2.0), seed=st.integers(0, 2**32 - 1))
def test_the_point_lies_beyond_the_last_step(weight, seed):
    U, previous = np.random.default_rng(seed).standard_normal((2, 5, 3))
    assert_allclose(extrapolate(U, previous, weight), (1 + weight) * U - weight * previous, atol=1e-13)


def test_without_weight_nothing_is_computed():
    U = np.ones((3, 2))
    assert extrapolate(U, np.full((3, 2), np.nan), 0.0) is U


@pytest.mark.parametrize("n", [20, 200])
def test_gradient_steps_from_these_points_are_accelerated(n):
    """Nesterov's bound 2 L |x0 - x*|^2 / (k + 1)^2, on his worst quadratic."""
    A = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    b, L = np.eye(n)[0], 4.0
    solution = np.linalg.solve(A, b)
    x = previous = np.zeros(n)
    for k in range(1, 100):
        y = extrapolate(x, previous, extrapolation_weight(1.0, k - 1))
        x, previous = y - (A @ y - b) / L, x
        error = (x - solution) @ A @ (x - solution) / 2
        assert error <= 2 * L * (solution @ solution) / (k + 1) ** 2
