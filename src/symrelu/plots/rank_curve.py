"""Plot of the scores of a rank selection, usually against the rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symrelu.plots.figures import shown_axes

_MAX_TICKS = 12

_SCORES = {
    "error": "relative error of held-out pairs",
    "auc": "AUC of held-out pairs",
    "neighbors": "AUC of held-out pairs within a node",
}


def plot_scores(
    table: list[dict[str, Any]],
    grid: Sequence[str],
    chosen: dict[str, Any],
    scoring: str,
    baseline: float,
    ax: Any | None = None,
) -> Any:
    """Plot mean scores with their standard errors; see :meth:`symrelu.RankSelection.plot`.

    Parameters
    ----------
    table : list of dict
        One record for each setting, as in :class:`symrelu.RankSelection`.
    grid : sequence of str
        Columns of the table that are parameters of the model.
    chosen : dict
        The row of the table that is marked with a ring.
    scoring : {"error", "auc", "neighbors"}
    baseline : float
        The score of predicting zero.
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = shown_axes(figsize=(6, 4)) if ax is None else ax
    values = {name: list(dict.fromkeys(row[name] for row in table)) for name in grid}
    along = max(grid, key=lambda name: len(values[name]))
    places = _positions(along, values[along])
    others = [name for name in grid if name != along and len(values[name]) > 1]
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(table, key=lambda row: places[row[along]]):
        lines.setdefault(", ".join(f"{name}={row[name]}" for name in others), []).append(row)
    for label, rows in lines.items():
        x = [places[row[along]] for row in rows]
        y, bars = [row["mean"] for row in rows], [row["standard_error"] for row in rows]
        ax.errorbar(x, y, yerr=bars, label=label or None, marker="o", linewidth=1.8, capsize=3)
    at = places[chosen[along]], chosen["mean"]
    ax.scatter(*at, s=140, facecolors="none", edgecolors="black", zorder=3, label="chosen")
    _label_axes(ax, places, along, [row["mean"] for row in table], scoring)
    low, high = ax.get_ylim()
    if low <= baseline <= high:  # a line far outside would shrink the differences to nothing
        ax.axhline(baseline, color="grey", linestyle=":", label="predicting zero")
    ax.legend(frameon=False)
    return ax


def _positions(name: str, values: list[Any]) -> dict[Any, float]:
    """Return the position of each value on the x axis: a rank at its value, anything else evenly spaced."""
    if name == "rank":
        return {value: float(value) for value in values}
    # n_negative may mix integers and "auto", which Python cannot compare.
    ascending = sorted(values, key=lambda value: (isinstance(value, str), value))
    return {value: float(k) for k, value in enumerate(ascending)}


def _label_axes(ax: Any, places: dict[Any, float], along: str, means: list[float], scoring: str) -> None:
    if along == "rank" and max(places) >= 8 * min(places):
        ax.set_xscale("log")
    if scoring == "error" and 0 < 30 * min(means) < max(means):
        ax.set_yscale("log")
    shown = list(places)[:: -(-len(places) // _MAX_TICKS)]
    ax.set_xticks([places[value] for value in shown], [str(value) for value in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlabel(along)
    ax.set_ylabel(_SCORES[scoring])
    ax.grid(True, alpha=0.25)
