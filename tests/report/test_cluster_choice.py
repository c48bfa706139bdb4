import numpy as np
import pytest

from symrelu import SymReLUClustering, metrics
from symrelu.report.cluster_choice import best_clusters


def blocks(count, size, seed=0):
    """Groups with many links inside and few between."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(count), size)
    half = np.triu(rng.random((len(group),) * 2) < np.where(group[:, None] == group, 0.7, 0.03), 1)
    return (half + half.T).astype(float), group


@pytest.mark.parametrize("method", ["linkage", "directions"])
def test_the_number_of_groups_is_found(method):
    M, group = blocks(4, 15)
    clustering = SymReLUClustering(9, method=method, random_state=0).fit(M)
    labels = best_clusters(clustering, M)
    assert metrics.clustering_accuracy(group, labels) == 1
    assert metrics.modularity(M, labels) > metrics.modularity(M, clustering.labels_)
    assert set(labels) == {0, 1, 2, 3}


@pytest.mark.filterwarnings("ignore:One cluster holds")
def test_few_nodes_have_few_clusters():
    M = np.ones((7, 7)) - np.eye(7)
    clustering = SymReLUClustering(2, random_state=0).fit(M)
    assert best_clusters(clustering, M).max() <= 1
