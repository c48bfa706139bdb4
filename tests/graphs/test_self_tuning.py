"""Data to graphs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from symrelu.graphs import SelfTuningGraph, self_tuning_graph

pytestmark = pytest.mark.blas_threads


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


def graph_and_samples(seed=0, n=60):
    X = np.random.default_rng(seed).standard_normal((n, 4))
    return SelfTuningGraph.of(X), X


def test_rows_of_samples_in_the_graph():
    graph, X = graph_and_samples()
    M_new, same = graph.rows(X[10:20])
    assert_array_equal(same, np.arange(10, 20))
    assert_array_equal(M_new.toarray(), graph.matrix[10:20].toarray())


def test_rows_of_new_samples_by_the_formula():
    """What the graph of all samples would have, where the new one changes neither scales nor degrees."""
    graph, X = graph_and_samples()
    new = np.random.default_rng(9).standard_normal((5, 4))
    M_new, same = graph.rows(new)
    assert (same == -1).all()
    distances = cdist(X, X)
    sigma = np.sort(distances, axis=1)[:, 7]
    reach = np.sort(distances, axis=1)[:, graph.n_neighbors]
    A = np.exp(-(distances**2) / np.outer(sigma, sigma)) * (
        (distances <= reach[:, None]) | (distances <= reach[None, :])
    )
    degree = A.sum(axis=1) - 1
    for row, x in zip(M_new.toarray(), new, strict=True):
        d = np.linalg.norm(X - x, axis=1)
        nearest = np.sort(d)
        joined = (d <= nearest[graph.n_neighbors - 1]) | (d <= reach)
        a = np.exp(-(d**2) / (nearest[6] * sigma)) * joined
        assert_allclose(row, a / np.sqrt(a.sum() * degree), rtol=1e-9, atol=1e-15)


def test_rows_of_sparse_and_scaled_samples():
    X = np.random.default_rng(0).poisson(0.8, (50, 12)).astype(float)
    new = np.random.default_rng(1).poisson(0.8, (6, 12)).astype(float)
    expected = SelfTuningGraph.of(X).rows(new)[0].toarray()
    sparse_rows = SelfTuningGraph.of(sparse.csr_array(X)).rows(sparse.csr_array(new))[0]
    assert_allclose(sparse_rows.toarray(), expected, atol=1e-12)
    assert_allclose(SelfTuningGraph.of(X).rows(sparse.csr_array(new))[0].toarray(), expected, atol=1e-12)
    assert_array_equal(SelfTuningGraph.of(X * 2.0**500).rows(new * 2.0**500)[0].toarray(), expected)


def test_near_samples_are_not_equal_ones():
    """Sparse samples far from zero: what the expanded distance leaves is rounding."""
    X = 1 + 1e-6 * np.random.default_rng(0).standard_normal((60, 5))
    graph = SelfTuningGraph.of(sparse.csr_array(X))
    M_new, same = graph.rows(sparse.csr_array(X))
    assert_array_equal(same, np.arange(60))
    assert_array_equal(M_new.toarray(), graph.matrix.toarray())
    assert (graph.rows(sparse.csr_array(X + 1e-7))[1] == -1).all()


def test_a_sample_far_from_all_is_joined_weakly_or_not_at_all():
    graph, X = graph_and_samples()
    M_new, _ = graph.rows(X[:1] + 1e6)
    assert np.isfinite(M_new.toarray()).all()
