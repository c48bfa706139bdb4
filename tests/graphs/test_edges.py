"""Lists and tables of edges."""

import numpy as np
import pytest
from graph_sources import EDGES, NAMES, A, networkx, networkx_graph, pd, table_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.graphs import from_edges, from_networkx


def columns_of(edges):
    sources, targets, weights = zip(*edges, strict=True)
    return list(sources), list(targets), list(weights)


FORMS = {
    "list of tuples": lambda edges: edges,
    "list of lists": lambda edges: [list(edge) for edge in edges],
    "generator": lambda edges: (edge for edge in edges),
    "columns": columns_of,
    "columns of arrays": lambda edges: tuple(map(np.array, columns_of(edges))),
    "table": table_of,
    "table with other columns between": lambda edges: table_of(edges)[["weight", "target", "source"]].assign(
        x=1
    ),
    "table of categories": lambda edges: table_of(edges).astype({"source": "category", "target": "string"}),
    "array of objects": lambda edges: np.array(edges, dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
def test_edges_in_all_forms(form):
    matrix, labels = from_edges(FORMS[form](EDGES), nodes=NAMES)
    assert isinstance(matrix, sparse.csr_array)
    assert matrix.has_canonical_format
    assert_array_equal(matrix.toarray(), A)
    assert labels.dtype == object
    assert labels.tolist() == NAMES
    appear = list(dict.fromkeys(node for i, j, _ in EDGES for node in (i, j)))
    matrix, labels = from_edges(FORMS[form](EDGES))
    assert labels.tolist() == appear
    positions = [NAMES.index(node) for node in appear]
    assert_array_equal(matrix.toarray(), A[np.ix_(positions, positions)])


@pytest.mark.parametrize("form", FORMS)
def test_weights_can_be_ignored(form):
    assert_array_equal(from_edges(FORMS[form](EDGES), nodes=NAMES, weight=None).matrix.toarray(), A > 0)


def test_columns_of_other_names():
    table = table_of(EDGES).set_axis(["von", 7, "strength"], axis=1)
    assert_array_equal(from_edges(table, "von", 7, "strength", nodes=NAMES).matrix.toarray(), A)
    # Without a column "weight", edges count 1; no other column is taken for it.
    assert_array_equal(from_edges(table, "von", 7, nodes=NAMES).matrix.toarray(), A > 0)


def test_numbers_of_nodes():
    i, j = np.nonzero(np.triu(A))
    for edges in (
        np.column_stack([i, j, A[i, j]]),  # floats
        (i, j, A[i, j]),
        (i.astype(np.int32), pd.Series(j), A[i, j].tolist()),
    ):
        matrix, labels = from_edges(edges, nodes=range(len(A)))
        assert_array_equal(matrix.toarray(), A)
        assert labels.tolist() == list(range(len(A)))
    assert [type(label) for label in from_edges(np.array([[0.0, 1.0, 0.5]])).labels] == [int, int]
    # An index of edges as torch_geometric has it holds both directions of each.
    torch = pytest.importorskip("torch")
    both = torch.tensor(np.array(np.nonzero(A)))
    assert_array_equal(from_edges(tuple(both), nodes=range(len(A))).matrix.toarray(), A > 0)


@pytest.mark.parametrize(
    ("given", "kept"), [(np.float32, np.float32), (np.int64, np.float64), (bool, np.float64)]
)
def test_types_of_weights(given, kept):
    weights = np.array([1, 0, 1], dtype=given)
    matrix = from_edges((["a", "b", "c"], ["b", "c", "c"], weights)).matrix
    assert matrix.dtype == kept
    assert_array_equal(matrix.toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    assert matrix.nnz == 3  # a weight of 0 is no entry
    frame = pd.DataFrame({"source": ["a"], "target": ["b"], "weight": pd.array([2], dtype="Float32")})
    assert from_edges(frame).matrix.dtype == np.float32


def test_no_edges():
    for nothing in ([], (np.array([]), np.array([])), np.empty((0, 3)), table_of([])):
        assert from_edges(nothing).matrix.shape == (0, 0)
        assert from_edges(nothing).labels.tolist() == []
        assert from_edges(nothing, nodes="ab").matrix.toarray().tolist() == [[0, 0], [0, 0]]


GIVEN_TWICE = [
    ("a", "b", 1.0),
    ("b", "c", 2.0),
    ("b", "a", 3.0),
    ("a", "b", 5.0),
    ("c", "c", 1.0),
    ("c", "c", 4.0),
]


@pytest.mark.parametrize(
    ("duplicates", "expected"),
    [("sum", [[0, 9, 0], [9, 0, 2], [0, 2, 5]]), ("max", [[0, 5, 0], [5, 0, 2], [0, 2, 4]])],
)
def test_edges_given_more_than_once(duplicates, expected):
    assert_array_equal(from_edges(GIVEN_TWICE, duplicates=duplicates).matrix.toarray(), expected)


def test_both_directions_of_equal_weight_are_one_edge():
    both = EDGES + [(j, i, w) for i, j, w in EDGES if i != j]
    assert_array_equal(from_edges(both, nodes=NAMES).matrix.toarray(), A)


@pytest.mark.parametrize(
    ("edges", "options", "error", "message"),
    [
        (
            [("x", "y"), ("a", "b", 1)],
            {},
            ValueError,
            r"all be \(i, j\), or all \(i, j, weight\): edge number 1 is \('a', 'b', 1\)",
        ),
        (["ab", "bc"], {}, ValueError, "edge number 0 is 'ab'"),
        ([1, 2], {}, ValueError, "edge number 0 is 1"),
        ([("a", "b", 1, 2)], {}, ValueError, "edge number 0 is"),
        ({("a", "b"): 2.0}, {}, TypeError, r"got a mapping \(dict\). Pass a list of \(i, j, weight\)"),
        (networkx_graph().edges, {}, TypeError, r"got a mapping \(EdgeView\)"),
        ((("a", "b"), ("b", "c")), {}, TypeError, "two or three arrays: .* Pass a list .* one by one"),
        (("a", "b", 2.0), {}, TypeError, "must hold two or three arrays"),
        ((["a"],), {}, TypeError, "must hold two or three arrays"),
        ((["a"], ["b", "c"]), {}, ValueError, r"must have the same length, got \[1, 2\]"),
        (np.ones((2, 5)), {}, ValueError, r"\(n_edges, 3\), got \(2, 5\). Pass tuple\(edges\)"),
        (np.array([[0.5, 1.0]]), {}, ValueError, "first two columns .* must hold whole numbers"),
        (np.array([[np.nan, 1.0]]), {}, ValueError, "first two columns .* must hold whole numbers"),
        (
            table_of(EDGES),
            {"target": "to"},
            ValueError,
            r"a column 'to', got the columns .* right name: target=",
        ),
        (table_of(EDGES), {"weight": "w"}, ValueError, r"must have a column 'w', .* weight=\.\.\."),
        (
            EDGES,
            {"duplicates": "mean"},
            ValueError,
            "duplicates must be one of 'error', 'max', 'sum', got 'mean'",
        ),
        (
            EDGES,
            {"nodes": ["a", "b"]},
            ValueError,
            "nodes must name every node of the edges, but 'd' is missing",
        ),
        (EDGES, {"nodes": [*NAMES, "a"]}, ValueError, "nodes must name each node once, but 'a' occurs twice"),
        ([("a", ["b"])], {}, TypeError, "Nodes must be hashable, such as numbers or strings: .*list"),
        ([("a", None)], {}, ValueError, "Nodes must not be missing, got None. Drop the edges"),
        ([("a", pd.NA)], {}, ValueError, "must not be missing, got <NA>"),
        (table_of([("a", np.nan, 1)]), {}, ValueError, "must not be missing, got nan"),
        ([("a", "b", -1)], {}, ValueError, r"nonnegative: edge \('a', 'b'\) has -1"),
        ([("a", "b", 1), ("b", "c", np.nan)], {}, ValueError, r"finite .* edge \('b', 'c'\) has nan"),
        (table_of([("a", "b", pd.NA)]), {}, ValueError, r"edge \('a', 'b'\) has nan"),
        ([("a", "b", 2.0), ("a", "c", "x")], {}, TypeError, r"must be numbers: edge \('a', 'c'\) has 'x'"),
        ([("a", "b", {"weight": 2})], {}, TypeError, r"edge \('a', 'b'\) has \{'weight': 2\}"),
        ([("a", "b", np.ones(2))], {}, TypeError, r"must be numbers: edge \('a', 'b'\) has array"),
        (
            [("c", "a"), ("a", "b"), ("a", "b")],
            {},
            ValueError,
            r"Edge \('a', 'b'\) is given 2 times. Pass duplicates=\"sum\" to add .* or \"max\"",
        ),
        (
            [("c", "c", 1), ("c", "c", 1), ("c", "c", 1)],
            {},
            ValueError,
            r"Edge \('c', 'c'\) is given 3 times",
        ),
        (
            [("a", "c", 1), ("a", "b", 2), ("b", "a", 3)],
            {},
            ValueError,
            r"Edge \('a', 'b'\) has the weight 2, but 3 in the other direction. Pass duplicates=\"max\"",
        ),
    ],
)
def test_bad_edges(edges, options, error, message):
    with pytest.raises(error, match=message):
        from_edges(edges, **options)


@st.composite
def edge_lists(draw, repeated=False):
    """Draw edges between a few nodes, each pair at most once unless ``repeated``, in any direction."""
    node = st.integers(0, 7)
    weight = st.integers(0, 64).map(lambda w: w / 8)  # sums are exact
    edges = draw(
        st.lists(
            st.tuples(node, node, weight),
            max_size=20,
            unique_by=None if repeated else lambda edge: frozenset(edge[:2]),
        )
    )
    return [(f"n{i}", f"n{j}", w) for i, j, w in edges]


def by_name(labelled):
    """The matrix as a dictionary, which knows no order."""
    coo = labelled.matrix.tocoo()
    return {(labelled.labels[i], labelled.labels[j]): v for i, j, v in zip(*coo.coords, coo.data, strict=True)}


@given(edge_lists())
def test_the_entries_are_the_edges(edges):
    expected = {(i, j): w for i, j, w in edges if w > 0} | {(j, i): w for i, j, w in edges if w > 0}
    assert by_name(from_edges(edges)) == expected


@given(edge_lists(), st.randoms(use_true_random=False))
def test_relabelling_the_nodes_permutes_the_matrix(edges, random):
    matrix, labels = from_edges(edges)
    nodes = list(labels)
    random.shuffle(nodes)
    renamed = {node: k for k, node in enumerate(nodes)}
    shuffled = [(renamed[i], renamed[j], w) for i, j, w in edges]
    random.shuffle(shuffled)
    turned = [(j, i, w) if random.random() < 0.5 else (i, j, w) for i, j, w in shuffled]
    permuted = from_edges(turned, nodes=range(len(nodes))).matrix.toarray()
    order = [renamed[node] for node in labels]
    assert_array_equal(permuted[np.ix_(order, order)], matrix.toarray())
    assert_array_equal(permuted, permuted.T)


@given(edge_lists(repeated=True))
def test_edges_against_networkx(edges):
    graph = networkx.MultiGraph()
    graph.add_weighted_edges_from(edges)
    expected = networkx.to_scipy_sparse_array(graph, dtype=float).toarray() if len(graph) else np.empty((0, 0))
    for matrix, labels in (from_edges(edges, duplicates="sum"), from_networkx(graph)):
        assert labels.tolist() == list(graph.nodes)
        assert_array_equal(matrix.toarray(), expected)


@given(edge_lists(repeated=True))
def test_the_largest_of_repeated_edges(edges):
    largest = {}
    for i, j, w in edges:
        largest[i, j] = largest[j, i] = max(w, largest.get((i, j), 0))
    assert by_name(from_edges(edges, duplicates="max")) == {pair: w for pair, w in largest.items() if w > 0}


@given(edge_lists(repeated=True))
def test_repeated_edges_are_refused_unless_they_are_one_edge(edges):
    seen = {}
    for i, j, w in edges:
        seen.setdefault(frozenset((i, j)), []).append(((i, j), w))
    once = all(len({ends for ends, _ in same}) == len(same) for same in seen.values())
    agree = all(len({w for _, w in same}) == 1 for same in seen.values())
    if once and agree:
        assert by_name(from_edges(edges)) == by_name(from_edges(edges, duplicates="max"))
    else:
        with pytest.raises(ValueError, match=r"is given|in the other direction"):
            from_edges(edges)
