"""Plot of the scores of a rank selection, usually against the rank."""

from __future__ import annotations

from typing import Any

from symrelu.plots.figures import shown_axes

_MAX_TICKS = 12

_SCORES = {
    "error": "relative error of held-out pairs",
    "auc": "AUC of held-out pairs",
    "neighbors": "AUC of held-out pairs within a node",
}


def plot_rank_curve(selection: Any, ax: Any | None = None) -> Any:
    """Draw the mean scores of a rank selection with their standard errors.

    The x axis shows the parameter of the grid with the most values (the rank, if several have the same number),
    and there is one line for each combination of the others. A ring marks the chosen setting, and a dotted line
    the score of predicting zero if it is within the y limits. The title says so if Ctrl-C ended the selection.

    Parameters
    ----------
    selection : RankSelection
        The result of :func:`symrelu.select_rank`.
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    table = selection.table
    grid = [name for name in selection.chosen if name in table[0]]  # it also has the settings of all fits
    chosen = next(row for row in table if all(row[name] == selection.chosen[name] for name in grid))
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
    _label_axes(ax, places, along, [row["mean"] for row in table], selection.scoring)
    low, high = ax.get_ylim()
    if low <= selection.baseline <= high:  # a line far outside would shrink the differences to nothing
        ax.axhline(selection.baseline, color="grey", linestyle=":", label="predicting zero")
    ax.legend(frameon=False)
    if not selection.complete:
        ax.set_title(f"interrupted after {selection.n_fits} fits")
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
