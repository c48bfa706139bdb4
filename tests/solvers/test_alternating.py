"""The U-part of the alternating objective, against F(W, Y) = 1/2 ||W - (Y*s) Y^T||^2 on full matrices."""

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, factor
from numpy.testing import assert_allclose

from symrelu.solvers.alternating import partial_gradient, rise


def gram(Y, s):
    return (Y * s) @ Y.T


def half_square(W, Y, s):
    return np.sum((W - gram(Y, s)) ** 2) / 2


@pytest.fixture(params=PROBLEMS)
def case(request):
    """An operator, its signs, two factors, W of the first one, and the pass over U and Y."""
    problem = PROBLEMS[request.param]
    op, s = OPERATORS["reference"](problem), problem.signature
    U, Y = factor(problem, 1), factor(problem, 2)
    W = gram(U, s) + op.residual_product(U, np.eye(problem.n)).product
    return op, s, U, Y, W, op.residual_product(U, Y)


def test_partial_gradient_by_its_formula(case):
    op, s, U, Y, W, passed = case
    expected = 2 * (gram(Y, s) - W) @ (Y * s)
    found = partial_gradient(op, U, Y, passed.product)
    assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_partial_gradient_by_central_differences(case):
    op, s, U, Y, W, passed = case
    D, h = np.random.default_rng(0).standard_normal(Y.shape), 1e-4
    slope = (half_square(W, Y + h * D, s) - half_square(W, Y - h * D, s)) / (2 * h)
    found = partial_gradient(op, U, Y, passed.product)
    assert_allclose(np.sum(found * D), slope, rtol=1e-5, atol=1e-5 * np.linalg.norm(found))


def test_rise_by_its_formula(case):
    op, s, U, Y, W, passed = case
    expected = half_square(W, Y, s) - half_square(W, U, s)
    size = half_square(W, Y, s) + half_square(W, U, s)
    assert_allclose(rise(op, U, Y, passed.product, passed.alignment), expected, atol=1e-12 * size)
    assert rise(op, U, U, passed.product, passed.alignment) == 0.0


@pytest.mark.parametrize("step", [1e-4, 1e-8, 1e-12])
def test_partial_gradient_keeps_its_digits_near_a_solution(step):
    """With R = 0 the two products of the textbook formula cancel to all but a few digits."""
    problem = PROBLEMS["signed"]
    op, s = OPERATORS["reference"](problem), problem.signature.astype(np.longdouble)
    rng = np.random.default_rng(0)
    U = rng.integers(-4, 5, (problem.n, problem.rank)).astype(float)
    Y = U + step * rng.standard_normal(U.shape)
    exact_U, exact_Y = U.astype(np.longdouble), Y.astype(np.longdouble)
    expected = 2 * (gram(exact_Y, s) - gram(exact_U, s)) @ (exact_Y * s)
    found = partial_gradient(op, U, Y, np.zeros_like(U))
    # Longdouble has 3 digits more than double: enough of an oracle for steps of 1e-4, not for 1e-12.
    noise = np.finfo(np.longdouble).eps * np.abs(exact_U @ exact_U.T).max() ** 2
    assert_allclose(
        found, expected.astype(float), rtol=1e-12, atol=float(1e3 * noise) + 1e-13 * np.abs(found).max()
    )
