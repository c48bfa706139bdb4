"""RankSelection: the settings that were compared, their scores, and the choice; as a table and as a plot."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from symrelu.holdout import BASELINES
from symrelu.plots import shown_axes

# The settings that are compared, as columns of the table.
GRID = ("rank", "n_negative", "alpha", "zero_weight")

_TICKS = 12  # at most, along the axis of a plot


@dataclass(frozen=True, eq=False, repr=False)
class RankSelection:
    """What :func:`select_rank` found.

    Attributes
    ----------
    table : list of dict
        One record for each setting, the simplest first: ``rank``, ``n_negative``, ``alpha``, ``zero_weight``;
        ``mean`` and ``standard_error`` of the scores, and ``scores``, one for each repeat, on the same hidden
        pairs for all settings; ``converged``, the number of fits that a stopping test ended; and
        ``parameters_per_pair``, the numbers in the factor for each positive pair.
    best : dict
        The setting of the best mean, ready for ``decompose(M, **selection.best)``.
    chosen : dict
        The setting that ``rule`` chose, likewise.
    scoring : {"error", "auc"}
        What the scores are. The lowest error and the highest AUC are best.
    rule : {"one_standard_error", "best"}
        How ``chosen`` was chosen.
    """

    table: list[dict[str, Any]]
    best: dict[str, Any]
    chosen: dict[str, Any]
    scoring: str
    rule: str

    @property
    def baseline(self) -> float:
        """The score of predicting zero for every pair: an error of 1, an AUC of 1/2."""
        return BASELINES[self.scoring]

    def __repr__(self) -> str:
        row = self._row(self.chosen)
        setting = ", ".join(f"{name}={row[name]!r}" for name in GRID)
        return (
            f"RankSelection({setting}; {self.scoring} {row['mean']:.4g} +- {row['standard_error']:.2g}, "
            f"{len(self.table)} settings x {len(row['scores'])} repeats)"
        )

    def _row(self, setting: dict[str, Any]) -> dict[str, Any]:
        return next(row for row in self.table if all(row[name] == setting[name] for name in GRID))

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame; the score of repeat k is in column ``score_k``.

        Returns
        -------
        frame : pandas.DataFrame
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas. The same is in table.") from error
        rows = []
        for row in self.table:
            scores = {f"score_{k}": score for k, score in enumerate(row["scores"])}
            rows.append({name: value for name, value in row.items() if name != "scores"} | scores)
        return pandas.DataFrame(rows)

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the mean scores with their standard errors, one line for each setting of the rest of the grid.

        Along the axis goes the rank, or what else has more values. A ring marks the chosen setting. Where the
        picture reaches the score of predicting zero, a dotted line shows it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure of pyplot by default.

        Returns
        -------
        ax : matplotlib Axes
        """
        ax = shown_axes(figsize=(6, 4)) if ax is None else ax
        values = {name: list(dict.fromkeys(row[name] for row in self.table)) for name in GRID}
        along = max(GRID, key=lambda name: len(values[name]))
        places = _places(along, values[along])
        others = [name for name in GRID if name != along and len(values[name]) > 1]
        lines: dict[str, list[dict[str, Any]]] = {}
        for row in sorted(self.table, key=lambda row: places[row[along]]):
            lines.setdefault(", ".join(f"{name}={row[name]}" for name in others), []).append(row)
        for label, rows in lines.items():
            x = [places[row[along]] for row in rows]
            y, bars = [row["mean"] for row in rows], [row["standard_error"] for row in rows]
            ax.errorbar(x, y, yerr=bars, label=label or None, marker="o", linewidth=1.8, capsize=3)
        chosen = self._row(self.chosen)
        at = places[chosen[along]], chosen["mean"]
        ax.scatter(*at, s=140, facecolors="none", edgecolors="black", zorder=3, label="chosen")
        _label_axes(ax, places, along, self)
        low, high = ax.get_ylim()
        if low <= self.baseline <= high:
            ax.axhline(self.baseline, color="grey", linestyle=":", label="predicting zero")
        ax.legend(frameon=False)
        return ax


def _places(name: str, values: list[Any]) -> dict[Any, float]:
    """Return where values go along the axis, rising: ranks where they are, all else one by one."""
    if name == "rank":
        return {value: float(value) for value in values}
    rising = sorted(values, key=lambda value: (isinstance(value, str), value))
    return {value: float(k) for k, value in enumerate(rising)}


def _label_axes(ax: Any, places: dict[Any, float], along: str, selection: RankSelection) -> None:
    if along == "rank" and max(places) >= 8 * min(places):
        ax.set_xscale("log")
    means = [row["mean"] for row in selection.table]
    if selection.scoring == "error" and 0 < 30 * min(means) < max(means):
        ax.set_yscale("log")
    shown = list(places)[:: -(-len(places) // _TICKS)]
    ax.set_xticks([places[value] for value in shown], [str(value) for value in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlabel(along)
    ax.set_ylabel({"error": "relative error of hidden pairs", "auc": "AUC of hidden pairs"}[selection.scoring])
    ax.grid(True, alpha=0.25)
