"""Scores of links by degrees and common neighbours, compared with networkx."""

import networkx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu.baselines import common_neighbors
from symrelu.baselines.common_neighbors import degree_product, resource_allocation

GRAPH = networkx.karate_club_graph()
GRAPH.add_node(34)  # without a link
A = networkx.to_numpy_array(GRAPH, weight="weight")
I, J = np.triu_indices(35, 1)
EXPECTED = {
    degree_product: networkx.preferential_attachment,
    resource_allocation: networkx.resource_allocation_index,
}


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("loops", [0, 5])
@pytest.mark.parametrize("method", EXPECTED)
def test_scores_are_those_of_networkx(method, loops, kind, monkeypatch):
    monkeypatch.setattr(common_neighbors, "_PAIRS_AT_ONCE", 100)
    plain = networkx.Graph(GRAPH.edges)
    plain.add_node(34)
    pairs = list(zip(I.tolist(), J.tolist(), strict=True))
    expected = {frozenset(pair[:2]): pair[2] for pair in EXPECTED[method](plain, pairs)}
    graph = kind(A + np.diag(np.r_[np.full(loops, 2.0), np.zeros(35 - loops)]))
    found = method(graph)(I, J)
    assert_allclose(found, [expected[frozenset(pair)] for pair in pairs], atol=1e-15)


@pytest.mark.parametrize("method", EXPECTED)
def test_no_pairs(method):
    assert method(A)(np.array([], int), np.array([], int)).shape == (0,)
