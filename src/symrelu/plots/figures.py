"""Figures, axes and files, shared by all plots."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

from symrelu.files import write_atomically

# The palette of Okabe and Ito, which people with any colour vision can tell apart, with grey in place of its
# yellow, which is faint on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#606060")
POSITIVE, NEGATIVE = PALETTE[0], PALETTE[5]

_MARK = "symrelu figure"
_START = 65536  # bytes of a file in which the mark is
_KINDS = (b"\x89PNG\r\n\x1a\n", b"<?xml")


def save_figure(figure: Any, path: str | PathLike[str], dpi: int = 120) -> None:
    """Write a figure atomically, as SVG if the name ends in .svg, else as PNG.

    The same figure gives the same bytes: the file holds no date and no random identifiers, but a mark by which
    ``is_our_figure`` recognises it.

    Parameters
    ----------
    figure : matplotlib Figure
    path : str or path-like
    dpi : int, default=120
        Dots per inch of a PNG.
    """
    from matplotlib import rc_context

    svg = str(path).endswith(".svg")
    metadata = {"Description": _MARK} | ({"Date": None} if svg else {"Software": None})
    # Without a fixed salt, matplotlib gives the elements of an SVG random names.
    with rc_context({"svg.hashsalt": "symrelu"}), write_atomically(path) as file:
        figure.savefig(file, format="svg" if svg else "png", dpi=dpi, metadata=metadata)


def is_our_figure(path: str | PathLike[str]) -> bool:
    """Return whether a file is a PNG or SVG image that :func:`save_figure` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    is_ours : bool
    """
    with open(path, "rb") as file:
        start = file.read(_START)
    return start.startswith(_KINDS) and _MARK.encode() in start


def shown_axes(**settings: Any) -> Any:
    """Return axes in a new pyplot figure, which notebooks and ``pyplot.show`` display.

    Parameters
    ----------
    **settings
        Passed on to ``pyplot.figure``, such as ``figsize=(6, 4)``.

    Returns
    -------
    ax : matplotlib Axes
    """
    return shown_figure(**settings).add_subplot()


def shown_figure(**settings: Any) -> Any:
    """Return a new pyplot figure, which notebooks and ``pyplot.show`` display.

    Parameters
    ----------
    **settings
        Passed on to ``pyplot.figure``, such as ``figsize=(6, 4)``.

    Returns
    -------
    figure : matplotlib Figure
    """
    return _matplotlib("pyplot").figure(layout="constrained", **settings)


def new_figure(**settings: Any) -> Any:
    """Return a matplotlib figure without a window and without pyplot's global state.

    Parameters
    ----------
    **settings
        Passed on to ``matplotlib.figure.Figure``, such as ``figsize=(6, 4)``.

    Returns
    -------
    figure : matplotlib Figure
    """
    figure = _matplotlib("figure").Figure(layout="constrained", **settings)
    _matplotlib("backends.backend_agg").FigureCanvasAgg(figure)  # attaches itself to the figure
    return figure


def _matplotlib(module: str) -> Any:
    """Import a module of matplotlib, or raise an error that names the extra to install."""
    try:
        import_module("matplotlib")  # a submodule may be there already when the package cannot be imported
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'symrelu[plot]'.") from error


def plain_ticks(axis: Any) -> None:
    """Label a logarithmic axis with 0.5 instead of 5 x 10^-1, and also minor ticks within two decades.

    Parameters
    ----------
    axis : matplotlib Axis
        Such as ``ax.yaxis``, after everything has been drawn.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    low, high = axis.get_view_interval()
    axis.set_major_formatter(plain)
    axis.set_minor_locator(LogLocator(subs=(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)))
    axis.set_minor_formatter(plain if high < 100 * low else NullFormatter())
