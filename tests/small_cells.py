"""Cells of problems that take milliseconds, and an experiment made of them."""

from dataclasses import dataclass

from symrelu.experiments import Cell
from symrelu.experiments.cases import ReluGram
from symrelu.experiments.experiment import Experiment, Figure
from symrelu.experiments.figures import draw_momenta
from symrelu.experiments.methods import SYMANLS, SYMHALS, EigenvalueBound, aapb
from symrelu.experiments.tables import Entry, Table
from symrelu.fit.settings import Limits

FEW = Limits(tol=1e-4, gtol=0.0, ftol=0.0, max_iter=5)
SMALL = ReluGram(30, 3, 0.1)
CELL = Cell(SMALL, 4, aapb(10.0), 0, FEW)
METHODS = (aapb(10.0), aapb(1.0, 0.0), SYMANLS, SYMHALS, EigenvalueBound())
CELLS = [Cell(SMALL, 4, method, seed, FEW) for seed in range(2) for method in METHODS]


@dataclass(frozen=True)
class Tiny(Experiment):
    """A table and a figure of six fits."""

    title = "Tiny <experiment>"

    def introduction(self):
        return ("One & two.",)

    def cells(self):
        return CELLS

    def tables(self, results):
        runs = [results[cell] for cell in CELLS[:2] if cell in results]
        entry = Entry.of(runs, lambda result: result.relative_error, 0.5)
        return [Table("tiny", "Error", "row", ("column",), (("0", (entry,)),), seeds=2)]

    def figures(self, results):
        return [Figure("tiny", "A <caption>.", draw_momenta({"panel": {0.5: ([results[CELL]], 0.3)}}))]
