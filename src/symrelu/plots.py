"""Pictures of a fit. matplotlib is imported when one is drawn."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files import write_aside
from symrelu.kernels.tiles import TILE
from symrelu.solution import History, Solution


def plot_convergence(histories: dict[str, History], ax: Any | None = None) -> Any:
    """Draw relative_error against evaluations, one line for each history.

    Parameters
    ----------
    histories : dict of str to History
        Label of the line -> history.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = _new_axes() if ax is None else ax
    styles = ("-", "--", "-.", ":")
    for k, (label, history) in enumerate(histories.items()):
        style = styles[k % len(styles)]
        ax.plot(history.evaluations, history.relative_error, style, label=label, linewidth=1.8)
    ax.set_yscale("log")
    plain_ticks(ax.yaxis)
    ax.set_xlabel("evaluations")
    ax.set_ylabel("relative error")
    ax.grid(True, which="both", alpha=0.25)
    if len(histories) > 1:
        ax.legend(frameon=False)
    return ax


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


def plain_ticks(axis: Any) -> None:
    """Write 0.5, not 5 x 10^-1; within two decades also between the powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    low, high = axis.get_view_interval()
    axis.set_major_formatter(plain)
    axis.set_minor_locator(LogLocator(subs=(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)))
    axis.set_minor_formatter(plain if high < 100 * low else NullFormatter())


def _new_axes() -> Any:
    figure = new_figure(figsize=(6, 4))
    return figure.add_subplot()


def save_figure(figure: Any, path: str | PathLike[str], dpi: int = 120) -> None:
    """Write a figure aside and put it in place: SVG for a name that ends in .svg, else PNG.

    The same figure gives the same bytes: no date, no random names inside.
    """
    from matplotlib import rc_context

    svg = str(path).endswith(".svg")
    metadata = {"Date": None} if svg else {"Software": None}
    with rc_context({"svg.hashsalt": "symrelu"}), write_aside(path) as file:
        figure.savefig(file, format="svg" if svg else "png", dpi=dpi, metadata=metadata)


def shown_axes(**settings: Any) -> Any:
    """Return axes in a new figure of pyplot, which notebooks and ``pyplot.show`` show by themselves."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install symrelu[plot].") from error
    return pyplot.figure(layout="constrained", **settings).add_subplot()


def new_figure(**settings: Any) -> Any:
    """Return a matplotlib figure that needs no window and no global state."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install symrelu[plot].") from error
    figure = Figure(layout="constrained", **settings)
    FigureCanvasAgg(figure)
    return figure
