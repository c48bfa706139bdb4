"""Clusters of networks and of images, with the number of clusters given, and without."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import normalized_mutual_info_score

from symrelu import SymReLUClustering
from symrelu.baselines import SymHALS, symmetric_nmf
from symrelu.fit.cluster_methods import METHODS
from symrelu.fitted.linkage_tree import average_linkage, average_linkage_of_factor
from symrelu.metrics import clustering_accuracy, modularity
from symrelu.problem import Problem
from tasks import earlier
from tasks.base import Table, Task, Value
from tasks.controls import eigenpairs, linear_fit
from tasks.data import COMMUNITIES, IMAGES, NEIGHBOUR_GRAPHS, Graph, community_graph, image_graph


def spectral(graph: Graph, seed: int, assign: str) -> np.ndarray:
    model = SpectralClustering(
        graph.n_clusters, affinity="precomputed", assign_labels=assign, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about graphs with several components
        return model.fit_predict(sparse.csr_matrix(graph.M))


def louvain(graph: Graph, seed: int) -> np.ndarray:
    """Louvain chooses the number of clusters itself."""
    communities = nx.community.louvain_communities(nx.from_scipy_sparse_array(graph.M), seed=seed)
    labels = np.empty(graph.M.shape[0], dtype=int)
    for k, nodes in enumerate(communities):
        labels[list(nodes)] = k
    return labels


def symhals(graph: Graph, seed: int) -> np.ndarray:
    fitted = symmetric_nmf(graph.M, graph.n_clusters, SymHALS(), max_iter=500, random_state=seed)
    return np.argmax(fitted.U, axis=1)


def umap_kmeans(graph: Graph, seed: int) -> np.ndarray:
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed disables threads
        points = UMAP(n_components=10, min_dist=0.0, random_state=seed).fit_transform(graph.samples)
    return KMeans(graph.n_clusters, n_init=10, random_state=seed).fit_predict(points)


def symrelu_clusters(graph: Graph, seed: int, **changed: Any) -> np.ndarray:
    settings = {"n_clusters": graph.n_clusters, "random_state": seed} | changed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one cluster of nearly all nodes: the scores show it
        return SymReLUClustering(**settings).fit_predict(graph.M)


def earlier_clusters(graph: Graph, seed: int) -> np.ndarray:
    return earlier.run_earlier("clusters", graph.M, n_clusters=graph.n_clusters, seed=seed)


def linkage_on_data(graph: Graph, seed: int) -> np.ndarray:
    return average_linkage(graph.M).cut(graph.n_clusters)


def linkage_on_eigen(graph: Graph, seed: int) -> np.ndarray:
    values, vectors = eigenpairs(graph.M)
    leading = np.argsort(-np.abs(values))[: graph.n_clusters]
    U = vectors[:, leading] * np.sqrt(np.abs(values[leading]))
    return average_linkage_of_factor(U, np.where(values[leading] < 0, -1.0, 1.0)).cut(graph.n_clusters)


def linkage_on_linear(graph: Graph, seed: int) -> np.ndarray:
    """Start from the exact eigenpairs, because some fits from the usual noisy start do not converge in time."""
    method, k = METHODS["linkage"], graph.n_clusters
    values, vectors = eigenpairs(graph.M)
    chosen = [*np.argsort(-values)[: k - 1], np.argmin(values)]  # one column is negative
    U, signature = linear_fit(
        graph.M,
        k,
        n_negative=1,
        alpha=Problem.of(graph.M, diagonal="ignore").alpha_of(method.shrinkage),
        zero_weight=method.zero_weight,
        init=vectors[:, chosen] * np.sqrt(np.abs(values[chosen])),
        max_iter=method.max_iter,
        seed=seed,
    )
    return average_linkage_of_factor(U, signature).cut(k)


OURS: dict[str, Callable[..., np.ndarray]] = {
    "SymReLUClustering": symrelu_clusters,
    "SymReLUClustering, linkage": functools.partial(symrelu_clusters, method="linkage"),
    "SymReLUClustering, directions": functools.partial(symrelu_clusters, method="directions"),
}
EARLIER = "SymReLUClustering 0.1.0"
NUMBER_FOUND = "SymReLUClustering, n_clusters=None"
SPECTRAL: dict[str, Callable[..., np.ndarray]] = {
    "SpectralClustering, k-means": functools.partial(spectral, assign="kmeans"),
    "SpectralClustering, cluster_qr": functools.partial(spectral, assign="cluster_qr"),
}
COMMUNITY_METHODS: dict[str, Callable[..., np.ndarray]] = {
    **SPECTRAL,
    "Louvain": louvain,
    **OURS,
    EARLIER: earlier_clusters,
    NUMBER_FOUND: functools.partial(symrelu_clusters, n_clusters=None),
}
# The search for the number takes up to a minute, so it runs on these graphs only.
WITHOUT_NUMBER = ("blocks 200/100/50/50", "ten blocks of 100", "polblogs", "email-Eu-core", "karate")
IMAGE_METHODS: dict[str, Callable[..., np.ndarray]] = {
    **SPECTRAL,
    "UMAP, k-means": umap_kmeans,
    "SymHALS, largest column": symhals,
    **OURS,
    EARLIER: earlier_clusters,
    "control: linkage on M": linkage_on_data,
    "control: linkage on the eigendecomposition": linkage_on_eigen,
    "control: without the ReLU": linkage_on_linear,
    "control: n_negative=0": functools.partial(symrelu_clusters, method="linkage", n_negative=0),
}
UNSEEDED = {
    "control: linkage on M",
    "control: linkage on the eigendecomposition",
    "control: without the ReLU",
}


def scores(graph: Graph, labels: np.ndarray) -> Iterator[Value]:
    """Yield what is measured of clusters."""
    yield Value("modularity", modularity(graph.M, labels))
    yield Value("clusters", len(np.unique(labels)))
    if graph.truth is not None:
        yield Value("NMI", normalized_mutual_info_score(graph.truth, labels))
        yield Value("accuracy", clustering_accuracy(graph.truth, labels))


def perform_communities(name: str, method: str, seed: int) -> Iterator[Value]:
    graph = community_graph(name, seed)
    return scores(graph, COMMUNITY_METHODS[method](graph, seed))


def perform_images(name: str, method: str, seed: int) -> Iterator[Value]:
    graph = image_graph(name)
    return scores(graph, IMAGE_METHODS[method](graph, seed))


def applies_to_communities(method: str, name: str, seed: int) -> bool:
    if method == EARLIER:
        return earlier.is_available()
    return method != NUMBER_FOUND or name in WITHOUT_NUMBER


def applies_to_images(method: str, name: str, seed: int) -> bool:
    if (method.startswith("UMAP") or name.endswith("connectivities")) and find_spec("umap") is None:
        return False
    if method in OURS or method in SPECTRAL:
        return True
    # The others are compared on the self-tuning graphs alone.
    if name not in IMAGES or (method == EARLIER and not earlier.is_available()):
        return False
    return seed == 0 or method not in UNSEEDED


communities = Task(
    "communities",
    tuple(COMMUNITIES),
    tuple(COMMUNITY_METHODS),
    perform_communities,
    applies_to_communities,
    (
        Table(
            "communities",
            "Communities: NMI with the planted or known classes (Les Miserables has none: modularity)",
            {name: "modularity" if name == "Les Miserables" else "NMI" for name in COMMUNITIES},
        ),
        Table(
            "number_of_clusters",
            "Communities: number of clusters that was found, for seeds 0, 1, ...",
            dict.fromkeys(WITHOUT_NUMBER, "clusters"),
            ("Louvain", NUMBER_FOUND),
        ),
    ),
    hindsight="modularity",
)
images = Task(
    "images",
    tuple(image + end for end in NEIGHBOUR_GRAPHS.values() for image in IMAGES),
    tuple(IMAGE_METHODS),
    perform_images,
    applies_to_images,
    (
        Table("images", "Images, self-tuning graphs: NMI with the classes", dict.fromkeys(IMAGES, "NMI")),
        *(
            Table(
                f"images{end}".replace(", ", "_").replace(" ", "_"),
                f"Images{end}: NMI with the classes",
                {image + end: "NMI" for image in IMAGES},
            )
            for end in NEIGHBOUR_GRAPHS.values()
            if end
        ),
    ),
    hindsight="NMI",
    controls=(
        ("the ReLU", "SymReLUClustering, linkage", "control: without the ReLU"),
        ("the negative column", "SymReLUClustering, linkage", "control: n_negative=0"),
        (
            "a fit instead of eigenvectors",
            "SymReLUClustering, linkage",
            "control: linkage on the eigendecomposition",
        ),
        ("the model instead of M itself", "SymReLUClustering, linkage", "control: linkage on M"),
        ("linkage instead of k-means, on M", "control: linkage on M", "SpectralClustering, k-means"),
    ),
)
