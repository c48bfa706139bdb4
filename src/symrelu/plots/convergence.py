"""Convergence plots: the error of fits against the number of evaluations."""

from __future__ import annotations

from typing import Any

from symrelu.plots.factors import check_fitted
from symrelu.plots.figures import plain_ticks, shown_axes


def plot_convergence(runs: Any, ax: Any | None = None) -> Any:
    """Plot relative_error against evaluations, one line for each run.

    Parameters
    ----------
    runs : Solution, fitted estimator or History, or a list of them, or a dict by the label of the line
        The runs. Those of a list are labelled by their numbers.
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    histories = {label: history_of(run) for label, run in _labelled(runs).items()}
    ax = shown_axes(figsize=(6, 4)) if ax is None else ax
    # Line styles as well as colours, so that lines differ in black-and-white print.
    styles = ("-", "--", "-.", ":")
    for k, (label, history) in enumerate(histories.items()):
        style = styles[k % len(styles)]
        ax.plot(history.evaluations, history.relative_error, style, label=label, linewidth=1.8)
    if any((history.relative_error > 0).any() for history in histories.values()):
        ax.set_yscale("log")
        plain_ticks(ax.yaxis)
    ax.set_xlabel("evaluations")
    ax.set_ylabel("relative error")
    ax.grid(True, which="both", alpha=0.25)
    if len(histories) > 1:
        ax.legend(frameon=False)
    return ax


def history_of(run: Any) -> Any:
    """Return the history of a Solution or a fitted estimator; a History is returned as it is.

    Parameters
    ----------
    run : Solution, fitted estimator or History

    Returns
    -------
    history : History
    """
    for name in ("history", "history_"):
        if hasattr(run, name):
            return getattr(run, name)
    if hasattr(run, "relative_error") and hasattr(run, "evaluations"):
        return run
    check_fitted(run)
    raise TypeError(
        f"A run must be a Solution, a fitted estimator with history_, or a History, got {type(run).__name__}."
    )


def _labelled(runs: Any) -> dict[str, Any]:
    """Return the runs by label."""
    if isinstance(runs, dict):
        return runs
    if isinstance(runs, (list, tuple)):
        return {f"run {k + 1}": run for k, run in enumerate(runs)}
    return {"": runs}
