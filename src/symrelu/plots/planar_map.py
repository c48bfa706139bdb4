"""A map of the items in the plane, as numbers: items that are similar under the model are close."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.scores import largest_of_rows
from symrelu.kernels.threads import single_threaded_blas
from symrelu.plots.factors import factor_of
from symrelu.plots.tsne import tsne
from symrelu.validation import check_integer, random_generator

_STREAM = 5  # random stream of maps: independent of the fits with the same seed
_FEWEST = 4  # items that t-SNE can map; fewer are put on a circle
_NOISE = 1e-12  # cosines up to this are rounding errors
_START = 1e-4  # standard deviation of the first coordinate at the start, as in scikit-learn


def planar_map(
    model: Any, signature: Any | None = None, *, n_neighbors: int = 15, random_state: Any = 0
) -> np.ndarray:
    """Return positions of the items in the plane that keep their neighbourhoods.

    t-SNE of the graph of nearest neighbours under the model: each item is pulled towards the ``n_neighbors``
    items with the largest X of unit rows, in proportion to max(0, X). Rows are scaled to length one first, as
    otherwise a few items with long rows would be neighbours of all others. Distances between far groups, and
    the sizes of groups, mean little, as always with t-SNE. The same factor and seed give the same map.

    Items without a positive X, such as nodes without a link, have no neighbours. They form a block below the
    others.

    Parameters
    ----------
    model : Solution, fitted model or estimator, or array-like of shape (n, rank)
        Anything with a factor, or the factor U itself.
    signature : array-like of shape (rank,), optional
        Signs of the columns, if ``model`` is an array. All are positive by default.
    n_neighbors : int, default=15
        How many items an item is pulled towards.
    random_state : None, int, Generator or RandomState, default=0
        Seed of the tiny displacements that separate equal rows at the start.

    Returns
    -------
    positions : ndarray of float64 of shape (n, 2)

    Notes
    -----
    No n x n array is formed. The time grows with n^2 only for the search of the neighbours: 20,000 items of
    rank 16 took 5 seconds of processor time.

    Examples
    --------
    >>> from symrelu import SymReLU
    >>> from symrelu.datasets import make_relu_gram
    >>> from symrelu.plots import planar_map
    >>> M, _ = make_relu_gram(100, 3, random_state=0)
    >>> planar_map(SymReLU(3, random_state=0).fit(M)).shape
    (100, 2)
    """
    check_integer("n_neighbors", n_neighbors, 1)
    U, signs = factor_of(model, signature)
    rng = random_generator(random_state, _STREAM)
    graph = neighbor_graph(U, signs, n_neighbors)
    placed = np.diff(graph.indptr) > 0
    positions = np.empty((len(U), 2))
    if placed.any():
        start = _start(unit_rows(U[placed][:, signs > 0]), rng)
        positions[placed] = _map_of(graph[placed][:, placed], start)
    positions[~placed] = _block_below(positions[placed], int(np.sum(~placed)))
    return positions


def checked_positions(positions: Any, n: int | None = None) -> np.ndarray:
    """Return positions of items as an array, or raise if they are none.

    Parameters
    ----------
    positions : array-like of shape (n, 2)
        Places of the items, as :func:`planar_map` returns them.
    n : int, optional
        Number of the items, if it is known.

    Returns
    -------
    positions : ndarray of float64 of shape (n, 2)
    """
    places = np.asarray(positions, dtype=np.float64)
    finite = bool(np.isfinite(places).all())
    fits = places.ndim == 2 and places.shape[1] == 2 and len(places) > 0 and n in (None, len(places))
    if not (fits and finite):
        raise ValueError(
            f"positions must have shape ({'n' if n is None else n}, 2), one finite pair for each item, got "
            f"shape {places.shape}{'' if finite else ' with NaN or infinity'}. Pass the result of "
            "symrelu.plots.planar_map."
        )
    return places


def neighbor_graph(U: np.ndarray, signature: np.ndarray, k: int) -> Any:
    """Return the graph of the k nearest neighbours under X of unit rows, symmetric and with sum 1.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)
    k : int

    Returns
    -------
    graph : csr_array of shape (n, n)
        Each item distributes the same weight over its neighbours, in proportion to max(0, X).
    """
    n = len(U)
    rows = unit_rows(U)
    items, scores = largest_of_rows(rows, rows * signature, np.arange(n), min(k, max(n - 1, 1)))
    weights = np.where(scores > _NOISE, scores, 0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    row, column = np.nonzero(weights)
    half = sparse.csr_array((weights[row, column], (row, items[row, column])), shape=(n, n))
    graph = sparse.csr_array(half + half.T)
    graph.data /= graph.data.sum()
    return graph


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows scaled to length one; rows that are zero stay zero.

    Parameters
    ----------
    rows : ndarray of shape (n, rank)

    Returns
    -------
    rows : ndarray of shape (n, rank)
    """
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)  # divided out, as squares may underflow
    rows = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=rows, where=lengths > 0)


def _map_of(graph: Any, start: np.ndarray) -> np.ndarray:
    """Return the map of items that all have neighbours."""
    n = len(start)
    if n < _FEWEST:
        angles = 2 * np.pi * np.arange(n) / n
        return np.column_stack([np.cos(angles), np.sin(angles)])
    positions = tsne(graph, start)
    span = np.ptp(positions, axis=0).max()
    return positions / span if span < 1 else positions  # items that are all alike stay where they started


def along_leading_directions(rows: np.ndarray, count: int) -> np.ndarray:
    """Return the coordinates of rows along their leading principal directions, the same for all threads.

    Parameters
    ----------
    rows : ndarray of shape (n, rank)
    count : int
        Number of the directions.

    Returns
    -------
    along : ndarray of shape (n, min(count, rank))
        Centred, with the longer tail on the positive side, as eigenvectors have any sign.
    """
    centred = rows - rows.mean(axis=0)
    with single_threaded_blas():  # the last digits would depend on the number of threads
        _, vectors = np.linalg.eigh(centred.T @ centred)
        along = centred @ vectors[:, : -count - 1 : -1]
    along *= np.where(np.sum(along**3, axis=0) < 0, -1, 1)
    return np.asarray(along)


def _start(rows: np.ndarray, rng: Any) -> np.ndarray:
    """Return a start for t-SNE: the two leading principal directions, with equal rows slightly apart."""
    along = along_leading_directions(rows, 2)
    start = np.zeros((len(rows), 2))
    start[:, : along.shape[1]] = along
    spread = start[:, 0].std()
    noise = rng.standard_normal(start.shape)
    return _START * (start / spread + 1e-3 * noise if spread > 0 else noise)


def _block_below(others: np.ndarray, count: int) -> np.ndarray:
    """Return a block of points below the other points, or a square block if there are none."""
    if not len(others):
        others = np.array([[0.0, 0.0], [np.sqrt(count) - 1, 0.0]])
        step = 1.0
    else:
        step = max(float(np.ptp(others, axis=0).max()) / 50, 1e-9)
    (left, bottom), right = others.min(axis=0), others[:, 0].max()
    row, column = np.divmod(np.arange(count), int((right - left) / step) + 1)
    return np.column_stack([left + column * step, bottom - (row + 3) * step])
