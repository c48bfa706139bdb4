"""The paper's two figures. Lines differ in lightness and in style, so that they stay distinct in greyscale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symrelu.experiments.cells import CellResult
from symrelu.plots import new_figure, plain_ticks

# Dash patterns; neighbouring lines also differ in colour.
_LINE_STYLES: tuple[Any, ...] = (
    (0, (6, 2)),
    (0, (3, 1.5)),
    (0, (1, 1)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1, 1, 1)),
    (0, (8, 1, 1, 1, 1, 1)),
    "-",
)

Runs = Sequence[CellResult]


def draw_momenta(panels: Mapping[str, Mapping[float, tuple[Runs, float | None]]]) -> Any:
    """Draw the error against iterations for each momentum, one panel per problem.

    Parameters
    ----------
    panels : dict of str to dict of float to (runs, paper's error or None)

    Returns
    -------
    figure : matplotlib Figure
    """
    from matplotlib import colormaps

    figure = new_figure(figsize=(6.2 * len(panels), 4.6))
    for ax, (title, lines) in zip(np.ravel(figure.subplots(1, len(panels))), panels.items(), strict=True):
        shades = np.linspace(0.0, 0.82, len(lines))  # the light end of viridis is hard to see on white
        for k, (momentum, (runs, printed)) in enumerate(lines.items()):
            color = colormaps["viridis"](shades[k])
            errors = columns_of(runs, "relative_error")
            iterations = np.arange(errors.shape[1])
            style = _LINE_STYLES[k % len(_LINE_STYLES)]
            label = f"{momentum:g}"
            ax.plot(iterations, np.median(errors, axis=0), color=color, linestyle=style, lw=1.8, label=label)
            if len(runs) > 1:
                ax.fill_between(
                    iterations, errors.min(axis=0), errors.max(axis=0), color=color, alpha=0.15, linewidth=0
                )
            if printed is not None:
                _mark_at_edge(ax, printed, "x", color)
        ax.set_yscale("log")
        plain_ticks(ax.yaxis)
        ax.set_xlim(left=0)
        ax.set_title(title)
        ax.set_xlabel("iterations")
        ax.set_ylabel("relative error")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend(title="momentum", frameon=False, ncols=2, fontsize=9)
    return figure


class MethodCurve(NamedTuple):
    """The fits of one method on one data set.

    Attributes
    ----------
    label : str
    runs : sequence of CellResult
    paper : float or None
        The half squared error that the paper prints.
    """

    label: str
    runs: Runs
    paper: float | None


# The baselines are light, the paper's method is dark, and step 1, which is shown for comparison, is thin.
_METHOD_STYLES: dict[str, dict[str, Any]] = {
    "SymANLS": {"color": "#b5b52c", "linestyle": (0, (6, 2)), "marker": "s"},
    "SymHALS": {"color": "#e08a3c", "linestyle": (0, (1, 1)), "marker": "D"},
    "APB, step 10": {"color": "#2f8f8b", "linestyle": (0, (6, 2, 1, 2)), "marker": "^"},
    "AAPB, step 10": {"color": "#1f2d6b", "linestyle": "-", "marker": "o"},
    "APB, step 1": {"color": "#8a8a8a", "linestyle": (0, (6, 2, 1, 2)), "marker": "", "lw": 1.0},
    "AAPB, adaptive": {"color": "#00838f", "linestyle": (0, (4, 2)), "marker": ""},
    "Eigen": {"color": "#5d4037", "linestyle": (0, (2, 1, 2, 3)), "marker": ""},
    "LBFGS": {"color": "#c2185b", "linestyle": (0, (8, 1, 1, 1, 1, 1)), "marker": ""},
    "AAPB, step 1": {"color": "#555555", "linestyle": "-", "marker": "", "lw": 1.0},
}


def draw_methods(panels: Mapping[str, Sequence[MethodCurve]], bounds: Mapping[str, float]) -> Any:
    """Draw the half squared error against iterations (above) and seconds (below), one column per data set.

    Parameters
    ----------
    panels : dict of str to sequence of MethodCurve
    bounds : dict of str to float
        Lower bound of the half squared error of any U U^T of that rank, by data set.

    Returns
    -------
    figure : matplotlib Figure
    """
    figure = new_figure(figsize=(4.1 * len(panels) + 0.6, 7.6))
    axes = figure.subplots(2, len(panels), squeeze=False, sharey="col")
    for k, (title, curves) in enumerate(panels.items()):
        for row, abscissa in enumerate(("iteration", "seconds")):
            ax = axes[row, k]
            for index, curve in enumerate(curves):
                _draw_method(ax, curve, abscissa, index)
            if title in bounds:
                ax.axhline(bounds[title], color="black", lw=1, linestyle=":", label="bound for U Uᵀ")
            ax.set_yscale("log")
            plain_ticks(ax.yaxis)
            ax.grid(True, which="both", alpha=0.25)
            if row == 0:
                ax.set_title(title)
                ax.set_xlabel("iterations")
            else:
                ax.set_xscale("log")
                ax.set_xlabel("seconds")
            if k == 0:
                ax.set_ylabel("half squared error")
        _limit_ordinate(axes[0, k], curves, bounds.get(title))
    # One legend for all panels, which may have different methods.
    shown: dict[str, Any] = {}
    for ax in axes[0]:
        shown.update(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    labels, handles = list(shown), list(shown.values())
    legend_columns = min(len(labels), 2 * len(panels) + 1)
    figure.legend(handles, labels, loc="outside lower center", ncols=legend_columns, frameon=False)
    return figure


def _draw_method(ax: Any, curve: MethodCurve, abscissa: str, index: int) -> None:
    if not curve.runs:
        return
    fallback = {"color": f"C{index}", "linestyle": _LINE_STYLES[index % len(_LINE_STYLES)], "marker": ""}
    style = {"lw": 1.8, **_METHOD_STYLES.get(curve.label, fallback)}
    marker = style.pop("marker")
    run = curve.runs[0]
    errors = np.square(run.curves["relative_error"]) / 2
    where = np.asarray(run.curves[abscissa])
    # The first row is the start at zero seconds, which a logarithmic axis cannot show.
    ax.plot(where[1:], errors[1:], label=curve.label, **style)
    if curve.paper is not None and marker:
        # The paper prints the same two digits for several methods; the shift keeps their symbols apart.
        _mark_at_edge(ax, curve.paper, marker, style["color"], 0.035 * (index % 2))


def _limit_ordinate(ax: Any, curves: Sequence[MethodCurve], bound: float | None) -> None:
    """Fit the ordinate to the marks and the ends of the curves, not to the high errors at the start."""
    lows = [np.min(run.curves["relative_error"]) ** 2 / 2 for curve in curves for run in curve.runs]
    lows += [value for value in (bound, *(curve.paper for curve in curves)) if value is not None]
    ax.set_ylim(0.9 * min(lows), max(0.9, 1.1 * max(lows)))


def _mark_at_edge(ax: Any, value: float, marker: str, color: Any, shift: float = 0.0) -> None:
    """Draw a symbol at the right edge, or ``shift`` to the right of it, at that value of the ordinate."""
    place = {"transform": ax.get_yaxis_transform(), "clip_on": False, "zorder": 5}
    ax.plot(1.0 + shift, value, marker, color=color, ms=7, mfc="none", mew=1.8, **place)


def columns_of(runs: Runs, name: str) -> np.ndarray:
    """Return a column of the history of all runs, padded with the last value if a run ended early."""
    length = max(len(run.curves[name]) for run in runs)
    rows = [np.asarray(run.curves[name]) for run in runs]
    return np.stack([np.pad(row, (0, length - len(row)), mode="edge") for row in rows])
