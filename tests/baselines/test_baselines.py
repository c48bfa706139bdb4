"""The baselines: their subproblems against scipy, their descent, their scores."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import nnls
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

from symrelu import AAPB, Solution, Status, decompose, validation
from symrelu.baselines import (
    SymANLS,
    SymHALS,
    eigenpairs,
    symanls,
    symmetric_nmf,
    three_block_nmd,
    truncated_eigen,
)
from symrelu.baselines.linear import LinearModelOperator
from symrelu.baselines.symanls import nonnegative_solve
from symrelu.baselines.three_block import ThreeBlock, TwoFactorOperator, _random_start, fit_in_turn
from symrelu.datasets import make_relu_gram
from symrelu.fit.loop import run
from symrelu.fit.settings import Limits
from symrelu.kernels import arpack

SOLVERS = [SymHALS(), SymANLS(), SymHALS(coupling=3.0), SymANLS(coupling=0.01)]


def graph(n=60, seed=0):
    return make_relu_gram(n, 4, shift=0.1, random_state=seed)[0]


def nnls_rows(gram, target):
    """Solve each row by scipy: |L^T x - L^-1 t|^2 has the same minimiser."""
    L = np.linalg.cholesky(gram)
    return np.array([nnls(L.T, np.linalg.solve(L, t))[0] for t in target])


@given(
    seed=st.integers(0, 10**6),
    rank=st.integers(1, 15),
    n=st.integers(1, 20),
    ridge=st.sampled_from([1e-4, 0.1, 10.0]),
    free=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_block_pivoting_equals_scipy_nnls(seed, rank, n, ridge, free):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((rank + 3, rank))
    gram = B.T @ B + ridge * np.eye(rank)
    target = rng.standard_normal((n, rank)) * 3
    X = nonnegative_solve(gram, target, rng.random((n, rank)) < free)
    assert (X >= 0).all()
    assert_allclose(X, nnls_rows(gram, target), atol=1e-8 * max(1, np.abs(X).max()))


@pytest.mark.parametrize("batch_bytes", [1, 1000, 64e6])
def test_block_pivoting_in_batches_and_with_ties(batch_bytes, monkeypatch):
    monkeypatch.setattr(symanls, "_BATCH_BYTES", batch_bytes)
    rng = np.random.default_rng(0)
    gram = np.eye(4) + 1.0
    target = rng.integers(-1, 2, (500, 4)).astype(float)  # many exact zeros
    X = nonnegative_solve(gram, target, np.zeros((500, 4), bool))
    assert_allclose(X, nnls_rows(gram, target), atol=1e-12)


@pytest.mark.parametrize("batch_bytes", [1, 1000, 64e6])
def test_passive_systems_of_all_sizes(batch_bytes, monkeypatch):
    monkeypatch.setattr(symanls, "_BATCH_BYTES", batch_bytes)
    rng = np.random.default_rng(0)
    B = rng.standard_normal((12, 9))
    gram, target = B.T @ B, rng.standard_normal((40, 9))
    passive = rng.random((40, 9)) < np.linspace(0, 1, 40)[rng.permutation(40), None]
    assert {0, 9} < set(passive.sum(axis=1))
    X, slope = symanls._solve_passive(gram, target, passive)
    for x, t, free, s in zip(X, target, passive, slope, strict=True):
        expected = np.zeros(9)
        expected[free] = np.linalg.solve(gram[np.ix_(free, free)], t[free])
        assert_allclose(x, expected, atol=1e-10)
        assert_allclose(s, np.where(free, 0, gram @ expected - t), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_block_pivoting_ends_in_both_precisions(dtype):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((40, 30)).astype(dtype)
    gram = B.T @ B + dtype(1e-3) * np.eye(30, dtype=dtype)
    target = rng.standard_normal((100, 30)).astype(dtype)
    X = nonnegative_solve(gram, target, np.ones((100, 30), bool))
    assert X.dtype == dtype
    gradient = X @ gram - target
    slack = 1e-3 if dtype is np.float32 else 1e-10
    assert gradient[X == 0].min() > -slack
    assert np.abs(gradient[X > 0]).max() < slack


def test_hals_column_is_the_exact_minimiser_of_its_column():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((8, 3))
    gram, target, factor = B.T @ B + np.eye(3), rng.standard_normal((10, 3)), rng.random((10, 3))
    X = SymHALS()._update(gram, target, factor)
    # The last column was updated last: given the others, no other nonnegative column is better.
    others = X[:, :2] @ gram[:2, 2]
    assert_allclose(X[:, 2], np.maximum(0, (target[:, 2] - others) / gram[2, 2]))
    converged = X
    for _ in range(500):
        converged = SymHALS()._update(gram, target, converged)
    assert_allclose(converged, nnls_rows(gram, target), atol=1e-10)


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


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rank", [1, 5, 29, 30])
def test_truncated_eigen_is_the_best_of_its_rank(kind, rank):
    M = graph(30)
    solution = truncated_eigen(kind(M), rank)
    values = np.linalg.eigvalsh(M)
    dropped = np.sort(np.abs(values))[: 30 - rank]
    best = np.linalg.norm(dropped) / np.linalg.norm(values)
    assert_allclose(solution.relative_error, best, atol=1e-7)
    residual = M - (solution.U * solution.signature) @ solution.U.T
    assert_allclose(np.linalg.norm(residual) / np.linalg.norm(M), best, atol=1e-7)
    assert_allclose(residual @ solution.U, 0, atol=1e-6 * np.linalg.norm(M))
    assert len(solution.history) == 1


def random_block(size, seed):
    B = np.random.default_rng(seed).random((size, size))
    return B + B.T


def bipartite(B):
    return np.block([[np.zeros_like(B), B], [B.T, np.zeros_like(B)]])


# Issue 11.7: matrices whose leading eigenvalues repeat, at either end of the spectrum.
REPEATED = {
    "identity": np.eye(200),
    "few blocks": np.kron(np.eye(8), random_block(12, 1)),
    "many blocks": np.kron(np.eye(30), random_block(4, 2)),
    "components of a normalised graph": np.kron(np.eye(6), np.ones((20, 20)) / 20),
    "complete graph": np.ones((50, 50)) - np.eye(50),
    "cycle": np.roll(np.eye(60), 1, 0) + np.roll(np.eye(60), -1, 0),
    "bipartite": bipartite(np.kron(np.eye(5), random_block(6, 3))),
    "hypercube": sum(np.kron(np.eye(2**k), np.kron([[0, 1], [1, 0]], np.eye(2 ** (5 - k)))) for k in range(6)),
    "low rank": np.kron(np.eye(3), np.ones((20, 20))),
}


def assert_as_good_as_dense(values, positive, solution):
    """The kept eigenvalues and the error are those of all the eigenvalues of M, up to rounding."""
    rank, eps = solution.U.shape[1], np.finfo(solution.U.dtype).eps
    size = np.maximum(values, 0) if positive else np.abs(values)
    leading = np.sort(size)[::-1][:rank]
    found = np.sort(np.linalg.norm(solution.U.astype(np.float64), axis=0) ** 2)[::-1]
    assert_allclose(found, leading, atol=1e3 * eps * leading[0])
    norm = np.linalg.norm(values) ** 2
    squares = (norm - np.sum(leading**2)) / norm  # the square, since rounding of an exact fit is eps in it
    assert_allclose(solution.relative_error**2, squares, rtol=1e-9 if eps < 1e-9 else 1e-4, atol=50 * eps)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("label", REPEATED)
def test_truncated_eigen_finds_every_copy_of_an_eigenvalue(label, dtype, kind, positive):
    M = REPEATED[label].astype(dtype)
    values = np.linalg.eigvalsh(M.astype(np.float64))
    for rank in (1, 5, 20):
        for seed in (0, 1):
            solution = truncated_eigen(kind(M), rank, positive=positive, random_state=seed)
            assert solution.U.dtype == dtype
            assert_as_good_as_dense(values, positive, solution)


@given(
    seed=st.integers(0, 10**6),
    copies=st.integers(1, 12),
    size=st.integers(1, 8),
    two_sided=st.booleans(),
    share=st.floats(0, 0.49),
    positive=st.booleans(),
    single=st.booleans(),
)
def test_truncated_eigen_of_equal_blocks(seed, copies, size, two_sided, share, positive, single):
    """Issue 11.7: blocks that are alike, or bipartite (pairs of eigenvalues of either sign), in any order."""
    rng = np.random.default_rng(seed)
    block = random_block(size, seed) * (rng.random((size, size)) < 0.7)
    block = np.triu(block) + np.triu(block, 1).T + np.eye(size)
    M = np.kron(np.eye(copies), bipartite(block) if two_sided else block)
    order = rng.permutation(len(M))
    M = M[np.ix_(order, order)].astype(np.float32 if single else np.float64)
    rank = max(1, int(share * len(M)))
    solution = truncated_eigen(sparse.csr_array(M), rank, positive=positive, random_state=seed)
    assert_as_good_as_dense(np.linalg.eigvalsh(M.astype(np.float64)), positive, solution)


def test_truncated_eigen_is_the_same_for_the_same_seed():
    M = sparse.csr_array(REPEATED["few blocks"])
    first, second, other = (truncated_eigen(M, 20, random_state=seed) for seed in (1, 1, 2))
    assert_array_equal(first.U, second.U)
    assert_allclose(other.relative_error, first.relative_error, rtol=1e-9)


@pytest.mark.parametrize("error", [ArpackError(3), ArpackNoConvergence("", np.empty(0), np.empty((96, 0)))])
def test_truncated_eigen_where_arpack_gives_up(error, monkeypatch):
    """Issue 11.7: "No shifts could be applied", as for thirty copies of a block of four."""

    def give_up(*args, **settings):
        raise error

    monkeypatch.setattr(arpack, "eigsh", give_up)
    M = REPEATED["few blocks"]
    assert_as_good_as_dense(np.linalg.eigvalsh(M), False, truncated_eigen(M, 10))


@pytest.mark.parametrize("restarts", [1, 2])
def test_a_search_that_does_not_end_gives_a_pair_that_is_in_the_matrix(restarts, monkeypatch):
    monkeypatch.setattr(eigenpairs, "_MOST_RESTARTS", restarts)
    M = graph(200)
    known = np.linalg.eigh(M)[1][:, -3:]
    values, vectors = eigenpairs._largest_beside(M, known, True, 1.0, np.random.default_rng(0))
    assert_allclose(known.T @ vectors, 0, atol=1e-12)
    assert_allclose(np.linalg.norm(vectors, axis=0), 1)
    assert_allclose(vectors[:, 0] @ M @ vectors[:, 0], values[0])


def test_truncated_eigen_costs_little_more_than_one_run_of_arpack(monkeypatch):
    """Issue 11.7: products with M, counted on a graph whose eigenvalues do not repeat."""
    count = 0
    product = sparse.csr_array._matmul_vector

    def counted(matrix, v):
        nonlocal count
        count += 1
        return product(matrix, v)

    M = sparse.csr_array(graph(400))
    monkeypatch.setattr(sparse.csr_array, "_matmul_vector", counted)
    eigsh(M, k=10, v0=np.random.default_rng(0).standard_normal(400))
    by_arpack, count = count, 0
    truncated_eigen(M, 10)
    assert 0 < by_arpack < count <= 2 * by_arpack


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
    with pytest.raises(TypeError, match=r"SymHALS needs loss_from_product of .*pass it to baselines"):
        decompose(graph(), 3, solver=SymHALS())


def test_zero_eigenvalues_have_a_sign():
    assert set(truncated_eigen(np.ones((4, 4)), 4).signature) <= {1.0, -1.0}


def test_truncated_eigen_checks_its_rank():
    with pytest.raises(ValueError, match="rank must be an integer from 1 to 3"):
        truncated_eigen(np.eye(3), 4)


def test_linear_model_operator_by_definition():
    M, rng = graph(20), np.random.default_rng(0)
    U, V, s = rng.standard_normal((20, 3)), rng.standard_normal((20, 4)), np.array([1, -1, 1.0])
    evaluation = LinearModelOperator(sparse.csr_array(M), s).residual_product(U, V)
    X = (U * s) @ U.T
    assert_allclose(evaluation.product, (M - X) @ V)
    assert_allclose(evaluation.loss, np.linalg.norm(M - X) ** 2 / 2)


def relu_product(n, rank, seed):
    """Return max(0, A B^T) of normal factors: the model of 3B-NMD, not symmetric."""
    A, B = np.random.default_rng(seed).standard_normal((2, n, rank))
    return np.maximum(0, A @ B.T)


def lstsq_factor(Z, V):
    """Return the U that minimises ||Z - U V^T||, by numpy."""
    return np.linalg.lstsq(V, Z.T, rcond=None)[0].T


def pair_error(M, solution):
    return np.linalg.norm(M - np.maximum(0, solution.U @ solution.V.T)) / np.linalg.norm(M)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), rank=st.integers(1, 12))
def test_fit_in_turn_solves_both_least_squares_problems(seed, n, rank):
    rng = np.random.default_rng(seed)
    rank = min(n, rank)
    Z, V0 = rng.standard_normal((n, n)), rng.standard_normal((n, rank))
    U, V = fit_in_turn(Z, V0)
    first = lstsq_factor(Z, V0)
    size = np.linalg.norm(Z)
    within_U = U @ np.linalg.lstsq(U, first, rcond=None)[0]
    assert_allclose(within_U, first, atol=1e-8 * np.linalg.norm(first))  # both span the same
    assert_allclose(V, lstsq_factor(Z.T, U), atol=1e-8 * size)
    assert_allclose(U @ V.T, first @ lstsq_factor(Z.T, first).T, atol=1e-8 * size)
    assert_allclose(np.linalg.norm(U), np.linalg.norm(V), rtol=1e-12)


@pytest.mark.parametrize("V", [np.zeros((6, 3)), np.ones((6, 3)), np.eye(6)[:, :3] * [1, 1e-200, 0]])
def test_fit_in_turn_with_dependent_columns(V):
    """Where V has fewer dimensions than columns the fit may use the free ones, and is never worse."""
    Z = np.random.default_rng(0).standard_normal((6, 6))
    U, W = fit_in_turn(Z, V)
    first = lstsq_factor(Z, V)
    assert np.isfinite(U).all()
    assert np.linalg.norm(Z - U @ W.T) <= np.linalg.norm(Z - first @ lstsq_factor(Z.T, first).T) + 1e-12
    assert all(np.isfinite(factor).all() for factor in fit_in_turn(np.zeros((6, 6)), V))


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.7])
def test_three_block_steps_by_definition(momentum):
    """The published order of updates, with systems solved by numpy."""
    M, rng = relu_product(30, 3, 0), np.random.default_rng(1)
    U, V = rng.standard_normal((2, 30, 3))
    solver, op = ThreeBlock(momentum), TwoFactorOperator(M, 3)
    state = solver.init(op, np.concatenate([U, V]))
    Z_old, T = M, U @ V.T
    for count in range(2, 12):
        Z = np.where(M > 0, M, np.minimum(0, T))
        Z = Z + momentum * (Z - Z_old)
        U = lstsq_factor(Z, V)
        V = lstsq_factor(Z.T, U)
        P = U @ V.T
        T, Z_old = P + momentum * (P - T), Z
        state = solver.step(op, state)
        left, right = np.split(state.U, 2)
        assert_allclose(left @ right.T, P, atol=1e-9)
        R = np.where(M > 0, M - P, -np.maximum(0, P))
        assert_allclose(state.objective, np.linalg.norm(R) ** 2 / 2, rtol=1e-8)
        assert_allclose(state.loss, np.linalg.norm(M - np.maximum(0, P)) ** 2 / 2, rtol=1e-8)
        assert_allclose(state.latent_norm, np.linalg.norm(P + R), rtol=1e-8)
        assert op.evaluations == count


def test_two_factor_gradient_equals_central_differences():
    M, rng, h = relu_product(8, 3, 0), np.random.default_rng(1), 1e-6
    factors = rng.standard_normal((16, 3))
    op = TwoFactorOperator(M, 3)

    def latent_loss(S):
        P = S[:8] @ S[8:].T
        return np.linalg.norm(np.where(M > 0, M - P, np.maximum(0, P))) ** 2 / 2

    gradient = np.empty_like(factors)
    for place in np.ndindex(factors.shape):
        step = np.zeros_like(factors)
        step[place] = h
        gradient[place] = (latent_loss(factors + step) - latent_loss(factors - step)) / (2 * h)
    assert_allclose(-op.evaluate(*np.split(factors, 2))[1].product, gradient, atol=1e-6)
    assert_allclose(ThreeBlock().init(op, factors).gradient_norm, np.linalg.norm(gradient), rtol=1e-8)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 25),
    rank=st.integers(1, 6),
    density=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_three_block_without_momentum_never_rises(seed, n, rank, density):
    rng = np.random.default_rng(seed)
    M = rng.random((n, n)) * (rng.random((n, n)) < density)
    M = M + M.T + np.eye(n)
    solution = three_block_nmd(
        M, min(n, rank), momentum=0, random_state=seed, max_iter=30, tol=0, gtol=0, ftol=0
    )
    losses = solution.history.latent_loss
    assert (np.diff(losses) <= 1e-12 * (losses[:-1] + np.linalg.norm(M) ** 2)).all()
    assert solution.n_iter == 30


@pytest.mark.parametrize(("n", "seed"), [(200, 0), (250, 1), (300, 2)])
def test_three_block_finds_planted_factors(n, seed):
    M, _ = make_relu_gram(n, 5, random_state=seed)
    solution = three_block_nmd(M, 5, random_state=seed)
    assert solution.status is Status.TOLERANCE
    assert solution.relative_error <= 1e-4
    assert_allclose(pair_error(M, solution), solution.relative_error, rtol=1e-6)
    assert solution.n_evaluations == solution.n_iter + 1
    assert solution.solver == "ThreeBlock(momentum=0.7)"
    # Without extrapolation it takes far longer.
    assert three_block_nmd(M, 5, momentum=0, random_state=seed).n_iter > 2 * solution.n_iter


def test_three_block_takes_about_as_many_steps_as_published():
    """At n = 1000 and r = 32 the authors report 24 iterations to 1e-4."""
    M, _ = make_relu_gram(1000, 32, random_state=0)
    assert three_block_nmd(M, 32, random_state=0, max_iter=30).status is Status.TOLERANCE


def test_three_block_fits_what_is_not_symmetric():
    """The public function takes similarities only; the method does not use it."""
    M = relu_product(100, 4, 0)
    op = TwoFactorOperator(M, 4)
    solution = run(op, ThreeBlock(), _random_start(op, 0), Limits())
    U, V = np.split(solution.U, 2)
    assert solution.status is Status.TOLERANCE
    assert np.linalg.norm(M - np.maximum(0, U @ V.T)) <= 1.01e-4 * np.linalg.norm(M)


def test_three_block_start_has_the_least_squares_scale():
    M = graph()
    U, V = np.split(_random_start(TwoFactorOperator(M, 4), 0), 2)
    P = U @ V.T
    assert_allclose(abs(np.sum(M * P)), np.sum(P * P), rtol=1e-10)


@pytest.mark.parametrize("exponent", [-200, -3, 5, 200])
def test_three_block_is_equivariant(exponent):
    M = graph(40)
    M *= 2 / M.max()
    settings = {"random_state": 0, "max_iter": 15, "tol": 0}
    plain = three_block_nmd(M, 4, **settings)
    other = three_block_nmd(np.ldexp(M, 2 * exponent), 4, **settings)
    assert_array_equal(np.ldexp(other.U, -exponent), plain.U)
    assert_array_equal(np.ldexp(other.V, -exponent), plain.V)
    assert other.relative_error == plain.relative_error
    assert other.norm == np.ldexp(plain.norm, 2 * exponent)
    start = (np.ldexp(plain.U, exponent), np.ldexp(plain.V, exponent))
    again = three_block_nmd(np.ldexp(M, 2 * exponent), 4, init=start, max_iter=1, tol=0, gtol=0)
    assert again.history.relative_error[0] == plain.relative_error


def test_three_block_sparse_equals_dense_and_same_seed_same_answer():
    M = graph()
    before = M.copy()
    plain, again, from_sparse = (
        three_block_nmd(kind(M), 5, random_state=3, max_iter=20, tol=0)
        for kind in (np.asarray, np.asarray, sparse.csr_array)
    )
    assert_array_equal(M, before)
    for other in (again, from_sparse):
        assert_array_equal(other.U, plain.U)
        assert_array_equal(other.V, plain.V)
    assert (three_block_nmd(M, 5, random_state=4, max_iter=20, tol=0).U != plain.U).any()
    single = three_block_nmd(M.astype(np.float32), 5, random_state=3, max_iter=20, tol=0)
    assert single.U.dtype == single.V.dtype == np.float32
    assert_allclose(single.U @ single.V.T, plain.U @ plain.V.T, atol=1e-3)


@pytest.mark.parametrize(
    "M",
    [
        np.kron(np.eye(4), np.ones((5, 5))),
        np.eye(6),
        np.ones((4, 4)),
        np.diag([1.0, 0, 0]),
        np.diag([1e-300, 1e300]),
    ],
    ids=["blocks", "identity", "ones", "one entry", "far apart"],
)
def test_three_block_of_more_columns_than_needed(M):
    n = len(M)
    for rank in (1, n // 2, n):
        solution = three_block_nmd(M, rank, random_state=0, tol=0, gtol=0, ftol=0, max_iter=50)
        assert solution.status is Status.MAX_ITER
        assert np.isfinite(solution.U).all()
        assert np.isfinite(solution.V).all()
        assert np.isfinite(solution.history.relative_error).all()
    assert solution.relative_error < 1e-12  # rank n, the last one


def test_three_block_over_parametrised():
    """The method itself is slow between the rank of the data and n."""
    M, _ = make_relu_gram(60, 3, random_state=0)
    assert three_block_nmd(M, 10, random_state=0, gtol=0, max_iter=500).relative_error <= 1e-2
    assert three_block_nmd(M, 60, random_state=0, gtol=0, max_iter=500).relative_error <= 1e-4


def test_three_block_solution_is_a_pair_that_can_be_saved_and_continued(tmp_path):
    M = graph()
    shapes = []
    solution = three_block_nmd(
        M, 3, random_state=0, max_iter=5, callback=lambda progress: shapes.append(progress.U.shape)
    )
    assert shapes == [(120, 3)] * 5
    assert solution.U.shape == solution.V.shape == (60, 3)
    assert solution.n_negative == 0
    solution.save(tmp_path / "fit.npz")
    loaded = Solution.load(tmp_path / "fit.npz")
    assert_array_equal(loaded.U, solution.U)
    assert_array_equal(loaded.V, solution.V)
    longer = three_block_nmd(M, 3, init=(loaded.U, loaded.V), max_iter=50)
    assert_allclose(longer.history.relative_error[0], solution.relative_error, rtol=1e-12)
    assert longer.relative_error < solution.relative_error


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"momentum": 1.5}, ValueError, r"ThreeBlock\(momentum=...\) must be in \[0, 1\], got 1.5"),
        ({"momentum": -0.1}, ValueError, r"ThreeBlock\(momentum=...\) must be in \[0, 1\]"),
        ({"momentum": "fast"}, TypeError, r"ThreeBlock\(momentum=...\) must be a number"),
        ({"rank": 61}, ValueError, "rank must be an integer from 1 to 60"),
        ({"init": np.ones((60, 2))}, ValueError, r"init must be a pair \(U, V\)"),
        ({"init": 3}, ValueError, r"init must be a pair \(U, V\)"),
        ({"init": (np.ones((60, 2)), np.ones((60, 3)))}, ValueError, "init must have shape"),
        ({"init": (np.ones((60, 2)), np.full((60, 2), np.nan))}, ValueError, "init must be finite"),
        ({"M": relu_product(60, 2, 0)}, ValueError, "M must be symmetric"),
        ({"random_state": "dice"}, TypeError, "random_state must be"),
        ({"callback": 1}, TypeError, "callback must be callable"),
        ({"max_iter": 0}, ValueError, "max_iter must be"),
    ],
)
def test_bad_settings_of_three_block(settings, error, message):
    with pytest.raises(error, match=message):
        three_block_nmd(**{"M": graph(), "rank": 2, **settings})


def test_three_block_refuses_what_does_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(validation.formats, "available_memory", lambda: 60 * 60 * 8 * 9)
    for kind in (np.asarray, sparse.csr_array):
        with pytest.raises(MemoryError, match="3B-NMD holds about 10 dense 60 x 60 matrices"):
            three_block_nmd(kind(graph()), 2)


def test_three_block_goes_with_its_own_operator_only():
    with pytest.raises(
        TypeError, match=r"ThreeBlock needs evaluate of .*It fits a model with two factors: use baselines.three"
    ):
        decompose(graph(), 3, solver=ThreeBlock())
    with pytest.raises(TypeError, match="model with two factors: only ThreeBlock fits it"):
        run(TwoFactorOperator(graph(), 3), AAPB(), np.ones((60, 3)), Limits())


def test_three_block_leaves_the_finite_numbers_quietly():
    """Where a step overflows, the loop says so; no error of LAPACK comes through."""
    huge = np.full((60, 2), 1e150)
    with pytest.raises(FloatingPointError, match="not finite at the starting factor"):
        three_block_nmd(graph(), 2, init=(huge, huge))
    op = TwoFactorOperator(graph(), 2)
    state = ThreeBlock().init(op, np.ones((120, 2)))
    for value in (-np.inf, np.nan, -1e300):
        broken = dataclasses.replace(state, T=np.full((60, 60), value))
        with np.errstate(all="ignore"):
            assert not np.isfinite(ThreeBlock().step(op, broken).objective)


@pytest.mark.parametrize("n", [6, 30])
def test_positive_eigenvalues_alone_give_the_nearest_semidefinite_matrix(n):
    M, _ = make_relu_gram(n, 3, shift=0.2, random_state=0)
    np.fill_diagonal(M, 0)  # eigenvalues of both signs
    values, vectors = np.linalg.eigh(M)
    for rank in (2, n):
        solution = truncated_eigen(sparse.csr_array(M), rank, positive=True)
        kept = np.where(np.arange(n) >= n - rank, np.maximum(values, 0), 0)
        np.testing.assert_allclose(solution.U @ solution.U.T, (vectors * kept) @ vectors.T, atol=1e-10)
        assert (solution.signature == 1).all()
        assert solution.relative_error >= truncated_eigen(M, rank).relative_error - 1e-12


def test_eigenvectors_of_repeated_eigenvalues_are_the_same_each_time():
    blocks = np.kron(np.eye(8), np.ones((6, 6)))
    assert len({truncated_eigen(blocks, 8, random_state=0).U.tobytes() for _ in range(5)}) == 1
