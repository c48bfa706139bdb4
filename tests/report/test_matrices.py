import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.report.matrices import binned_pair, matrix_order


@pytest.mark.parametrize("bins", [1, 3, 7, 20])
@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
def test_cells_are_means_of_both_matrices(bins, diagonal):
    rng = np.random.default_rng(0)
    M, X = rng.random((20, 20)), rng.standard_normal((20, 20))
    M, X = M + M.T, X + X.T
    if diagonal == "ignore":
        np.fill_diagonal(M, 0)
    order = rng.permutation(20)
    found = binned_pair(sparse.csr_array(M), lambda rows: X[rows], order, bins, diagonal)
    model = np.maximum(X, 0)
    if diagonal == "ignore":
        np.fill_diagonal(model, 0)
    cell = np.arange(20) * bins // 20
    for means, matrix in zip(found, (M, model), strict=True):
        ordered = matrix[order][:, order]
        for a in range(bins):
            for b in range(bins):
                assert_allclose(means[a, b], ordered[np.ix_(cell == a, cell == b)].mean())


def test_clusters_stay_together_and_then_places():
    places = np.array([[0, 0], [1, 1], [0.1, 0], [1, 0.9], [0, 0.1], [0.9, 1]], dtype=float)
    order = matrix_order(places, None)
    assert set(order[:3]) in ({0, 2, 4}, {1, 3, 5})
    labels = np.array([1, 0, 0, 1, 0, 1])
    assert_array_equal(labels[matrix_order(places, labels)], [0, 0, 0, 1, 1, 1])


def test_nodes_without_a_cluster_come_last():
    order = matrix_order(np.zeros((5, 2)), np.array([1, -1, 0, -1, 1]))
    assert order.tolist() == [2, 0, 4, 1, 3]
