"""One graph as the objects of many libraries."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from symrelu.datasets import GraphDataset
from symrelu.graphs import from_edges

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
    "loaded graph": (lambda: GraphDataset(sparse.csr_array(A), None, "small"), False, True),
    "array": (lambda: A, False, False),
    "scipy": (lambda: sparse.csr_array(A), False, True),
}


def weighted(weight):
    graph = networkx.path_graph(["a", "b", "c"])
    graph["b"]["c"]["weight"] = weight
    return graph


def frame_with(index, columns):
    return pd.DataFrame(np.eye(2), index=index, columns=columns)


def table_of(edges):
    return pd.DataFrame(edges, columns=["source", "target", "weight"])
