"""Stopping tests: where they end a fit, and where they do not."""

import numpy as np
import pytest
from helpers import OPERATORS, PAPER_EXAMPLE, PROBLEMS, SOLVERS, Problem, run, start
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scripted_solver import Scripted, problem_and_start

from symrelu import decompose
from symrelu.fit.settings import Limits
from symrelu.fit.stopping import PLATEAU_WINDOW, check_stopping, initial_loop_state, next_loop_state
from symrelu.fitted.history import Record, Status
from symrelu.solvers import AAPB, LBFGS, State


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


# ---------------------------------------------------------------------------------- the tests themselves


def state_of(op, U, objective, gradient_norm=1e9, **others):
    numbers = {"latent_loss": objective, "loss": objective, "latent_norm": 1.0, **others}
    return State(U=U, objective=objective, gradient_norm=gradient_norm, **numbers)


def record_of(iteration=0, error=0.5, seconds=0.0):
    return Record(iteration, 2 * iteration, seconds, error, 1.0, 1.0, 1.0)


def loop_state_of(op, U, objectives, **record):
    """Return the state of the loop after it went through these objectives."""
    loop_state = initial_loop_state(state_of(op, U, objectives[0]), record_of(**record), 0)
    for k, value in enumerate(objectives[1:], 1):
        loop_state = next_loop_state(
            loop_state, state_of(op, U, value), record_of(**{"iteration": k, **record}), 2 * k
        )
    return loop_state


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=60))
def test_a_loop_state_keeps_the_best_state_and_the_last_objectives(objectives):
    op, U = problem_and_start()
    loop_state = loop_state_of(op, U, objectives)
    assert loop_state.state.objective == objectives[-1]
    assert loop_state.best.objective == min(objectives)
    assert list(loop_state.recent_objectives) == objectives[-PLATEAU_WINDOW - 1 :]
    assert loop_state.n_iter == len(objectives) - 1
    assert loop_state.evaluations == 2 * loop_state.n_iter


def test_of_equal_states_the_first_is_the_best():
    op, U = problem_and_start()
    first = initial_loop_state(state_of(op, U, 1.0), record_of(), 0)
    assert next_loop_state(first, state_of(op, U, 1.0), record_of(1), 2).best is first.state


OFF = {"tol": 0.0, "gtol": 0.0, "ftol": 0.0, "max_iter": 100}
VERDICTS = {
    "nothing": ({}, {}, [1.0] * 30, None),
    "tolerance": ({"tol": 0.5}, {"error": 0.5}, [1.0], Status.TOLERANCE),
    "above the tolerance": ({"tol": 0.5}, {"error": 0.5001}, [1.0], None),
    "plateau": ({"ftol": 1e-3}, {}, [1.0] * 21, Status.PLATEAU),
    "a plateau that is too short": ({"ftol": 1e-3}, {}, [1.0] * 20, None),
    "iterations": ({}, {"iteration": 100}, [1.0], Status.MAX_ITER),
    "one iteration less": ({}, {"iteration": 99}, [1.0], None),
    "time": ({"max_time": 3.0}, {"seconds": 3.0}, [1.0], Status.MAX_TIME),
    "a moment before": ({"max_time": 3.0}, {"seconds": 2.9}, [1.0], None),
    "a test goes before a limit": ({"tol": 0.5}, {"iteration": 100, "error": 0.4}, [1.0], Status.TOLERANCE),
    "a limit of steps before one of time": (
        {"max_time": 1.0},
        {"iteration": 100, "seconds": 9.0},
        [1.0],
        Status.MAX_ITER,
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name):
    limits, record, objectives, status = VERDICTS[name]
    op, U = problem_and_start()
    loop_state = loop_state_of(op, U, objectives, **record)
    now, found = check_stopping(op, Limits(**{**OFF, **limits}), loop_state)
    assert found is status
    assert now is loop_state, "no pass was needed"


@pytest.mark.parametrize("at_U", [True, False])
def test_a_gradient_elsewhere_costs_a_pass_and_is_not_asked_for_again_at_once(at_U):
    op, U = problem_and_start()
    state = state_of(op, U, 1.0, gradient_norm=0.0, gradient_at_U=at_U)
    limits = Limits(**{**OFF, "gtol": 1e-12})
    now, status = check_stopping(op, limits, initial_loop_state(state, record_of(), 0))
    assert status is (Status.GRADIENT if at_U else None)
    assert now.evaluations == op.evaluations == (0 if at_U else 1)
    if not at_U:
        gradient = op.alpha * U - 2 * op.residual_product(U, U).product * op.signature
        assert_allclose(now.state.gradient_norm, np.linalg.norm(gradient), rtol=1e-12)
        asked = [step for step in range(1, 50) if _asks_for_a_pass(op, limits, now, state, step)]
        assert asked == list(range(PLATEAU_WINDOW, 50))


def _asks_for_a_pass(op, limits, now, state, step):
    before = op.evaluations
    check_stopping(op, limits, next_loop_state(now, state, record_of(step), 0))
    return op.evaluations > before
