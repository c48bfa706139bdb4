"""Newton's method: what a step is, what it costs, and when it leaves the step to LBFGS."""

from dataclasses import replace

import machine_code
import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, active, factor, start
from numpy.linalg import norm
from numpy.testing import assert_allclose, assert_array_equal

from symrelu import LBFGS, Newton, Status, decompose
from symrelu.graphs import self_tuning_graph
from symrelu.operators import Operator, pass_costs
from symrelu.solvers import newton

MODEL = {"n_negative": 1, "diagonal": "ignore", "random_state": 0}

EAGER = Newton(switch=10.0)  # random starts are far away


@pytest.fixture
def at_once(monkeypatch):
    """Steps of Newton with any number of positive zeros."""
    monkeypatch.setattr(newton, "_MOST_ZEROS", np.inf)


def plane(n):
    return self_tuning_graph(np.random.default_rng(0).random((n, 2)), n_neighbors=8)


def matrix_of(curvature, shape):
    """Return the second derivative as a matrix."""
    columns = np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    return np.stack([curvature.product(D).ravel() for D in columns])


@pytest.mark.parametrize("label", ["signed", "everything"])
@pytest.mark.parametrize("radius", [1e-3, 0.1])
def test_the_step_is_the_minimum_of_the_model(label, radius, monkeypatch):
    """The conditions of a trust region, where the second derivative is definite."""
    monkeypatch.setattr(newton, "_FORCING", 1e-12)
    problem = replace(PROBLEMS[label], alpha=60.0)
    op, U = OPERATORS["active"](problem), start(problem)
    state = replace(Newton().init(op, U), radius=radius)
    curvature = op.curvature(U, 0.1)
    H, g = matrix_of(curvature, U.shape), state.gradient.ravel()
    assert_allclose(H, H.T, atol=1e-10 * norm(H))
    assert np.linalg.eigvalsh(H)[0] > 0
    found = newton._minimum(op, state, curvature, radius * norm(U), 500)
    d = found.D.ravel()
    assert_allclose(found.fall, -(g @ d + d @ H @ d / 2), rtol=1e-9)
    whole = np.linalg.solve(H, -g)
    if norm(whole) <= radius * norm(U):
        assert not found.bounded
        assert_allclose(d, whole, rtol=1e-6, atol=1e-8 * norm(whole))
    else:
        assert found.bounded
        assert_allclose(norm(d), radius * norm(U), rtol=1e-10)
        # Steihaug's step falls by at least as much as the best one along the preconditioned gradient.
        z = -curvature.row_solver(newton._ridge(op, state))(state.gradient).ravel()
        t = min(-(g @ z) / (z @ H @ z), radius * norm(U) / norm(z))
        assert found.fall >= -(t * g @ z + t * t * z @ H @ z / 2) * (1 - 1e-9)


def test_negative_curvature_leads_to_the_border():
    problem = PROBLEMS["signed"]
    op, U = OPERATORS["active"](problem), 0.1 * start(problem)
    assert np.linalg.eigvalsh(matrix_of(op.curvature(U, 0.02), U.shape))[0] < 0
    state = replace(Newton().init(op, U), radius=0.3)
    found = newton._minimum(op, state, op.curvature(U, 0.06), 0.3 * norm(U), 500)
    assert found.bounded
    assert found.fall > 0


@pytest.mark.parametrize(
    ("square", "across", "expected"), [(0.0, 0.0, 2.0), (1.0, 1.0, 1.0), (1.0, -1.0, 3.0), (4.0, 1.0, 0.0)]
)
def test_the_way_to_the_border(square, across, expected):
    assert newton._to_border(square, across, 1.0, 2.0) == pytest.approx(expected)


def test_fewer_evaluations_than_lbfgs(monkeypatch):
    """Less than two thirds, with one evaluation a step."""
    monkeypatch.setattr(pass_costs, "_NS_OF_A_ROW", 0.0)  # lists for small matrices too
    M = plane(400)
    ours, theirs = (
        decompose(M, 12, backend="active", init="multilevel", solver=solver, **MODEL)
        for solver in (Newton(), LBFGS())
    )
    assert ours.status is theirs.status is Status.TOLERANCE
    assert ours.n_evaluations <= 2 / 3 * theirs.n_evaluations


def test_a_step_is_one_evaluation_with_the_list_and_two_without(at_once):
    problem = PROBLEMS["signed"]
    for name, cost in (("active", 1), ("sparse", 2), ("dense", 2), ("reference", 1)):
        op = OPERATORS[name](problem)
        state = EAGER.init(op, start(problem))
        assert op.evaluations == 1
        for k in range(1, 6):
            state = EAGER.step(op, state)
            assert op.evaluations == 1 + cost * k, name


def test_too_many_pairs_leave_the_step_to_lbfgs(at_once, monkeypatch):
    problem = PROBLEMS["plain"]
    op, U = active(problem, always_lists=True), start(problem)
    monkeypatch.setattr(op, "_listed", lambda *_: None)
    assert op.curvature(U, 0.1) is None
    ours, theirs = Newton(switch=10.0, memory=3).init(op, U), LBFGS(memory=3).init(op, U)
    ours = replace(ours, radius=0.4)
    for _ in range(6):
        ours, theirs = Newton(switch=10.0, memory=3).step(op, ours), LBFGS(memory=3).step(op, theirs)
        assert_array_equal(ours.U, theirs.U)
        assert len(ours.steps) == len(theirs.steps) <= 3
    assert ours.radius == newton._FIRST_RADIUS  # a shorter reach was asked for first


def test_many_positive_zeros_leave_the_step_to_lbfgs(at_once, monkeypatch):
    problem = PROBLEMS["signed"]
    op = OPERATORS["active"](problem)
    state = EAGER.init(op, start(problem))
    steps = []
    for limit in (0.99, 1.01):
        monkeypatch.setattr(newton, "_MOST_ZEROS", limit * state.active_zeros / op.n_positive)
        steps.append(norm(EAGER.step(op, state).U - LBFGS().step(op, state).U))
    assert steps[0] == 0 < steps[1]


def test_large_errors_leave_the_step_to_lbfgs(at_once):
    problem = PROBLEMS["signed"]
    op = OPERATORS["active"](problem)
    state = EAGER.init(op, start(problem))
    error = op.relative_error(state.loss)
    below, above = (
        norm(Newton(switch=t * error).step(op, state).U - LBFGS().step(op, state).U) for t in (0.99, 1.01)
    )
    assert below == 0 < above


def test_a_rejected_step_keeps_the_factor_and_shortens_the_radius(at_once, monkeypatch):
    problem = PROBLEMS["signed"]
    op = OPERATORS["active"](problem)
    state = EAGER.init(op, start(problem))
    monkeypatch.setattr(newton, "_minimum", lambda *_: newton.Minimum(factor(problem, 5), 1.0, True))
    after = EAGER.step(op, state)
    assert after.U is state.U
    assert after.radius == pytest.approx(min(0.35 * norm(factor(problem, 5)) / norm(state.U), 0.4))
    assert after.reach == 2 * state.reach


@pytest.mark.parametrize("fall", [0.0, -1.0, np.nan])
def test_a_model_that_does_not_fall_leaves_the_step_to_lbfgs(fall, at_once, monkeypatch):
    problem = PROBLEMS["signed"]
    op = OPERATORS["active"](problem)
    state = EAGER.init(op, start(problem))
    monkeypatch.setattr(newton, "_minimum", lambda *_: newton.Minimum(0 * state.U, fall, False))
    assert_array_equal(EAGER.step(op, state).U, LBFGS().step(op, state).U)


@pytest.mark.parametrize("kind", ["zero", "equal columns", "huge", "tiny", "few rows"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_starts(dtype, kind, at_once):
    problem = PROBLEMS["signed"].astype(dtype)
    U = start(problem).astype(dtype)
    U0 = {
        "zero": 0 * U,
        "equal columns": np.repeat(U[:, :1], U.shape[1], axis=1),
        "huge": 1e4 * U,
        "tiny": 1e-10 * U,
        "few rows": U * (np.arange(len(U)) % 4 == 0)[:, None],
    }[kind].astype(dtype)
    op = OPERATORS["active"](problem)
    state = Newton().init(op, U0)
    for _ in range(10):
        after = EAGER.step(op, state)
        assert np.isfinite(after.U).all()
        assert after.U.dtype == dtype
        assert after.objective <= state.objective
        state = after


def test_an_operator_without_the_curvature_is_refused():
    class Plain(Operator):
        n_positive = solve_rows = None

    from symrelu.fit.loop import check_solver_supported

    message = "Newton requires curvature of the operator, which Plain does not offer. Use backend='active'"
    with pytest.raises(TypeError, match=message):
        check_solver_supported(Plain, Newton())


@pytest.mark.parametrize("name", ["products", "memory"])
def test_counts_are_checked(name):
    with pytest.raises(ValueError, match=rf"Newton\({name}=...\) must be a positive integer, got 0"):
        Newton(**{name: 0})


def test_the_switch_is_checked():
    with pytest.raises(ValueError, match=r"Newton\(switch=...\) must be in \[0, inf\), got -1"):
        Newton(switch=-1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["dense", "sparse", "active"])
def test_everything_is_compiled_before_the_clock_starts(name, dtype, at_once):
    problem = PROBLEMS["signed"].astype(dtype)
    machine_code.forget()
    op = OPERATORS[name](problem)
    op.warm_up()
    op.warm_up_curvature()
    before = machine_code.present()
    state = EAGER.init(op, start(problem).astype(dtype))
    for _ in range(3):
        state = EAGER.step(op, state)
    assert machine_code.present() == before
