"""The contract of solvers: values, flat states, pure steps."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, SOLVERS, iterates, start
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.operators import DenseOperator, Operator
from symrelu.solvers import Solver, State
from symrelu.solvers.base import (
    check_count,
    check_range,
    check_supported,
    confirmed,
    inner,
    objective,
    square_norm,
)

STEPS = 20


def run(solver, op, U0, steps=STEPS):
    return iterates(solver, op, U0, steps)[-1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_state_is_flat(solver):
    problem = PROBLEMS["plain"]
    state = run(SOLVERS[solver], OPERATORS["sparse"](problem), start(problem), 3)
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        for part in value if isinstance(value, tuple) else [value]:
            assert isinstance(part, (int, float, np.ndarray)), field.name
    op = OPERATORS["sparse"](problem)
    again = op.loss(state.U)
    assert_allclose(state.latent_loss, again.latent_loss, rtol=1e-12)
    assert_allclose(state.loss, again.loss, rtol=1e-12)
    assert_allclose(state.latent_norm**2, again.latent_norm_squared, rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_are_values(solver):
    instance = SOLVERS[solver]
    assert isinstance(instance, Solver)
    assert dataclasses.replace(instance) == instance
    assert hash(instance) == hash(dataclasses.replace(instance))
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.momentum = 0.5


@pytest.mark.parametrize("solver", SOLVERS)
def test_step_changes_neither_state_nor_start(solver):
    problem, U0 = PROBLEMS["plain"], start(PROBLEMS["plain"])
    op, kept = OPERATORS["dense"](problem), U0.copy()
    state = SOLVERS[solver].init(op, U0)
    first = SOLVERS[solver].step(op, state)
    second = SOLVERS[solver].step(op, state)
    assert_array_equal(U0, kept)
    assert_array_equal(first.U, second.U)


@pytest.mark.parametrize("label", PROBLEMS)
def test_a_confirmed_state_has_the_gradient_at_its_own_factor(label):
    problem = PROBLEMS[label]
    op, U = OPERATORS["reference"](problem), start(problem)
    state = State(
        U=U, objective=1.0, gradient_norm=0.0, latent_loss=1.0, loss=1.0, latent_norm=1.0, gradient_at_U=False
    )
    D, h = np.random.default_rng(0).standard_normal(U.shape), 1e-5
    D /= np.linalg.norm(D)

    def value(A):
        return objective(op, A, op.loss(A).latent_loss)

    gradient = op.alpha * U - 2 * op.residual_product(U, U).product * op.signature
    slope = (value(U + h * D) - value(U - h * D)) / (2 * h)
    assert_allclose(np.sum(gradient * D), slope, rtol=1e-5, atol=1e-6 * np.linalg.norm(gradient))
    found = confirmed(op, state)
    assert_allclose(found.gradient_norm, np.linalg.norm(gradient), rtol=1e-12)
    assert found.gradient_at_U
    assert dataclasses.replace(found, gradient_norm=0.0, gradient_at_U=False).U is state.U
    assert not state.gradient_at_U, "the state itself is a value"


def test_sums_are_made_in_float64():
    op = OPERATORS["dense"](PROBLEMS["plain"].astype(np.float32))
    A = np.full(10**6, 0.1, np.float32)
    exact = 10**6 * float(np.float32(0.1)) ** 2
    assert_allclose(square_norm(op, A), exact, rtol=1e-7)
    assert_allclose(inner(op, A, -A), -exact, rtol=1e-7)


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1, ValueError), (1.0, ValueError), (True, ValueError), ("1", ValueError)],
)
def test_counts_are_positive_integers(value, error):
    check_count(SimpleNamespace(memory=1), "memory")
    with pytest.raises(error, match=r"SimpleNamespace\(memory=...\) must be a positive integer, got"):
        check_count(SimpleNamespace(memory=value), "memory")


@dataclasses.dataclass(frozen=True)
class Holder:
    size: object


@given(
    value=st.floats(),
    low=st.sampled_from([0.0, 0.5]),
    high=st.sampled_from([1.0, math.inf]),
    low_included=st.booleans(),
)
def test_numbers_become_plain_floats_within_their_range(value, low, high, low_included):
    holder = Holder(np.float64(value))
    inside = math.isfinite(value) and value <= high and (low <= value if low_included else low < value)
    if inside:
        check_range(holder, "size", low, high, low_included=low_included)
        assert type(holder.size) is float
        assert holder.size == value
    else:
        with pytest.raises(ValueError, match=r"Holder\(size=...\) must be in"):
            check_range(holder, "size", low, high, low_included=low_included)


@pytest.mark.parametrize("value", ["1", None, True, 1j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=r"Holder\(size=...\) must be a number in \(0, inf\), got"):
        check_range(Holder(value), "size", 0.0, math.inf, low_included=False)


@pytest.mark.parametrize("requires", [None, (), "solve_rows", ("solve_rows", "n_positive")])
def test_what_is_offered_may_be_required(requires):
    check_supported("Solver", requires, DenseOperator, "Take another.")


def test_what_is_missing_is_named():
    with pytest.raises(TypeError, match=r"Solver .* magic and solve_rows .* Operator .* Take another\."):
        check_supported("Solver", ("solve_rows", "magic", "matmul"), Operator, "Take another.")
