"""Each library's object against the dense matrix it was made of."""

import ast
import decimal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import symrelu.graphs
from symrelu import SymReLU, SymReLUClustering, decompose, metrics, select_rank
from symrelu.baselines import SymHALS, symmetric_nmf, three_block_nmd, truncated_eigen
from symrelu.graphs import (
    Labelled,
    as_similarity,
    embedding_frame,
    from_anndata,
    from_edges,
    from_igraph,
    from_networkx,
    from_pandas,
    from_torch,
    write_anndata,
)

networkx = pytest.importorskip("networkx")
pd = pytest.importorskip("pandas")

NAMES = ["d", "a", "alone", "c", "b", "e", "f"]  # in no order, one without an edge


def dense_graph():
    """Weights that float32 holds exactly, a self loop, and an isolated node."""
    rng = np.random.default_rng(0)
    n, isolated = len(NAMES), NAMES.index("alone")
    A = np.triu(rng.integers(1, 9, (n, n)) / 4 * (rng.random((n, n)) < 0.5), 1)
    A = A + A.T
    A[0, 0] = 2.25
    A[isolated] = A[:, isolated] = 0
    return A


A = dense_graph()
EDGES = [(NAMES[i], NAMES[j], float(A[i, j])) for i, j in np.argwhere(np.triu(A))]


class IgraphSequence:
    """What igraph's VertexSeq and EdgeSeq do of attributes."""

    def __init__(self, columns):
        self._columns = columns

    def attributes(self):
        return list(self._columns)

    def __getitem__(self, name):
        if name not in self._columns:
            raise KeyError("Attribute does not exist")
        return list(self._columns[name])


class IgraphGraph:
    """As much of igraph.Graph as an adjacency matrix needs: vertices are numbers, absent values None."""

    def __init__(self, n, edges, directed=False, vertex_attrs=None, edge_attrs=None):
        self._n, self._edges, self._directed = n, [tuple(edge) for edge in edges], directed
        self._vertex_attrs, self._edge_attrs = vertex_attrs or {}, edge_attrs or {}

    @property
    def vs(self):
        return IgraphSequence(self._vertex_attrs)

    @property
    def es(self):
        return IgraphSequence(self._edge_attrs)

    def vcount(self):
        return self._n

    def get_edgelist(self):
        return list(self._edges)

    def is_directed(self):
        return self._directed


def networkx_graph(kind=networkx.Graph):
    graph = kind()
    graph.add_nodes_from(NAMES)
    graph.add_weighted_edges_from(EDGES)
    return graph


def igraph_graph():
    pairs = [(NAMES.index(i), NAMES.index(j)) for i, j, _ in EDGES]
    weights = {"weight": [w for *_, w in EDGES]}
    return IgraphGraph(len(NAMES), pairs, vertex_attrs={"name": NAMES}, edge_attrs=weights)


def anndata_graph(graph=None, **uns):
    anndata = pytest.importorskip("anndata")
    graph = sparse.csr_matrix(A) if graph is None else graph
    obs = pd.DataFrame(index=NAMES)
    return anndata.AnnData(np.zeros((len(NAMES), 2)), obs=obs, obsp={"connectivities": graph}, uns=uns)


def tensor(layout="strided", dtype="float64"):
    torch = pytest.importorskip("torch")
    dense = torch.tensor(A, dtype=getattr(torch, dtype))
    with warnings.catch_warnings():  # some layouts are announced as new
        warnings.simplefilter("ignore")
        return dense if layout == "strided" else getattr(dense, f"to_{layout}")()


def labelled_frame():
    return pd.DataFrame(A, index=NAMES, columns=NAMES)


def sparse_frame():
    return pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(A), index=NAMES, columns=NAMES)


# What was passed -> (a function that makes it, whether it has labels, whether it is sparse)
SOURCES = {
    "networkx": (networkx_graph, True, True),
    "networkx multigraph": (lambda: networkx_graph(networkx.MultiGraph), True, True),
    "igraph": (igraph_graph, True, True),
    "anndata": (anndata_graph, True, True),
    "anndata, dense": (lambda: anndata_graph(A), True, False),
    "anndata, view": (lambda: anndata_graph()[:], True, True),
    "frame": (labelled_frame, True, False),
    "frame, columns shuffled": (lambda: labelled_frame()[sorted(NAMES)], True, False),
    "frame, sparse": (sparse_frame, True, True),
    "frame, sparse, columns shuffled": (lambda: sparse_frame()[sorted(NAMES)], True, True),
    "torch": (tensor, False, False),
    "torch, COO": (lambda: tensor("sparse_coo"), False, True),
    "torch, CSR": (lambda: tensor("sparse_csr"), False, True),
    "torch, CSC": (lambda: tensor("sparse_csc"), False, True),
    "edges": (lambda: from_edges(EDGES, nodes=NAMES), True, True),
    "array": (lambda: A, False, False),
    "scipy": (lambda: sparse.csr_array(A), False, True),
}


@pytest.mark.parametrize("name", SOURCES)
def test_values_and_labels(name):
    make, has_labels, is_sparse = SOURCES[name]
    matrix, labels = as_similarity(make())
    assert sparse.issparse(matrix) == is_sparse
    assert isinstance(matrix, sparse.csr_array if is_sparse else np.ndarray)
    assert matrix.dtype == np.float64
    assert_array_equal(matrix.toarray() if is_sparse else matrix, A)
    if has_labels:
        assert labels.dtype == object
        assert labels.tolist() == NAMES
    else:
        assert labels is None


@pytest.mark.parametrize("name", SOURCES)
def test_the_factor_is_that_of_the_plain_matrix(name):
    make, _, is_sparse = SOURCES[name]
    settings = {"rank": 3, "random_state": 0, "max_iter": 20}
    plain = decompose(sparse.csr_array(A) if is_sparse else A, **settings)
    assert_array_equal(decompose(as_similarity(make()).matrix, **settings).U, plain.U)


def test_anything_else_passes_through_unchanged():
    for data in (A, sparse.coo_matrix(A), A.tolist(), "words", None):
        matrix, labels = as_similarity(data)
        assert matrix is data
        assert labels is None


def test_what_is_labelled_already_stays():
    labelled = from_edges(EDGES)
    assert as_similarity(labelled) is labelled
    assert isinstance(labelled, Labelled)


# networkx and igraph


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


def weighted(weight):
    graph = networkx.path_graph(["a", "b", "c"])
    graph["b"]["c"]["weight"] = weight
    return graph


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
            "weight='other' is an attribute of no edge; edges have: 'weight'. .* or weight=None",
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
            "weight='cost' is an attribute of no edge; edges have: none",
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


# AnnData


def test_anndata_takes_the_graph_that_neighbors_names():
    adata = anndata_graph(np.eye(len(NAMES)), neighbors={"connectivities_key": "mine"})
    adata.obsp["mine"] = sparse.csr_matrix(A.astype(np.float32))
    matrix, labels = as_similarity(adata)
    assert_array_equal(matrix.toarray(), A)
    assert matrix.dtype == np.float32
    assert labels.tolist() == NAMES
    assert_array_equal(from_anndata(adata, key="connectivities").matrix, np.eye(len(NAMES)))
    assert_array_equal(from_anndata(anndata_graph(neighbors={"params": {}})).matrix.toarray(), A)


def test_anndata_without_a_graph():
    adata = anndata_graph()
    adata.obsp["distances"] = adata.obsp["connectivities"]
    message = r"obsp must hold the graph 'other'; its entries are: 'connectivities', 'distances'. Run scanpy.pp"
    with pytest.raises(ValueError, match=message):
        from_anndata(adata, key="other")
    adata.obsp.clear()
    with pytest.raises(ValueError, match="must hold the graph 'connectivities'; its entries are: none"):
        as_similarity(adata)
    with pytest.raises(TypeError, match="adata must be an AnnData, got ndarray"):
        from_anndata(A)


def test_anndata_and_back(tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata_graph()
    model = SymReLU(3, n_negative=1, random_state=0, solver="aapb", max_iter=3, tol=0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps are no convergence
        model.fit(from_anndata(adata).matrix)
    write_anndata(adata, model.embedding_, signature=model.signature_, params=model.get_params())
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(again.obsm["X_symrelu"], model.embedding_)
    assert_array_equal(again.uns["symrelu"]["signature"], [1, 1, -1])
    params = again.uns["symrelu"]["params"]
    assert (params["n_components"], params["solver"], params["tol"]) == (3, "aapb", 0.25)
    assert "max_time" not in params  # it is None
    write_anndata(again, model.embedding_ + 1)  # its own entry may be replaced, also one that was read
    assert_array_equal(again.obsm["X_symrelu"], model.embedding_ + 1)
    assert "signature" not in again.uns["symrelu"]


def test_settings_that_no_file_holds_are_kept_as_they_print():
    adata = anndata_graph()
    params = {"solver": symrelu.AAPB(), "shape": (1, 2), "seed": np.int64(3), "init": np.ones(2), "n": None}
    write_anndata(adata, A[:, :2], "X_mine", params=params)
    kept = adata.uns["mine"]["params"]
    assert kept["solver"] == repr(symrelu.AAPB())
    assert kept["shape"] == "(1, 2)"
    assert kept["seed"] == 3
    assert_array_equal(kept["init"], [1, 1])
    assert "n" not in kept


def test_frames_are_written_only_where_their_labels_fit():
    adata = anndata_graph()
    U = A[:, :2]
    write_anndata(adata, embedding_frame(U, NAMES))
    assert_array_equal(adata.obsm["X_symrelu"], U)
    write_anndata(adata, embedding_frame(U + 1, None))
    assert_array_equal(adata.obsm["X_symrelu"], U + 1)
    with pytest.raises(ValueError, match=r"index of embedding must be adata.obs_names, in the same order"):
        write_anndata(adata, embedding_frame(U, NAMES[::-1]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((A[:-1],), ValueError, "a row for each of the 7 observations, got 6 rows"),
        ((A[0],), ValueError, r"embedding must have shape \(n, n_components\), got \(7,\)"),
        ((A, "X_symrelu", [1, 1]), ValueError, r"a sign for each of the 7 columns .* got shape \(2,\)"),
        ((A, "X_neighbors"), ValueError, r"uns\['neighbors'\] holds something else, .* another key_added"),
    ],
)
def test_nothing_is_written_if_something_is_wrong(arguments, error, message):
    adata = anndata_graph(neighbors={"params": {"method": "umap"}})
    with pytest.raises(error, match=message):
        write_anndata(adata, *arguments)
    assert not adata.obsm
    assert list(adata.uns) == ["neighbors"]
    with pytest.raises(TypeError, match="adata must be an AnnData, got dict"):
        write_anndata({}, A)


# pandas


def test_frames_without_labels():
    assert from_pandas(pd.DataFrame(A)).labels is None
    for frame in (pd.DataFrame(A, columns=NAMES), pd.DataFrame(A, index=NAMES)):
        matrix, labels = from_pandas(frame)
        assert_array_equal(matrix, A)
        assert labels.tolist() == NAMES
    # Counting from 1 is a label, and numbers in another order are the same labels.
    for labels in ([1, 2], pd.RangeIndex(1, 3)):
        assert from_pandas(pd.DataFrame(np.eye(2), index=labels, columns=labels)).labels.tolist() == [1, 2]
    matrix, labels = from_pandas(pd.DataFrame([[1, 2], [3, 4]], columns=[1, 0]))
    assert_array_equal(matrix, [[2, 1], [4, 3]])
    assert labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("float32", np.float32),
        ("float64", np.float64),
        ("int64", np.int64),
        ("bool", bool),
        ("Float32", np.float32),
        ("Float64", np.float64),
        ("Int64", np.float64),
        (pd.SparseDtype("float32", 0), np.float32),
        (pd.SparseDtype("int64", 0), np.int64),
    ],
)
def test_types_of_frames(stored, expected):
    values = [[1, 0], [0, 1]]
    matrix, labels = from_pandas(pd.DataFrame(values, index=["a", "b"], columns=["a", "b"]).astype(stored))
    assert matrix.dtype == expected
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, values)
    assert labels.tolist() == ["a", "b"]


def test_numbers_beside_booleans():
    frame = pd.DataFrame({0: [True, False], 1: [0.0, 2.5]})
    assert_array_equal(from_pandas(frame).matrix, [[1, 0], [0, 2.5]])
    assert from_pandas(frame).matrix.dtype == np.float64


def test_labels_that_make_a_frame_look_like_a_graph():
    names = ["get_edgelist", "vcount", "is_directed", "es", "vs"]
    frame = pd.DataFrame(np.eye(5), index=names, columns=names)
    assert all(hasattr(frame, name) for name in names)
    assert as_similarity(frame).labels.tolist() == names


def test_labels_of_several_levels():
    index = pd.MultiIndex.from_product([["x", "y"], [1, 2]])
    labels = from_pandas(pd.DataFrame(np.eye(4), index=index, columns=index)).labels
    assert labels.tolist() == [("x", 1), ("x", 2), ("y", 1), ("y", 2)]


def frame_with(index, columns):
    return pd.DataFrame(np.eye(2), index=index, columns=columns)


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (A, TypeError, "frame must be a pandas DataFrame, got ndarray"),
        (
            pd.DataFrame(np.ones((2, 3))),
            ValueError,
            r"square, .* got shape \(2, 3\). For .*from_edges\(frame\)",
        ),
        (
            frame_with(["a", "b"], ["a", "x"]),
            ValueError,
            "'b' is in the index and not in the columns. Pass frame.set",
        ),
        (frame_with([1, 2], ["1", "2"]), ValueError, "1 is in the index and not in the columns"),
        (
            frame_with(["a", "a"], ["a", "b"]),
            ValueError,
            "same labels, each once, but 'a' is in the index twice",
        ),
        (frame_with(["a", "b"], ["b", "b"]), ValueError, "but 'b' is in the columns twice"),
        (
            pd.DataFrame({0: [1.0, 2.0], 1: ["x", "y"]}),
            TypeError,
            "must hold numbers, got the column 1 of type",
        ),
        (
            frame_with(["a", "b"], ["a", "b"]).astype(pd.SparseDtype("float64", np.nan)),
            ValueError,
            "Sparse columns must have the fill value 0, but 'a' has nan",
        ),
    ],
)
def test_bad_frames(frame, error, message):
    with pytest.raises(error, match=message):
        from_pandas(frame)


def test_repeated_labels_pass_where_they_are_in_one_order():
    assert from_pandas(frame_with(["a", "a"], ["a", "a"])).labels.tolist() == ["a", "a"]


def test_missing_numbers_of_a_frame_become_nan():
    frame = frame_with(["a", "b"], ["a", "b"]).astype("Float64")
    frame.iloc[0, 1] = pd.NA
    assert np.isnan(from_pandas(frame).matrix[0, 1])


# torch


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_types_of_tensors(layout, dtype):
    matrix, labels = from_torch(tensor(layout, dtype))
    assert matrix.dtype == dtype
    assert sparse.issparse(matrix) == (layout != "strided")
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, A.astype(dtype))
    assert labels is None


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr"])
def test_gradients_are_left_behind(layout):
    torch = pytest.importorskip("torch")
    leaf = torch.tensor(A, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = leaf if layout == "strided" else getattr(leaf, f"to_{layout}")()
    assert made.requires_grad
    matrix = from_torch(made).matrix
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, A)
    assert_array_equal(as_similarity(torch.nn.Parameter(leaf)).matrix, A)


def test_entries_of_a_tensor_that_are_given_twice_add_up():
    torch = pytest.importorskip("torch")
    places, values = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([1.0, 2.0, 3.0])
    twice = torch.sparse_coo_tensor(places, values, (3, 3), check_invariants=True)
    assert not twice.is_coalesced()
    assert_array_equal(from_torch(twice).matrix.toarray(), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


def test_no_sparse_tensor_becomes_dense():
    torch = pytest.importorskip("torch")
    n = 10**6  # dense, 4 TB
    large = torch.sparse_coo_tensor([[0, n - 1], [n - 1, 0]], [1.0, 1.0], (n, n), check_invariants=True)
    assert from_torch(large).matrix.nnz == 2


def test_a_dense_tensor_shares_its_memory():
    dense = tensor()
    from_torch(dense).matrix[0, 0] = 7
    assert dense[0, 0] == 7


def test_bad_tensors():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="tensor must be a torch tensor, got ndarray"):
        from_torch(A)
    with pytest.raises(TypeError, match=r"a type that NumPy has, got torch.bfloat16. Pass tensor.float\(\)"):
        from_torch(torch.eye(2, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match=r"dense or sparse, got the layout _mkldnn. Pass tensor.to_dense\(\)"):
        from_torch(torch.eye(2).to_mkldnn())
    hybrid = torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 2), (2, 2), check_invariants=True)
    with pytest.raises(ValueError, match=r"got shape \(2, 2\) with 1 sparse and 1 dense ones"):
        from_torch(hybrid)
    with pytest.raises(ValueError, match=r"got shape \(2, 2, 2\) with 3 sparse and 0 dense ones"):
        from_torch(torch.ones(2, 2, 2).to_sparse())


# Lists of edges


def columns_of(edges):
    sources, targets, weights = zip(*edges, strict=True)
    return list(sources), list(targets), list(weights)


def table_of(edges):
    return pd.DataFrame(edges, columns=["source", "target", "weight"])


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
        ((("a", "b"), ("b", "c")), {}, TypeError, "two or three arrays: .* Pass a list for edges one by one"),
        (("a", "b", 2.0), {}, TypeError, "must hold two or three arrays"),
        ((["a"],), {}, TypeError, "must hold two or three arrays"),
        ((["a"], ["b", "c"]), {}, ValueError, r"must be of one length, got \[1, 2\]"),
        (np.ones((2, 5)), {}, ValueError, r"\(n_edges, 3\), got \(2, 5\). Pass tuple\(edges\)"),
        (np.array([[0.5, 1.0]]), {}, ValueError, "first two columns must be whole numbers"),
        (np.array([[np.nan, 1.0]]), {}, ValueError, "first two columns must be whole numbers"),
        (
            table_of(EDGES),
            {"target": "to"},
            ValueError,
            r"a column 'to', got the columns .* right one: target=",
        ),
        (table_of(EDGES), {"weight": "w"}, ValueError, r"must have a column 'w', .* weight=\.\.\."),
        (
            EDGES,
            {"duplicates": "mean"},
            ValueError,
            "duplicates must be one of 'error', 'max', 'sum', got 'mean'",
        ),
        (EDGES, {"nodes": ["a", "b"]}, ValueError, "nodes must name every node of the edges, but 'd' is not"),
        (EDGES, {"nodes": [*NAMES, "a"]}, ValueError, "nodes must name each node once, but 'a' is there twice"),
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


# The way back


def test_embedding_frame():
    frame = embedding_frame(A[:, :2].astype(np.float32), NAMES)
    assert list(frame.columns) == ["symrelu0", "symrelu1"]
    assert list(frame.index) == NAMES
    assert (frame.dtypes == np.float32).all()
    assert_array_equal(frame.loc["c"], A[NAMES.index("c"), :2])
    assert list(embedding_frame(A, None, prefix="u").columns[:2]) == ["u0", "u1"]
    assert list(embedding_frame(A, None).index) == list(range(len(A)))


def test_embedding_frame_names_its_columns_as_the_estimator_does():
    model = SymReLU(2, random_state=0).fit(A)
    frame = embedding_frame(model.embedding_, NAMES)
    assert list(frame.columns) == list(model.get_feature_names_out())


def test_labels_that_are_tuples_or_numbers():
    labels = from_networkx(networkx.grid_2d_graph(1, 3)).labels
    index = embedding_frame(np.eye(3), labels).index
    assert index[2] == (0, 2)
    assert index.nlevels == 1
    numbers = from_networkx(networkx.path_graph(3)).labels
    assert embedding_frame(np.eye(3), numbers).index.dtype == np.int64


def test_bad_embedding_frames(monkeypatch):
    with pytest.raises(ValueError, match="labels must name each of the 7 rows of the embedding, got 2"):
        embedding_frame(A, ["a", "b"])
    with pytest.raises(ValueError, match=r"embedding must have shape \(n, n_components\), got \(7,\)"):
        embedding_frame(A[0], NAMES)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="embedding_frame needs pandas: pip install pandas"):
        embedding_frame(A, NAMES)


def test_labels_travel_from_the_graph_to_the_table():
    graph = networkx_graph()
    matrix, labels = as_similarity(graph)
    solution = decompose(matrix, 7, diagonal="ignore", n_negative=3, random_state=0)
    X = (solution.U * solution.signature) @ solution.U.T
    frame = embedding_frame(solution.U, labels)
    for i, j, data in graph.edges(data=True):
        if i != j:
            inner = np.sum(frame.loc[i] * solution.signature * frame.loc[j])
            assert_allclose(inner, data["weight"], atol=0.05)
            assert_allclose(inner, X[NAMES.index(i), NAMES.index(j)], atol=1e-12)


# What is loaded


@pytest.mark.parametrize("name", ["adapters", "annotated", "edges", "networks", "tables", "tensors"])
def test_no_library_is_imported(name):
    path = Path(symrelu.graphs.__file__).with_name(f"{name}.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert foreign <= {"numpy", "scipy", "symrelu"}


def test_plain_input_loads_nothing():
    program = (
        "import sys, numpy as np; from symrelu.graphs import as_similarity, from_edges;"
        "as_similarity(np.eye(2)); from_edges([('a', 'b', 1.0)]);"
        "print(sorted({'networkx', 'torch', 'anndata', 'igraph'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ast.literal_eval(result.stdout) == []


# What functions take (issue 11.16)


def edge_table():
    return table_of(EDGES)[lambda table: table["weight"] > 0]


FUNCTIONS = {
    "decompose": lambda M, mask: decompose(M, 2, mask=mask, random_state=0, max_iter=30).U,
    "select_rank": lambda M, mask: select_rank(
        M, [1, 2], mask=mask, n_repeats=2, random_state=0, max_iter=20
    ).to_frame(),
    "relative_error": lambda M, mask: metrics.relative_error(M, np.ones((7, 1)), mask=mask),
    "held_out_error": lambda M, mask: metrics.held_out_error(
        M, np.ones((7, 1)), mask=np.eye(7, dtype=bool) if mask is None else mask
    ),
    "parameters_per_pair": lambda M, mask: metrics.parameters_per_pair(M, 2, mask=mask),
    "truncated_eigen": lambda M, mask: truncated_eigen(M, 2).U,
    "symmetric_nmf": lambda M, mask: symmetric_nmf(M, 2, SymHALS(), random_state=0, max_iter=3).U,
    "three_block_nmd": lambda M, mask: three_block_nmd(M, 2, random_state=0, max_iter=3).U,
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_functions_take_what_fit_takes(source, function):
    """Issue 11.16: the same result as of the plain matrix."""
    make, _, is_sparse = SOURCES[source]
    plain = sparse.csr_array(A) if is_sparse else A
    assert_array_equal(FUNCTIONS[function](make(), None), FUNCTIONS[function](plain, None))


def test_an_edge_table_is_a_graph():
    table = edge_table()
    order = list(dict.fromkeys(table[["source", "target"]].to_numpy().ravel()))
    of_table = as_similarity(table)
    expected = pd.DataFrame(A, NAMES, NAMES).loc[order, order].to_numpy()
    assert of_table.labels.tolist() == order
    assert_array_equal(of_table.matrix.toarray(), expected)
    plain = decompose(sparse.csr_array(expected), 2, random_state=0, max_iter=30)
    assert_array_equal(decompose(table, 2, random_state=0, max_iter=30).U, plain.U)
    for model in (SymReLU(2, random_state=0), SymReLUClustering(2, random_state=0)):
        assert model.fit(table).node_names_.tolist() == order
    counted = table.drop(columns="weight")
    assert_array_equal(as_similarity(counted).matrix.toarray(), expected > 0)
    assert_array_equal(as_similarity(table, weight=None).matrix.toarray(), expected > 0)


def test_three_edges_are_no_square_matrix():
    table = table_of([("a", "b", 2.0), ("b", "c", 3.0), ("a", "c", 1.0)])
    assert as_similarity(table).labels.tolist() == ["a", "b", "c"]
    square = frame_with(["source", "target"], ["source", "target"])
    assert as_similarity(square).labels.tolist() == ["source", "target"]


def test_tables_that_may_be_edges_are_refused_with_the_line_to_write():
    table = table_of(EDGES).assign(year=2000)
    message = r"also has \['year'\]. Pass symrelu.graphs.from_edges\(frame\)"
    for call in (decompose, metrics.parameters_per_pair, SymReLU(2).fit, SymReLUClustering(2).fit):
        with pytest.raises(ValueError, match=message):
            call(table, 2) if call in (decompose, metrics.parameters_per_pair) else call(table)
    other_names = pd.DataFrame(EDGES, columns=["from", "to", "weight"])
    with pytest.raises(ValueError, match=r"from_edges\(frame\)"):
        decompose(other_names, 2)
    with pytest.raises(ValueError, match=r"for a list of edges, pass symrelu.graphs.from_edges\(M\).matrix"):
        decompose([(0, 1), (1, 2), (0, 2)], 2)


class Slow:
    """An object that NumPy would ask for its items one by one."""

    def __len__(self):
        return 10**9

    def __getitem__(self, k):
        raise AssertionError("asked for an item")


def test_foreign_objects_are_not_taken_apart():
    for call in (lambda M: decompose(M, 2), select_rank, lambda M: metrics.relative_error(M, [[1.0]])):
        with pytest.raises(TypeError, match=r"M must be an array, .*as_similarity reads, got Slow"):
            call(Slow())
    for model in (SymReLU(2), SymReLU(2, affinity="self_tuning")):
        with pytest.raises(TypeError, match=r"X must be an array, .*as_similarity reads, got Slow"):
            model.fit(Slow())
    adata = anndata_graph()
    solution = decompose(adata, 2, random_state=0, max_iter=5)
    with pytest.raises(TypeError, match=r"got an AnnData. Pass symrelu.graphs.from_anndata\(adata\).matrix"):
        solution.transform(adata)
    with pytest.raises(TypeError, match="got an AnnData"):
        SymReLU(2, affinity="self_tuning").fit(adata)


# Masks with names of their own (issue 11.16)

HIDDEN = np.zeros(A.shape, bool)
HIDDEN[0, 1:4] = HIDDEN[1:4, 0] = HIDDEN[5, 5] = True
SHUFFLED = sorted(NAMES)


def mask_frame(rows=NAMES, columns=NAMES, dtype=bool):
    return pd.DataFrame(HIDDEN, NAMES, NAMES).loc[rows, columns].astype(dtype)


@pytest.mark.parametrize("dtype", [bool, "boolean"])
@pytest.mark.parametrize("columns", [NAMES, SHUFFLED])
@pytest.mark.parametrize("rows", [NAMES, SHUFFLED])
def test_a_mask_is_brought_into_the_order_of_the_matrix(rows, columns, dtype):
    mask = mask_frame(rows, columns, dtype)
    expected = decompose(A, 2, mask=HIDDEN, random_state=0, max_iter=30)
    frame = labelled_frame()
    assert_array_equal(decompose(frame, 2, mask=mask, random_state=0, max_iter=30).U, expected.U)
    fitted = SymReLU(2, max_iter=2000, random_state=0).fit(frame, mask=mask)
    plain = SymReLU(2, max_iter=2000, random_state=0).fit(A, mask=HIDDEN)
    assert_array_equal(fitted.embedding_, plain.embedding_)
    error = metrics.held_out_error(frame, expected.U, mask=mask)
    assert error == metrics.held_out_error(A, expected.U, mask=HIDDEN)
    with_unknown = frame.mask(mask_frame(), np.nan)  # NaN there, as missing numbers of a table are
    assert_array_equal(decompose(with_unknown, 2, mask=mask, random_state=0, max_iter=30).U, expected.U)


def test_masks_that_do_not_fit_are_refused():
    frame = labelled_frame()
    renamed = mask_frame().rename(index={"a": "x"}, columns={"a": "x"})
    with pytest.raises(ValueError, match=r"mask must have the names of the matrix, each once; .* in 'a'"):
        decompose(frame, 2, mask=renamed)
    with pytest.raises(ValueError, match="mask must have the names of the matrix"):
        decompose(frame, 2, mask=mask_frame().iloc[:5, :5])
    with pytest.raises(ValueError, match="rows and columns in different orders, and the matrix has no names"):
        decompose(A, 2, mask=mask_frame(columns=SHUFFLED))
    with pytest.raises(TypeError, match="mask must be boolean"):
        decompose(frame, 2, mask=mask_frame(dtype=float))
    unnamed = mask_frame().set_axis(range(7)).set_axis(range(7), axis=1)
    for matrix, mask in ((frame, unnamed.reset_index(drop=True).T.reset_index(drop=True)), (A, mask_frame())):
        fitted = decompose(matrix, 2, mask=mask, random_state=0, max_iter=5)
        assert_array_equal(fitted.U, decompose(A, 2, mask=HIDDEN, random_state=0, max_iter=5).U)


def test_a_tensor_is_a_mask_too():
    torch = pytest.importorskip("torch")
    expected = decompose(A, 2, mask=HIDDEN, random_state=0, max_iter=5).U
    for mask in (torch.tensor(HIDDEN), torch.tensor(HIDDEN).to_sparse()):
        assert_array_equal(decompose(A, 2, mask=mask, random_state=0, max_iter=5).U, expected)


def test_a_mask_of_new_rows_is_brought_into_the_order_of_the_items():
    frame = labelled_frame()
    new, hidden = frame.iloc[:3], mask_frame().iloc[:3]
    for fitted in (frame, frame.set_axis(range(1, 8)).set_axis(range(1, 8), axis=1)):
        model = SymReLU(2, alpha=0.1, random_state=0).fit(fitted)
        rows = new.set_axis(fitted.columns, axis=1)
        mask = hidden.set_axis(fitted.columns, axis=1)
        expected = model.transform(rows, HIDDEN[:3])
        for given_mask in (mask, mask[mask.columns[::-1]]):
            assert_array_equal(model.transform(rows, given_mask), expected)
            assert model.score(rows, mask=given_mask) == model.score(rows, mask=HIDDEN[:3])
        with pytest.raises(ValueError, match="mask must have the rows of X in the same order"):
            model.transform(rows, mask.iloc[::-1])
        with pytest.raises(ValueError, match="mask must have a column for each of the 7 fitted items, got 6"):
            model.transform(rows, mask.iloc[:, :6])


def test_a_mask_that_counts_its_items_in_another_order_is_aligned():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((20, 3))
    M = np.maximum(0, factor @ factor.T)
    mask = np.triu(rng.random((20, 20)) < 0.2, 1)
    mask, order = pd.DataFrame(mask | mask.T), rng.permutation(20)
    for matrix in (M, pd.DataFrame(M)):
        expected = decompose(matrix, 2, mask=mask, random_state=0, max_iter=20).U
        assert_array_equal(
            decompose(matrix, 2, mask=mask.iloc[order, order], random_state=0, max_iter=20).U, expected
        )


def test_a_mask_with_missing_values_is_refused():
    mask = pd.DataFrame(np.zeros((3, 3), bool)).astype("boolean")
    mask.iloc[0, 1] = pd.NA
    with pytest.raises(ValueError, match=r"mask must be True or False everywhere, .*mask.fillna\(True\)"):
        decompose(np.ones((3, 3)), 1, mask=mask)
