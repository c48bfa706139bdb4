"""Coarse-to-fine search over ranks: the scores so far, and which ranks to try next.

No fits are made here: :func:`symrelu.select_rank` fits the ranks that :func:`next_ranks` returns and adds their
scores to :class:`Scores`, until there are none left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symrelu.fit.rank_grid import GRID, complexity

RULES = ("one_standard_error", "best")

# All default ranks up to this one are tried: together they cost less than one rank of 32, and errors on graphs
# were seen to have two minima, the first of them between 4 and 8.
_ALWAYS = 8

# The search stops at this multiple of the last rank that improved the score: two doublings without a gain.
_BEYOND = 4

# A fit that stops at the tolerance has a slightly larger error on held-out pairs: up to 1.5 times as large on
# synthetic matrices. No rank is better than such a fit.
_EXACT = 3

# A gap between two ranks is refined if it is wider than this fraction of the upper one, so ranks below 15 are
# exact. Finer steps for larger ranks would cost more than their difference in score is worth.
_RESOLUTION = 1 / 8


def score_text(row: dict[str, Any]) -> str:
    """Return the mean score of a row of the table, with its standard error if it has one."""
    bar = row["standard_error"]
    return f"{row['mean']:.4g}" + ("" if math.isnan(bar) else f" +- {bar:.2g}")


class Scores:
    """The scores of the fits made so far.

    Parameters
    ----------
    n_repeats : int
    lower_is_better : bool
    slack : float
        Differences between mean scores up to this carry no information.
    parameters_per_pair : float
        Number of parameters for each positive pair at rank 1.
    """

    def __init__(
        self, n_repeats: int, *, lower_is_better: bool, slack: float = 0.0, parameters_per_pair: float = 1.0
    ) -> None:
        self.n_repeats = n_repeats
        self.lower_is_better = lower_is_better
        self.slack = slack
        self.parameters_per_pair = parameters_per_pair
        self._fits: dict[tuple[Any, ...], dict[int, tuple[float, bool]]] = {}

    def add(self, setting: dict[str, Any], repeat: int, score: float, converged: bool) -> None:
        """Add the result of one fit."""
        key = tuple(setting[name] for name in GRID)
        self._fits.setdefault(key, {})[repeat] = (score, converged)

    @property
    def n_fits(self) -> int:
        """Number of fits made so far."""
        return sum(map(len, self._fits.values()))

    def table(self) -> list[dict[str, Any]]:
        """Return one record for each setting, the simplest first; see :class:`symrelu.RankSelection`."""
        rows = [self._row(dict(zip(GRID, key, strict=True)), fits) for key, fits in self._fits.items()]
        return sorted(rows, key=complexity)

    def _row(self, setting: dict[str, Any], fits: dict[int, tuple[float, bool]]) -> dict[str, Any]:
        # By repeat: fits arrive in any order, and the last digits of a mean depend on the order of its terms.
        found = [fits[repeat][0] for repeat in sorted(fits)]
        spread = float(np.std(found, ddof=1)) if len(found) > 1 else math.nan
        return setting | {
            "mean": float(np.mean(found)),
            "standard_error": spread / math.sqrt(len(found)),
            # By repeat, so that settings can be compared pair by pair even after Ctrl-C.
            "scores": [fits[k][0] if k in fits else math.nan for k in range(self.n_repeats)],
            "converged": sum(converged for _, converged in fits.values()),
            "parameters_per_pair": self.parameters_per_pair * setting["rank"],
        }

    def choices(self, table: list[dict[str, Any]]) -> tuple[int, int]:
        """Return the index of the best row, and of the first one within a standard error (or slack) of it.

        Rows with a single score are considered only if no row has more.
        """
        best, above_limit, _ = self._compared(table)
        return best, int(np.argmax(above_limit <= 0))

    def simplest_plausible(self, table: list[dict[str, Any]]) -> int:
        """Return the index of the first row that might have been chosen, given its own standard error."""
        _, above_limit, bars = self._compared(table)
        return int(np.argmax(above_limit <= bars))

    def _compared(self, table: list[dict[str, Any]]) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the index of the best row, how far each row is above the limit of a choice, and its bar."""
        means = self._losses(row["mean"] for row in table)
        bars = np.array([row["standard_error"] for row in table])
        single = np.isnan(bars)
        if not single.all():
            means[single] = math.inf
        bars[single] = 0.0
        best = int(np.argmin(means))
        return best, means - (means[best] + max(bars[best], self.slack)), bars

    def curve(self) -> dict[int, np.ndarray]:
        """Return for each rank the losses (lower is better) of its best setting, one for each repeat."""
        curve: dict[int, np.ndarray] = {}
        for row in self.table():
            losses = self._losses(row["scores"])
            if row["rank"] not in curve or losses.mean() < curve[row["rank"]].mean():
                curve[row["rank"]] = losses
        return curve

    def _losses(self, scores: Any) -> np.ndarray:
        values = np.array(list(scores), np.float64)
        return values if self.lower_is_better else 1 - values


def next_ranks(scores: Scores, ranks: Sequence[int], rule: str) -> list[int]:
    """Return the ranks to try next: first ever larger ones, then those near the choice; in the end none.

    Parameters
    ----------
    scores : Scores
        Complete for each rank that was tried.
    ranks : sequence of int
        The ranks to search, ascending. Ranks between them are tried in the end.
    rule : {"one_standard_error", "best"}
        How the choice is made.

    Returns
    -------
    ranks : list of int
    """
    if not scores.n_fits:
        return [rank for rank in ranks if rank <= max(_ALWAYS, ranks[0])]
    curve = scores.curve()
    further = [rank for rank in ranks if rank > max(curve) and (rank & (rank - 1) == 0 or rank == ranks[-1])]
    if further and _is_improving(curve, scores.slack):
        return further[:1]
    table = scores.table()
    best, simplest = scores.choices(table)
    # The simplest good setting can only have fewer columns, the best one also more.
    if rule == "best":
        return _midpoints(list(curve), table[best]["rank"], above=True)
    # A rank that just missed the limit may have a better one below it: scores do not fall evenly with the rank.
    starts = {table[k]["rank"] for k in (simplest, scores.simplest_plausible(table))}
    return sorted({rank for start in starts for rank in _midpoints(list(curve), start, above=False)})


def _is_improving(curve: dict[int, np.ndarray], slack: float) -> bool:
    """Whether a larger rank may have a better score."""
    first, *others = sorted(curve)
    best = first
    for rank in others:
        # The repeats share their held-out pairs, so differences are more precise than the means. Means alone
        # would end the search on a large graph, where the first ranks explain little.
        gain = curve[best] - curve[rank]
        if gain.mean() > max(np.std(gain, ddof=1) / math.sqrt(len(gain)), slack):
            best = rank
    return bool(curve[best].mean() > _EXACT * slack) and max(curve) < _BEYOND * best


def _midpoints(tried: list[int], rank: int, *, above: bool) -> list[int]:
    """Return untried ranks half-way from ``rank`` to its neighbours, if these are too far apart."""
    lower = [other for other in tried if other < rank]
    upper = [other for other in tried if other > rank]
    gaps = [(max(lower), rank)] if lower else []
    gaps += [(rank, min(upper))] if upper and above else []
    return [(low + high) // 2 for low, high in gaps if high - low > max(1, _RESOLUTION * high)]
