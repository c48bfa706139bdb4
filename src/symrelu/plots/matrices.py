"""Images of matrices, by the means of square cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.fitted.solution import Solution
from symrelu.kernels.tiles import TILE


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

    top = max(float(matrix.max()) for matrix in matrices.values())
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


def binned_gram(solution: Solution, order: np.ndarray, bins: int) -> np.ndarray:
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
    cell = _cells(order, bins)
    right = solution.U * solution.signature
    total = np.zeros((bins, bins))
    gather = np.zeros((len(cell), bins))
    gather[np.arange(len(cell)), cell] = 1.0
    for start in range(0, len(cell), TILE):
        rows = slice(start, start + TILE)
        total += gather[rows].T @ (np.maximum(0, solution.U[rows] @ right.T) @ gather)
    sizes = np.bincount(cell, minlength=bins)
    return total / np.outer(sizes, sizes)


def _cells(order: np.ndarray, bins: int) -> np.ndarray:
    """Return the cell of each row; cells are consecutive parts of ``order`` of equal size."""
    cell = np.empty(len(order), dtype=np.int64)
    cell[order] = np.arange(len(order)) * bins // len(order)
    return cell
