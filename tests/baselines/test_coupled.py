"""Symmetric NMF by two coupled factors: descent, fixed points, refusals."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from repeated_eigenvalues import REPEATED
from scipy import sparse
from scipy.optimize import nnls

from symrelu import Solution, Status, decompose
from symrelu.baselines import SymANLS, SymHALS, symmetric_nmf, truncated_eigen
from symrelu.baselines.linear import LinearModelOperator
from symrelu.datasets import make_relu_gram

SOLVERS = [SymHALS(), SymANLS(), SymHALS(coupling=3.0), SymANLS(coupling=0.01)]


def graph(n=60, seed=0):
    return make_relu_gram(n, 4, shift=0.1, random_state=seed)[0]


def nnls_rows(gram, target):
    """Solve each row by scipy: |L^T x - L^-1 t|^2 has the same minimiser."""
    L = np.linalg.cholesky(gram)
    return np.array([nnls(L.T, np.linalg.solve(L, t))[0] for t in target])


def coupled_objective(M, U, V, coupling):
    return np.linalg.norm(M - U @ V.T) ** 2 / 2 + coupling / 2 * np.linalg.norm(U - V) ** 2


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_objective_is_the_coupled_one_and_falls(solver, kind):
    M = graph()
    op = LinearModelOperator(kind(M), np.ones(5))
    state = solver.init(op, np.random.default_rng(0).random((60, 5)))
    for _ in range(30):
        after = solver.step(op, state)
        assert_allclose(after.objective, coupled_objective(M, after.U, after.V, solver.coupling), rtol=1e-10)
        assert after.objective <= state.objective * (1 + 1e-12)
        assert_allclose(after.loss, np.linalg.norm(M - after.U @ after.U.T) ** 2 / 2, rtol=1e-10)
        state = after


@pytest.mark.parametrize("solver", SOLVERS[:3], ids=repr)
def test_converged_factors_solve_each_others_problem(solver):
    """At the end each factor is scipy's nonnegative least-squares solution for the other one."""
    M, c = graph(), solver.coupling
    op = LinearModelOperator(M, np.ones(4))
    state = solver.init(op, np.random.default_rng(0).random((60, 4)))
    for _ in range(1500):
        state = solver.step(op, state)
    for free, fixed in ((state.U, state.V), (state.V, state.U)):
        expected = nnls_rows(fixed.T @ fixed + c * np.eye(4), M @ fixed + c * fixed)
        assert_allclose(free, expected, atol=1e-6)
    assert state.gradient_norm < 1e-5


def test_gradient_test_ends_a_fit():
    solution = symmetric_nmf(graph(), 4, SymHALS(), random_state=0, max_iter=3000, tol=0, ftol=0, gtol=1e-8)
    assert solution.status is Status.GRADIENT
    assert (solution.U >= 0).all()


@pytest.mark.parametrize("solver", SOLVERS[:2], ids=repr)
def test_dense_equals_sparse_and_same_seed_same_answer(solver):
    M = graph()
    fits = [
        symmetric_nmf(kind(M), 5, solver, random_state=3, max_iter=20)
        for kind in (np.asarray, sparse.csr_array)
    ]
    assert_allclose(fits[0].U, fits[1].U, atol=1e-9)
    again = symmetric_nmf(M, 5, solver, random_state=3, max_iter=20)
    assert_array_equal(again.U, fits[0].U)


@pytest.mark.parametrize("solver", SOLVERS[:2], ids=repr)
def test_solution_is_scored_on_the_gram_matrix_and_can_be_saved(solver, tmp_path):
    M = graph()
    solution = symmetric_nmf(M, 5, solver, random_state=0, max_iter=25, ftol=0, gtol=0)
    assert_allclose(
        solution.relative_error, np.linalg.norm(M - solution.U @ solution.U.T) / np.linalg.norm(M), rtol=1e-10
    )
    assert solution.n_iter == 25
    assert solution.n_evaluations == 1 + 2 * 25
    assert solution.solver == repr(solver)
    solution.save(tmp_path / "fit.npz")
    assert_array_equal(Solution.load(tmp_path / "fit.npz").U, solution.U)


def test_sparse_input_never_becomes_dense(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("made dense")

    monkeypatch.setattr(sparse.csr_array, "toarray", refuse)
    monkeypatch.setattr(sparse.csr_array, "todense", refuse)
    M = sparse.csr_array(graph())
    fits = [symmetric_nmf(M, 3, solver, max_iter=3, random_state=0) for solver in SOLVERS[:2]]
    assert all(solution.U.shape == (60, 3) for solution in [*fits, truncated_eigen(M, 3)])
    truncated_eigen(sparse.csr_array(REPEATED["many blocks"]), 20)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"solver": "symhals"}, TypeError, r"solver must be SymHALS\(\) or SymANLS\(\), got 'symhals'"),
        ({"rank": 0}, ValueError, "rank must be an integer from 1 to 60"),
        ({"init": -np.ones((60, 2))}, ValueError, "init must be nonnegative .* got an entry -1"),
        ({"init": np.ones((60, 3))}, ValueError, "init must have shape"),
        ({"max_iter": 0}, ValueError, "max_iter must be"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        symmetric_nmf(graph(), **{"rank": 2, "solver": SymHALS(), **settings})


@pytest.mark.parametrize("kind", [SymHALS, SymANLS])
def test_coupling_is_checked_and_solvers_are_values(kind):
    with pytest.raises(ValueError, match=rf"{kind.__name__}\(coupling=...\) must be in \(0, inf\), got 0"):
        kind(coupling=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind().coupling = 1.0


@pytest.mark.parametrize("exponent", [-200, 200])
def test_baselines_of_tiny_and_huge_matrices(exponent):
    M = graph(30)
    M *= 2 / M.max()  # of order one, so that the random start is scaled by the very same power
    big = np.ldexp(M, 2 * exponent)
    assert_allclose(truncated_eigen(big, 3).relative_error, truncated_eigen(M, 3).relative_error, rtol=1e-9)
    # The weight of the coupling is in the units of M.
    plain = symmetric_nmf(M, 3, SymHALS(), random_state=0, max_iter=10)
    solver = SymHALS(coupling=0.66 * 4.0**exponent)
    other = symmetric_nmf(big, 3, solver, random_state=0, max_iter=10)
    assert_array_equal(np.ldexp(other.U, -exponent) > 0, plain.U > 0)
    assert other.solver == repr(solver)
    assert np.isfinite(other.relative_error)


def test_decompose_refuses_solvers_of_another_model():
    with pytest.raises(TypeError, match=r"SymHALS requires loss_from_product of .*pass it to baselines"):
        decompose(graph(), 3, solver=SymHALS())
