"""Distances in place of similarities are noticed, and similarities never taken for them."""

import re
import warnings
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist, pdist, squareform

from symrelu import LinkPredictor, SymReLU, SymReLUClustering, decompose, select_rank
from symrelu.problem import Problem
from symrelu.problem.distances import _obeys_triangles, _sum_over_triples, looks_like_distances

SEEDS = st.integers(0, 2**32 - 1)


def points(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d))


def blobs(n, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 5)) + 4 * rng.integers(0, 3, (n, 1))


def distances(metric, X):
    return squareform(pdist(X, metric))


def shortest_paths(n, seed):
    ring = np.arange(n)
    rows, cols = (
        np.r_[ring, ring, np.random.default_rng(seed).permutation(n)],
        np.r_[(ring + 1) % n, (ring + 2) % n, ring],
    )
    return shortest_path(
        sparse.csr_array((np.ones(3 * n), (rows, cols)), shape=(n, n)), unweighted=True, directed=False
    )


def without_diagonal(K):
    K = (K + K.T) / 2
    np.fill_diagonal(K, 0)
    return K


def gaussian(X, width):
    """Return a Gaussian kernel whose width is that multiple of the median distance."""
    D = pdist(X)
    return without_diagonal(np.exp(-(squareform(D / np.median(D)) ** 2) / (2 * width**2)))


def symmetric_noise(n, low, seed):
    W = np.triu(np.random.default_rng(seed).uniform(low, 1, (n, n)), 1)
    return W + W.T


def counts(n, seed):
    return np.random.default_rng(seed).poisson(2.0, (n, 40)) + 0.0


# From 20 items on, each of these warns.
DISTANCES = {
    **{
        f"{metric}, {d} dimensions": lambda n, seed, metric=metric, d=d: distances(metric, points(n, d, seed))
        for metric in ("euclidean", "cityblock", "cosine", "correlation", "sqeuclidean")
        for d in (3, 8)
    },
    "euclidean, clusters": lambda n, seed: distances("euclidean", blobs(n, seed)),
    "euclidean, nonnegative": lambda n, seed: distances("euclidean", counts(n, seed)[:, :6]),
    "chebyshev": lambda n, seed: distances("chebyshev", points(n, 3, seed)),
    "hamming, words of 8 letters": lambda n, seed: np.maximum(
        distances("hamming", np.random.default_rng(seed).integers(0, 3, (n, 8))), 0.1 * (1 - np.eye(n))
    ),
    "shortest paths": shortest_paths,
}


# None of these ever warns.
SIMILARITIES = {
    **{
        f"gaussian of width {width}, {d} dimensions": lambda n, seed, width=width, d=d: gaussian(
            points(n, d, seed), width
        )
        for width in (0.1, 0.3, 1, 3, 10, 100)
        for d in (2, 10, 100)
    },
    "gaussian, clusters": lambda n, seed: gaussian(blobs(n, seed), 10),
    "laplace": lambda n, seed: without_diagonal(np.exp(-distances("euclidean", points(n, 5, seed)))),
    "inverse distances": lambda n, seed: without_diagonal(1 / (1 + distances("euclidean", points(n, 5, seed)))),
    "linear": lambda n, seed: without_diagonal(counts(n, seed) @ counts(n, seed).T),
    "cosine": lambda n, seed: without_diagonal(1 - distances("cosine", counts(n, seed))),
    "jaccard": lambda n, seed: without_diagonal(1 - distances("jaccard", counts(n, seed) > 1)),
    "correlation, shifted": lambda n, seed: without_diagonal((1 + np.corrcoef(points(n, 5, seed))) / 2),
    "correlation, absolute": lambda n, seed: without_diagonal(abs(np.corrcoef(points(n, 5, seed)))),
    "degrees": lambda n, seed: without_diagonal(np.multiply.outer(*2 * [counts(n, seed).mean(axis=1)])),
    "sums": lambda n, seed: without_diagonal(np.add.outer(*2 * [counts(n, seed).mean(axis=1)])),
    "random weights": lambda n, seed: symmetric_noise(n, 0, seed),
    "random weights above a half": lambda n, seed: symmetric_noise(n, 0.5, seed),
    "a complete graph": lambda n, seed: 1.0 - np.eye(n),
    "two groups": lambda n, seed: without_diagonal(0.6 + 0.4 * np.kron(np.eye(2), np.ones((n // 2, n // 2)))),
}


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("case", DISTANCES)
def test_distances_are_told(case, n):
    for seed in range(5):
        assert looks_like_distances(Problem.of(DISTANCES[case](n, seed)))


@pytest.mark.parametrize("case", SIMILARITIES)
def test_similarities_without_their_diagonal_are_not_taken_for_distances(case):
    for n in (6, 8, 12, 20, 100):
        for seed in range(8):
            M = SIMILARITIES[case](n, seed)
            assert not looks_like_distances(Problem.of(M))
            assert not looks_like_distances(Problem.of(sparse.csr_array(M)))


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if "distances" in str(w.message)]


FITS = {
    "decompose": lambda D, **kw: decompose(D, 2, max_iter=3, random_state=0, **kw),
    "select_rank": lambda D, **kw: select_rank(D, [1, 2], n_repeats=2, max_iter=3, random_state=0, **kw),
    "SymReLU": lambda D, **kw: SymReLU(2, max_iter=3, n_init=2, random_state=0).fit(D, **kw),
    "rank chosen": lambda D, **kw: SymReLU("auto", max_iter=3, random_state=0).fit(D, **kw),
    "clustering": lambda D, **kw: SymReLUClustering(2, max_iter=3, random_state=0).fit(D, **kw),
    "links": lambda D, **kw: LinkPredictor(2, random_state=0).fit(D, **kw),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_distances_warns_once(name):
    """Issue 11.15: and says how to make similarities of them."""
    D = distances("euclidean", points(20, 2, 0))
    mask = np.random.default_rng(1).random(D.shape) < 0.05
    mask |= mask.T
    hidden = np.where(mask, np.nan, D)
    for call in (
        lambda: FITS[name](D),
        lambda: FITS[name](sparse.csr_array(D)),
        lambda: FITS[name](hidden, mask=mask),
        lambda: FITS[name](hidden, mask=sparse.csr_array(mask)),
    ):
        (text,) = warned(call)
        assert re.search(
            r"looks like a matrix of distances.*exp\(-\([MX](.toarray\(\))? / numpy.median.*self_tuning_graph",
            text,
        )
    similarities = np.exp(-((D / np.median(D)) ** 2))
    assert warned(lambda: FITS[name](similarities)) == []
    assert warned(lambda: FITS[name](without_diagonal(similarities))) == []
    assert warned(lambda: FITS[name](D + np.eye(20))) == []  # a diagonal is of similarities, also where ignored


def test_zeros_are_equal_items_or_no_distances():
    X = points(60, 2, 0)
    X[:3] = X[3:6]
    assert looks_like_distances(Problem.of(distances("euclidean", X)))
    halves = np.kron([[0, 1], [1, 0]], np.ones((30, 30)))  # a complete bipartite graph obeys the triangles too
    thirds = np.kron(1 - np.eye(3), np.ones((20, 20)))
    for graph in (halves, thirds, halves * gaussian(points(60, 2, 1), 10)):
        assert not looks_like_distances(Problem.of(graph))
        assert not looks_like_distances(Problem.of(sparse.csr_array(graph)))


def test_a_sparse_matrix_with_a_zero_costs_nothing(monkeypatch):
    M = sparse.csr_array(distances("euclidean", points(30, 2, 0)))
    M[3, 4] = M[4, 3] = 0
    M.eliminate_zeros()
    monkeypatch.setattr(Problem, "block", None)
    assert not looks_like_distances(Problem.of(M))


def test_what_distances_become_is_fitted_without_a_warning():
    X = points(60, 3, 0)
    assert warned(lambda: SymReLUClustering(2, random_state=0).fit(X)) == []
    assert warned(lambda: SymReLU(2, affinity="self_tuning", max_iter=3).fit(X[:6])) == []


QUICK = {"max_iter": 3, "random_state": 0}


@pytest.mark.parametrize("given", [np.asarray, Problem.of])
def test_distances_are_told_once_where_they_are_fitted(given):
    X = np.random.default_rng(0).standard_normal((40, 2))
    given = given(cdist(X, X))
    with pytest.warns(UserWarning, match="M looks like a matrix of distances") as caught:
        decompose(given, 2, **QUICK)
    assert caught[0].filename == __file__
    if isinstance(given, Problem):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            decompose(given, 2, **QUICK)


def test_asking_for_advice_on_distances_changes_nothing():
    problem = Problem.of(distances("euclidean", points(40, 2, 0)))
    advice = problem.advice_on_distances()
    assert "M looks like a matrix of distances" in advice
    assert problem.advice_on_distances() == advice
    problem.skip_advice_on_distances()
    assert problem.advice_on_distances() is None
    problem.skip_advice_on_distances()


def triples_by_definition(D):
    """The sum of the module's docstring, triple by triple, the effects of single items by least squares."""
    n = len(D)
    i, j = np.triu_indices(n, 1)
    design = np.zeros((len(i), n))
    design[np.arange(len(i)), i] = design[np.arange(len(i)), j] = 1.0
    effects = np.linalg.lstsq(design, D[i, j])[0]
    R = D - effects[:, None] - effects
    products = [R[a, b] * R[b, c] * R[c, a] for a, b, c in combinations(range(n), 3)]
    deviation = np.sqrt(np.mean(R[i, j] ** 2))
    return sum(products) / (deviation**3 * np.sqrt(len(products)))


@given(seed=SEEDS, n=st.integers(5, 12), case=st.sampled_from(["noise", "distances"]))
def test_the_sum_over_triples_by_definition(seed, n, case):
    D = symmetric_noise(n, 0, seed) if case == "noise" else distances("euclidean", points(n, 2, seed))
    known = ~np.eye(n, dtype=bool)
    assert_allclose(_sum_over_triples(D, known), triples_by_definition(D), rtol=1e-8, atol=1e-8)
    assert_allclose(_sum_over_triples(-D, known), -triples_by_definition(D), rtol=1e-8, atol=1e-8)


@given(seed=SEEDS, n=st.integers(5, 30))
def test_effects_of_single_items_do_not_matter(seed, n):
    D, effects = symmetric_noise(n, 0, seed), points(n, 1, seed)[:, 0]
    known = ~np.eye(n, dtype=bool)
    shifted = without_diagonal(D + effects[:, None] + effects)
    assert_allclose(_sum_over_triples(shifted, known), _sum_over_triples(D, known), atol=1e-8)


@given(seed=SEEDS, n=st.integers(3, 12), missing=st.sampled_from([0.0, 0.3]), low=st.sampled_from([0.0, 0.4]))
def test_triangles_one_by_one(seed, n, missing, low):
    D = symmetric_noise(n, low, seed)
    known = np.triu(np.random.default_rng(seed).random((n, n)) >= missing, 1)
    known = known | known.T
    expected = all(
        D[i, j] <= (D[i, k] + D[k, j]) * (1 + 1e-6)
        for i, j, k in permutations(range(n), 3)
        if known[i, j] and known[i, k] and known[k, j]
    )
    assert _obeys_triangles(D, known) == expected
    assert _obeys_triangles(distances("euclidean", points(n, 2, seed)), known)
