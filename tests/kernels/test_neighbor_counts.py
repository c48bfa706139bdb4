"""Counts over all pairs, compared with the same counts on the whole matrix of scores."""

import numpy as np
import pytest
from example_graphs import GRAPHS, random_graph
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from symrelu.kernels import neighbor_counts
from symrelu.kernels.neighbor_counts import Uncertainty, certain_counts, edge_scores, edges_of, other_scores

pytestmark = pytest.mark.blas_threads

CERTAIN = Uncertainty(0.0, 0.0, np.inf)
LEVELS = np.linspace(0, 2, 33)[1:]


def quarters(n, rank, seed, dtype=np.float64):
    """Return vectors whose scores are exact in float32, and often on a level."""
    return (np.random.default_rng(seed).integers(-3, 4, (n, rank)) / 4).astype(dtype)


@pytest.mark.parametrize("name", GRAPHS)
def test_edges_by_rows(name):
    edges, graph = edges_of(GRAPHS[name]), GRAPHS[name].tocoo()
    assert_array_equal(edges.rows, graph.coords[0])
    assert_array_equal(edges.indices, graph.coords[1])


@given(
    n=st.integers(1, 90), share=st.floats(0, 1), dtype=st.sampled_from(["f4", "f8"]), seed=st.integers(0, 999)
)
def test_scores_of_edges_and_of_other_pairs(n, share, dtype, seed):
    U, graph = quarters(n, 3, seed, dtype), random_graph(n, share, seed)
    V = U * np.array([1, 1, -1], dtype)
    X, edge = U @ V.T, graph.toarray()
    edges = edges_of(graph)
    assert_array_equal(edge_scores(U, V, edges), X[edge])
    others = X[~edge & ~np.eye(n, dtype=bool)]
    counts, largest = other_scores(U, V, edges, LEVELS)
    assert_array_equal(counts, [(others > level).sum() for level in LEVELS])
    assert largest == others.max(initial=-np.inf)


@given(n=st.integers(1, 90), share=st.floats(0, 1), seed=st.integers(0, 999))
def test_certain_scores(n, share, seed):
    U, graph = quarters(n, 3, seed), random_graph(n, share, seed)
    X, edge = U @ U.T, graph.toarray()
    i, j = np.triu_indices(n, 1)
    beyond = np.where(edge[i, j], X[i, j] - 0.5, 0.5 - X[i, j])
    counts = certain_counts(U, U, edges_of(graph), 0.5, CERTAIN)
    assert counts.missing == (edge[i, j] & (beyond <= 0)).sum()
    assert counts.extra == (~edge[i, j] & (beyond <= 0)).sum()
    assert counts.margin == beyond.min(initial=np.inf)


def test_uncertainty_is_subtracted():
    U = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 4.0]])
    edges = edges_of(GRAPHS["path"][:3, :3])  # 0 - 1 - 2; scores 2 and 0, and 0 for the pair (0, 2)
    relative = certain_counts(U, U, edges, 1.0, Uncertainty(0.125, 0.0, np.inf))
    assert (relative.missing, relative.extra) == (1, 0)
    assert_allclose(relative.margin, -1 - 0.125 * 8)
    assert certain_counts(U, U, edges, 1.0, Uncertainty(0.25, 0.0, np.inf)).extra == 1  # 1 - 0.25 * 4 = 0
    assert certain_counts(U, U, edges, 1.0, Uncertainty(0.0, 1.0, np.inf)).extra == 1
    assert certain_counts(U, U, edges, 1.0, Uncertainty(0.0, 0.0, 8.0)).margin == -np.inf


def test_nan_counts_as_wrong_and_as_above_every_level():
    U = quarters(20, 2, 0)
    U[3] = np.nan
    edges = edges_of(GRAPHS["path"])
    counts, largest = other_scores(U, U, edges, LEVELS)
    assert counts[-1] >= 2 * (19 - 2)
    assert np.isnan(largest)
    U[:3], U[4:] = 1.0, 1.0
    certain = certain_counts(U, U, edges, 0.5, CERTAIN)
    assert certain.missing == 2
    assert certain.margin == -np.inf


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("parts", [1, 7, 256])
def test_parts_and_threads_change_nothing(threads, parts, monkeypatch):
    U, edges = np.random.default_rng(0).standard_normal((201, 4)), edges_of(random_graph(201, 0.1, 0))
    expected = certain_counts(U, U, edges, 0.5, CERTAIN), other_scores(U, U, edges, LEVELS)
    monkeypatch.setattr(neighbor_counts, "_MOST_PARTS", parts)
    with threadpool_limits(threads, "blas"):
        assert certain_counts(U, U, edges, 0.5, CERTAIN) == expected[0]
        counts, largest = other_scores(U, U, edges, LEVELS)
    assert_array_equal(counts, expected[1][0])
    assert largest == expected[1][1]
