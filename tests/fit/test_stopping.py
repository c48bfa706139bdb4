"""Stopping tests: where they end a fit, and where they do not."""

import numpy as np
import pytest
from helpers import OPERATORS, PAPER_EXAMPLE, PROBLEMS, SOLVERS, Problem, run, start
from scripted_solver import Scripted, problem_and_start

from symrelu import decompose
from symrelu.fit.settings import Limits
from symrelu.fitted.history import Status
from symrelu.solvers import AAPB, LBFGS


def planted():
    problem = Problem(PAPER_EXAMPLE, np.zeros((5, 5), bool), np.ones(2))
    return OPERATORS["dense"](problem), start(problem, 0)


def test_stops_at_tol():
    op, U0 = planted()
    solution = run(op, AAPB(), U0, Limits(max_iter=3000))
    assert solution.status is Status.TOLERANCE
    assert solution.converged
    assert solution.relative_error <= 1e-4
    assert solution.history.relative_error[-2] > 1e-4


def test_stops_at_gtol_and_the_condition_holds():
    op, U0 = problem_and_start("alpha")
    solution = run(op, AAPB(momentum=0.0), U0, Limits(tol=0, gtol=1e-3, ftol=0, max_iter=5000))
    assert solution.status is Status.GRADIENT
    U = solution.U
    gradient = -2 * op.residual_product(U, U).product * op.signature + op.alpha * U
    assert np.linalg.norm(gradient) <= 1e-3 * (2 * op.norm + op.alpha) * np.linalg.norm(U) * (1 + 1e-12)


def test_stops_on_a_plateau_but_not_while_momentum_climbs():
    op, U0 = problem_and_start()
    limits = Limits(tol=0, gtol=0, ftol=1e-3, max_iter=100)
    flat = run(op, Scripted((2.0, *[1.0] * 30)), U0, limits)
    assert flat.status is Status.PLATEAU
    assert flat.n_iter == 21
    climbing = run(op, Scripted(tuple(1 + 0.01 * k for k in range(101))), U0, limits)
    assert climbing.status is Status.MAX_ITER


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("momentum", [0.0, 1.0])
@pytest.mark.parametrize("gtol", [1e-2, 2e-3])
def test_a_gradient_stop_is_stationary_at_the_factor_it_returns(label, momentum, gtol):
    """AAPB reports the gradient at another point: the loop has to ask for the one at U."""
    op, U0 = problem_and_start(label)
    limits = Limits(tol=0, gtol=gtol, ftol=0, max_iter=10000)
    solution = run(op, AAPB(momentum=momentum), U0, limits)
    assert solution.status is Status.GRADIENT
    U = solution.U
    gradient = -2 * op.residual_product(U, U).product * op.signature + op.alpha * U
    assert np.linalg.norm(gradient) <= gtol * (2 * op.norm + op.alpha) * np.linalg.norm(U) * (1 + 1e-12)


@pytest.mark.parametrize("seed", [58, 120, 132])
def test_the_paper_example_is_not_given_up_too_early(seed):
    """From these starts the gradient at the extrapolated point once ended the fit above 1e-4."""
    from symrelu import decompose

    assert decompose(PAPER_EXAMPLE, 2, random_state=seed, max_iter=3000).relative_error <= 1e-4


def test_thresholds_are_exactly_where_they_are_promised():
    op, U0 = problem_and_start("alpha")
    many = (1.0,) * 4
    # relative_error = sqrt(2 loss) / ||M||
    losses = tuple(0.5 * (factor * op.norm) ** 2 for factor in (1, 0.1001, 0.0999, 0.05))
    solution = run(op, Scripted(many, losses=losses), U0, Limits(tol=0.1, gtol=0, ftol=0))
    assert (solution.status, solution.n_iter) == (Status.TOLERANCE, 2)
    # ||gradient|| <= gtol (2 ||M|| + alpha) ||U||, and U is all k at step k
    bounds = [0.1 * (2 * op.norm + op.alpha) * k * np.sqrt(U0.size) for k in range(4)]
    gradients = (1e9, bounds[1] * 1.001, bounds[2] * 0.999, 0.0)
    solution = run(op, Scripted(many, gradients=gradients), U0, Limits(tol=0, gtol=0.1, ftol=0))
    assert (solution.status, solution.n_iter) == (Status.GRADIENT, 2)
    for spread, status in ((0.99e-3, Status.PLATEAU), (1.01e-3, Status.MAX_ITER)):
        objectives = (1.0, 1.0 + spread) * 15
        solution = run(op, Scripted(objectives), U0, Limits(tol=0, gtol=0, ftol=1e-3, max_iter=25))
        assert solution.status is status


# --------------------------------------------------------------------- rounding (issue 11.6)


@pytest.mark.parametrize("seed", range(3))
def test_a_plateau_that_rounding_made_is_not_called_converged(seed):
    settings = {"n_negative": 1, "random_state": seed, "max_iter": 1000}
    solution = decompose(np.eye(50, dtype=np.float32), 3, **settings)
    assert solution.relative_error > 1e-3
    assert solution.status is Status.ROUNDING
    assert not solution.converged
    assert "float64" in solution.status.advice
    assert decompose(np.eye(50), 3, **settings).status is Status.TOLERANCE


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("label", PROBLEMS)
def test_an_ordinary_plateau_is_not_blamed_on_rounding(label, dtype):
    problem = PROBLEMS[label].astype(dtype)
    op = OPERATORS["sparse"](problem)
    solution = run(op, LBFGS(), start(problem).astype(dtype), Limits(max_iter=300))
    assert solution.status in (Status.TOLERANCE, Status.GRADIENT, Status.PLATEAU, Status.MAX_ITER)


def test_an_exact_fit_that_ends_in_rounding_has_converged():
    M = np.maximum(0, PAPER_EXAMPLE)
    solution = decompose(M, 2, random_state=0, tol=0, gtol=0, max_iter=3000)
    assert solution.relative_error < 1e-13
    assert solution.status is Status.PLATEAU


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("part", [0.9, 1.02, 1.1, 1.5, 100.0])
def test_a_factor_that_alpha_shrinks_to_nothing_is_said_to_have_vanished(name, part):
    """From alpha = 2 * (largest eigenvalue) on, U = 0 is the minimum."""
    critical = 2 * np.linalg.eigvalsh(PAPER_EXAMPLE).max()
    solution = decompose(PAPER_EXAMPLE, 2, alpha=part * critical, random_state=0, solver=SOLVERS[name])
    assert (solution.status is Status.VANISHED) == (part > 1)
    if part > 1:
        assert solution.relative_error > 0.99
        assert not solution.converged
        assert "Lower alpha" in solution.status.advice
