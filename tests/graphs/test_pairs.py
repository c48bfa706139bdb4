"""Rules for repeated edges, self loops and directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.graphs import from_edges
from symrelu.graphs.pairs import NOT_ADDED, Pairs, Rules, similarity_of

# a-b in both directions, a-c repeated, a loop of c, b-d once.
EDGES = [("a", "b", 1), ("b", "a", 3), ("a", "c", 2), ("a", "c", 4), ("c", "c", 5), ("b", "d", 8)]
LOOP = "1 self loop is on the diagonal"


def combined(edges, **rules):
    names = list(dict.fromkeys(node for i, j, _ in edges for node in (i, j)))
    rows, cols = (np.array([names.index(edge[k]) for edge in edges], dtype=np.int64) for k in (0, 1))
    return similarity_of(Pairs(rows, cols, names), [edge[2] for edge in edges], Rules(**rules))


@pytest.mark.parametrize(
    ("rules", "ab", "ac", "cc", "notes"),
    [
        (
            {"duplicates": "sum", "directed": "max"},
            3,
            6,
            5,
            (
                LOOP,
                "1 repeated edge was added",
                "the two directions of 1 pair were combined to the largest weight",
            ),
        ),
        (
            {"duplicates": "max", "directed": "sum"},
            4,
            4,
            5,
            (
                LOOP,
                "1 repeated edge was combined to the largest weight",
                "the two directions of 1 pair were added",
            ),
        ),
        (
            {"duplicates": "sum", "self_loops": "drop", "directed": "mean"},
            2,
            6,
            0,
            (
                "1 self loop was left out",
                "1 repeated edge was added",
                "the two directions of 1 pair were averaged",
            ),
        ),
        ({"duplicates": "sum"}, 4, 6, 5, (LOOP,)),
        ({"duplicates": "max", "self_loops": "drop"}, 3, 4, 0, ("1 self loop was left out",)),
    ],
)
def test_rules(rules, ab, ac, cc, notes):
    matrix, said = combined(EDGES, **rules)
    expected = [[0, ab, ac, 0], [ab, 0, 0, 8], [ac, 0, cc, 0], [0, 8, 0, 0]]
    assert_array_equal(matrix.toarray(), expected)
    assert_array_equal(from_edges(EDGES, **rules).matrix.toarray(), expected)
    assert said == notes


@pytest.mark.parametrize("directed", ["error", "max", "sum", "mean"])
def test_a_symmetric_list_is_not_changed(directed):
    both = [("a", "b", 2), ("b", "a", 2), ("b", "b", 3), ("b", "c", 1), ("c", "b", 1)]
    matrix, notes = combined(both, directed=directed)
    assert_array_equal(matrix.toarray(), [[0, 2, 0], [2, 3, 1], [0, 1, 0]])
    assert notes == ((LOOP, NOT_ADDED) if directed == "sum" else (LOOP,))


def test_self_loops_have_no_directions_to_add():
    assert combined([("a", "a", 1)], directed="sum").notes == (LOOP,)


@pytest.mark.parametrize(("directed", "ab"), [("error", 1), ("max", 1), ("sum", 2), ("mean", 1)])
def test_a_directed_list_without_weights(directed, ab):
    """One pair points both ways: only adding counts it twice."""
    matrix, _ = combined([("a", "b", 1), ("b", "a", 1), ("b", "c", 1)], directed=directed)
    assert_array_equal(matrix.toarray(), [[0, ab, 0], [ab, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"directed": "max"}, r"Edge \('a', 'c'\) is given 2 times. Pass duplicates=\"sum\" to add"),
        (
            {"duplicates": "sum", "directed": "error"},
            r"Edge \('a', 'b'\) has the weight 1, but 3 in the other direction. Pass directed=\"max\" to keep "
            r"the larger, \"sum\" to add them, or \"mean\" to average them\.",
        ),
        (
            {"self_loops": "error"},
            r"Edge \('c', 'c'\) is a self loop, one of 1. Pass self_loops=\"drop\" .* or \"keep\"",
        ),
        ({"self_loops": "ignore"}, "self_loops must be one of 'keep', 'drop', 'error', got 'ignore'"),
        ({"directed": "no"}, "directed must be one of 'error', 'max', 'sum', 'mean', got 'no'"),
        ({"duplicates": "mean"}, "duplicates must be one of 'error', 'max', 'sum', got 'mean'"),
    ],
)
def test_what_is_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        combined(EDGES, **rules)
    with pytest.raises(ValueError, match=message):
        from_edges(EDGES, **rules)


def test_the_ends_of_an_edge_may_have_different_names():
    pairs = Pairs(np.array([0]), np.array([0]), ["new"], ["known"])
    assert pairs.edge(0) == "('new', 'known')"


ENDS = st.integers(0, 4)


@given(
    st.lists(st.tuples(ENDS, ENDS, st.integers(1, 9)), max_size=15, unique_by=lambda edge: edge[:2]),
    st.sampled_from(["max", "sum", "mean"]),
)
def test_directions_by_the_formula(edges, directed):
    A, given_ = np.zeros((5, 5)), np.zeros((5, 5))
    for i, j, w in edges:
        A[i, j], given_[i, j] = w, 1
    off = ~np.eye(5, dtype=bool)
    total = A + A.T * off
    expected = {
        "max": np.maximum(A, A.T),
        "sum": A if (A == A.T).all() else total,
        "mean": total / np.maximum(given_ + given_.T * off, 1),
    }
    assert_allclose(from_edges(edges, nodes=range(5), directed=directed).matrix.toarray(), expected[directed])


def test_repeated_edges_and_directions_are_refused_at_once():
    """The one came after the other, and neither said how many there are."""
    edges = [
        ("a", "b", 1),
        ("a", "b", 1),
        ("b", "c", 1),
        ("b", "c", 2),
        ("b", "a", 5),
        ("c", "d", 1),
        ("d", "c", 2),
    ]
    message = (
        r"Edge \('a', 'b'\) is given 2 times, and 1 other edge is repeated\. Pass duplicates=\"sum\" .* The "
        r"two directions of 2 pairs differ too, such as those of \('a', 'b'\): pass duplicates=\"sum\", "
        r"directed=\"sum\" to add both\."
    )
    with pytest.raises(ValueError, match=message):
        from_edges(edges, directed="error")
    with pytest.raises(ValueError, match=r"2 times\. Pass duplicates=\"sum\" to .* the largest\.$"):
        from_edges([("a", "b", 1), ("a", "b", 1), ("b", "a", 2)], directed="error")  # their sum is the same
    with pytest.raises(ValueError, match="but 5 in the other direction, and 1 other pair is different"):
        from_edges(edges, duplicates="sum", directed="error")
