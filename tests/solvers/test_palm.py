"""PALM against the formulas on full matrices."""

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, start
from numpy.linalg import norm
from numpy.testing import assert_allclose

from symrelu import PALM, Status, decompose


@pytest.mark.parametrize("momentum", [0.0, 1.0])
@pytest.mark.parametrize("label", PROBLEMS)
def test_a_step_is_a_proximal_gradient_step(label, momentum):
    problem = PROBLEMS[label]
    op, s, solver = OPERATORS["sparse"](problem), problem.signature, PALM(momentum=momentum)
    state = solver.init(op, start(problem))
    previous = state.U
    for k in range(12):
        U = state.U
        W = problem.latent(U)
        Y = U + (momentum * (k - 1) / (k + 2) if k > 0 else 0.0) * (U - previous)
        gradient = 2 * ((Y * s) @ (Y.T @ Y) - W @ Y) * s
        assert_allclose(state.extrapolated, Y, atol=1e-12 * norm(U))
        new = solver.step(op, state)
        L = new.curvature / 0.9
        assert_allclose(new.U, (L * Y - gradient) / (L + problem.alpha), atol=1e-9 * norm(U))

        def F(A, W=W):
            return 0.5 * norm(W - (A * s) @ A.T) ** 2

        model = F(Y) - F(U) + np.sum(gradient * (new.U - Y)) + L / 2 * norm(new.U - Y) ** 2
        assert new.latent_loss - state.latent_loss <= model + 1e-9 * norm(W) ** 2
        previous, state = U, new


def test_a_step_is_mostly_one_evaluation():
    op = OPERATORS["sparse"](PROBLEMS["plain"])
    state = PALM(momentum=1.0).init(op, start(PROBLEMS["plain"]))
    for _ in range(200):
        state = PALM(momentum=1.0).step(op, state)
    assert op.evaluations < 1.3 * 200


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_float32_ends_where_nothing_is_left_to_gain(momentum):
    """The inequality was lost in rounding, and L doubled until the fit was no longer finite."""
    star = np.zeros((20, 20), np.float32)
    star[0, 1:] = star[1:, 0] = 1
    solution = decompose(star, 3, solver=PALM(momentum=momentum), random_state=0, max_iter=800)
    assert solution.status is not Status.NON_FINITE
    assert solution.relative_error == pytest.approx(np.sqrt(0.5), rel=1e-3)
    assert solution.n_evaluations < 1200
