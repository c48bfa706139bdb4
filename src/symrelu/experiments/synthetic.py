"""The paper's synthetic table: seven momenta on eight matrices, and the two panels of its first figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated

import numpy as np

from symrelu.experiments import paper
from symrelu.experiments.cases import ReluGram
from symrelu.experiments.cells import Cell, CellResult
from symrelu.experiments.experiment import Experiment, Figure, Results, results_of
from symrelu.experiments.figures import columns_of, draw_momenta
from symrelu.experiments.methods import OURS, ReluFit, aapb
from symrelu.experiments.registry import Option, Quick, Seeds, register_experiment
from symrelu.experiments.tables import Entry, Table, fixed, scientific
from symrelu.fit.settings import Limits

Column = tuple[int, int, float, int]

# Only the tolerance on the relative error may stop a fit early, as in the paper.
LIMITS = Limits(tol=paper.TOL, gtol=0.0, ftol=0.0, max_iter=paper.SYNTHETIC_MAX_ITER)
SOLVER_MAX_ITER = 300  # the solvers that are not in the paper need fewer iterations for the same errors
QUICK_MOMENTA = (0.0, 0.4, 0.8, 1.0)
QUICK_COLUMNS = paper.SYNTHETIC_COLUMNS[:3]


@dataclass(frozen=True)
class Setting:
    """Settings that the paper does not state.

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
        """Description to print."""
        kind = {"random": "normal", "uniform": "uniform"}[self.init]
        return f"step {self.step_size:g}, {kind} random start"

    @property
    def stem(self) -> str:
        """Beginning of file names."""
        return f"synthetic_step{self.step_size:g}_{self.init}"


# The first one comes closest to the paper's numbers; each of the others changes one setting.
SETTINGS = (
    Setting(paper.STEP, "uniform"),
    Setting(paper.STEP, "random"),
    Setting(paper.THEORY_STEP, "uniform"),
)


@dataclass(frozen=True)
class Synthetic(Experiment):
    """Relative error after at most 1000 iterations, for each momentum, matrix, setting and seed.

    Parameters
    ----------
    seeds : int, default=5
        Number of matrices of each kind for the setting that reproduces the paper.
    beside : int, default=2
        The same for the other settings.
    quick : bool, default=False
        Whether to run one seed, four momenta and the three smallest problems only. The full run contains these
        cells too.
    """

    seeds: int = 5
    beside: int = 2
    quick: bool = False

    @property
    def title(self) -> str:
        """Title of the page, which says how much of the paper's table it covers."""
        part = f"{len(self.momenta)} momenta on {len(self.columns)} problems"
        return f"Synthetic matrices: {part}{' (quick version)' if self.quick else ''}"

    @property
    def momenta(self) -> tuple[float, ...]:
        """Momenta, the rows of the tables."""
        return QUICK_MOMENTA if self.quick else paper.MOMENTA

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the tables: m, r-bar, p and r."""
        return QUICK_COLUMNS if self.quick else paper.SYNTHETIC_COLUMNS

    def introduction(self) -> Sequence[str]:
        """Return paragraphs that say what was run."""
        return (
            "M = max(0, U Uᵀ - p max(U Uᵀ)) with a normal m x r̄ matrix U, fitted at rank r by AAPB with "
            f"b_k = momentum (k - 1)/(k + 2). Stopped at {paper.SYNTHETIC_MAX_ITER} iterations or a relative "
            f"error of {paper.TOL:g}. The paper also stopped at {paper.SYNTHETIC_MAX_SECONDS} s, which may "
            "have come first on its larger problems; here there is no time limit.",
            "The paper states neither the step size nor the start. Step 10, which its theory does not cover, "
            "with a uniform random start scaled to M comes closest to its numbers. For comparison: a normal "
            "start, and step 1, which the theory allows.",
        )

    def _seeds(self, setting: Setting) -> range:
        if self.quick:
            return range(1)
        return range(self.seeds if setting == SETTINGS[0] else min(self.seeds, self.beside))

    def cells(self) -> Sequence[Cell]:
        """Return all fits, those of the setting that reproduces the paper first."""
        return [
            self._cell(column, momentum, setting, seed)
            for setting in SETTINGS
            for column in self.columns
            for seed in self._seeds(setting)
            for momentum in self.momenta
        ] + [
            self._solver_cell(column, method, seed)
            for column in self.columns
            for seed in self._seeds(SETTINGS[-1])
            for method in OURS
        ]

    def _solver_cell(self, column: Column, method: ReluFit, seed: int) -> Cell:
        n, planted_rank, shift, rank = column
        # min, so that tests and quick trials can shorten all fits by replacing LIMITS.
        limits = replace(LIMITS, max_iter=min(SOLVER_MAX_ITER, LIMITS.max_iter))
        return Cell(ReluGram(n, planted_rank, shift), rank, method, seed, limits)

    def _cell(self, column: Column, momentum: float, setting: Setting, seed: int) -> Cell:
        n, planted_rank, shift, rank = column
        method = aapb(setting.step_size, momentum, setting.init)
        return Cell(ReluGram(n, planted_rank, shift), rank, method, seed, LIMITS)

    def _results(self, results: Results, column: Column, momentum: float, setting: Setting) -> list[CellResult]:
        cells = (self._cell(column, momentum, setting, seed) for seed in self._seeds(setting))
        return results_of(cells, results)

    def tables(self, results: Results) -> Sequence[Table]:
        """Return errors and iterations for each setting, then those of the solvers not in the paper."""
        errors = [self._table(results, setting, "error") for setting in SETTINGS]
        iterations = [self._table(results, setting, "iterations") for setting in SETTINGS]
        solvers = [self._solver_table(results, what) for what in ("error", "evaluations")]
        return [*errors, self._passing_table(results), *iterations, *solvers]

    def _solver_table(self, results: Results, what: str) -> Table:
        is_error = what == "error"
        seeds = self._seeds(SETTINGS[-1])
        number = attrgetter("relative_error" if is_error else "n_evaluations")
        rows = []
        for method in OURS:
            runs = (
                results_of((self._solver_cell(column, method, seed) for seed in seeds), results)
                for column in self.columns
            )
            rows.append((method.name, tuple(Entry.of(run, number) for run in runs)))
        return Table(
            f"synthetic_solvers_{what}",
            f"{'Relative error' if is_error else 'Evaluations'}, solvers that the paper does not have",
            "solver",
            self._heads,
            tuple(rows),
            form=scientific(2) if is_error else fixed(0),
            note=f"At most {SOLVER_MAX_ITER} iterations. AAPB starts from normal random numbers, the "
            "others from the imputed start.",
            seeds=len(seeds),
        )

    def _passing_table(self, results: Results) -> Table:
        """Return the iteration at which a run would have had to stop to end with the paper's number.

        The paper also had a time limit. If that had ended its fits, all rows of a column would show about the
        same number of iterations.
        """
        setting = SETTINGS[0]
        rows = []
        for momentum in self.momenta:
            row = []
            for column in self.columns:
                runs = self._results(results, column, momentum, setting)
                # One number per entry: the mean error of the seeds is compared, not the error of each.
                passed = first_at_or_below(runs, paper.SYNTHETIC_ERROR[momentum, column])
                row.append(None if passed is None else Entry(passed, count=len(runs)))
            rows.append((f"{momentum:g}", tuple(row)))
        return Table(
            f"{setting.stem}_passing",
            f"Iterations after which the mean error is at most the paper's, {setting.title}",
            "momentum",
            self._heads,
            tuple(rows),
            form=fixed(0),
            note="n/a: the final error is above the paper's, by a few percent or in the last digit.",
            seeds=len(self._seeds(setting)),
        )

    @property
    def _heads(self) -> tuple[str, ...]:
        return tuple(f"{n}, {planted}, p={p:g}, r={r}" for n, planted, p, r in self.columns)

    def _table(self, results: Results, setting: Setting, what: str) -> Table:
        is_error = what == "error"
        number = attrgetter("relative_error" if is_error else "n_iter")
        show_paper = is_error and setting.step_size == paper.STEP
        rows = []
        for momentum in self.momenta:
            row = []
            for column in self.columns:
                printed = paper.SYNTHETIC_ERROR[momentum, column] if show_paper else None
                row.append(Entry.of(self._results(results, column, momentum, setting), number, printed))
            rows.append((f"{momentum:g}", tuple(row)))
        note = "Columns: m, r̄, p and the rank r of the fit."
        return Table(
            f"{setting.stem}_{what}",
            f"{'Relative error' if is_error else 'Iterations'}, {setting.title}",
            "momentum",
            self._heads,
            tuple(rows),
            form=scientific(2) if is_error else fixed(0),
            note=note if is_error else f"{paper.SYNTHETIC_MAX_ITER} is the limit. {note}",
            seeds=len(self._seeds(setting)),
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the paper's first figure, in the setting that reproduces it."""
        panels = {}
        for column in self.columns:
            if column in paper.SYNTHETIC_FIGURE:
                n, planted, p, r = column
                lines = {
                    momentum: (runs, paper.SYNTHETIC_ERROR[momentum, column])
                    for momentum in self.momenta
                    if (runs := self._results(results, column, momentum, SETTINGS[0]))
                }
                if lines:  # all cells of a panel may have failed
                    panels[f"m={n}, r̄={planted}, p={p:g}, r={r}"] = lines
        if not panels:
            return []
        caption = (
            f"Relative error against iterations ({SETTINGS[0].title}), one line per momentum: the median over "
            "the seeds, with the range from lowest to highest shaded. Crosses at the right edge: the values of "
            "the paper's table."
        )
        return [Figure("figure1", caption, draw_momenta(panels))]


Beside = Annotated[
    int | None, Option("The same for the other settings (2 if not given).", minimum=1, chosen_by_quick=True)
]


@register_experiment("synthetic")
def make_synthetic(seeds: Seeds = None, beside: Beside = None, quick: Quick = False) -> Synthetic:
    """Seven momenta on the paper's eight synthetic problems, with its first figure (5 seeds)."""
    return Synthetic(seeds=seeds or 5, beside=beside or 2, quick=quick)


def first_at_or_below(runs: Sequence[CellResult], value: float) -> int | None:
    """Return the first iteration at which the mean of the relative errors is at most ``value``."""
    if not runs:
        return None
    # Runs that ended early keep their last error, so that all seeds count in each mean.
    reached = np.flatnonzero(columns_of(runs, "relative_error").mean(axis=0) <= value)
    return int(reached[0]) if reached.size else None
