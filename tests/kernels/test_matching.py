"""Groups of two similar nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from symrelu.kernels.matching import matched_groups


def groups_of(n, edges):
    """Return the groups of a graph, given as {(i, j): weight}."""
    pairs = np.array(sorted(edges), np.int64).reshape(-1, 2)
    weights = np.array([edges[tuple(pair)] for pair in pairs.tolist()], float)
    groups, n_groups = matched_groups(n, *np.ascontiguousarray(pairs.T), weights)
    assert groups.dtype == np.int64
    assert_array_equal(np.unique(groups), np.arange(n_groups))
    return groups.tolist()


def path(n):
    return {(i, i + 1): 1.0 for i in range(n - 1)}


def test_the_heaviest_edge_goes_first():
    # 1-2 is the heaviest. 0 and 3 have no neighbour left, and not the same heaviest one.
    assert groups_of(4, {(0, 1): 2.0, (1, 2): 3.0, (2, 3): 2.0}) == [0, 1, 1, 2]


def test_edges_of_equal_weight_go_in_order():
    assert groups_of(6, path(6)) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("n", [3, 4, 9, 10])
def test_the_leaves_of_a_star_are_matched_with_each_other(n):
    groups = groups_of(n, {(0, leaf): 1.0 for leaf in range(1, n)})
    assert_array_equal(np.sort(np.bincount(groups)), [1] * (n % 2) + [2] * (n // 2))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6])
def test_nodes_without_neighbours_are_matched_with_each_other(n):
    assert groups_of(n, {}) == [k // 2 for k in range(n)]


def test_isolated_nodes_do_not_join_others():
    groups = groups_of(6, {(0, 3): 1.0, (3, 5): 0.5})
    assert groups[0] == groups[3]
    assert groups[1] == groups[2]
    assert len({groups[0], groups[1], groups[4], groups[5]}) == 4


def test_components_stay_apart():
    edges = path(7) | {(7 + i, 7 + j): 1.0 for i in range(5) for j in range(i + 1, 5)}
    groups = np.array(groups_of(12, edges))
    assert not set(groups[:7].tolist()) & set(groups[7:].tolist())


def test_a_complete_graph_is_halved():
    edges = {(i, j): 1.0 for i in range(11) for j in range(i + 1, 11)}
    assert_array_equal(np.sort(np.bincount(groups_of(11, edges))), [1, 2, 2, 2, 2, 2])


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 25))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=60)) if pairs else []
    # Different weights: a graph with equal ones has several matchings.
    weights = draw(st.permutations(range(1, len(chosen) + 1)))
    return n, dict(zip(chosen, map(float, weights), strict=True))


@given(graphs())
def test_groups_are_pairs_or_single_and_no_two_single_nodes_could_be_matched(graph):
    n, edges = graph
    groups = groups_of(n, edges)
    assert set(np.bincount(groups).tolist()) <= {1, 2}
    first = [groups.index(k) for k in range(max(groups) + 1)]
    assert first == sorted(first)
    single = [node for node in range(n) if groups.count(groups[node]) == 1]
    assert not [edge for edge in edges if set(edge) <= set(single)]
    heaviest = [heaviest_neighbour(node, edges) for node in single]
    assert len(set(heaviest)) == len(single)


def heaviest_neighbour(node, edges):
    weights = {sum(edge) - node: weight for edge, weight in edges.items() if node in edge}
    return max(weights, key=weights.get, default=None)


@given(graphs(), st.randoms(use_true_random=False))
def test_matched_edges_do_not_depend_on_the_numbering(graph, random):
    """With different weights, the edges that are taken are the same for any order of the nodes."""
    n, edges = graph
    order = list(range(n))
    random.shuffle(order)
    renamed = {tuple(sorted((order[i], order[j]))): w for (i, j), w in edges.items()}
    groups, others = groups_of(n, edges), groups_of(n, renamed)
    assert {e for e in edges if groups[e[0]] == groups[e[1]]} == {
        (i, j) for i, j in edges if others[order[i]] == others[order[j]]
    }
