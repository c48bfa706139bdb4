"""Data to graphs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from symrelu.graphs import from_networkx, self_tuning_graph


def literal_graph(X, k=None):
    """The recipe on n x n arrays, step by step."""
    n = len(X)
    k = min(int(np.floor(np.log2(n))) + 1 if k is None else k, n - 1)
    D = cdist(X, X, "sqeuclidean")
    away = D + np.diag(np.full(n, np.inf))
    nearest = np.argsort(away, axis=1, kind="stable")[:, :k]
    sigma = np.sqrt(np.sort(away, axis=1)[:, min(7, n - 1) - 1])
    edge = np.zeros((n, n), bool)
    edge[np.repeat(np.arange(n), k), nearest.ravel()] = True
    A = np.where(edge | edge.T, np.exp(-D / np.outer(sigma, sigma)), 0)
    root = 1 / np.sqrt(A.sum(axis=1))
    M = root[:, None] * A * root
    return (M + M.T) / 2


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 50, 130])
@pytest.mark.parametrize("k", [None, 3])
def test_equals_the_literal_recipe(n, k):
    X = np.random.default_rng(n).standard_normal((n, 5))
    M = self_tuning_graph(X, k)
    assert_allclose(M.toarray(), literal_graph(X, k), rtol=1e-12, atol=1e-15)


def test_digits():
    X = load_digits().data[:400]
    M = self_tuning_graph(X).toarray()
    # Pixels are integers, so that distances tie: the lower index wins, here as there.
    assert_allclose(M, literal_graph(X), rtol=1e-12, atol=1e-15)
    assert_array_equal(M, M.T)
    assert (np.diag(M) == 0).all()


def test_ties_are_broken_alike_on_any_number_of_threads():
    X = load_digits().data
    graphs = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            graphs.append(self_tuning_graph(X))
    assert (graphs[0] != graphs[1]).nnz == 0


def test_sparse_equals_dense():
    smooth = np.random.default_rng(0).random((60, 30))
    smooth[smooth < 0.5] = 0
    assert_allclose(
        self_tuning_graph(sparse.csr_matrix(smooth)).toarray(), self_tuning_graph(smooth).toarray(), atol=1e-12
    )


def test_permutation_permutes_the_graph():
    X = np.random.default_rng(0).standard_normal((40, 3))
    order = np.random.default_rng(1).permutation(40)
    M = self_tuning_graph(X).toarray()
    assert_allclose(self_tuning_graph(X[order]).toarray(), M[np.ix_(order, order)], atol=1e-12)


def test_scaling_the_data_changes_nothing():
    X = np.random.default_rng(0).standard_normal((40, 3))
    assert_allclose(self_tuning_graph(X * 1e3).toarray(), self_tuning_graph(X).toarray(), rtol=1e-9)


@pytest.mark.parametrize("copies", [2, 7, 8, 20])
def test_duplicates(copies):
    X = np.random.default_rng(0).standard_normal((30, 3))
    X = np.vstack([X, np.repeat(X[:1], copies, axis=0)])
    M = self_tuning_graph(X)
    assert np.isfinite(M.data).all()
    assert (M.data > 0).all()
    assert abs(M - M.T).max() == 0
    if copies > 8:
        assert M[0].nnz > 0


def test_all_samples_equal():
    M = self_tuning_graph(np.ones((12, 3)))
    assert np.isfinite(M.data).all()
    assert M.nnz > 0


def test_isolated_point_stays_isolated_without_warnings():
    X = np.random.default_rng(0).standard_normal((40, 2)) * 1e-3
    X[-1] = 1e6
    M = self_tuning_graph(X)
    assert np.isfinite(M.data).all()
    assert M.shape == (40, 40)
    assert M[[39]].nnz == 0


@pytest.mark.parametrize(("offset", "scale"), [(1e3, 1e-7), (1e4, 1e-4), (2.0**30, 1.0)])
def test_data_far_from_zero_keep_their_neighbours(offset, scale):
    """||x||^2 - 2xy + ||y||^2 would lose all of the distances."""
    X = np.random.default_rng(0).standard_normal((200, 3)) * scale + offset
    M, expected = self_tuning_graph(X).toarray(), literal_graph(X)
    assert_array_equal(M > 0, expected > 0)
    assert_allclose(M, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("exponent", [-600, 600])
def test_tiny_and_huge_data(exponent):
    X = np.random.default_rng(0).standard_normal((60, 3))
    assert_allclose(self_tuning_graph(np.ldexp(X, exponent)).toarray(), self_tuning_graph(X).toarray())


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_many_ties_are_broken_by_index(kind):
    X = np.random.default_rng(0).integers(0, 2, (300, 8)).astype(float)
    with threadpool_limits(limits=1):
        M = self_tuning_graph(kind(X))
    assert_array_equal(M.toarray() > 0, tied_reference(X) > 0)
    with threadpool_limits(limits=2):
        assert (self_tuning_graph(kind(X)) != M).nnz == 0


def tied_reference(X):
    """The edges by exact distance and lower index."""
    n, k = len(X), int(np.log2(len(X))) + 1
    D = cdist(X, X, "sqeuclidean") + np.diag(np.full(n, np.inf))
    nearest = np.argsort(D, axis=1, kind="stable")[:, :k]
    edge = np.zeros((n, n), bool)
    edge[np.repeat(np.arange(n), k), nearest.ravel()] = True
    return edge | edge.T


@pytest.mark.parametrize("bad", [np.ones((1, 3)), [[np.nan, 1], [0, 1]], np.ones(3)])
def test_bad_data(bad):
    with pytest.raises(ValueError, match=r"minimum of 2|NaN|Expected 2D"):
        self_tuning_graph(bad)


def test_bad_number_of_neighbours():
    with pytest.raises(ValueError, match="n_neighbors must be an integer of at least 1, got 0"):
        self_tuning_graph(np.eye(3), 0)
    with pytest.raises(TypeError, match=r"n_neighbors must be an integer of at least 1, got 2\.5"):
        self_tuning_graph(np.eye(3), 2.5)


def test_from_networkx():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edge("b", "a", weight=2.5)
    graph.add_edge("a", "c")
    graph.add_node("alone")
    M = from_networkx(graph)
    assert list(graph.nodes) == ["b", "a", "c", "alone"]
    assert_array_equal(M.toarray(), [[0, 2.5, 0, 0], [2.5, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert from_networkx(graph, weight=None).max() == 1
    with pytest.raises(ValueError, match="must be undirected"):
        from_networkx(networkx.DiGraph(graph))
    with pytest.raises(TypeError, match="must be a networkx graph, got list"):
        from_networkx([(1, 2)])
