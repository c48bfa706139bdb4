"""The paper's synthetic table: seven momenta on eight matrices, and the two curves of its first figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from symrelu.experiments import paper
from symrelu.experiments.cases import ReluGram
from symrelu.experiments.cells import Cell, CellResult
from symrelu.experiments.experiment import Experiment, Figure, Results
from symrelu.experiments.figures import draw_momenta
from symrelu.experiments.methods import aapb
from symrelu.experiments.tables import Entry, Table, fixed
from symrelu.loop import Limits

Column = tuple[int, int, float, int]

LIMITS = Limits(tol=paper.TOL, gtol=0.0, ftol=0.0, max_iter=paper.SYNTHETIC_MAX_ITER)
QUICK_MOMENTA = (0.0, 0.4, 0.8, 1.0)
QUICK_COLUMNS = paper.SYNTHETIC_COLUMNS[:3]


@dataclass(frozen=True)
class Setting:
    """What the paper leaves open.

    Parameters
    ----------
    step_size : float
    init : str
        Name of the start.
    """

    step_size: float
    init: str

    @property
    def title(self) -> str:
        """What to print."""
        kind = {"random": "normal", "uniform": "uniform"}[self.init]
        return f"step {self.step_size:g}, {kind} random start"

    @property
    def stem(self) -> str:
        """Part of file names."""
        return f"synthetic_step{self.step_size:g}_{self.init}"


# The first one reproduces the paper; the others change one thing.
SETTINGS = (
    Setting(paper.STEP, "uniform"),
    Setting(paper.STEP, "random"),
    Setting(paper.THEORY_STEP, "uniform"),
)


@dataclass(frozen=True)
class Synthetic(Experiment):
    """Relative error after 1000 iterations, or 1e-4 before, for every momentum, matrix, setting and seed.

    Parameters
    ----------
    seeds : int, default=5
        Number of matrices of each kind in the setting that reproduces the paper.
    beside : int, default=2
        The same for the settings that stand beside it.
    quick : bool, default=False
        One seed, four momenta and the three smallest problems. Its cells are cells of the full run.
    """

    seeds: int = 5
    beside: int = 2
    quick: bool = False
    name: str = field(default="synthetic", init=False)
    title: str = field(default="Synthetic matrices: seven momenta on eight problems", init=False)

    @property
    def momenta(self) -> tuple[float, ...]:
        """The rows."""
        return QUICK_MOMENTA if self.quick else paper.MOMENTA

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns: m, r-bar, p and r."""
        return QUICK_COLUMNS if self.quick else paper.SYNTHETIC_COLUMNS

    def introduction(self) -> Sequence[str]:
        """Say what was run."""
        return (
            "M = max(0, U Uᵀ - p max(U Uᵀ)) with a normal m x r̄ matrix U, fitted at rank r by AAPB with "
            f"b_k = momentum (k - 1)/(k + 2). Stopped at {paper.SYNTHETIC_MAX_ITER} iterations or a relative "
            f"error of {paper.TOL:g}; no limit on time. Each number is a mean over seeds (matrix and start).",
            "The paper names neither step size nor start. Step 10, which its theory does not cover, with a "
            "uniform random start scaled to M gives its numbers. Beside it: a normal start, and step 1, which "
            "is what the theory allows.",
        )

    def _seeds(self, setting: Setting) -> range:
        if self.quick:
            return range(1)
        return range(self.seeds if setting == SETTINGS[0] else min(self.seeds, self.beside))

    def cells(self) -> Sequence[Cell]:
        """Return the reproducing setting first."""
        return [
            self._cell(column, momentum, setting, seed)
            for setting in SETTINGS
            for column in self.columns
            for seed in self._seeds(setting)
            for momentum in self.momenta
        ]

    def _cell(self, column: Column, momentum: float, setting: Setting, seed: int) -> Cell:
        n, planted_rank, shift, rank = column
        method = aapb(setting.step_size, momentum, setting.init)
        return Cell(ReluGram(n, planted_rank, shift), rank, method, seed, LIMITS)

    def _results(self, results: Results, column: Column, momentum: float, setting: Setting) -> list[CellResult]:
        cells = (self._cell(column, momentum, setting, seed) for seed in self._seeds(setting))
        return [results[cell] for cell in cells if cell in results]

    def tables(self, results: Results) -> Sequence[Table]:
        """Return errors, then iterations, for each setting."""
        errors = [self._table(results, setting, "error") for setting in SETTINGS]
        return [*errors, *(self._table(results, setting, "iterations") for setting in SETTINGS)]

    def _table(self, results: Results, setting: Setting, what: str) -> Table:
        is_error = what == "error"
        rows = []
        for momentum in self.momenta:
            row = []
            for column in self.columns:
                runs = self._results(results, column, momentum, setting)
                if is_error:
                    beside_paper = setting.step_size == paper.STEP
                    printed = paper.SYNTHETIC_ERROR[momentum, column] if beside_paper else None
                    row.append(Entry.of(runs, lambda result: result.relative_error, printed))
                else:
                    row.append(Entry.of(runs, lambda result: result.n_iter))
            rows.append((f"{momentum:g}", tuple(row)))
        heads = tuple(f"{n}, {planted}, p={p:g}, r={r}" for n, planted, p, r in self.columns)
        count = len(self._seeds(setting))
        mean = "One seed." if count == 1 else f"Mean over {count} seeds."
        note = f"Columns: m, r̄, p and the rank r of the fit. {mean}"
        name, corner = f"{setting.stem}_{what}", "momentum"
        if is_error:
            return Table(name, f"Relative error, {setting.title}", corner, heads, tuple(rows), note=note)
        note = f"{paper.SYNTHETIC_MAX_ITER} is the limit. {note}"
        return Table(name, f"Iterations, {setting.title}", corner, heads, tuple(rows), form=fixed(0), note=note)

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the paper's first figure, in the setting that reproduces it."""
        panels = {}
        for column in self.columns:
            if column in paper.SYNTHETIC_FIGURE:
                n, planted, p, r = column
                panels[f"m={n}, r̄={planted}, p={p:g}, r={r}"] = {
                    momentum: (
                        self._results(results, column, momentum, SETTINGS[0]),
                        paper.SYNTHETIC_ERROR[momentum, column],
                    )
                    for momentum in self.momenta
                }
        if not any(runs for panel in panels.values() for runs, _ in panel.values()):
            return []
        caption = (
            f"Relative error against iterations ({SETTINGS[0].title}), one line for each momentum: the median "
            "over the seeds, shaded from the lowest to the highest. Crosses at the right edge: where the "
            "paper's table ends."
        )
        return [Figure("figure1", caption, draw_momenta(panels))]
