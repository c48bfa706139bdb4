"""From data to a similarity matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn import config_context, get_config
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array, gen_batches

from symrelu.validation import check_integer

# sigma_i is the distance to this neighbour (Zelnik-Manor and Perona's local scaling).
_SCALE_NEIGHBOUR = 7
_ENTRIES_AT_ONCE = 2**23
_SEARCH_MEMORY = 256  # MiB; scikit-learn's default of 1024 would be most of what a graph of text needs


def self_tuning_graph(X: Any, n_neighbors: int | None = None) -> Any:
    r"""Build the normalised self-tuning nearest-neighbour graph of a data set.

    Nodes i and j are joined if either is among the ``n_neighbors`` nearest of the other, with weight
    :math:`A_{ij} = \exp(-d_{ij}^2 / (\sigma_i \sigma_j))`, where :math:`\sigma_i` is the distance of i to its
    7th neighbour. The result is :math:`D^{-1/2} A D^{-1/2}` with D the row sums of A. Its diagonal is zero.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Raw samples; at least two.
    n_neighbors : int, optional
        By default floor(log2(n_samples)) + 1.

    Returns
    -------
    M : csr_array of shape (n_samples, n_samples)

    Notes
    -----
    Duplicated samples have distance zero to each other. Where the 7th neighbour is a duplicate too, sigma
    is the distance to the nearest neighbour that is not one, or the median of the other sigmas. A sample
    so far from all others that its weights vanish becomes an isolated node.

    References
    ----------
    D. Kuang, S. Yun, H. Park, "SymNMF: nonnegative low-rank approximation of a similarity matrix for graph
    clustering", J. Glob. Optim. 62, 2015, section 7.1.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.graphs import self_tuning_graph
    >>> self_tuning_graph(np.random.default_rng(0).standard_normal((50, 3))).shape
    (50, 50)
    """
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
    n = X.shape[0]
    X = _of_order_one(X)
    if n_neighbors is None:
        n_neighbors = int(np.floor(np.log2(n))) + 1
    n_neighbors = min(check_integer("n_neighbors", n_neighbors, 1), n - 1)
    neighbours, squares = _nearest(X, max(n_neighbors, min(_SCALE_NEIGHBOUR, n - 1)))
    sigma = _local_scales(np.sqrt(squares), min(_SCALE_NEIGHBOUR, n - 1))

    rows = np.repeat(np.arange(n), n_neighbors)
    cols = neighbours[:, :n_neighbors].ravel()
    weights = np.exp(-squares[:, :n_neighbors].ravel() / (sigma[rows] * sigma[cols]))
    one_sided = sparse.csr_array((weights, (rows, cols)), shape=(n, n))
    return _normalised(one_sided.maximum(one_sided.T))


def _of_order_one(X: Any) -> Any:
    """Return X in float64, scaled by a power of two: the graph is the same, and squares stay in range."""
    values = X.data if sparse.issparse(X) else X
    _, exponent = np.frexp(np.abs(values).max(initial=0))
    if not sparse.issparse(X):
        return np.ldexp(X.astype(np.float64), -exponent)
    scaled = X.astype(np.float64)
    scaled.data = np.ldexp(scaled.data, -exponent)
    return scaled


def _nearest(X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest other samples of each sample and their squared distances, both by distance.

    The search rounds, and where distances tie (integer data) its choice depends on the number of threads.
    So it proposes twice as many, and exact distances and then the lower index decide; where even the last
    proposal ties with the k-th neighbour, all samples are looked at.
    """
    n = X.shape[0]
    proposed = min(2 * k, n - 1)
    # Asking without X leaves each sample out of its own neighbours, duplicates of it stay in.
    # Brute force, because trees are of no use for images and text.
    search = NearestNeighbors(n_neighbors=proposed, algorithm="brute", metric="euclidean").fit(_centred(X))
    with config_context(working_memory=min(get_config()["working_memory"], _SEARCH_MEMORY)):
        neighbours = np.sort(search.kneighbors(return_distance=False), axis=1)
    rows = np.repeat(np.arange(n), proposed)
    squares = _square_distances(X, rows, neighbours.ravel()).reshape(n, proposed)
    order = np.argsort(squares, axis=1, kind="stable")
    neighbours = np.take_along_axis(neighbours, order, axis=1)
    squares = np.take_along_axis(squares, order, axis=1)
    nearest, distances = neighbours[:, :k].copy(), squares[:, :k].copy()
    tied = np.flatnonzero(squares[:, -1] <= squares[:, k - 1] * (1 + 1e-9))
    if proposed < n - 1 and tied.size:
        for batch in gen_batches(len(tied), max(1, _ENTRIES_AT_ONCE // n)):
            some = tied[batch]
            everyone = _all_square_distances(X, some)
            everyone[np.arange(len(some)), some] = np.inf
            nearest[some] = np.argsort(everyone, axis=1, kind="stable")[:, :k]
            distances[some] = np.take_along_axis(everyone, nearest[some], axis=1)
    return nearest, distances


def _centred(X: Any) -> Any:
    """Return X less its mean: the search expands ||x - y||^2, which cancels for data far from zero."""
    return X if sparse.issparse(X) else X - X.mean(axis=0)


def _all_square_distances(X: Any, rows: np.ndarray) -> np.ndarray:
    """Return the squared distances of some samples to all."""
    if not sparse.issparse(X):
        return cdist(X[rows], X, "sqeuclidean")
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    # Exact for counts; for other numbers what is left of equal samples is rounding.
    squares = norms[rows][:, None] + norms - 2 * (X[rows] @ X.T).toarray()
    return np.where(squares > 1e-13 * (norms[rows][:, None] + norms), squares, 0)


def _square_distances(X: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Return ||x_i - x_j||^2 from the differences: the expanded form cancels for near duplicates."""
    squares = np.empty(len(rows))
    for batch in gen_batches(len(rows), 4096):
        difference = X[rows[batch]] - X[cols[batch]]
        square = difference.multiply(difference) if sparse.issparse(difference) else difference**2
        squares[batch] = np.asarray(square.sum(axis=1)).ravel()
    return squares


def _local_scales(distances: np.ndarray, neighbour: int) -> np.ndarray:
    """Return sigma, positive also where samples are duplicated. Distances rise along a row."""
    sigma = distances[:, neighbour - 1].copy()
    zero = sigma == 0
    if not zero.any():
        return sigma
    usual = float(np.median(sigma[~zero])) if not zero.all() else 1.0
    beyond = np.where(distances > 0, distances, np.inf).min(axis=1)
    sigma[zero] = np.where(np.isfinite(beyond[zero]), beyond[zero], usual)
    return sigma


def _normalised(A: Any) -> Any:
    """Return D^-1/2 A D^-1/2, exactly symmetric, with isolated nodes left at zero."""
    degree = np.asarray(A.sum(axis=1)).ravel()
    inverse_root = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=inverse_root, where=degree > 0)
    M = A.tocoo()
    rows, cols = M.coords
    M.data = M.data * (inverse_root[rows] * inverse_root[cols])
    M = sparse.csr_array(M)
    M.eliminate_zeros()
    return M


def from_networkx(graph: Any, weight: str | None = "weight") -> Any:
    """Return the weighted adjacency matrix of an undirected networkx graph.

    Parameters
    ----------
    graph : networkx.Graph
    weight : str or None, default="weight"
        Edge attribute with the weights; edges without it, or all edges for None, count 1.

    Returns
    -------
    M : csr_array of shape (n_nodes, n_nodes)
        In the order of ``graph.nodes``.
    """
    try:
        import networkx
    except ImportError as error:
        raise ImportError("from_networkx needs networkx: pip install symrelu[graph].") from error
    if not isinstance(graph, networkx.Graph):
        raise TypeError(f"graph must be a networkx graph, got {type(graph).__name__}.")
    if graph.is_directed():
        raise ValueError("graph must be undirected, got a directed one. Pass graph.to_undirected().")
    return sparse.csr_array(networkx.to_scipy_sparse_array(graph, weight=weight, dtype=np.float64))
