"""Graphs with known classes: drawn from models, real networks, and graphs of nearest neighbours of images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from symrelu.datasets import load_digits_graph, load_graph
from symrelu.datasets.published import load_dataset
from symrelu.graphs import self_tuning_graph

IMAGES = ("digits", "ORL", "COIL20", "YaleB", "PIE")


class Graph(NamedTuple):
    """A graph, and how its nodes are to be divided.

    Attributes
    ----------
    M : csr_array
    n_clusters : int
    truth : ndarray of int, or None
        Classes of the nodes.
    samples : ndarray, or None
        Samples whose nearest neighbours are linked.
    """

    M: Any
    n_clusters: int
    truth: np.ndarray | None = None
    samples: Any | None = None


def block_model(
    sizes: Sequence[int], inside: float, between: float, seed: int, *, weighted: bool = False
) -> Graph:
    """Draw links with one probability inside blocks and another between them, weights from [0.5, 1.5]."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    n = len(truth)
    same = truth[:, None] == truth[None, :]
    half = np.triu(rng.random((n, n)) < np.where(same, inside, between), k=1).astype(np.float64)
    if weighted:
        half *= rng.uniform(0.5, 1.5, (n, n))
    return Graph(sparse.csr_array(half + half.T), len(sizes), truth)


def lfr(mixing: float, seed: int) -> Graph:
    """Draw an LFR graph: degrees and sizes follow power laws, a share ``mixing`` of the links leads outside."""
    graph = nx.LFR_benchmark_graph(
        1000, 3, 1.5, mixing, average_degree=15, max_degree=50, min_community=20, max_community=100, seed=seed
    )
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    communities = sorted({frozenset(graph.nodes[node]["community"]) for node in graph}, key=min)
    truth = np.empty(len(graph), dtype=int)
    for k, nodes in enumerate(communities):
        truth[list(nodes)] = k
    return Graph(_adjacency(graph, weight=None), len(communities), truth)


def hub_graph(n: int = 2000, exponent: float = 2.2, seed: int = 0) -> Any:
    """Draw from the configuration model with a power law of degrees, which alone predict a link."""
    rng = np.random.default_rng(seed)
    degrees = np.minimum((1 - rng.random(n)) ** (-1 / (exponent - 1)), n / 4).astype(int)
    ends = rng.permutation(np.repeat(np.arange(n), degrees))
    i, j = ends[: len(ends) // 2 * 2].reshape(2, -1)
    i, j = i[i != j], j[i != j]  # no self loops; repeated links count once
    half = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))
    return sparse.csr_array((half + half.T > 0).astype(np.float64))


def preferential_graph() -> Any:
    """Draw from the model of Barabási and Albert: 2000 nodes that come one by one, each with 4 links."""
    return _adjacency(nx.barabasi_albert_graph(2000, 4, seed=0), weight=None)


def polblogs() -> Graph:
    data = load_graph("polblogs")
    linked = np.diff(data.M.indptr) > 0
    return Graph(sparse.csr_array(data.M[linked][:, linked]), 2, data.target[linked])


def email() -> Graph:
    data = load_graph("email-Eu-core")
    return Graph(data.M, 42, data.target)


def les_miserables() -> Graph:
    return Graph(_adjacency(nx.les_miserables_graph(), weight="weight"), 6)


def karate() -> Graph:
    graph = nx.karate_club_graph()
    clubs = np.array([graph.nodes[node]["club"] == "Officer" for node in graph], dtype=int)
    return Graph(_adjacency(graph, weight=None), 2, clubs)


def _adjacency(graph: Any, weight: str | None) -> Any:
    return sparse.csr_array(nx.to_scipy_sparse_array(graph, weight=weight), dtype=np.float64)


FOUR, TEN = (200, 100, 50, 50), (100,) * 10
# Name -> graph from a seed. Where the graph is drawn, the seed draws it.
COMMUNITIES: dict[str, Callable[[int], Graph]] = {
    "blocks 200/100/50/50": functools.partial(block_model, FOUR, 0.15, 0.02),
    "ten blocks of 100": functools.partial(block_model, TEN, 0.10, 0.01),
    "blocks 200/100/50/50, weighted": functools.partial(block_model, FOUR, 0.15, 0.02, weighted=True),
    "ten blocks of 100, weighted": functools.partial(block_model, TEN, 0.10, 0.01, weighted=True),
    "polblogs": lambda seed: polblogs(),
    "email-Eu-core": lambda seed: email(),
    "LFR, mixing .3": functools.partial(lfr, 0.3),
    "LFR, mixing .5": functools.partial(lfr, 0.5),
    "Les Miserables": lambda seed: les_miserables(),
    "karate": lambda seed: karate(),
}


@functools.lru_cache(maxsize=2)
def community_graph(name: str, seed: int) -> Graph:
    return COMMUNITIES[name](seed)


@functools.cache
def samples(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the images of a set, one per row, and their classes."""
    if name == "digits":
        digits = load_digits()
        return digits.data, digits.target
    data = load_dataset(name)
    return data.data.toarray() if sparse.issparse(data.data) else data.data, data.target


def self_tuning(name: str) -> Any:
    return load_digits_graph()[0] if name == "digits" else self_tuning_graph(samples(name)[0])


def without_weights(name: str) -> Any:
    """Link each image to its 10 nearest ones."""
    nearest = kneighbors_graph(samples(name)[0], 10)
    return sparse.csr_array((nearest + nearest.T > 0).astype(np.float64))


def connectivities(name: str) -> Any:
    """Return UMAP's graph with 15 neighbours, which scanpy stores as the connectivities of an AnnData."""
    from umap.umap_ import fuzzy_simplicial_set

    graph, _, _ = fuzzy_simplicial_set(samples(name)[0], 15, np.random.RandomState(0), "euclidean")
    return sparse.csr_array(graph, dtype=np.float64)


# How the graph of a set is made -> the end of its name.
NEIGHBOUR_GRAPHS = {
    self_tuning: "",
    without_weights: ", no weights",
    connectivities: ", connectivities",
}
IMAGE_GRAPHS = {image + end: (make, image) for make, end in NEIGHBOUR_GRAPHS.items() for image in IMAGES}


@functools.cache
def image_graph(name: str) -> Graph:
    make, image = IMAGE_GRAPHS[name]
    points, truth = samples(image)
    return Graph(make(image), len(np.unique(truth)), truth, points)
