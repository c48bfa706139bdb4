"""The operator that visits only what matters: the same numbers as one that visits all pairs."""

import numpy as np
import pytest
from helpers import SOLVERS, active, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import LBFGS, decompose
from symrelu.graphs import self_tuning_graph
from symrelu.kernels import pair_lists, pair_passes, row_references
from symrelu.kernels.integer_rows import rounding_of_rows
from symrelu.kernels.row_references import movement
from symrelu.operators import ActiveOperator, SparseOperator, pass_costs
from symrelu.problem import Problem


def graph(n, seed=0, dimension=2):
    points = np.random.default_rng(seed).random((n, dimension))
    return Problem.of(self_tuning_graph(points, n_neighbors=min(8, n - 1)), diagonal="ignore")


def operators(problem, signature, **settings):
    data = sparse.csr_array(problem.scaled), problem.unknown
    return (
        SparseOperator(*data, signature=signature, **settings),
        ActiveOperator(*data, signature=signature, always_lists=True, **settings),
    )


def signs(rank):
    return np.where(np.arange(rank) < rank - 1, 1.0, -1.0)


@pytest.fixture
def short_rows(monkeypatch):
    """Let lists pay for small matrices too."""
    monkeypatch.setattr(pass_costs, "_NS_OF_A_ROW", 0.0)


def assert_same(expected, found, op):
    """Compare two passes, relative to ||M||^2 and ||R V||, or to the sums themselves where a path diverges."""
    for name in ("latent_loss", "loss", "alignment"):
        value = getattr(expected, name)
        assert abs(value - getattr(found, name)) <= 1e-10 * max(op.norm**2, 1e-4 * abs(value))
    assert abs(expected.latent_norm_squared - found.latent_norm_squared) <= 1e-10 * expected.latent_norm_squared
    scale = max(np.linalg.norm(expected.product), 1e-6 * op.norm)
    assert np.linalg.norm(expected.product - found.product) <= 1e-10 * scale
    assert expected.active_zeros == found.active_zeros


@pytest.mark.parametrize("name", SOLVERS)
def test_along_the_path_of_every_solver(name):
    problem = graph(150)
    tiles, listed = operators(problem, signs(6))
    solver = SOLVERS[name]
    state = solver.init(tiles, np.random.default_rng(0).standard_normal((150, 6)) * 0.2)
    for _ in range(200):
        if not np.isfinite(state.objective):  # AAPB with step 10 diverges here
            break
        assert_same(tiles.residual_product(state.U, state.U), listed.residual_product(state.U, state.U), tiles)
        state = solver.step(tiles, state)
    assert listed.visits.listed > 0
    assert listed.visits.tiled == 0


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 5))
def test_jumps_small_steps_and_rows_that_vanish(seed, n, rank):
    rng = np.random.default_rng(seed)
    tiles, listed = operators(graph(n, seed), rng.choice([-1.0, 1.0], rank), tile=int(rng.integers(2, 30)))
    U = rng.standard_normal((n, rank))
    for _ in range(25):
        change = rng.choice(["small", "shrink", "zero", "jump", "back", "none"])
        some = rng.random(n) < 0.3
        if change == "small":
            U = U + 0.02 * rng.standard_normal((n, rank))
        elif change == "shrink":
            U = np.where(some[:, None], 1e-3 * U, U)
        elif change == "zero":
            U = np.where(some[:, None], 0, U)
        elif change == "jump":
            U = np.where(some[:, None], rng.standard_normal((n, rank)), U)
        elif change == "back":
            U = -U
        V = rng.standard_normal((n, 2))
        assert_same(tiles.residual_product(U, V), listed.residual_product(U, V), tiles)


def test_the_result_depends_on_the_factor_alone():
    """Whatever passes came before: the same bits."""
    problem, rng = graph(200), np.random.default_rng(0)
    _, listed = operators(problem, signs(5))
    U = 0.3 * rng.standard_normal((200, 5))
    for _ in range(10):
        U = U + 0.01 * rng.standard_normal((200, 5))
        found = listed.residual_product(U, U)
        _, new = operators(problem, signs(5))
        assert_array_equal(found.product, new.residual_product(U, U).product)
        assert found.latent_loss == new.loss(U).latent_loss


def test_a_list_lasts_for_several_passes():
    problem, rng = graph(400), np.random.default_rng(0)
    solution = decompose(problem, 8, n_negative=1, diagonal="ignore", random_state=0, tol=1e-2)
    _, listed = operators(problem, solution.signature)
    for _ in range(4):  # the first lists have no slack
        listed.loss(solution.U + 1e-3 * rng.standard_normal(solution.U.shape))
    before = listed.visits.scanned
    for _ in range(10):
        listed.loss(solution.U + 1e-6 * rng.standard_normal(solution.U.shape))
    assert listed.visits.scanned - before <= 400 * 401  # two scans of all pairs at most


def test_many_positive_zeros_are_left_to_tiles(short_rows):
    problem = random_problem(n=40, rank=4, seed=0)
    op = active(problem)
    expected = SparseOperator(sparse.csr_array(problem.M), None, **problem.settings())
    U = np.abs(np.random.default_rng(0).standard_normal((40, 4)))
    assert_array_equal(op.residual_product(U, U).product, expected.residual_product(U, U).product)
    assert (op.visits.tiled, op.visits.scanned) == (40 * 41 // 2, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_factor_that_is_not_finite_shows(bad):
    _, listed = operators(graph(30), signs(3))
    U = np.ones((30, 3))
    U[3, 1] = bad
    assert not np.isfinite(listed.loss(U).latent_loss)


def test_a_fit_ends_as_with_tiles(short_rows):
    problem = graph(300)
    fits = [
        decompose(problem, 8, n_negative=1, diagonal="ignore", backend=backend, random_state=0)
        for backend in ("sparse", "active")
    ]
    assert fits[1].relative_error <= 1e-4
    assert abs(fits[0].n_evaluations - fits[1].n_evaluations) <= 0.2 * fits[0].n_evaluations


def test_a_fit_begins_with_tiles_and_ends_with_a_list(short_rows):
    seen = []

    class Watched(LBFGS):
        def step(self, op, state):
            seen.append((op.visits.tiled, op.visits.listed))
            return super().step(op, state)

    settings = {"n_negative": 1, "diagonal": "ignore", "random_state": 0, "init": "random", "tol": 1e-3}
    assert decompose(graph(300), 8, solver=Watched(), backend="active", **settings).converged
    assert seen[0][0] > 0 == seen[0][1]
    assert seen[-1][0] == seen[-5][0]
    assert seen[-1][1] > seen[-5][1]


def test_small_matrices_are_left_to_tiles_without_a_sample(monkeypatch):
    monkeypatch.setattr("symrelu.operators.active.sample_cosines", None)
    op = active(random_problem(n=40, rank=4, seed=0))
    op.loss(np.zeros((40, 4)))
    assert op.visits.tiled == 40 * 41 // 2


def test_a_fit_resumes_with_the_same_bits(tmp_path, short_rows):
    settings = {"n_negative": 1, "diagonal": "ignore", "backend": "active", "random_state": 0, "tol": 0.0}
    problem, path = graph(300), tmp_path / "fit.ckpt"
    whole = decompose(problem, 8, max_iter=40, **settings)
    decompose(problem, 8, max_iter=25, checkpoint=path, **settings)
    resumed = decompose(problem, 8, max_iter=40, checkpoint=path, **settings)
    assert_array_equal(resumed.U, whole.U)


def test_the_curvature_depends_on_the_factor_and_the_reach_alone():
    """Whatever passes came before, and whatever reach was asked for: the same bits."""
    problem, rng = graph(200), np.random.default_rng(0)
    _, listed = operators(problem, signs(5))
    U, D = 0.3 * rng.standard_normal((2, 200, 5))
    for reach in (0.0, 0.1, 0.3, 0.05, 0.05, 0.2, 0.0, 0.1):
        U = U + 0.002 * rng.standard_normal((200, 5))
        _, new = operators(problem, signs(5))
        assert_array_equal(listed.residual_product(U, U).product, new.residual_product(U, U).product)
        assert_array_equal(listed.curvature(U, reach).product(D), new.curvature(U, reach).product(D))
    before = listed.visits.scanned
    listed.curvature(U, 0.1)  # the list is still there
    assert listed.visits.scanned == before


def test_a_reach_with_too_many_pairs_is_refused_whatever_came_before(monkeypatch):
    problem, rng = graph(100), np.random.default_rng(0)
    monkeypatch.setattr("symrelu.operators.active.most_entries", lambda n, rank: n * n // 2)
    _, listed = operators(problem, signs(5))
    U = rng.standard_normal((100, 5))
    assert listed.curvature(U, 0.9) is None
    first = listed.curvature(U, 0.01)
    assert listed.curvature(U, 0.9) is None
    assert_array_equal(listed.curvature(U, 0.01).product(U), first.product(U))


def test_everything_is_compiled_before_the_clock_starts(monkeypatch):
    monkeypatch.setattr("symrelu.operators.active.list_pays", lambda *_: True)
    problem = random_problem(n=60, rank=3, seed=0)
    op = active(problem)
    op.warm_up()
    kernels = [f for module in (pair_lists, pair_passes, row_references) for f in vars(module).values()]
    compiled = {f: len(f.signatures) for f in kernels if hasattr(f, "signatures")}
    rng = np.random.default_rng(0)
    U = rng.standard_normal((60, 3))
    for _ in range(5):
        op.residual_product(U, U)
        U = np.where(rng.random((60, 1)) < 0.2, U + 0.1 * rng.standard_normal((60, 3)), U)
    assert op.visits.listed > 0
    assert {f: len(f.signatures) for f in compiled} == compiled


@pytest.mark.parametrize("rank", [3, 6])
def test_the_list_reaches_as_far_as_asked(rank):
    """Also where it needs hardly more than the list was made for: less than the rounding of a new reference."""
    problem, rng = graph(300), np.random.default_rng(rank)
    _, listed = operators(problem, signs(rank))
    U = rng.standard_normal((300, rank))
    listed._listed(U, 0.1)
    candidates = listed._candidates
    for reach in 0.1 + np.linspace(0, 4, 41) * rounding_of_rows(rank):
        listed._listed(U, reach)
        limit = np.sqrt((1 + candidates.slack) / (1 + reach)) - 1
        assert movement(candidates._references, U).max() <= limit
