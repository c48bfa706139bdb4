"""LinkPredictor: its formula on dense matrices, the best pairs by brute force, and what it finds."""

import inspect
import itertools
import pickle
import re
import tracemalloc
from dataclasses import replace

import joblib
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from symrelu import Status, SymReLU, decompose
from symrelu.datasets import load_digits_graph
from symrelu.estimators.links import LinkPredictor
from symrelu.fit.link_evaluation import link_splits, split_generator
from symrelu.problem import Problem

NOT_OF_DECOMPOSE = ("n_components", "shrinkage", "degree_regularization", "n_init", "n_jobs")
MODEL = {"n_negative": 1, "zero_weight": 0.1, "diagonal": "ignore"}


def planted_graph(seed=0, n=60, groups=3, inside=0.6, across=0.05):
    """Return a 0/1 graph with more links inside groups than between them, and the groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % groups
    links = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, inside, across), 1)
    return (links | links.T).astype(float), group


def weighted_graph(seed=0, n=30, loops=True):
    B, _ = planted_graph(seed, n)
    weights = np.random.default_rng(seed).uniform(0.5, 2, (n, n))
    return B * (weights + weights.T) + loops * np.diag(np.arange(n) % 3)


def normalised(B, mask=None, tau=1.0):
    """Return the normalised graph, the outer product of the roots of its degrees, and the observed pairs."""
    observed = ~np.eye(len(B), dtype=bool) & (True if mask is None else ~mask)
    links = np.where(observed, B, 0)
    degree = links.sum(axis=1)
    degree = degree + tau * degree.mean()
    roots = np.sqrt(np.outer(degree, degree))
    return links / roots, roots, observed


def smooth(X, N, observed):
    width = np.sqrt(np.mean(N[observed] ** 2))
    return (X + np.sqrt(X**2 + width**2)) / 2


def suggested_shrinkage(N, tau=1.0):
    counts = np.sum(N > 0, axis=1)
    amount = 0.2 / (1 + tau) * min(1.0, 4 / counts[counts > 0].mean()) ** 0.25
    return amount / np.linalg.eigvalsh(N)[-1]


def formula(B, mask=None, tau=1.0, rank=5, shrinkage=None, **settings):
    """Return the scores of all pairs, word for word."""
    N, roots, observed = normalised(B, mask, tau)
    shrinkage = suggested_shrinkage(N, tau) if shrinkage is None else shrinkage
    alpha = 2 * shrinkage * np.linalg.eigvalsh(N)[-1]
    solution = decompose(
        N, rank, mask=mask, alpha=alpha, **{**MODEL, "max_iter": 20, "init": "random", **settings}
    )
    X = (solution.U * solution.signature) @ solution.U.T
    return smooth(X, N, observed) * roots


def all_scores(predictor):
    n = len(predictor.embedding_)
    return predictor.score_pairs(np.arange(n)[:, None], np.arange(n))


def small_mask(n, seed=0):
    mask = np.triu(np.random.default_rng(seed).random((n, n)) < 0.1, 1)
    return mask | mask.T


@parametrize_with_checks([LinkPredictor()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("masked", [None, np.array, sparse.csr_array])
def test_scores_are_the_formula(kind, masked):
    B = weighted_graph()
    mask = None if masked is None else small_mask(len(B))
    expected = formula(B, mask, random_state=0)
    predictor = LinkPredictor(5, n_init=1, random_state=0)
    predictor.fit(kind(B), mask=None if mask is None else masked(mask))
    assert_allclose(all_scores(predictor), expected, rtol=1e-7, atol=1e-9)
    assert_allclose(predictor.reconstruct([3, 0]), expected[[3, 0]], rtol=1e-7, atol=1e-9)


@pytest.fixture
def made(monkeypatch):
    """The solutions of decompose that a predictor asked for."""
    solutions = []

    def spy(*arguments, **settings):
        solutions.append(decompose(*arguments, **settings))
        return solutions[-1]

    monkeypatch.setattr("symrelu.estimators.base.decompose", spy)
    return solutions


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("tau", [1.0, 1e8])  # N is of order one, or so small that the fits scale it
@pytest.mark.parametrize("support", ["equal", "at_least"])
def test_the_mean_of_several_fits(made, kind, dtype, tau, support):
    B, mask = weighted_graph().astype(dtype), small_mask(30)
    predictor = LinkPredictor(4, n_init=3, random_state=0, degree_regularization=tau, support=support)
    predictor.fit(kind(B), mask=mask)
    assert len(made) == 3
    X = np.mean([(fit.U * fit.signature) @ fit.U.T for fit in made], axis=0)
    N, roots, observed = normalised(B.astype(np.float64), mask, tau)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    expected = smooth(X, N, observed) * roots
    assert_allclose(all_scores(predictor), expected, rtol=100 * tolerance, atol=tolerance)
    assert predictor.embedding_.dtype == dtype
    assert predictor.embedding_.shape == (30, 12)
    assert_array_equal(predictor.signature_, [1] * 9 + [-1] * 3)
    # relative_error_, reconstruction_err_ and the objective are those of the mean.
    counted = observed & ~((N > 0) & (X > N) & (support == "at_least"))
    assert predictor.solution_.support == support
    error = np.linalg.norm((N - np.maximum(0, X)) * counted)
    assert_allclose(predictor.reconstruction_err_, error, rtol=1e-5)
    assert_allclose(predictor.relative_error_, error / np.linalg.norm(N), rtol=1e-5)
    losses = np.where(N > 0, (N - X) ** 2, 0.1 * np.maximum(0, X) ** 2) * counted
    alpha = 2 * suggested_shrinkage(N, tau) * np.linalg.eigvalsh(N)[-1]
    objective = losses.sum() / 2 + alpha / 2 * np.sum(predictor.embedding_**2)
    assert_allclose(predictor.solution_.objective, objective, rtol=1e-5)
    assert predictor.n_iter_ == max(fit.n_iter for fit in made)
    assert predictor.solution_.n_evaluations == sum(fit.n_evaluations for fit in made) + 3
    # What is known of each fit alone.
    assert predictor.fits_[0].seed == 0
    assert len({fit.seed for fit in predictor.fits_}) == 3
    for name in ("n_iter", "status", "relative_error"):
        assert [getattr(fit, name) for fit in predictor.fits_] == [getattr(fit, name) for fit in made]


def test_the_seeds_of_the_fits_differ_and_repeat(made):
    B = weighted_graph()
    for random_state in (7, 7, np.random.RandomState(7), np.random.default_rng(7), None):
        LinkPredictor(3, n_init=2, random_state=random_state).fit(B)
    starts = [fit.history.objective[0] for fit in made]
    assert starts[:2] == starts[2:4]
    assert len(set(starts)) == 8


def test_fits_in_parallel():
    B = sparse.csr_array(weighted_graph())
    with joblib.parallel_config(backend="threading"):
        one, two = (LinkPredictor(3, n_init=4, n_jobs=jobs, random_state=0).fit(B) for jobs in (1, 2))
    assert_array_equal(one.embedding_, two.embedding_)


def test_the_worst_end_of_several_is_told(monkeypatch):
    ends = [{}, {"max_time": 1e-9}, {"max_iter": 1}]

    def spy(*arguments, **settings):
        return decompose(*arguments, **{**settings, "gtol": 0.1, **ends.pop(0)})

    monkeypatch.setattr("symrelu.estimators.base.decompose", spy)
    reasons = (
        r"the gradient fell below gtol \(1 of 3 fits\), max_time was reached \(1 of 3 fits\), "
        r"max_iter was reached \(1 of 3 fits\)"
    )
    with pytest.warns(ConvergenceWarning, match=f"stopped before convergence: {reasons}"):
        predictor = LinkPredictor(3, n_init=3, random_state=0).fit(weighted_graph())
    assert re.fullmatch(reasons, predictor.stop_reason_)
    assert predictor.solution_.status is Status.MAX_TIME
    assert not predictor.converged_


def test_several_fits_that_converge():
    predictor = LinkPredictor(3, n_init=2, max_iter=500, gtol=1e-3, random_state=0).fit(weighted_graph())
    assert predictor.converged_
    assert predictor.stop_reason_ == "the gradient fell below gtol (2 of 2 fits)"


def test_every_setting_counts():
    B = weighted_graph()
    settings = {
        "n_negative": 2,
        "zero_weight": 0.5,
        "support": "at_least",
        "solver": "aapb",
        "init": "spectral",
        "tol": 0.01,
        "gtol": 1e-3,
        "ftol": 1e-4,
        "max_iter": 9,
        "max_time": 100.0,
        "random_state": 3,
        "backend": "reference",
        "precision": "auto",
        "client": None,
        "verbose": 0,
    }
    predictor = LinkPredictor(4, degree_regularization=0.3, shrinkage=0.1, n_init=1, **settings).fit(B)
    expected = formula(B, tau=0.3, rank=4, shrinkage=0.1, **settings)
    assert_allclose(all_scores(predictor), expected, rtol=1e-9, atol=1e-12)
    assert set(predictor.get_params()) == {*settings, "alpha", *NOT_OF_DECOMPOSE}


@pytest.mark.parametrize("n_init", [1, 2])
def test_settings_go_by_their_names(monkeypatch, n_init):
    """Those that change little in one fit are seen on their way to decompose."""
    received = {}

    def spy(N, rank, **settings):
        received.update(settings, rank=rank, mask=N.mask)
        return decompose(N, rank, alpha=0.2, diagonal="ignore", max_iter=1, random_state=0)

    monkeypatch.setattr("symrelu.estimators.base.decompose", spy)
    settings = {"tol": 0.1, "gtol": 0.2, "ftol": 0.3, "max_iter": 4, "max_time": 5.0, "backend": "sparse"}
    LinkPredictor(7, n_init=n_init, **settings).fit(weighted_graph())
    shared = set(inspect.signature(LinkPredictor).parameters) - set(NOT_OF_DECOMPOSE)
    assert shared <= set(received)
    expected = {**settings, "rank": 7, "diagonal": "ignore", "mask": None}
    assert {name: received[name] for name in expected} == expected


def test_attributes():
    B = weighted_graph()
    predictor = LinkPredictor(5, n_init=1, random_state=0).fit(sparse.csr_array(B))
    links = B - np.diag(np.diag(B))
    degree = links.sum(axis=1)
    assert_allclose(predictor.root_degrees_**2, degree + degree.mean())
    N, _, observed = normalised(B)
    assert_allclose(predictor.smoothing_, np.sqrt(np.mean(N[observed] ** 2)))
    assert_allclose(predictor.shrinkage_, suggested_shrinkage(N))
    assert isinstance(predictor.known_, sparse.csr_array)
    assert predictor.known_.dtype == bool
    assert_array_equal(predictor.known_.toarray(), links > 0)
    assert_array_equal(predictor.signature_, [1, 1, 1, 1, -1])
    assert predictor.embedding_.shape == (30, 5)
    assert predictor.n_features_in_ == 30
    assert_array_equal(
        predictor.link_scores_.score_pairs([0, 1], [2, 7]), predictor.score_pairs([0, 1], [2, 7])
    )


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_self_loops_are_ignored(kind):
    with_loops, without = weighted_graph(), weighted_graph(loops=False)
    assert with_loops.trace() > without.trace() == 0
    scores = all_scores(LinkPredictor(5, random_state=0).fit(kind(with_loops)))
    assert_array_equal(scores, all_scores(LinkPredictor(5, random_state=0).fit(kind(without))))


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_masked_pairs_do_not_matter_and_can_be_proposed(kind):
    B, _ = planted_graph(n=30)
    mask = small_mask(30)
    other = np.where(mask, 1 - B, B)
    one, two = (LinkPredictor(5, random_state=0).fit(kind(graph), mask=mask) for graph in (B, other))
    assert_array_equal(all_scores(one), all_scores(two))
    assert_array_equal(one.known_.toarray(), (B > 0) & ~mask)
    proposed, _ = one.top_links(30 * 29)
    assert {tuple(pair) for pair in proposed} >= {tuple(pair) for pair in np.argwhere(np.triu(mask))}
    assert not np.array_equal(all_scores(one), all_scores(LinkPredictor(5, random_state=0).fit(kind(B))))


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_isolated_nodes(kind):
    B, _ = planted_graph(n=40)
    B[[3, 17]] = B[:, [3, 17]] = 0
    predictor = LinkPredictor(5, random_state=0, max_iter=300).fit(kind(B))
    scores = all_scores(predictor)
    assert np.isfinite(scores).all()
    linked = np.delete(np.arange(40), [3, 17])
    # Nothing is known about them: no link is expected.
    assert scores[[3, 17]].max() < 0.5 * scores[np.ix_(linked, linked)].max()
    items, _ = predictor.top_k([3], 39)
    assert_array_equal(np.sort(items[0]), np.delete(np.arange(40), 3))


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e-200, 1e200, 2.0**-9])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_the_unit_of_the_weights_does_not_matter(scale, kind):
    B = weighted_graph()
    scores = all_scores(LinkPredictor(5, random_state=0).fit(kind(B)))
    scaled_scores = all_scores(LinkPredictor(5, random_state=0).fit(kind(scale * B)))
    assert_allclose(scaled_scores / scale, scores, rtol=1e-6, atol=1e-8)


def test_the_ranking_does_not_depend_on_the_unit():
    B = weighted_graph()
    expected, _ = LinkPredictor(5, random_state=0).fit(B).top_links(50)
    for scale in (1e-6, 1e6):
        assert_array_equal(LinkPredictor(5, random_state=0).fit(scale * B).top_links(50)[0], expected)


def test_scores_follow_a_permutation():
    """Up to the numbers of the nodes, the model is the same: at convergence from the same start, X is."""
    B = weighted_graph()
    order = np.random.default_rng(1).permutation(len(B))
    U0 = np.random.default_rng(2).uniform(size=(len(B), 3))
    settings = {"max_iter": 3000, "gtol": 1e-8, "ftol": 0.0}
    predictor = LinkPredictor(3, init=U0, n_init=1, **settings).fit(B)
    permuted = LinkPredictor(3, init=U0[order], n_init=1, **settings).fit(B[np.ix_(order, order)])
    assert predictor.converged_
    assert permuted.converged_
    assert_allclose(all_scores(permuted), all_scores(predictor)[np.ix_(order, order)], rtol=1e-5, atol=1e-6)


@pytest.fixture(params=[0.001, 1024])  # MiB: a row at a time, and all at once
def memory(request):
    with sklearn.config_context(working_memory=request.param):
        yield


@pytest.fixture(scope="module")
def fitted():
    B = weighted_graph()
    return LinkPredictor(5, random_state=0).fit(sparse.csr_array(B)), B


@pytest.mark.parametrize("exclude_known", [True, False])
@pytest.mark.parametrize("excluding", [False, True])
def test_nearest_nodes(fitted, memory, exclude_known, excluding):
    predictor, B = fitted
    # Some of the other pairs are known links: as numbers, -1 and True would cancel.
    others = excluding & ((np.arange(30)[:, None] - np.arange(30) == -1) | (B > 1))
    scores = all_scores(predictor)
    items, values = predictor.top_k(
        [4, 0], 6, exclude_known=exclude_known, exclude=-1.0 * others if excluding else None
    )
    for node, best, value in zip([4, 0], items, values, strict=True):
        allowed = [
            j for j in range(30) if j != node and not (exclude_known and B[node, j]) and not others[node, j]
        ]
        expected = sorted(allowed, key=lambda j: -scores[node, j])[:6]
        assert_array_equal(best, expected)
        assert_allclose(value, scores[node, expected])


def best_pairs(scores, allowed, k):
    """Return by brute force the pairs of largest score, equal ones by their numbers."""
    pairs = [pair for pair in itertools.combinations(range(len(scores)), 2) if allowed[pair]]
    return sorted(pairs, key=lambda pair: (-scores[pair], pair))[:k]


@pytest.mark.parametrize("k", [1, 7, 100, 1000])
@pytest.mark.parametrize("exclude_known", [True, False])
@pytest.mark.parametrize("excluding", [None, np.array, sparse.csr_array])
def test_best_links(fitted, memory, k, exclude_known, excluding):
    predictor, B = fitted
    below = np.tri(30, k=-20, dtype=bool)  # the lower half of some pairs: a pair has no direction
    scores = all_scores(predictor)
    allowed = np.ones((30, 30), bool)
    if exclude_known:
        allowed &= B == 0
    if excluding is not None:
        allowed &= ~(below | below.T)
    exclude = None if excluding is None else excluding(below)
    pairs, values = predictor.top_links(k, exclude_known=exclude_known, exclude=exclude)
    expected = best_pairs(scores, allowed, k)
    assert_array_equal(pairs, expected)
    assert_allclose(values, [scores[pair] for pair in expected])
    assert np.all(np.diff(values) <= 0)


def test_a_complete_graph_has_nothing_to_propose():
    predictor = LinkPredictor(2, random_state=0).fit(np.ones((6, 6)))
    pairs, scores = predictor.top_links(3)
    assert pairs.shape == (0, 2)
    assert scores.shape == (0,)
    assert_array_equal(predictor.top_k([0], 2)[0], [[-1, -1]])
    assert len(predictor.top_links(3, exclude_known=False)[0]) == 3


def test_sparse_graphs_never_become_dense():
    n = 3000
    ring = sparse.diags_array([1.0, 1.0], offsets=[1, -1], shape=(n, n)).tocsr()
    LinkPredictor(2, max_iter=1).fit(ring[:50, :50])  # compiles
    tracemalloc.start()
    with sklearn.config_context(working_memory=2):
        LinkPredictor(2, random_state=0, max_iter=1).fit(ring, mask=ring @ ring > 0).top_links(5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * n  # bytes: less than a byte for each pair


def auc_of_hidden_links(B, predictor, seed=0):
    """Return how well a tenth of the links, hidden, is told from all other pairs."""
    rng = np.random.default_rng(seed)
    i, j = np.triu(B).nonzero()
    hidden = rng.permutation(len(i))[: len(i) // 10]
    i, j = i[hidden], j[hidden]
    train = B.copy()
    train[i, j] = train[j, i] = 0
    absent = np.triu(B == 0, 1).nonzero()
    scores = predictor.fit(sparse.csr_array(train)).score_pairs(
        np.append(i, absent[0]), np.append(j, absent[1])
    )
    return roc_auc_score(np.arange(len(scores)) < len(i), scores)


def test_hidden_links_of_a_planted_graph_are_found():
    B, group = planted_graph(n=150, inside=0.5, across=0.05)
    inside = 150 * 149 / 2 * np.mean(group[:, None] == group)
    best = 1 - (0.05 * 2 / (0.5 + 0.05 * 2)) / 2 - (inside * 0.5) / (2 * np.sum(np.triu(B == 0, 1)))
    auc = auc_of_hidden_links(B, LinkPredictor(random_state=0))
    assert best - 0.05 < auc < best + 0.05  # of knowing the groups; chance is 0.5
    assert best > 0.8


def test_hidden_links_of_digits_are_found():
    M, _ = load_digits_graph()
    B = (M[:400, :400] > 0).toarray().astype(float)
    assert auc_of_hidden_links(B, LinkPredictor(random_state=0)) > 0.9


def test_same_seed_same_answer():
    B = sparse.csr_array(weighted_graph())
    one, two, other = (LinkPredictor(5, random_state=seed).fit(B) for seed in (1, 1, 2))
    assert_array_equal(one.embedding_, two.embedding_)
    assert not np.array_equal(one.embedding_, other.embedding_)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_float32_stays(kind):
    B = weighted_graph().astype(np.float32)
    predictor = LinkPredictor(5, random_state=0).fit(kind(B))
    assert predictor.embedding_.dtype == predictor.root_degrees_.dtype == np.float32
    assert predictor.score_pairs([0], [1]).dtype == np.float32
    assert predictor.top_k([0], 2)[1].dtype == predictor.top_links(2)[1].dtype == np.float32
    exact = LinkPredictor(5, random_state=0).fit(kind(B.astype(float)))
    assert_allclose(all_scores(predictor), all_scores(exact), atol=0.02)


def test_reaching_max_iter_is_normal():
    """Warnings are errors here."""
    predictor = LinkPredictor(5, random_state=0, max_iter=2).fit(weighted_graph())
    assert predictor.stop_reason_ == "max_iter was reached (5 of 5 fits)"
    assert not predictor.converged_


class AskForLinks:
    """A callback of scikit-learn that asks for the best links after each step, and stops at the third."""

    def __init__(self):
        self.answers = []

    def setup(self, estimator, context):
        del estimator, context

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        del estimator, context

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        del estimator
        if context.task_name == "step":
            self.answers.append(fitted_estimator.top_links(4))
        return len(self.answers) == 3


@pytest.mark.requires_callbacks
def test_callbacks_can_ask_at_each_step():
    B, callback = weighted_graph(), AskForLinks()
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        LinkPredictor(5, n_init=1, random_state=0).set_callbacks(callback).fit(B)
    for steps, (pairs, scores) in enumerate(callback.answers, start=1):
        expected_pairs, expected = (
            LinkPredictor(5, n_init=1, random_state=0, max_iter=steps).fit(B).top_links(4)
        )
        assert_array_equal(pairs, expected_pairs)
        assert_allclose(scores, expected)
    assert len(callback.answers) == 3


def test_a_large_shrinkage_leaves_nothing():
    with pytest.warns(ConvergenceWarning, match=r"the factor became zero .* Lower shrinkage"):
        predictor = LinkPredictor(5, shrinkage=1.0, random_state=0).fit(weighted_graph())
    assert np.abs(predictor.embedding_).max() < 1e-2
    assert np.abs(LinkPredictor(5, random_state=0).fit(weighted_graph()).embedding_).max() > 0.1


def test_alpha_still_works_with_a_warning_that_says_what_to_pass():
    B = weighted_graph()
    with pytest.warns(FutureWarning, match="alpha of LinkPredictor is deprecated") as caught:
        old = LinkPredictor(4, alpha=0.2, random_state=0).fit(B)
    assert caught[0].filename == __file__
    shrinkage = float(re.search(r"shrinkage=(\S+) instead", str(caught[0].message))[1])
    assert_allclose(shrinkage, 0.1 / np.linalg.eigvalsh(normalised(B)[0])[-1], rtol=1e-5)
    assert_allclose(old.shrinkage_, shrinkage, rtol=1e-5)
    new = LinkPredictor(4, shrinkage=shrinkage, random_state=0).fit(B)
    assert_allclose(all_scores(new), all_scores(old), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
def test_alpha_and_shrinkage_are_one_penalty(shrinkage):
    with pytest.raises(ValueError, match="alpha and shrinkage set the same penalty"):
        LinkPredictor(4, alpha=0.2, shrinkage=shrinkage).fit(weighted_graph())


def test_denser_graphs_are_shrunk_less_and_isolated_nodes_do_not_count():
    def chosen(n, degree, isolated=0):
        steps = np.arange(1, degree // 2 + 1)
        distance = np.abs(np.arange(n)[:, None] - np.arange(n))
        ring = np.isin(np.minimum(distance, n - distance), steps).astype(float)
        return (
            LinkPredictor(2, n_init=1, max_iter=1, random_state=0).fit(np.pad(ring, (0, isolated))).shrinkage_
        )

    assert_allclose([chosen(40, degree) for degree in (2, 4, 8, 16)], 0.2 / np.array([1, 1, 2, 4]) ** 0.25)
    # Isolated nodes lower the mean degree that is added, and thus raise the largest eigenvalue of N.
    assert_allclose(chosen(40, 16, isolated=40), chosen(40, 16) * (16 + 8) / (2 * 16))


def test_other_limits_warn():
    with pytest.warns(ConvergenceWarning, match=r"LinkPredictor\(.*\) stopped before convergence: max_time"):
        LinkPredictor(5, random_state=0, max_time=1e-9).fit(weighted_graph())


def test_small_graphs_get_narrow_factors():
    path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    predictor = LinkPredictor(n_init=1, random_state=0).fit(path)
    assert predictor.embedding_.shape == (4, 4)
    assert_array_equal(predictor.signature_, [1, 1, 1, -1])
    assert_array_equal(LinkPredictor(1, n_init=1, random_state=0).fit(path).signature_, [1])
    assert LinkPredictor(random_state=0).fit(np.ones((2, 2))).embedding_.shape == (2, 10)


def test_automatic_signs():
    B = weighted_graph()
    predictor = LinkPredictor(6, n_negative="auto", n_init=1, random_state=0).fit(B)
    assert_allclose(
        all_scores(predictor), formula(B, rank=6, n_negative="auto", random_state=0), rtol=1e-7, atol=1e-9
    )


def test_input_is_not_changed():
    B = weighted_graph()
    for graph in (B, sparse.csr_array(B)):
        before = graph.copy()
        LinkPredictor(3, random_state=0).fit(graph, mask=small_mask(30))
        assert abs(graph - before).max() == 0
        assert sparse.issparse(graph) is False or graph.nnz == before.nnz


def test_graphs_of_networkx_keep_their_names():
    networkx = pytest.importorskip("networkx")
    graph = networkx.les_miserables_graph()
    predictor = LinkPredictor(random_state=0).fit(graph)
    assert list(predictor.node_names_) == list(graph.nodes)
    expected = LinkPredictor(random_state=0).fit(networkx.to_scipy_sparse_array(graph, dtype=float))
    assert_allclose(all_scores(predictor), all_scores(expected))


def test_clone_and_pickle():
    predictor = LinkPredictor(4, degree_regularization=2.0, random_state=0)
    assert clone(predictor).get_params() == predictor.get_params()
    copy = pickle.loads(pickle.dumps(predictor.fit(weighted_graph())))
    assert_array_equal(copy.top_links(5)[0], predictor.top_links(5)[0])


def test_pairwise_tag():
    tags = LinkPredictor().__sklearn_tags__().input_tags
    assert tags.pairwise
    assert tags.sparse
    assert tags.positive_only


def test_common_defaults_are_those_of_symrelu():
    other = SymReLU().get_params()
    for name in ("solver", "gtol", "ftol", "max_time", "random_state", "backend"):
        assert LinkPredictor().get_params()[name] == other[name], name


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 2.5}, TypeError, "n_components must be an integer"),
        ({"n_negative": -1}, ValueError, "n_negative must be an integer of at least 0 or 'auto', got -1"),
        ({"n_negative": "none"}, ValueError, "n_negative must be 'auto' or an integer, got 'none'"),
        (
            {"degree_regularization": 0},
            ValueError,
            "degree_regularization must be a finite number > 0, got 0",
        ),
        ({"degree_regularization": "1"}, TypeError, "degree_regularization must be a finite number > 0"),
        ({"alpha": -1.0}, ValueError, "alpha must be a finite number >= 0, got -1"),
        ({"shrinkage": -1.0}, ValueError, "shrinkage must be a finite number >= 0, got -1"),
        ({"shrinkage": "most"}, ValueError, "shrinkage must be 'auto' or a number, got 'most'"),
        ({"zero_weight": 0.0}, ValueError, r"zero_weight must be a number in \(0, 1\], got 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
        ({"solver": "gradient"}, ValueError, "solver must be one of"),
        ({"n_init": 0}, ValueError, "n_init must be an integer of at least 1, got 0"),
        ({"init": np.ones((30, 16))}, ValueError, "n_init > 1 requires different starts"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        LinkPredictor(**settings).fit(weighted_graph())


LOOPS = np.eye(4)
PAIR = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("graph", "mask", "error", "message"),
    [
        (LOOPS, None, ValueError, "X must have a link between two different nodes"),
        (sparse.csr_array(LOOPS), None, ValueError, "X must have a link between two different nodes"),
        (PAIR, PAIR > 0, ValueError, "outside its diagonal and mask all entries are zero"),
        (np.zeros((3, 3)), None, ValueError, "X must have a positive entry"),
        (np.ones((1, 1)), None, ValueError, "X must have at least 2 nodes, .* got n_samples = 1"),
        (np.triu(np.ones((3, 3))), None, ValueError, r"X must be symmetric: \|X - X.T\| reaches 1"),
        (np.ones((3, 2)), None, ValueError, "X must be square"),
        (PAIR, np.eye(2, dtype=bool), ValueError, r"mask must have the shape of M, \(3, 3\), got \(2, 2\)"),
        (PAIR, np.eye(3), TypeError, "mask must be boolean"),
    ],
)
def test_bad_graphs(graph, mask, error, message):
    with pytest.raises(error, match=message):
        LinkPredictor(2).fit(graph, mask=mask)


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        (lambda p: p.top_links(0), ValueError, "k must be an integer of at least 1, got 0"),
        (lambda p: p.top_links(2.0), TypeError, "k must be an integer of at least 1, got 2.0"),
        (lambda p: p.top_links(1, exclude=np.eye(3)), ValueError, r"exclude must have shape \(30, 30\)"),
        (lambda p: p.top_k([0], 1, exclude=np.eye(3)), ValueError, r"exclude must have shape \(30, 30\)"),
        (lambda p: p.top_k([30], 1), IndexError, "nodes must be from 0 to 29"),
        (lambda p: p.score_pairs([0], [-1]), IndexError, "j must be from 0 to 29"),
    ],
)
def test_bad_questions(fitted, question, error, message):
    with pytest.raises(error, match=message):
        question(fitted[0])


@pytest.mark.parametrize(
    "question",
    [
        lambda p: p.top_links(1),
        lambda p: p.top_k([0], 1),
        lambda p: p.score_pairs([0], [1]),
        lambda p: p.link_scores_,
    ],
)
def test_must_be_fitted_first(question):
    with pytest.raises(NotFittedError):
        question(LinkPredictor())


# ---------------------------------------------------------------------------------- evaluation


def hub_graph(n=300, exponent=2.2, seed=0):
    """Return a random graph whose degrees follow a power law: only the degrees of two nodes predict a link."""
    rng = np.random.default_rng(seed)
    degrees = np.minimum((1 - rng.random(n)) ** (-1 / (exponent - 1)), n / 4).astype(int)
    ends = rng.permutation(np.repeat(np.arange(n), degrees))
    i, j = ends[: len(ends) // 2 * 2].reshape(2, -1)
    half = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))
    return sparse.csr_array((half + half.T - sparse.diags_array((half + half.T).diagonal()) > 0).astype(float))


class ByX(LinkPredictor):
    """Scores X times the roots of the degrees, as in symrelu 0.1.0."""

    def score_pairs(self, i, j):
        U, roots = self.embedding_, self.root_degrees_
        return np.sum(U[i] * self.signature_ * U[j], axis=1) * roots[i] * roots[j]


class WithoutReLU(ByX):
    """The control: the linear model with the same signs, penalty, weights and number of steps."""

    def fit(self, X, y=None, *, mask=None):
        super().fit(X, y, mask=mask)
        N, _, observed = normalised(X.toarray())
        weights = np.where(N > 0, 1.0, self.zero_weight) * observed
        alpha, signs, shape = self.solution_.alpha, self.signature_, self.embedding_.shape

        def objective(flat):
            U = flat.reshape(shape)
            residual = (U * signs) @ U.T - N
            loss = np.sum(weights * residual**2) / 2 + alpha / 2 * np.sum(U**2)
            return loss, (2 * (weights * residual) @ (U * signs) + alpha * U).ravel()

        U0 = np.random.default_rng(0).uniform(0, 0.2, shape)
        found = minimize(objective, U0.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter})
        self.embedding_ = found.x.reshape(shape)
        return self


def test_hubs_are_not_punished():
    """On average over four graphs, since one of them has only about 50 links to hide."""
    found, by_x, linear = (
        np.mean(
            [
                kind(8, n_init=1, random_state=0).evaluate(hub_graph(seed=seed), n_splits=1).mean.auc_uniform
                for seed in range(4)
            ]
        )
        for kind in (LinkPredictor, ByX, WithoutReLU)
    )
    assert found > by_x + 0.05
    assert found > linear - 0.003


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_evaluation_of_a_planted_graph(kind):
    B, _ = planted_graph(n=90, groups=3, inside=0.5, across=0.02)
    evaluation = LinkPredictor(4, random_state=0).evaluate(kind(B), n_splits=2)
    n_links = np.count_nonzero(B) // 2
    assert (evaluation.n_links, evaluation.n_hidden) == (n_links, round(0.1 * n_links))
    assert len(evaluation.splits) == 2
    assert all(0.7 < split.auc_uniform < 0.95 for split in evaluation.splits)
    assert 0.7 < evaluation.mean.auc_degree < 0.95
    assert 0.1 < evaluation.mean.hits_at_50 < 1


def test_evaluation_is_that_of_fits_without_the_hidden_links(made):
    B, mask = weighted_graph(n=60, loops=False), small_mask(60)
    predictor = LinkPredictor(3, n_init=1, random_state=0)
    evaluation = predictor.evaluate(B, mask=mask, fraction=0.2, n_splits=2, random_state=5)
    rng = split_generator(5)
    splits = list(link_splits(Problem.of(B, mask, "ignore"), 0.2, 2, rng))
    for split, found in zip(splits, evaluation.splits, strict=True):
        i, j = split.links
        train = B.copy()
        train[i, j] = train[j, i] = 0
        assert np.all(train[np.triu(B > 0) & ~np.isin(B, B[i, j])] > 0)
        fitted = clone(predictor).fit(train, mask=mask)
        scores = {name: fitted.score_pairs(*getattr(split, name)) for name in ("links", "uniform", "by_degree")}
        truth = np.repeat([1, 0], len(i))
        for name, metric in (("uniform", found.auc_uniform), ("by_degree", found.auc_degree)):
            assert_allclose(metric, roc_auc_score(truth, np.append(scores["links"], scores[name])))
        precision = average_precision_score(truth, np.append(scores["links"], scores["by_degree"]))
        assert_allclose(found.average_precision, precision)


def test_evaluation_leaves_the_estimator_as_it_is():
    B, _ = planted_graph()
    predictor = LinkPredictor(3, n_init=1, random_state=0)
    first = predictor.evaluate(B, n_splits=1)
    assert not hasattr(predictor, "embedding_")
    before = dict(vars(predictor.fit(weighted_graph())))
    assert repr(predictor.evaluate(B, n_splits=1).splits) == repr(first.splits)
    assert vars(predictor).keys() == before.keys()
    assert all(vars(predictor)[name] is before[name] for name in before)
    assert predictor.evaluate(B, n_splits=1, random_state=1).splits[0].mrr != first.splits[0].mrr


def test_ctrl_c_ends_an_evaluation(monkeypatch):
    def interrupted(*arguments, **settings):
        return replace(decompose(*arguments, **settings), status=Status.INTERRUPTED)

    monkeypatch.setattr("symrelu.estimators.base.decompose", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        LinkPredictor(3, n_init=1, random_state=0).evaluate(planted_graph()[0])


def test_evaluation_does_not_depend_on_the_units_or_on_names():
    networkx = pytest.importorskip("networkx")
    graph = networkx.les_miserables_graph()
    B = networkx.to_scipy_sparse_array(graph, dtype=float)
    expected = LinkPredictor(4, random_state=0).evaluate(B, n_splits=1).splits[0]
    for same in (graph, 2.0**20 * B, B.toarray()):
        found = LinkPredictor(4, random_state=0).evaluate(same, n_splits=1).splits[0]
        assert_allclose(found.auc_uniform, expected.auc_uniform, rtol=1e-6)


@pytest.mark.parametrize(
    ("graph", "settings", "error", "message"),
    [
        (np.ones((6, 6)), {}, ValueError, "it is complete"),
        (PAIR, {}, ValueError, "got a graph with 1 links"),
        (np.eye(3), {}, ValueError, "X must have a link between two different nodes"),
        (weighted_graph(), {"fraction": 0}, ValueError, r"fraction must be a number in \(0, 0.99\], got 0"),
        (weighted_graph(), {"n_splits": 0}, ValueError, "n_splits must be an integer of at least 1, got 0"),
    ],
)
def test_bad_evaluations(graph, settings, error, message):
    with pytest.raises(error, match=message):
        LinkPredictor(2, random_state=0).evaluate(graph, **settings)


def test_evaluation_with_a_random_state():
    B = sparse.random_array((400, 400), density=0.02, rng=np.random.default_rng(0))
    model = LinkPredictor(2, n_init=1, max_iter=2, random_state=0)
    results = [model.evaluate(B + B.T, n_splits=1, random_state=np.random.RandomState(1)) for _ in range(2)]
    assert results[0].records() == results[1].records()
