"""Graphs of networkx and igraph."""

import decimal

import numpy as np
import pytest
from graph_sources import NAMES, A, IgraphGraph, networkx, networkx_graph, weighted
from numpy.testing import assert_array_equal

from symrelu.graphs import as_similarity, from_igraph, from_networkx


@pytest.mark.parametrize("weight", ["weight", None])
@pytest.mark.parametrize("kind", [networkx.Graph, networkx.MultiGraph])
def test_networkx_against_its_own_matrix(kind, weight):
    graph = networkx.gnm_random_graph(15, 30, seed=1)
    graph = kind(graph)
    graph.add_edges_from([(3, 4), (3, 4), (5, 5), (5, 5)])
    for k, (*_, data) in enumerate(graph.edges(data=True)):
        if k % 3:  # a third has no weight
            data["weight"] = k / 4
    expected = networkx.to_scipy_sparse_array(graph, weight=weight, dtype=float).toarray()
    matrix, labels = as_similarity(graph, weight=weight)
    assert_array_equal(matrix.toarray(), expected)
    assert_array_equal(matrix.toarray(), matrix.toarray().T)
    assert labels.tolist() == list(graph.nodes)
    assert matrix.has_canonical_format
    assert matrix.data.all()


def test_nodes_of_any_kind():
    graph = networkx.grid_2d_graph(2, 3)
    graph.add_node(("one", 2, 3))
    labels = from_networkx(graph).labels
    assert labels.shape == (7,)
    assert labels[1] == (0, 1)
    assert labels[-1] == ("one", 2, 3)


def test_subclass_and_view_of_a_networkx_graph():
    class Roads(networkx.Graph):
        pass

    roads = Roads(networkx_graph())
    assert_array_equal(as_similarity(roads).matrix.toarray(), A)
    some = ["a", "c", "d"]
    part = as_similarity(roads.subgraph(some))
    positions = [NAMES.index(node) for node in part.labels]
    assert sorted(part.labels) == some
    assert_array_equal(part.matrix.toarray(), A[np.ix_(positions, positions)])


def test_igraph_parallel_edges_loops_and_missing_weights():
    edges = [(0, 1), (1, 0), (2, 2), (0, 2)]
    graph = IgraphGraph(4, edges, edge_attrs={"weight": [0.5, 2.0, 3.0, None], "cost": [1, 2, 3, 4]})
    matrix, labels = as_similarity(graph)
    assert labels is None
    assert_array_equal(matrix.toarray(), [[0, 2.5, 1, 0], [2.5, 0, 0, 0], [1, 0, 3, 0], [0, 0, 0, 0]])
    assert_array_equal(from_igraph(graph, weight=None).matrix.toarray()[0], [0, 2, 1, 0])
    assert_array_equal(from_igraph(graph, weight="cost").matrix.toarray()[0], [0, 3, 4, 0])
    assert_array_equal(from_igraph(IgraphGraph(4, edges)).matrix.toarray()[0], [0, 2, 1, 0])


def test_igraph_made_of_a_networkx_graph_keeps_its_nodes():
    graph = IgraphGraph(2, [(0, 1)], vertex_attrs={"_nx_name": [("x", 1), ("y", 2)]})
    assert from_igraph(graph).labels.tolist() == [("x", 1), ("y", 2)]


def test_other_weight():
    graph = networkx.Graph()
    graph.add_edge("a", "b", similarity=0.5)
    graph.add_edge("b", "c")
    assert_array_equal(from_networkx(graph, weight="similarity").matrix.toarray()[1], [0.5, 0, 1])
    assert_array_equal(as_similarity(graph, weight="similarity").matrix.toarray()[1], [0.5, 0, 1])
    assert_array_equal(from_networkx(graph).matrix.toarray()[1], [1, 0, 1])


def test_graphs_without_edges():
    for graph in (networkx.empty_graph(3), IgraphGraph(3, [])):
        assert as_similarity(graph).matrix.shape == (3, 3)
        assert as_similarity(graph).matrix.nnz == 0
    assert from_networkx(networkx.empty_graph(3), weight="any").matrix.nnz == 0
    assert from_networkx(networkx.Graph()).matrix.shape == (0, 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: as_similarity(networkx.DiGraph()),
            ValueError,
            r"got a directed one. Pass graph.to_undirected\(\)",
        ),
        (lambda: from_networkx([(1, 2)]), TypeError, "graph must be a networkx graph, got list"),
        (lambda: from_networkx(weighted(1), weight=True), TypeError, "weight must be the name .* got True"),
        (
            lambda: from_networkx(weighted(1), weight="other"),
            ValueError,
            "weight must be an attribute of the edges, got 'other'; they have: 'weight'. .* or weight=None",
        ),
        (lambda: from_networkx(weighted(-1)), ValueError, r"nonnegative: edge \('b', 'c'\) has -1"),
        (lambda: from_networkx(weighted(np.nan)), ValueError, r"finite .* edge \('b', 'c'\) has nan"),
        (lambda: from_networkx(weighted(None)), ValueError, r"finite .* edge \('b', 'c'\) has nan"),
        (lambda: from_networkx(weighted(np.inf)), ValueError, r"finite .* edge \('b', 'c'\) has inf"),
        (lambda: from_networkx(weighted("2")), TypeError, r"must be numbers: edge \('b', 'c'\) has '2'"),
        (
            lambda: from_networkx(weighted([1, 2])),
            TypeError,
            r"must be numbers: edge \('b', 'c'\) has \[1, 2\]",
        ),
        (lambda: from_networkx(weighted(1j)), TypeError, r"must be numbers: edge \('b', 'c'\) has 1j"),
        (
            lambda: as_similarity(IgraphGraph(2, [(0, 1)], directed=True)),
            ValueError,
            r'got a directed one. Pass graph.as_undirected\(combine_edges=\{"weight": "max"\}\)',
        ),
        (lambda: from_igraph(networkx.Graph()), TypeError, "graph must be an igraph graph, got Graph"),
        (lambda: from_igraph(IgraphGraph(1, []), weight=1), TypeError, "weight must be the name .* got 1"),
        (
            lambda: from_igraph(IgraphGraph(2, [(0, 1)]), weight="cost"),
            ValueError,
            "weight must be an attribute of the edges, got 'cost'; they have: none",
        ),
        (
            lambda: from_igraph(IgraphGraph(2, [(0, 1)], edge_attrs={"weight": [-2]})),
            ValueError,
            r"edge \(0, 1\) has -2",
        ),
        (
            lambda: from_igraph(
                IgraphGraph(2, [(0, 1)], vertex_attrs={"name": ["x", "y"]}, edge_attrs={"weight": ["w"]})
            ),
            TypeError,
            r"edge \('x', 'y'\) has 'w'",
        ),
    ],
)
def test_bad_graphs(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_weights_that_are_numbers_of_other_kinds():
    for weight in (decimal.Decimal("2.5"), np.float32(2.5), True, 3, 10**30):
        assert from_networkx(weighted(weight)).matrix[1, 2] == float(weight)
