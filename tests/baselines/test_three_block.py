"""The three-block method: its steps by definition, its descent, its solutions."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import AAPB, Solution, Status, decompose, validation
from symrelu.baselines import three_block_nmd
from symrelu.baselines.three_block import ThreeBlock, TwoFactorOperator, _random_start, alternate_once
from symrelu.datasets import make_relu_gram
from symrelu.fit.loop import run
from symrelu.fit.settings import Limits


def graph(n=60, seed=0):
    return make_relu_gram(n, 4, shift=0.1, random_state=seed)[0]


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
def test_alternate_once_solves_both_least_squares_problems(seed, n, rank):
    rng = np.random.default_rng(seed)
    rank = min(n, rank)
    Z, V0 = rng.standard_normal((n, n)), rng.standard_normal((n, rank))
    U, V = alternate_once(Z, V0)
    first = lstsq_factor(Z, V0)
    size = np.linalg.norm(Z)
    within_U = U @ np.linalg.lstsq(U, first, rcond=None)[0]
    assert_allclose(within_U, first, atol=1e-8 * np.linalg.norm(first))  # both span the same
    assert_allclose(V, lstsq_factor(Z.T, U), atol=1e-8 * size)
    assert_allclose(U @ V.T, first @ lstsq_factor(Z.T, first).T, atol=1e-8 * size)
    assert_allclose(np.linalg.norm(U), np.linalg.norm(V), rtol=1e-12)


@pytest.mark.parametrize("V", [np.zeros((6, 3)), np.ones((6, 3)), np.eye(6)[:, :3] * [1, 1e-200, 0]])
def test_alternate_once_with_dependent_columns(V):
    """Where V has fewer dimensions than columns the fit may use the free ones, and is never worse."""
    Z = np.random.default_rng(0).standard_normal((6, 6))
    U, W = alternate_once(Z, V)
    first = lstsq_factor(Z, V)
    assert np.isfinite(U).all()
    assert np.linalg.norm(Z - U @ W.T) <= np.linalg.norm(Z - first @ lstsq_factor(Z.T, first).T) + 1e-12
    assert all(np.isfinite(factor).all() for factor in alternate_once(np.zeros((6, 6)), V))


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
        TypeError,
        match=r"ThreeBlock requires evaluate of .*It fits a model with two factors: use baselines.three",
    ):
        decompose(graph(), 3, solver=ThreeBlock())
    with pytest.raises(TypeError, match="model with two factors, which only ThreeBlock can fit"):
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
