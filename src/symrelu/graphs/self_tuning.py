"""Build the self-tuning nearest-neighbour graph of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files import check_names
from symrelu.files.entries import read_floats, read_integer, read_sparse, sparse_entries
from symrelu.kernels.threads import slices
from symrelu.validation import check_integer, check_well_formed

_PER_SAMPLE = ("scales", "reaches", "degrees")
_SPARSE = ("data", "indices", "indptr")

# sigma_i is the distance to this neighbour (Zelnik-Manor and Perona's local scaling).
_SCALE_NEIGHBOUR = 7
_ENTRIES_AT_ONCE = 2**23  # of a block of distances: 64 MiB
# If ||x||^2 + ||y||^2 - 2 x.y is below this fraction of the sum, cancellation has lost many of its digits.
_CANCELLATION = 1e-6
_SEARCH_MEMORY = 256  # MiB; scikit-learn's default of 1024 would dominate the memory of a graph of texts


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
        Defaults to floor(log2(n_samples)) + 1.

    Returns
    -------
    M : csr_array of shape (n_samples, n_samples)

    Notes
    -----
    Duplicated samples have distance zero to each other. If the 7th neighbour is a duplicate too, sigma is the
    distance to the nearest neighbour that is not a duplicate or, if all neighbours are, the median of the other
    sigmas. A sample so far from all others that its weights underflow becomes an isolated node.

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
    return SelfTuningGraph.of(X, n_neighbors).matrix


@dataclass(frozen=True, eq=False)
class SelfTuningGraph:
    """A self-tuning graph, with the data that are needed to join new samples to it.

    Attributes
    ----------
    matrix : csr_array of shape (n_samples, n_samples)
        The graph, as :func:`self_tuning_graph` returns it.
    samples : ndarray or csr_array of shape (n_samples, n_features)
        The samples divided by 2^exponent.
    exponent : int
    n_neighbors : int
    scales : ndarray of shape (n_samples,)
        Sigma of each sample.
    reaches : ndarray of shape (n_samples,)
        Squared distance of each sample to the last of its neighbours.
    degrees : ndarray of shape (n_samples,)
        Row sums of the graph before it was normalised.
    """

    matrix: Any
    samples: Any
    exponent: int
    n_neighbors: int
    scales: np.ndarray
    reaches: np.ndarray
    degrees: np.ndarray

    @classmethod
    def of(cls, X: Any, n_neighbors: int | None = None) -> SelfTuningGraph:
        """Build the graph of a data set. See :func:`self_tuning_graph`."""
        X = _check_samples(X, "X", ensure_min_samples=2)
        n = X.shape[0]
        # Squared distances of huge or tiny data would overflow or underflow. A power of two scales exactly.
        exponent = int(np.frexp(np.abs(X.data if sparse.issparse(X) else X).max(initial=0))[1])
        X = _scaled_down(X, exponent)
        if n_neighbors is None:
            n_neighbors = int(np.floor(np.log2(n))) + 1
        n_neighbors = min(check_integer("n_neighbors", n_neighbors, 1), n - 1)
        neighbours, squares = _nearest_neighbours(X, max(n_neighbors, min(_SCALE_NEIGHBOUR, n - 1)))
        sigma = _local_scales(np.sqrt(squares), min(_SCALE_NEIGHBOUR, n - 1))

        rows = np.repeat(np.arange(n), n_neighbors)
        cols = neighbours[:, :n_neighbors].ravel()
        weights = np.exp(-squares[:, :n_neighbors].ravel() / (sigma[rows] * sigma[cols]))
        one_sided = sparse.csr_array((weights, (rows, cols)), shape=(n, n))
        joined = one_sided.maximum(one_sided.T)
        degrees = np.asarray(joined.sum(axis=1)).ravel()
        reaches = squares[:, n_neighbors - 1]
        return cls(_normalised(joined), X, exponent, n_neighbors, sigma, reaches, degrees)

    def entries(self) -> dict[str, np.ndarray]:
        """Return the graph and its samples as entries of an archive, which :meth:`of_entries` reads."""
        entries = {f"matrix_{name}": array for name, array in sparse_entries(self.matrix).items()}
        if sparse.issparse(self.samples):
            entries |= {f"samples_{name}": array for name, array in sparse_entries(self.samples).items()}
        else:
            entries["samples"] = self.samples
        return (
            entries
            | {name: np.array(getattr(self, name)) for name in ("exponent", "n_neighbors")}
            | {name: getattr(self, name) for name in _PER_SAMPLE}
        )

    @classmethod
    def of_entries(cls, entries: dict[str, np.ndarray], n: int, n_features: int) -> SelfTuningGraph:
        """Return the graph of n samples in an archive, or raise an error that the caller completes."""
        samples = {"samples"} if "samples" in entries else {f"samples_{name}" for name in _SPARSE}
        check_names(
            "its graph",
            entries,
            {*(f"matrix_{name}" for name in _SPARSE), *samples, "exponent", "n_neighbors", *_PER_SAMPLE},
        )
        return cls(
            read_sparse(_part(entries, "matrix_"), (n, n), "its graph"),
            read_floats(entries, "samples", (n, n_features), "its graph")
            if "samples" in entries
            else read_sparse(_part(entries, "samples_"), (n, n_features), "its samples"),
            read_integer(entries, "exponent", -2000, 2000),  # those of floats are from -1073 to 1024
            read_integer(entries, "n_neighbors", 1, n - 1),
            *(read_floats(entries, name, (n,), "its graph") for name in _PER_SAMPLE),
        )

    def rows(self, X_new: Any) -> tuple[Any, np.ndarray]:
        """Return the similarities of new samples to those of the graph, and which of them the graph contains.

        A new sample is joined to its nearest samples, and to those that are nearer to it than to their own last
        neighbour. The graph itself does not change. A new sample that equals one of the graph gets its row; if
        there are several, ties go to the lower index.

        Parameters
        ----------
        X_new : array-like or sparse matrix of shape (n_new, n_features)

        Returns
        -------
        M_new : csr_array of shape (n_new, n_samples)
        same : ndarray of int of shape (n_new,)
            Index of the sample of the graph that equals the new one, -1 if there is none.
        """
        X_new = _check_samples(X_new, "X_new")
        X_new = _scaled_down(X_new, self.exponent)
        n = self.matrix.shape[0]
        batches = slices(X_new.shape[0], max(1, _ENTRIES_AT_ONCE // n))
        parts = [self._rows_from_distances(_squares_between(X_new[batch], self.samples)) for batch in batches]
        return sparse.csr_array(sparse.vstack([M for M, _ in parts])), np.concatenate(
            [same for _, same in parts]
        )

    def _rows_from_distances(self, squares: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the result of :meth:`rows` for samples with these squared distances to those of the graph."""
        n = squares.shape[1]
        order = np.argsort(squares, axis=1, kind="stable")
        scale_neighbour = min(_SCALE_NEIGHBOUR, n)
        nearest = np.take_along_axis(squares, order[:, : max(scale_neighbour, self.n_neighbors)], axis=1)
        sigma = _local_scales(np.sqrt(nearest), scale_neighbour)
        near = squares <= self.reaches
        np.put_along_axis(near, order[:, : self.n_neighbors], True, axis=1)
        same = np.where(nearest[:, 0] == 0, order[:, 0], -1)
        near[same >= 0] = False  # their rows are copied from the graph below
        rows, cols = np.nonzero(near)
        weights = np.exp(-squares[rows, cols] / (sigma[rows] * self.scales[cols]))
        degrees = np.bincount(rows, weights, minlength=len(squares))
        product = degrees[rows] * self.degrees[cols]
        values = np.divide(weights, np.sqrt(product), out=np.zeros_like(weights), where=product > 0)
        joined = sparse.csr_array((values, (rows, cols)), shape=squares.shape)
        known = np.flatnonzero(same >= 0)
        choice = sparse.csr_array((np.ones(len(known)), (known, same[known])), shape=squares.shape)
        joined = sparse.csr_array(joined + choice @ self.matrix)
        joined.eliminate_zeros()
        return joined, same


def _part(entries: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in entries.items() if name.startswith(prefix)}


def _check_samples(X: Any, name: str, **requirements: Any) -> Any:
    if sparse.issparse(X):
        check_well_formed(X, name)
    from sklearn.utils import check_array

    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], **requirements)


def _scaled_down(X: Any, exponent: int) -> Any:
    """Return X / 2^exponent in float64, which has the same graph and squares within range."""
    if not sparse.issparse(X):
        return np.ldexp(X.astype(np.float64), -exponent)
    scaled = X.astype(np.float64)
    scaled.data = np.ldexp(scaled.data, -exponent)
    return scaled


def _nearest_neighbours(X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest other samples of each sample and their squared distances, both sorted by distance.

    scikit-learn's search rounds, and if distances tie (integer data) its choice depends on the number of
    threads. It therefore only proposes candidates, twice as many, which are sorted by exact distances; ties go
    to the lower index. If even the last candidate ties with the k-th neighbour, all samples are compared.
    """
    # Not at the top: scikit-learn takes long to import, and fits of precomputed graphs do not need it.
    from sklearn import config_context, get_config
    from sklearn.neighbors import NearestNeighbors

    n = X.shape[0]
    proposed = min(2 * k, n - 1)
    # kneighbors without X leaves each sample out of its own neighbours, but keeps its duplicates.
    # Brute force, because trees do not help in the dimensions of images and texts.
    search = NearestNeighbors(n_neighbors=proposed, algorithm="brute", metric="euclidean").fit(_centred(X))
    with config_context(working_memory=min(get_config()["working_memory"], _SEARCH_MEMORY)):
        neighbours = np.sort(search.kneighbors(return_distance=False), axis=1)
    rows = np.repeat(np.arange(n), proposed)
    squares = _square_distances(X, rows, neighbours.ravel()).reshape(n, proposed)
    order = np.argsort(squares, axis=1, kind="stable")
    neighbours = np.take_along_axis(neighbours, order, axis=1)
    squares = np.take_along_axis(squares, order, axis=1)
    nearest, distances = neighbours[:, :k].copy(), squares[:, :k].copy()
    # 1e-9 allows for the rounding of the search, which may have left out a candidate that ties.
    tied = np.flatnonzero(squares[:, -1] <= squares[:, k - 1] * (1 + 1e-9))
    if proposed < n - 1 and tied.size:
        for batch in slices(len(tied), max(1, _ENTRIES_AT_ONCE // n)):
            some = tied[batch]
            everyone = _squares_between(X[some], X)
            everyone[np.arange(len(some)), some] = np.inf
            nearest[some] = np.argsort(everyone, axis=1, kind="stable")[:, :k]
            distances[some] = np.take_along_axis(everyone, nearest[some], axis=1)
    return nearest, distances


def _centred(X: Any) -> Any:
    """Return X minus its mean: the search expands ||x - y||^2, which cancels for data far from zero."""
    return X if sparse.issparse(X) else X - X.mean(axis=0)


def _squares_between(A: Any, B: Any) -> np.ndarray:
    """Return the squared distances between the samples of A and those of B, dense or sparse."""
    if not sparse.issparse(A) and not sparse.issparse(B):
        from scipy.spatial.distance import cdist

        return cdist(A, B, "sqeuclidean")
    A, B = sparse.csr_array(A), sparse.csr_array(B)
    norms_A, norms_B = (np.asarray(S.multiply(S).sum(axis=1)).ravel() for S in (A, B))
    sums = norms_A[:, None] + norms_B
    squares = sums - 2 * (A @ B.T).toarray()
    # For near samples the expanded form is mostly rounding error, so their differences are formed.
    rows, cols = np.nonzero(squares <= _CANCELLATION * sums)
    for batch in slices(len(rows), 4096):
        difference = A[rows[batch]] - B[cols[batch]]
        exact = difference.multiply(difference).sum(axis=1)
        squares[rows[batch], cols[batch]] = np.asarray(exact).ravel()
    return squares


def _square_distances(X: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Return ||x_i - x_j||^2 from the differences, because the expanded form cancels for near duplicates."""
    squares = np.empty(len(rows))
    for batch in slices(len(rows), 4096):
        difference = X[rows[batch]] - X[cols[batch]]
        square = difference.multiply(difference) if sparse.issparse(difference) else difference**2
        squares[batch] = np.asarray(square.sum(axis=1)).ravel()
    return squares


def _local_scales(distances: np.ndarray, neighbour: int) -> np.ndarray:
    """Return sigma, positive also for duplicated samples. Each row of distances is in ascending order."""
    sigma = distances[:, neighbour - 1].copy()
    zero = sigma == 0
    if not zero.any():
        return sigma
    usual = float(np.median(sigma[~zero])) if not zero.all() else 1.0
    beyond = np.where(distances > 0, distances, np.inf).min(axis=1)
    sigma[zero] = np.where(np.isfinite(beyond[zero]), beyond[zero], usual)
    return sigma


def _normalised(A: Any) -> Any:
    """Return D^-1/2 A D^-1/2, exactly symmetric, with zero rows for isolated nodes."""
    degree = np.asarray(A.sum(axis=1)).ravel()
    inverse_root = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=inverse_root, where=degree > 0)
    M = A.tocoo()
    rows, cols = M.coords
    # The product of the roots is symmetric in i and j bit for bit; scaling rows, then columns, is not.
    M.data = M.data * (inverse_root[rows] * inverse_root[cols])
    M = sparse.csr_array(M)
    M.eliminate_zeros()
    return M
