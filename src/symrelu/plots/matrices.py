"""Matrices as pictures: the means of square cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.fitted.solution import Solution
from symrelu.kernels.tiles import TILE


def plot_matrices(matrices: dict[str, np.ndarray], axes: Any) -> Any:
    """Draw binned matrices side by side, dark = large, on one logarithmic colour scale.

    Parameters
    ----------
    matrices : dict of str to ndarray
        Title -> nonnegative square array, as :func:`binned` makes it.
    axes : sequence of matplotlib Axes
        As many as matrices.

    Returns
    -------
    image : matplotlib AxesImage
        The last one, for a colour bar.
    """
    from matplotlib.colors import LogNorm

    top = max(float(matrix.max()) for matrix in matrices.values())
    norm = LogNorm(vmin=top * 1e-3, vmax=top, clip=False)
    image = None
    for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
        shown = np.ma.masked_less_equal(matrix, 0)
        image = ax.imshow(shown, norm=norm, cmap="magma_r", interpolation="nearest")
        ax.set_title(title)
        ax.set_xticks([])
        ax.set_yticks([])
    return image


def binned(M: Any, order: np.ndarray, bins: int) -> np.ndarray:
    """Return the means of M over bins x bins cells, its rows and columns taken in ``order``."""
    cell = _cells(order, bins)
    gather = sparse.csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(bins, len(cell)))
    total = gather @ M @ gather.T
    sizes = np.bincount(cell, minlength=bins)
    return np.asarray(total.toarray() if sparse.issparse(total) else total) / np.outer(sizes, sizes)


def binned_gram(solution: Solution, order: np.ndarray, bins: int) -> np.ndarray:
    """Return the same for max(0, X), row block by row block."""
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
    """Return the cell of each row, equal counts of consecutive rows of ``order`` in each."""
    cell = np.empty(len(order), dtype=np.int64)
    cell[order] = np.arange(len(order)) * bins // len(order)
    return cell
