"""Figures, axes and files that all plots share."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

from symrelu.files import write_atomically


def save_figure(figure: Any, path: str | PathLike[str], dpi: int = 120) -> None:
    """Write a figure aside and put it in place: SVG for a name that ends in .svg, else PNG.

    The same figure gives the same bytes: no date, no random names inside.
    """
    from matplotlib import rc_context

    svg = str(path).endswith(".svg")
    metadata = {"Date": None} if svg else {"Software": None}
    with rc_context({"svg.hashsalt": "symrelu"}), write_atomically(path) as file:
        figure.savefig(file, format="svg" if svg else "png", dpi=dpi, metadata=metadata)


def shown_axes(**settings: Any) -> Any:
    """Return axes in a new figure of pyplot, which notebooks and ``pyplot.show`` show by themselves."""
    pyplot = _matplotlib("pyplot")
    return pyplot.figure(layout="constrained", **settings).add_subplot()


def new_figure(**settings: Any) -> Any:
    """Return a matplotlib figure that needs no window and no global state."""
    figure = _matplotlib("figure").Figure(layout="constrained", **settings)
    _matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def _matplotlib(module: str) -> Any:
    """Import a module of matplotlib, or raise an error that names the extra to install."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install symrelu[plot].") from error


def plain_ticks(axis: Any) -> None:
    """Write 0.5, not 5 x 10^-1; within two decades also between the powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    low, high = axis.get_view_interval()
    axis.set_major_formatter(plain)
    axis.set_minor_locator(LogLocator(subs=(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)))
    axis.set_minor_formatter(plain if high < 100 * low else NullFormatter())
