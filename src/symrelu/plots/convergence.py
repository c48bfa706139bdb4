"""Convergence plots: the error of fits against the number of evaluations."""

from __future__ import annotations

from typing import Any

from symrelu.fitted.history import History
from symrelu.plots.figures import new_figure, plain_ticks


def plot_convergence(histories: dict[str, History], ax: Any | None = None) -> Any:
    """Plot relative_error against evaluations, one line for each history.

    Parameters
    ----------
    histories : dict of str to History
        Histories by the label of their line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = new_figure(figsize=(6, 4)).add_subplot() if ax is None else ax
    # Line styles as well as colours, so that lines differ in black-and-white print.
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
