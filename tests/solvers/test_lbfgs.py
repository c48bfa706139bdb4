"""L-BFGS: what it costs, what it promises, and what its preconditioner is."""

from dataclasses import replace

import machine_code
import numpy as np
import pytest
from helpers import COMPILED, OPERATORS, PROBLEMS, Problem, start
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from symrelu import LBFGS, Status, decompose
from symrelu.datasets import make_relu_gram
from symrelu.solvers import lbfgs
from symrelu.solvers.lbfgs import precondition


def hessian_block(problem, U, row):
    """Return the second derivative of the objective with respect to one row, off the changes of sign."""
    s = problem.signature
    V, X = U * s, (U * s) @ U.T
    weight = np.where(problem.M > 0, 1.0, problem.zero_weight * (X > 0)) * ~problem.unknown
    weight[row, row] = 0.0
    return 2 * (V * weight[row][:, None]).T @ V + problem.alpha * np.eye(problem.rank)


@pytest.mark.parametrize("label", ["plain", "mask", "signed"])
def test_the_preconditioner_is_near_the_second_derivative_of_the_rows(label):
    """Its inverse times the true block is near a multiple of the identity, in the mean over the rows."""
    problem = PROBLEMS[label]
    op, U = OPERATORS["sparse"](problem), start(problem)
    state = replace(LBFGS().init(op, U), latent_loss=0.0)  # leaves out what stands for R
    rank = problem.rank
    conditions, plain = [], []
    columns = [precondition(op, state, np.tile(np.eye(rank)[k], (problem.n, 1)))[0] for k in range(rank)]
    inverse = np.stack(columns, axis=1)  # (n, k, rank)
    for row in range(problem.n):
        block = hessian_block(problem, U, row)
        if np.linalg.cond(block) < 1e6:
            conditions.append(np.log(np.linalg.cond(inverse[row] @ block)))
            plain.append(np.log(np.linalg.cond(block)))
    assert np.mean(conditions) < 0.7 * np.mean(plain)


def test_dense_data_use_one_matrix_for_all_rows():
    problem = PROBLEMS["dense data"]
    op = OPERATORS["dense"](problem)
    state = LBFGS().init(op, start(problem))
    G = np.random.default_rng(0).standard_normal(state.U.shape)
    V = state.U * problem.signature
    residual = 2 * np.sqrt(2 * state.latent_loss / problem.n)
    expected = np.linalg.solve(V.T @ V + residual * np.eye(problem.rank), G.T).T  # twice the inverse
    assert_allclose(precondition(op, state, G)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("rank", [12, 30, 60])
@pytest.mark.parametrize("init", ["random", "imputed"])
def test_more_columns_than_needed(rank, init):
    """They made V^T V nearly singular: without a ridge of the size of R a fit of rank n ended at 0.2."""
    M, _ = make_relu_gram(60, 10, random_state=2)
    solution = decompose(M, rank, solver=LBFGS(), init=init, random_state=0, gtol=0, max_iter=400)
    assert solution.status is Status.TOLERANCE


def repeated(U):
    return np.repeat(U[:, :1], U.shape[1], axis=1)


# Issue 11.6: factors whose gram matrix is singular, or nearly so, made from a random one.
SINGULAR = {
    "ones": np.ones_like,
    "ones of norm one": lambda U: np.full_like(U, U.shape[1] ** -0.5),
    "zero": np.zeros_like,
    "a zero column": lambda U: U * (np.arange(U.shape[1]) > 0),
    "one column": lambda U: U * (np.arange(U.shape[1]) == 0),
    "equal columns": repeated,
    "equal columns, all negative": lambda U: -np.abs(repeated(U)),
    "nearly equal columns": lambda U: repeated(U) + 1e-7 * U,
    "large equal columns": lambda U: 1e3 * repeated(U),
    "huge equal columns": lambda U: 1e5 * repeated(U),
    "columns of all sizes": lambda U: U * np.logspace(0, -12, U.shape[1]),
    "columns of all sizes, large ones": lambda U: U * np.logspace(-3, 3, U.shape[1]),
    "few rows": lambda U: U * (np.arange(len(U)) % 4 == 0)[:, None],
    "tiny": lambda U: 1e-12 * U,
}

MATRICES = {
    "ones": lambda n: np.ones((n, n)),
    "identity": np.eye,
    "identity and ones": lambda n: np.eye(n) + 1,
    "one entry": lambda n: np.diag((np.arange(n) == 0).astype(float)),
    "blocks": lambda n: np.equal.outer(np.arange(n) % 3, np.arange(n) % 3).astype(float),
}


@pytest.mark.parametrize("name", ["reference", "dense", "sparse", "torch", "torch, dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=30)  # for each of ten operators
@given(
    kind=st.sampled_from(list(SINGULAR)),
    matrix=st.sampled_from(list(MATRICES)),
    n=st.integers(1, 16),
    rank=st.integers(1, 16),
    negative=st.sampled_from([0.0, 0.5]),
    alpha=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 1000),
)
@example(kind="ones", matrix="ones", n=4, rank=4, negative=0.0, alpha=0.0, seed=0)
@example(kind="ones of norm one", matrix="ones", n=12, rank=12, negative=0.5, alpha=0.0, seed=0)
@example(kind="large equal columns", matrix="identity", n=4, rank=4, negative=0.5, alpha=0.0, seed=0)
@example(kind="huge equal columns", matrix="one entry", n=4, rank=4, negative=0.5, alpha=0.0, seed=0)
def test_singular_starts(dtype, name, kind, matrix, n, rank, negative, alpha, seed):
    """Issue 11.6: in float32 the systems were singular to rounding, and numpy raised LinAlgError."""
    rank = min(n, rank)
    signature = np.where(np.arange(rank) < rank - int(negative * rank), 1.0, -1.0)
    problem = Problem(MATRICES[matrix](n).astype(dtype), np.zeros((n, n), bool), signature, alpha)
    U0 = SINGULAR[kind](np.random.default_rng(seed).standard_normal((n, rank))).astype(dtype)
    op, solver = OPERATORS[name](problem), LBFGS()
    state = solver.init(op, op.asarray(U0))
    for _ in range(8):
        after = solver.step(op, state)
        U = op.to_numpy(after.U)
        assert np.isfinite(U).all()
        assert U.dtype == dtype
        assert after.objective <= state.objective
        state = after


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_goes_on_from_a_singular_start_to_the_end(dtype):
    """Issue 11.6: an exact fit leaves nothing of R, whose size else keeps the systems definite."""
    limits = {"tol": 0, "gtol": 0, "ftol": 0, "max_iter": 20}
    solution = decompose(np.ones((4, 4), dtype), 4, solver="lbfgs", init=np.ones((4, 4), dtype), **limits)
    assert solution.status is Status.MAX_ITER
    assert solution.relative_error <= 1e-6


@pytest.mark.parametrize("size", [-0.9365477, 1.5106773])
def test_changes_of_the_gradient_that_underflow(size):
    """Issue 11.6: a row that decays to nothing made <Y, P Y> zero in float32, and a division by it."""
    problem = Problem(np.diag([1.0, 0.0]).astype(np.float32), np.zeros((2, 2), bool), np.ones(1), alpha=0.1)
    op, solver = OPERATORS["dense"](problem), LBFGS()
    state = solver.init(op, np.array([[0], [size]], np.float32))
    for _ in range(30):
        state = solver.step(op, state)
    assert np.isfinite(state.U).all()
    assert state.objective == 0.5  # of U = 0, a stationary point


@pytest.mark.parametrize("spoilt", [np.nan, np.inf, -1.0])
def test_a_preconditioner_that_fails_is_done_without(spoilt, monkeypatch):
    problem = PROBLEMS["plain"]
    op, solver = OPERATORS["sparse"](problem), LBFGS()
    monkeypatch.setattr(lbfgs, "precondition", lambda op, state, *arrays: [spoilt * G for G in arrays])
    state = solver.init(op, start(problem))
    with np.errstate(invalid="ignore"):
        for _ in range(5):
            after = solver.step(op, state)
            assert after.objective < state.objective
            state = after


def test_a_step_is_one_evaluation_where_it_is_accepted():
    M, _ = make_relu_gram(100, 4, random_state=0)
    solution = decompose(M, 4, solver=LBFGS(), random_state=0)
    assert solution.status is Status.TOLERANCE
    assert solution.n_evaluations <= 1.4 * (solution.n_iter + 1)
    steps = np.diff(solution.history.evaluations)
    assert np.median(steps) == 1
    assert steps.max() <= 4


def test_memory_is_kept():
    problem = PROBLEMS["plain"]
    op, solver = OPERATORS["sparse"](problem), LBFGS(memory=3)
    state = solver.init(op, start(problem))
    for k in range(8):
        assert len(state.steps) == len(state.changes) <= min(k, 3)
        state = solver.step(op, state)
    assert [step.shape for step in state.steps] == [state.U.shape] * 3


@pytest.mark.parametrize("memory", [0, -1, 1.5, True, "ten"])
def test_memory_is_checked(memory):
    with pytest.raises(ValueError, match=r"LBFGS\(memory=...\) must be a positive integer, got"):
        LBFGS(memory=memory)


def test_a_stationary_point_is_kept():
    M, U = make_relu_gram(40, 3, random_state=0)
    solution = decompose(M, 3, solver=LBFGS(), init=U, tol=0, gtol=0, ftol=0, max_iter=5)
    assert solution.relative_error < 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", COMPILED)
def test_warm_up_compiles_what_a_step_needs(name, dtype):
    problem = PROBLEMS["plain"].astype(dtype)
    machine_code.forget()
    op = OPERATORS[name](problem)
    op.warm_up()
    before = machine_code.present()
    state = LBFGS().init(op, start(problem).astype(dtype))
    for _ in range(4):  # with past steps there are more right-hand sides
        state = LBFGS().step(op, state)
    assert len(state.steps) > 1
    assert machine_code.present() == before
