"""LPCA: its loss by the formula, its exact representations, its solutions."""

import math
import tracemalloc

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

from symrelu import Solution, Status
from symrelu.baselines import logistic_pca
from symrelu.baselines.lpca import LogisticLoss
from symrelu.problem import Problem

pytestmark = pytest.mark.blas_threads


def random_graph(n=30, seed=0, density=0.2):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, 1)
    return (upper | upper.T).astype(float)


def bounded_degree_graph(n, most, seed):
    """Return a random graph to which no link can be added without a degree above ``most``."""
    M, rng = np.zeros((n, n)), np.random.default_rng(seed)
    for i, j in rng.permutation(np.argwhere(np.triu(np.ones((n, n)), 1))):
        if max(M[i].sum(), M[j].sum()) < most:
            M[i, j] = M[j, i] = 1
    return M


def loss_by_formula(M, factors, diagonal):
    """Return the published loss: the sum over ordered pairs of log(1 + exp(-(2 M - 1) X))."""
    U, V = np.split(factors, 2)
    terms = np.logaddexp(0, -(2 * M - 1) * (U @ V.T))
    return terms.sum() - (0 if diagonal == "fit" else np.trace(terms))


def loss_of(M, diagonal):
    links = M if diagonal == "fit" else M - np.diag(np.diag(M))
    return LogisticLoss(sparse.csr_array(links), diagonal)


def wrong_entries(M, solution):
    wrong = (solution.U @ solution.V.T > 0) != (M > 0)
    return int(wrong.sum() - (np.trace(wrong) if solution.diagonal == "ignore" else 0))


@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), rank=st.integers(1, 4), scale=st.floats(0.01, 30))
def test_loss_and_errors_equal_the_formula(diagonal, seed, n, rank, scale):
    rng = np.random.default_rng(seed)
    M = random_graph(n, seed) + np.diag(rng.integers(0, 2, n))
    factors = scale * rng.standard_normal((2 * n, rank))
    passed = loss_of(M, diagonal).evaluate(factors)
    assert_allclose(passed.loss, loss_by_formula(M, factors, diagonal), rtol=1e-10, atol=1e-12)
    U, V = np.split(factors, 2)
    errors = M - np.exp(-np.logaddexp(0, -(U @ V.T)))
    if diagonal == "ignore":
        np.fill_diagonal(errors, 0)
    assert_allclose(passed.squares, np.sum(errors**2), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
def test_gradient_equals_central_differences(diagonal):
    M, h = random_graph(7), 1e-6
    factors = np.random.default_rng(1).standard_normal((14, 3))
    gradient = np.empty_like(factors)
    for place in np.ndindex(factors.shape):
        step = np.zeros_like(factors)
        step[place] = h
        above, below = (loss_by_formula(M, factors + sign * step, diagonal) for sign in (1, -1))
        gradient[place] = (above - below) / (2 * h)
    assert_allclose(loss_of(M, diagonal).evaluate(factors).gradient, gradient, atol=1e-7)


def test_large_scores_do_not_overflow():
    M = random_graph(20)
    passed = loss_of(M, "fit").evaluate(np.random.default_rng(0).standard_normal((40, 2)) * 1e4)
    assert math.isfinite(passed.loss)
    assert np.isfinite(passed.gradient).all()
    assert passed.squares <= 400


@pytest.mark.parametrize(
    "memory", [0.001, 1024]
)  # MiB: a row at a time, and as many as are ever formed at once
@pytest.mark.parametrize("threads", [1, 2])
def test_digits_do_not_depend_on_threads(memory, threads):
    M = random_graph(1000, density=0.02)  # enough work for two threads
    factors = np.random.default_rng(0).uniform(-1, 1, (2000, 8))
    with threadpool_limits(1):
        expected = loss_of(M, "ignore").evaluate(factors)
    with threadpool_limits(threads), sklearn.config_context(working_memory=memory):
        passed = loss_of(M, "ignore").evaluate(factors)
    if memory > 1:
        assert_array_equal(passed.gradient, expected.gradient)
        assert passed.loss == expected.loss
    assert_allclose(passed.gradient, expected.gradient, atol=1e-10)
    assert_allclose(passed.loss, expected.loss, rtol=1e-13)


@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bounded_degrees_are_represented_exactly(seed, diagonal):
    """The paper's theorem: 2c + 1 columns are enough for a maximum degree c."""
    M = bounded_degree_graph(60, 3, seed)
    assert M.sum(axis=0).max() == 3
    solution = logistic_pca(M, 7, diagonal=diagonal, random_state=seed, max_iter=500)
    assert wrong_entries(M, solution) == 0
    assert solution.relative_error < 1e-3
    assert solution.diagonal == diagonal


def test_solution_reports_the_fitted_model(tmp_path):
    M = random_graph()
    solution = logistic_pca(M, 2, random_state=0, max_iter=50)
    off_diagonal = ~np.eye(30, dtype=bool)
    error = (M - solution.reconstruct(range(30)))[off_diagonal]
    assert_allclose(solution.relative_error, np.linalg.norm(error) / np.linalg.norm(M), rtol=1e-10)
    factors = np.concatenate([solution.U, solution.V])
    assert_allclose(solution.objective, loss_by_formula(M, factors, "ignore"), rtol=1e-12)
    history = solution.history
    assert history.objective[-1] == solution.objective
    assert history.relative_error[-1] == solution.relative_error
    assert_array_equal(history.iteration, range(solution.n_iter + 1))
    assert (np.diff(history.objective) < 0).all()
    assert (np.diff(history.seconds) >= 0).all()
    assert history.evaluations[-1] <= solution.n_evaluations
    assert (solution.status, solution.n_iter, solution.solver) == (Status.MAX_ITER, 50, "logistic_pca")
    solution.save(tmp_path / "fit.npz")
    loaded = Solution.load(tmp_path / "fit.npz")
    assert_array_equal(loaded.reconstruct([3]), solution.reconstruct([3]))
    assert loaded.model.formula == "M ~ 1 / (1 + exp(-U V^T))"


def test_a_fit_can_be_continued():
    M = random_graph()
    first = logistic_pca(M, 2, random_state=0, max_iter=20)
    second = logistic_pca(M, 2, init=(first.U, first.V), max_iter=20)
    assert second.history.objective[0] == first.objective
    assert second.objective < first.objective


def test_sparse_equals_dense_and_same_seed_same_answer():
    M = random_graph()
    before = M.copy()
    kinds = (np.asarray, np.asarray, sparse.csr_array, lambda M: M > 0, lambda M: sparse.coo_array(M > 0))
    plain, *others = (logistic_pca(kind(M), 3, random_state=3, max_iter=30) for kind in kinds)
    assert_array_equal(M, before)
    for other in others:
        assert_array_equal(other.U, plain.U)
        assert_array_equal(other.V, plain.V)
    assert (logistic_pca(M, 3, random_state=4, max_iter=30).U != plain.U).any()
    single = logistic_pca(M.astype(np.float32), 3, random_state=3, max_iter=30)
    assert_array_equal(single.U, plain.U.astype(np.float32), strict=True)


def test_self_links_count_only_if_the_diagonal_is_fitted():
    M = random_graph()
    with_self_links = M + np.eye(30)
    settings = {"random_state": 0, "max_iter": 20}
    assert_array_equal(
        logistic_pca(with_self_links, 2, **settings).U,
        logistic_pca(M, 2, **settings).U,
    )
    fitted = logistic_pca(with_self_links, 2, diagonal="fit", **settings)
    factors = np.concatenate([fitted.U, fitted.V])
    assert_allclose(fitted.objective, loss_by_formula(with_self_links, factors, "fit"), rtol=1e-12)
    assert_allclose(fitted.norm, np.linalg.norm(with_self_links))


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"max_iter": 3}, Status.MAX_ITER),
        ({"max_time": 1e-9}, Status.MAX_TIME),
        ({"gtol": 1e6}, Status.GRADIENT),
        ({"gtol": 0, "ftol": 1e-3}, Status.PLATEAU),
        ({"callback": lambda progress: progress.record.iteration == 4}, Status.CALLBACK),
    ],
)
def test_why_it_stopped(settings, status):
    solution = logistic_pca(random_graph(), 2, random_state=0, **settings)
    assert solution.status is status
    assert len(solution.history) == solution.n_iter + 1
    if status is Status.CALLBACK:
        assert solution.n_iter == 4


def test_callback_receives_both_factors():
    seen = []
    solution = logistic_pca(random_graph(), 3, random_state=0, max_iter=5, callback=seen.append)
    assert [progress.U.shape for progress in seen] == [(60, 3)] * 5
    assert_array_equal(seen[-1].U, np.concatenate([solution.U, solution.V]))
    assert seen[-1].record == solution.history.records()[-1]
    seen[0].U[:] = 0  # a copy
    assert seen[0].limits.max_iter == 5


@pytest.mark.parametrize("where", ["callback", "evaluation"])
def test_an_interrupted_fit_returns_the_last_accepted_factors(where, monkeypatch):
    def interrupt(progress):
        if progress.record.iteration == 3:
            if where == "callback":
                raise KeyboardInterrupt
            monkeypatch.setattr(LogisticLoss, "_loss_and_errors", raise_interrupt)

    def raise_interrupt(*_):
        raise KeyboardInterrupt

    solution = logistic_pca(random_graph(), 2, random_state=0, callback=interrupt)
    monkeypatch.undo()
    assert (solution.status, solution.n_iter, len(solution.history)) == (Status.INTERRUPTED, 3, 4)
    plain = logistic_pca(random_graph(), 2, random_state=0, max_iter=3)
    assert_array_equal(solution.U, plain.U)
    assert solution.objective == plain.objective


def test_an_interruption_before_the_first_evaluation_is_raised(monkeypatch):
    def raise_interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LogisticLoss, "_loss_and_errors", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        logistic_pca(random_graph(), 2)


def test_other_errors_of_a_callback_come_through():
    with pytest.raises(ZeroDivisionError):
        logistic_pca(random_graph(), 2, callback=lambda progress: 1 / 0)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"M": random_graph() / 2}, ValueError, "M must hold zeros and ones for LPCA, got 0.5. Pass M > 0"),
        ({"M": np.zeros((5, 5))}, ValueError, "M"),
        ({"M": np.eye(5)}, ValueError, "M must have at least one link for LPCA"),
        ({"M": np.triu(random_graph())}, ValueError, "M must be symmetric"),
        ({"M": Problem.of(random_graph(), diagonal="ignore")}, ValueError, "M must be fully observed"),
        ({"diagonal": "auto"}, ValueError, "diagonal must be one of 'fit', 'ignore', got 'auto'"),
        ({"rank": 31}, ValueError, "rank must be an integer from 1 to 30"),
        ({"init": np.ones((30, 2))}, ValueError, r"init must be a pair \(U, V\)"),
        ({"init": (np.ones((30, 2)), np.ones((30, 3)))}, ValueError, "init must have shape"),
        (
            {"init": (np.full((30, 2), 1e200), np.full((30, 2), -1e200))},
            ValueError,
            r"init must have a finite loss and gradient, got entries of magnitude up to 1e\+200. Scale",
        ),
        (
            {"init": (np.full((30, 2), 1e-308), np.full((30, 2), 1e308))},
            ValueError,
            r"finite loss and gradient, got entries of magnitude up to 1e\+308. Scale",
        ),
        ({"random_state": "dice"}, TypeError, "random_state must be"),
        ({"callback": 1}, TypeError, "callback must be callable"),
        ({"max_iter": 0}, ValueError, "max_iter must be"),
        ({"gtol": -1}, ValueError, "gtol must be"),
    ],
)
def test_bad_input(settings, error, message):
    with pytest.raises(error, match=message):
        logistic_pca(**{"M": random_graph(), "rank": 2, **settings})


def test_no_square_array_is_formed():
    n = 3000
    i, j = np.random.default_rng(0).integers(0, n, (2, 3 * n))
    links = sparse.csr_array((np.ones(len(i), bool), (i, j)), shape=(n, n))
    tracemalloc.start()
    try:
        logistic_pca(links + links.T, 2, random_state=0, max_iter=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n * 8 / 4
