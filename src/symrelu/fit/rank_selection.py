"""RankSelection: the compared settings, their scores and the choice, as a table and as a plot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from symrelu.fit.holdout import BASELINES
from symrelu.fit.rank_grid import GRID
from symrelu.fit.rank_search import score_text
from symrelu.plots.cards import card, curve
from symrelu.plots.rank_curve import plot_rank_curve


@dataclass(frozen=True, eq=False, repr=False)
class RankSelection:
    """The result of :func:`select_rank`.

    Attributes
    ----------
    table : list of dict
        One record for each setting, the simplest first: ``rank``, ``n_negative``, ``alpha``, ``zero_weight``;
        ``mean`` and ``standard_error`` of the scores, and ``scores``, one for each repeat, on the same
        held-out pairs for all settings; ``converged``, the number of fits that met a stopping test; and
        ``parameters_per_pair``, the number of parameters for each positive pair. After Ctrl-C, the scores of
        fits that were not made are NaN, and so is the standard error of a single score.
    best : dict
        The setting with the best mean score, ready for ``decompose(M, **selection.best)``.
    chosen : dict
        The setting selected by ``rule``, in the same form.
    scoring : {"error", "auc", "neighbors"}
        The metric. Lower errors are better; otherwise higher scores are.
    rule : {"one_standard_error", "best"}
        How ``chosen`` was chosen.
    complete : bool
        False if Ctrl-C ended the selection. The choice is then made from the fits that had finished.
    """

    table: list[dict[str, Any]]
    best: dict[str, Any]
    chosen: dict[str, Any]
    scoring: str
    rule: str
    complete: bool = True

    @property
    def n_fits(self) -> int:
        """Number of fits behind the table."""
        return sum(not math.isnan(score) for row in self.table for score in row["scores"])

    @property
    def baseline(self) -> float:
        """The score of predicting zero for every pair: an error of 1, 1/2 otherwise."""
        return BASELINES[self.scoring]

    def __repr__(self) -> str:
        row = self._row(self.chosen)
        setting = ", ".join(f"{name}={row[name]!r}" for name in GRID)
        counts = f"{len(self.table)} settings x {len(row['scores'])} repeats"
        return (
            f"RankSelection({setting}; {self.scoring} {score_text(row)}, "
            f"{counts if self.complete else f'interrupted after {self.n_fits} fits of {counts}'})"
        )

    def _repr_html_(self) -> str:
        """The card that notebooks show."""
        row = self._row(self.chosen)
        rows = [("chosen", ", ".join(f"{name}={row[name]!r}" for name in GRID))]
        rows += [
            (self.scoring, score_text(row)),
            ("rule", self.rule),
            ("settings compared", str(len(self.table))),
        ]
        rows += [("fits", f"{self.n_fits}" if self.complete else f"{self.n_fits}, then interrupted")]
        same = [one for one in self.table if all(one[name] == row[name] for name in GRID if name != "rank")]
        same.sort(key=lambda one: one["rank"])
        picture = curve(
            [one["rank"] for one in same],
            [one["mean"] for one in same],
            f"mean {self.scoring} against the rank",
            logarithmic=False,
        )
        return card("RankSelection", rows, curve=picture)

    def _row(self, setting: dict[str, Any]) -> dict[str, Any]:
        return next(row for row in self.table if all(row[name] == setting[name] for name in GRID))

    def records(self) -> list[dict[str, Any]]:
        """Return the table with the score of repeat k as ``score_k``, for a data frame or a CSV file.

        Returns
        -------
        records : list of dict
        """
        records = []
        for row in self.table:
            scores = {f"score_{k}": score for k, score in enumerate(row["scores"])}
            records.append({name: value for name, value in row.items() if name != "scores"} | scores)
        return records

    def to_frame(self) -> Any:
        """Return :meth:`records` as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
        """
        return frame_of_records(self.records())

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the mean scores with their standard errors, as :func:`symrelu.plots.plot_rank_curve` does.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new pyplot figure by default.

        Returns
        -------
        ax : matplotlib Axes
        """
        return plot_rank_curve(self, ax)


def frame_of_records(records: list[dict[str, Any]]) -> Any:
    """Return the records of a selection as a pandas DataFrame, or raise if pandas is missing."""
    try:
        pandas = import_module("pandas")  # optional, and slow to import
    except ImportError as error:
        raise ImportError(
            "to_frame needs pandas: pip install pandas. The method records returns the same data."
        ) from error
    return pandas.DataFrame(records)
