"""The contract of solvers: values, flat states, pure steps."""

import dataclasses

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, SOLVERS, iterates, start
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.solvers import Solver

STEPS = 20


def run(solver, op, U0, steps=STEPS):
    return iterates(solver, op, U0, steps)[-1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_state_is_flat(solver):
    problem = PROBLEMS["plain"]
    state = run(SOLVERS[solver], OPERATORS["sparse"](problem), start(problem), 3)
    for field in dataclasses.fields(state):
        assert isinstance(getattr(state, field.name), (int, float, np.ndarray)), field.name
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
