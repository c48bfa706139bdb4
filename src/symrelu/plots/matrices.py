"""Images of matrices, by the means of square cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs import as_similarity
from symrelu.kernels.tiles import TILE
from symrelu.plots.factors import factor_of
from symrelu.plots.figures import shown_figure
from symrelu.plots.planar_map import along_leading_directions, unit_rows
from symrelu.validation import check_integer

BINS = 150
_MOST_BOUNDARIES = 60  # more lines would cover the matrix


def plot_fit(
    M: Any,
    model: Any,
    axes: Any | None = None,
    *,
    labels: Any | None = None,
    bins: int = BINS,
) -> Any:
    """Draw M next to max(0, X) on one logarithmic colour scale, with the items ordered by cluster.

    Both are shown by the means of cells, so that no n x n array is formed. A model of a matrix that was divided
    by the degrees is multiplied by them again.

    Parameters
    ----------
    M : sparse or dense matrix of shape (n, n), or a graph
        The similarities that were fitted, as for ``fit``.
    model : Solution, fitted model or estimator, or array-like of shape (n, rank)
        Anything with a factor, or the factor U itself.
    axes : sequence of two matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.
    labels : array-like of shape (n,), optional
        Clusters of the items, whose boundaries are drawn. By default ``model.labels_``. Without any, items are
        ordered by the leading direction of the rows of U.
    bins : int, default=150
        Cells along each side, or the number of items if that is smaller.

    Returns
    -------
    axes : ndarray of two matplotlib Axes
    """
    matrix = as_similarity(M).matrix
    U, signature = factor_of(model)
    n = len(U)
    if matrix.shape != (n, n):
        raise ValueError(f"M must have shape {(n, n)}, like the factor, got {matrix.shape}.")
    roots = getattr(model, "root_degrees_", None)
    U = U if roots is None else U * roots[:, None]
    labels = getattr(model, "labels_", None) if labels is None else np.asarray(labels)
    order, edges = _order(U[:, signature > 0], labels)
    axes = shown_figure(figsize=(9, 4.4)).subplots(1, 2) if axes is None else np.asarray(axes, dtype=object)
    bins = min(check_integer("bins", bins, 1), n)
    shown = {"M": binned(matrix, order, bins), "max(0, X)": binned_factor(U, signature, order, bins)}
    image = plot_matrices(shown, axes)
    axes[0].figure.colorbar(image, ax=list(axes), shrink=0.85, label="mean of a cell")
    for ax in axes if len(edges) <= _MOST_BOUNDARIES else ():
        for line in edges * bins / n - 0.5:
            ax.axhline(line, color="0.5", linewidth=0.5)
            ax.axvline(line, color="0.5", linewidth=0.5)
    return axes


def _order(rows: np.ndarray, labels: Any | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the order in which items are drawn, and where clusters end in it."""
    leading = along_leading_directions(unit_rows(rows), 1)[:, 0]
    if labels is None:
        return np.argsort(leading, kind="stable"), np.empty(0)
    if labels.shape != leading.shape:
        raise ValueError(f"labels must have one entry for each of the {len(rows)} items, got {labels.shape}.")
    _, members, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return np.lexsort((leading, members)), np.cumsum(sizes)[:-1]


def plot_matrices(matrices: dict[str, np.ndarray], axes: Any) -> Any:
    """Draw binned matrices side by side on one logarithmic colour scale, dark for large values.

    Parameters
    ----------
    matrices : dict of str to ndarray
        Nonnegative square arrays by title, as :func:`binned` returns them.
    axes : sequence of matplotlib Axes
        One for each matrix.

    Returns
    -------
    image : matplotlib AxesImage
        The last image, for a colour bar.
    """
    from matplotlib.colors import LogNorm

    # Without a positive entry every cell is blank, and any scale will do.
    top = max(float(matrix.max()) for matrix in matrices.values()) or 1.0
    # Three decades: with smaller values in range, the differences between large ones would be invisible.
    norm = LogNorm(vmin=top * 1e-3, vmax=top, clip=False)
    image = None
    for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
        shown = np.ma.masked_less_equal(matrix, 0)  # zero has no logarithm; masked cells stay blank
        image = ax.imshow(shown, norm=norm, cmap="magma_r", interpolation="nearest")
        ax.set_title(title)
        ax.set_xticks([])
        ax.set_yticks([])
    return image


def binned(M: Any, order: np.ndarray, bins: int) -> np.ndarray:
    """Return the means of M over bins x bins cells, with its rows and columns permuted by ``order``.

    Parameters
    ----------
    M : sparse matrix or ndarray of shape (n, n)
    order : ndarray of int of shape (n,)
        The items in the order in which they are drawn.
    bins : int
        Cells along each side.

    Returns
    -------
    means : ndarray of shape (bins, bins)
    """
    cell = _cells(order, bins)
    gather = sparse.csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(bins, len(cell)))
    total = gather @ M @ gather.T
    sizes = np.bincount(cell, minlength=bins)
    return np.asarray(total.toarray() if sparse.issparse(total) else total) / np.outer(sizes, sizes)


def binned_gram(solution: Any, order: np.ndarray, bins: int) -> np.ndarray:
    """Return the means of max(0, X) over bins x bins cells, without forming X.

    Parameters
    ----------
    solution : Solution
    order, bins
        As in :func:`binned`.

    Returns
    -------
    means : ndarray of shape (bins, bins)
    """
    return binned_factor(solution.U, solution.signature, order, bins)


def binned_factor(U: np.ndarray, signature: np.ndarray, order: np.ndarray, bins: int) -> np.ndarray:
    """Return the means of max(0, (U * signature) U^T) over bins x bins cells.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)
    order, bins
        As in :func:`binned`.

    Returns
    -------
    means : ndarray of shape (bins, bins)
    """
    cell = _cells(order, bins)
    right = U * signature
    total = np.zeros((bins, bins))
    gather = np.zeros((len(cell), bins))
    gather[np.arange(len(cell)), cell] = 1.0
    for start in range(0, len(cell), TILE):
        rows = slice(start, start + TILE)
        total += gather[rows].T @ (np.maximum(0, U[rows] @ right.T) @ gather)
    sizes = np.bincount(cell, minlength=bins)
    return total / np.outer(sizes, sizes)


def _cells(order: np.ndarray, bins: int) -> np.ndarray:
    """Return the cell of each row; cells are consecutive parts of ``order`` of equal size."""
    cell = np.empty(len(order), dtype=np.int64)
    cell[order] = np.arange(len(order)) * bins // len(order)
    return cell
