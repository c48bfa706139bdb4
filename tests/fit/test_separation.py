"""The best threshold, compared with all thresholds."""

import numpy as np
from example_graphs import GRAPHS, random_graph, symmetric
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.fit.separation import separation
from symrelu.kernels.neighbor_counts import edges_of


def scores_of(U, signature, graph):
    """Return the scores of the edges and of the other pairs, each pair once."""
    X, upper = (U * signature) @ U.T, np.triu(np.ones(graph.shape, bool), 1)
    edge = graph.toarray()
    return X[edge & upper], X[~edge & upper]


def wrong_at(threshold, U, signature, graph):
    edges, others = scores_of(U, signature, graph)
    return int((edges <= threshold).sum() + (others > threshold).sum())


@given(
    n=st.integers(2, 40), share=st.floats(0, 1), dtype=st.sampled_from(["f4", "f8"]), seed=st.integers(0, 999)
)
def test_no_level_is_better(n, share, dtype, seed):
    rng = np.random.default_rng(seed)
    # Quarters, so that scores lie on levels and sums are exact.
    U, signature = (rng.integers(-4, 5, (n, 3)) / 4).astype(dtype), np.array([1, 1, -1], dtype)
    graph = random_graph(n, share, seed)
    found = separation(U, signature, edges_of(graph))
    assert found.threshold > 0
    assert found.wrong == wrong_at(found.threshold, U, signature, graph)
    edges, others = scores_of(U, signature, graph)
    if edges.min(initial=np.inf) > max(others.max(initial=0.0), 0.0):
        assert found.wrong == 0
    else:
        # Scores are multiples of 1/16: only the gaps between these matter, up to where most edges are lost.
        highest = max(np.quantile(scores_in_rows(U, signature, graph), 0.9), 1e-3)
        levels = [highest, *np.arange(0.5, 16 * highest) / 16]
        assert found.wrong == min(wrong_at(level, U, signature, graph) for level in levels)
    assert_array_equal(found.low, scores_in_rows(U, signature, graph) <= found.threshold)


def scores_in_rows(U, signature, graph):
    rows, columns = graph.tocoo().coords
    return np.sum(U[rows] * signature * U[columns], axis=1)


def test_exact_scores_are_separated_halfway():
    U = np.array([[1.0, 0.0], [0.75, 0.0], [0.25, 1.0]])
    found = separation(U, np.ones(2), edges_of(symmetric(3, [(0, 1)])))  # .75 against .25 and .1875
    assert (found.threshold, found.wrong) == (0.5, 0)
    assert not found.low.any()


def test_negative_scores_of_other_pairs_leave_the_threshold_positive():
    U = np.array([[1.0], [0.5], [-3.0]])
    assert separation(U, np.ones(1), edges_of(symmetric(3, [(0, 1)]))).threshold == 0.25


def test_every_pair_is_an_edge():
    found = separation(np.ones((12, 1)), np.ones(1), edges_of(GRAPHS["complete"]))
    assert (found.threshold, found.wrong) == (0.5, 0)


def test_negative_scores_of_edges_are_wrong_at_any_threshold():
    U = np.array([[1.0], [-1.0], [1.0]])
    found = separation(U, np.ones(1), edges_of(symmetric(3, [(0, 1), (0, 2)])))
    assert found.threshold > 0
    assert found.wrong == 1
    assert found.low.sum() == 2  # in both directions


def test_without_edges():
    found = separation(np.full((3, 1), 2.0), np.ones(1), edges_of(symmetric(3, [])))
    assert found.threshold > 4.0
    assert found.wrong == 0


def test_a_score_on_a_level_is_not_above_it():
    # The edge (0, 1) and the pair (0, 2) both have the score 1, which is a level: one of them must be wrong.
    U = np.array([[1.0], [1.0], [1.0]])
    found = separation(U, np.ones(1), edges_of(symmetric(3, [(0, 1), (0, 2)])))
    assert found.wrong == 1
    assert_allclose(found.threshold, 1 / 2048)


def test_large_scores_are_separated_too():
    """With a negative column and "at_least", scores have no natural scale."""
    graph = random_graph(30, 0.2, 0)
    rng = np.random.default_rng(0)
    U, signature = rng.standard_normal((30, 4)), np.array([1.0, 1.0, 1.0, -1.0])
    wrong = [separation(scale * U, signature, edges_of(graph)).wrong for scale in (0.1, 1.0, 10.0, 100.0)]
    assert len(set(wrong)) == 1
