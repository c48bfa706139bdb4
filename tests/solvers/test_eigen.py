"""The eigenvector step: against an eigendecomposition of W, and what it can do that others cannot."""

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, Problem, start
from numpy.linalg import norm
from numpy.testing import assert_allclose, assert_array_equal

from symrelu import Eigen, Status, decompose
from symrelu.datasets import make_relu_gram


def best_approximation(problem, W):
    """Return X of the exact U-step by a dense eigendecomposition."""
    values, vectors = np.linalg.eigh(W)
    n_negative = int(np.sum(problem.signature < 0))
    positive = np.arange(problem.n) >= problem.n - (problem.rank - n_negative)
    negative = np.arange(problem.n) < n_negative
    kept = positive * np.maximum(values - problem.alpha / 2, 0)
    kept -= negative * np.maximum(-values - problem.alpha / 2, 0)
    return (vectors * kept) @ vectors.T


@pytest.mark.parametrize("label", PROBLEMS)
def test_many_sweeps_are_the_exact_step(label):
    problem = PROBLEMS[label]
    op, U0 = OPERATORS["sparse"](problem), start(problem)
    solver = Eigen(sweeps=500)
    U = solver.step(op, solver.init(op, U0)).U
    expected = best_approximation(problem, problem.latent(U0))
    assert norm((U * problem.signature) @ U.T - expected) <= 1e-6 * norm(expected)


@pytest.mark.parametrize("label", PROBLEMS)
def test_one_sweep_is_the_best_factor_in_the_tangent_space(label):
    problem = PROBLEMS[label]
    op, U0 = OPERATORS["dense"](problem), start(problem)
    U = Eigen().step(op, Eigen().init(op, U0)).U
    W, Q = problem.latent(U0), np.linalg.qr(U0)[0]
    complement = np.eye(problem.n) - Q @ Q.T
    expected = best_approximation(problem, W - complement @ W @ complement)
    assert norm((U * problem.signature) @ U.T - expected) <= 1e-10 * norm(expected)


@pytest.mark.parametrize("sweeps", [1, 4])
def test_a_step_costs_its_sweeps(sweeps):
    M, _ = make_relu_gram(200, 5, random_state=0)
    solution = decompose(M, 5, solver=Eigen(momentum=0, sweeps=sweeps), tol=0, gtol=0, ftol=0, max_iter=10)
    assert solution.n_evaluations == 1 + 10 * sweeps


@pytest.mark.parametrize("momentum", [0.0, 0.5, 1.0])
def test_the_extrapolation(momentum):
    """Step k after a restart goes momentum (k - 1) / (k + 2) beyond the eigenvectors."""
    M, _ = make_relu_gram(100, 4, random_state=0)
    problem = Problem(M, np.zeros(M.shape, bool), np.ones(4))
    op, solver = OPERATORS["dense"](problem), Eigen(momentum=momentum)
    state = solver.init(op, start(problem))
    for k in range(5):
        new = solver.step(op, state)
        b = momentum * max(0, k - 1) / (k + 2)
        assert new.since_restart == k + 1
        assert_allclose(new.U, new.eigenfactor + b * (new.eigenfactor - state.eigenfactor), atol=1e-12)
        state = new


def test_momentum_that_raises_the_objective_is_left_out():
    problem = PROBLEMS["plain"]
    op, solver = OPERATORS["dense"](problem), Eigen()
    state = solver.init(op, start(problem))
    counts = []
    for _ in range(60):
        before = op.evaluations
        state = solver.step(op, state)
        counts.append(op.evaluations - before)
        if counts[-1] > 1:
            assert state.since_restart <= 1
            assert_array_equal(state.U, state.eigenfactor)
    assert max(counts) > 1


def test_one_sweep_becomes_two_where_it_loses_its_way():
    """A star has eigenvalues of equal size and opposite sign: the one that is left out disturbs the other."""
    star = np.zeros((20, 20))
    star[0, 1:] = star[1:, 0] = 1
    problem = Problem(star, np.zeros(star.shape, bool), np.ones(3))
    op, solver = OPERATORS["dense"](problem), Eigen()
    state = solver.init(op, start(problem))
    for _ in range(30):
        state = solver.step(op, state)
    assert state.sweeps == 2
    best = decompose(star, 3, random_state=0).relative_error
    assert op.relative_error(state.loss) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_eigenvalues_reveal_the_signature(seed):
    """With two columns too many, a gap in the eigenvalues of W follows ten positive ones and a negative one."""
    M, _ = make_relu_gram(150, 10, shift=0.1, random_state=seed)
    problem = Problem(M, np.zeros(M.shape, bool), np.where(np.arange(13) < 11, 1.0, -1.0))
    op, solver = OPERATORS["dense"](problem), Eigen()
    state = solver.init(op, start(problem, seed))
    for _ in range(80):
        state = solver.step(op, state)
    leading = state.eigenvalues[np.argsort(-np.abs(state.eigenvalues))]
    size = np.abs(leading[:13])
    assert int(np.argmax(size[:-1] / size[1:])) + 1 == 11
    assert int(np.sum(leading[:11] < 0)) == 1


def test_a_vanished_column_comes_back():
    """Nothing that follows the gradient leaves a column of zeros."""
    M, _ = make_relu_gram(80, 3, random_state=1)
    U0 = np.random.default_rng(0).standard_normal((80, 3))
    U0[:, 1] = 0
    assert decompose(M, 3, solver=Eigen(), init=U0).status is Status.TOLERANCE
    assert decompose(M, 3, solver="lbfgs", init=U0).relative_error > 0.1


@pytest.mark.parametrize("sweeps", [0, -1, 1.5, True, "two"])
def test_sweeps_are_checked(sweeps):
    with pytest.raises(ValueError, match=r"Eigen\(sweeps=...\) must be a positive integer, got"):
        Eigen(sweeps=sweeps)


def test_momentum_is_checked():
    with pytest.raises(ValueError, match=r"Eigen\(momentum=...\) must be in \[0, 1\], got 2"):
        Eigen(momentum=2)
