"""RankSelection: the compared settings, their scores and the choice, as a table and as a plot."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from symrelu.fit.holdout import BASELINES
from symrelu.plots.rank_curve import plot_scores

# The settings that are compared, as columns of the table.
GRID = ("rank", "n_negative", "alpha", "zero_weight")


@dataclass(frozen=True, eq=False, repr=False)
class RankSelection:
    """The result of :func:`select_rank`.

    Attributes
    ----------
    table : list of dict
        One record for each setting, the simplest first: ``rank``, ``n_negative``, ``alpha``, ``zero_weight``;
        ``mean`` and ``standard_error`` of the scores, and ``scores``, one for each repeat, on the same
        held-out pairs for all settings; ``converged``, the number of fits that met a stopping test; and
        ``parameters_per_pair``, the number of parameters for each positive pair.
    best : dict
        The setting with the best mean score, ready for ``decompose(M, **selection.best)``.
    chosen : dict
        The setting selected by ``rule``, in the same form.
    scoring : {"error", "auc"}
        The metric. Lower errors and higher AUCs are better.
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
            pandas = import_module("pandas")  # optional, and slow to import
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install pandas. The attribute table holds the same data."
            ) from error
        rows = []
        for row in self.table:
            scores = {f"score_{k}": score for k, score in enumerate(row["scores"])}
            rows.append({name: value for name, value in row.items() if name != "scores"} | scores)
        return pandas.DataFrame(rows)

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the mean scores with their standard errors.

        The x axis shows the parameter of the grid with the most values (the rank, if several have the same
        number), and there is one line for each combination of the others. A ring marks the chosen setting, and
        a dotted line the score of predicting zero if it is within the y limits.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new pyplot figure by default.

        Returns
        -------
        ax : matplotlib Axes
        """
        return plot_scores(self.table, GRID, self._row(self.chosen), self.scoring, self.baseline, ax)
