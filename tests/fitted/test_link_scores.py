"""LinkScores: the formula, brute force, ties, batches, and how scores follow X and the degrees."""

import itertools

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.fitted import LinkScores


def model_of(n=25, rank=4, dtype=np.float64, smoothing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    U, roots = rng.standard_normal((n, rank)).astype(dtype), rng.uniform(0.5, 4, n).astype(dtype)
    return LinkScores(U, np.array([1] * (rank - 1) + [-1], dtype), roots, smoothing)


def formula(model):
    U, roots = model.U.astype(np.float64), model.root_degrees.astype(np.float64)
    X = (U * model.signature) @ U.T
    return np.outer(roots, roots) * (X + np.sqrt(X**2 + model.smoothing**2)) / 2


def best_pairs(scores, allowed, k):
    """Return by brute force the pairs with the largest scores; ties go to the lower indices."""
    pairs = [pair for pair in itertools.combinations(range(len(scores)), 2) if allowed[pair]]
    return sorted(pairs, key=lambda pair: (-scores[pair], pair))[:k]


@pytest.fixture(params=[0.001, 1024])  # MiB: a row at a time, and all at once
def memory(request):
    with sklearn.config_context(working_memory=request.param):
        yield


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("smoothing", [1e-6, 0.3, 50.0])
def test_all_queries_are_the_formula(memory, dtype, smoothing):
    model = model_of(dtype=dtype, smoothing=smoothing)
    expected, rtol = formula(model), 1e-9 if dtype == np.float64 else 1e-2
    nodes = np.arange(model.n)
    # Far below zero the scores are proportional to 1 / |X|, which has the relative error of X.
    assert_allclose(model.score_pairs(nodes[:, None], nodes), expected, rtol=rtol, atol=1e-9)
    assert_allclose(model.reconstruct(nodes), expected, rtol=rtol, atol=1e-9)
    items, scores = model.top_k(nodes, 24)
    assert_allclose(scores, np.take_along_axis(expected, items, axis=1), rtol=rtol, atol=1e-9)
    pairs, scores = model.top_links(300)
    assert_allclose(scores, expected[tuple(pairs.T)], rtol=rtol, atol=1e-9)
    assert model.score_pairs(0, 1).dtype == model.reconstruct(0).dtype == scores.dtype == dtype


@pytest.mark.parametrize("k", [1, 6, 40])
@pytest.mark.parametrize("excluding", [None, np.array, sparse.csr_array])
def test_nearest_nodes_and_best_pairs_by_brute_force(memory, k, excluding):
    model, scores = model_of(), formula(model_of())
    below = np.tri(25, k=-18, dtype=bool)  # the lower half of some pairs
    exclude = None if excluding is None else excluding(below)
    free = np.ones((25, 25), bool) if excluding is None else ~below
    items, _ = model.top_k([24, 3], k, exclude=exclude)
    for node, found in zip([24, 3], items, strict=True):
        others = [j for j in range(25) if j != node and free[node, j]]
        expected = sorted(others, key=lambda j: -scores[node, j])[:k]
        assert_array_equal(found, expected + [-1] * (k - len(expected)))
    assert_array_equal(model.top_links(k, exclude=exclude)[0], best_pairs(scores, free & free.T, k))


@given(
    levels=st.lists(st.integers(-2, 2), min_size=2, max_size=15),
    k=st.integers(1, 60),
    kilobytes=st.sampled_from([0.01, 1, 1000]),
)
def test_ties_go_to_the_lower_indices(levels, k, kilobytes):
    """With factors of small integers X is exact, and many scores are equal."""
    n = len(levels)
    model = LinkScores(np.array([levels, np.ones(n)]).T, np.array([1.0, -1.0]), np.ones(n), 1.0)
    known = np.zeros((n, n), bool)
    known[0, 1] = True
    with sklearn.config_context(working_memory=kilobytes / 1024):
        pairs, scores = model.top_links(k, exclude=known)
        items, _ = model.top_k(np.arange(n), n)
    X = np.outer(levels, levels) - 1.0
    assert [tuple(pair) for pair in pairs] == best_pairs(X, ~known, k)
    assert np.all(np.diff(scores) <= 0)
    for node in range(n):
        others = sorted(set(range(n)) - {node}, key=lambda j: (-X[node, j], j))
        assert_array_equal(items[node], [*others, -1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_increase_with_x_and_with_the_degrees(dtype):
    levels = np.concatenate([-np.logspace(6, -6, 40), np.logspace(-6, 6, 40)]).astype(dtype)
    U = np.concatenate([[1.0], levels]).astype(dtype)[:, None]
    ones = np.ones(81, dtype)
    scores = LinkScores(U, np.ones(1, dtype), ones, 0.01).score_pairs(0, np.arange(1, 81))
    assert np.all(scores > 0)
    assert np.all(np.diff(scores) > 0)
    assert_allclose(scores[-20:], levels[-20:], rtol=1e-3)
    roots = ones.copy()
    roots[0] = 2
    assert_allclose(LinkScores(U, np.ones(1, dtype), roots, 0.01).score_pairs(0, np.arange(1, 81)), 2 * scores)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"root_degrees": np.ones(3)},
            r"root_degrees must have one entry for each of the 5 rows of U, got .*3",
        ),
        ({"smoothing": 0.0}, "smoothing must be a finite number > 0, got 0"),
    ],
)
def test_bad_parts(changed, message):
    parts = {"U": np.ones((5, 1)), "signature": np.ones(1), "root_degrees": np.ones(5), "smoothing": 1.0}
    with pytest.raises(ValueError, match=message):
        LinkScores(**{**parts, **changed})


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (lambda m: m.score_pairs([25], [0]), IndexError, "i must be from 0 to 24"),
        (lambda m: m.reconstruct([-1]), IndexError, "rows must be from 0 to 24"),
        (lambda m: m.top_k([[0]], 1), ValueError, "nodes must be one-dimensional"),
        (lambda m: m.top_k([0], 0), ValueError, "k must be an integer of at least 1, got 0"),
        (lambda m: m.top_links(0), ValueError, "k must be an integer of at least 1, got 0"),
        (lambda m: m.top_links(1, exclude=np.eye(3)), ValueError, r"exclude must have shape \(25, 25\)"),
    ],
)
def test_bad_queries(query, error, message):
    with pytest.raises(error, match=message):
        query(model_of())
