"""Steps along a direction, against the formulas on full matrices."""

import math

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, evaluate, factor
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from symrelu.solvers.line_search import Quartic, cubic_minimum, majoriser


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("name", OPERATORS)
def test_majoriser_is_the_partial_objective_along_the_line(label, name):
    problem = PROBLEMS[label]
    op = OPERATORS[name](problem)
    U, D, s = factor(problem, 1), factor(problem, 2), problem.signature
    W = problem.latent(U)
    passed = evaluate(op, U, U)
    gradient = op.alpha * U - 2 * passed.product * s
    quartic = majoriser(op, *map(op.asarray, (U, gradient, D)))

    def partial_objective(t):
        Y = U + t * D
        return 0.5 * np.sum((W - (Y * s) @ Y.T) ** 2) + op.alpha / 2 * np.sum(Y**2)

    scale = partial_objective(0) + partial_objective(1)
    for t in (0.0, 0.3, 1.0, -0.7):
        value = t * (quartic.linear + t * (quartic.square + t * (quartic.cube + t * quartic.fourth)))
        assert_allclose(value, partial_objective(t) - partial_objective(0), atol=1e-11 * scale)
        after = evaluate(op, U + t * D)
        change = after.latent_loss - passed.latent_loss
        change += op.alpha / 2 * (np.sum((U + t * D) ** 2) - np.sum(U**2))
        assert change <= value + 1e-11 * scale  # it lies above


@given(
    linear=st.floats(-1e6, -1e-6),
    square=st.floats(-1e6, 1e6),
    cube=st.floats(-1e6, 1e6),
    fourth=st.floats(1e-3, 1e6),
)
def test_the_first_minimum_of_a_quartic(linear, square, cube, fourth):
    quartic = Quartic(linear, square, cube, fourth)
    t = quartic.first_minimum()
    roots = np.roots([4 * fourth, 3 * cube, 2 * square, linear])
    positive = sorted(root.real for root in roots if abs(root.imag) < 1e-9 * abs(root) and root.real > 0)
    assert 0 < t < math.inf
    value = t * (linear + t * (square + t * (cube + t * fourth)))
    assert value < 0
    assert any(abs(t - root) <= 1e-5 * root for root in positive)


def test_a_quartic_that_falls_for_ever():
    assert Quartic(-1.0, 0.0, 0.0, 0.0).first_minimum() == math.inf


def test_cubic_minimum():
    # f(t) = t^3 - t^2 - t: f(1) = -1, slopes -1 and 0; its minimum is at 1.
    assert cubic_minimum(1.0, -1.0, 0.0) == pytest.approx(1.0)
    # f(t) = t^2 - t/2: minimum at 1/4, f(1) = 1/2.
    assert cubic_minimum(-0.5, -0.5, 1.5) == pytest.approx(0.25)
    assert math.isnan(cubic_minimum(math.nan, -1.0, 1.0))
    assert math.isnan(cubic_minimum(1.0, -1.0, -1.0))  # falls at both ends, by its mean slope
