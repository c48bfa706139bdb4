"""The experiment of docs/extending.rst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from symrelu.experiments.cases import ReluGram
from symrelu.experiments.cells import Cell
from symrelu.experiments.experiment import Experiment, Results, results_of
from symrelu.experiments.methods import EIGEN_IMPUTED, LBFGS_IMPUTED, Method
from symrelu.experiments.registry import Option, Quick, Seeds, register_experiment
from symrelu.experiments.tables import Entry, Table
from symrelu.fit.settings import Limits

CASE = ReluGram(60, 4, 0.0)
METHODS = (EIGEN_IMPUTED, LBFGS_IMPUTED)


@dataclass(frozen=True)
class Ranks(Experiment):
    """Relative error of two solvers at each rank, up to the one that was planted."""

    highest: int = 4
    seeds: int = 2

    title = "Errors by rank"

    def introduction(self) -> Sequence[str]:
        return (f"{CASE.name}, 20 iterations.",)

    def _cells(self, rank: int, method: Method) -> list[Cell]:
        return [Cell(CASE, rank, method, seed, Limits(max_iter=20)) for seed in range(self.seeds)]

    def cells(self) -> Sequence[Cell]:
        ranks = range(1, self.highest + 1)
        return [cell for rank in ranks for method in METHODS for cell in self._cells(rank, method)]

    def tables(self, results: Results) -> Sequence[Table]:
        rows = []
        for rank in range(1, self.highest + 1):
            runs = (results_of(self._cells(rank, method), results) for method in METHODS)
            rows.append((str(rank), tuple(Entry.of(run, lambda result: result.relative_error) for run in runs)))
        heads = tuple(method.name for method in METHODS)
        return [Table("ranks_error", "Relative error", "rank", heads, tuple(rows), seeds=self.seeds)]


Highest = Annotated[int, Option("The highest rank.", minimum=1, chosen_by_quick=True)]


@register_experiment("ranks")
def make_ranks(highest: Highest = 4, seeds: Seeds = None, quick: Quick = False) -> Ranks:
    """Two solvers on a small matrix, rank by rank (2 seeds)."""
    return Ranks(2, seeds=1) if quick else Ranks(highest, seeds or 2)
