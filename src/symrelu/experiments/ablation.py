"""One setting changed at a time, starting from those that reproduce the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from symrelu.experiments import paper, real, synthetic
from symrelu.experiments.cases import Case, ReluGram, SampleGraph
from symrelu.experiments.cells import Cell, CellResult
from symrelu.experiments.experiment import Experiment, Results, results_of
from symrelu.experiments.methods import ReluFit, aapb
from symrelu.experiments.registry import DataHome, Quick, Seeds, find_chosen, register_experiment
from symrelu.experiments.tables import Entry, Table, fixed, scientific
from symrelu.fit.settings import Limits
from symrelu.solvers import AAPB

REPRODUCING = replace(aapb(paper.STEP), name=f"step {paper.STEP:g}, normal start, alpha 0")


def _with_step(step: float) -> ReluFit:
    return replace(REPRODUCING, name=f"step {step:g}", solver=AAPB(step_size=step))


# Names are printed only; the other fields identify the stored fits.
METHODS = (
    REPRODUCING,
    _with_step(1.0),
    _with_step(3.0),
    _with_step(30.0),
    replace(REPRODUCING, name="uniform start", init="uniform"),
    replace(REPRODUCING, name="spectral start", init="spectral"),
    replace(REPRODUCING, name="alpha 1e-3", alpha=1e-3),
    replace(REPRODUCING, name="alpha 1e-1", alpha=1e-1),
    replace(REPRODUCING, name="safeguard, step 10", solver=AAPB(step_size=paper.STEP, safeguard=True)),
    replace(REPRODUCING, name="safeguard, step 1", solver=AAPB(step_size=paper.THEORY_STEP, safeguard=True)),
)
# A matrix that the model can fit exactly, and one that it cannot.
SYNTHETIC = ((ReluGram(500, 10, 0.0), 12), (ReluGram(500, 10, 0.1), 70))
SETS = ("ORL", "COIL20")


@dataclass(frozen=True)
class Ablation(Experiment):
    """Errors after the paper's number of iterations, with one setting changed at a time.

    Parameters
    ----------
    cases : tuple of SampleGraph
        The graphs of ORL and COIL20, if they were found.
    missing : tuple of str
        Messages about those that were not found.
    seeds : int, default=3
    quick : bool, default=False
        Whether to run the small problems only.
    """

    cases: tuple[SampleGraph, ...] = ()
    missing: tuple[str, ...] = ()
    seeds: int = 3
    quick: bool = False

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"One setting changed at a time{' (quick version)' if self.quick else ''}"

    def introduction(self) -> Sequence[str]:
        """Return paragraphs that say what was run."""
        setting = (
            "The settings that reproduce the paper's real data are AAPB with momentum 1, step 10, alpha 0, a "
            "normal random start scaled to M, and no safeguard. Each row changes one of them; the last row "
            f"has the settings that the convergence theorem covers. Stopped after {paper.SYNTHETIC_MAX_ITER} "
            "iterations or at a relative error of 1e-4 on the synthetic matrices, and after "
            f"{paper.REAL_MAX_ITER} iterations on the graphs."
        )
        return (setting, *(f"Not run. {reason}" for reason in self.missing))

    def problems(self) -> list[tuple[Case, int, Limits]]:
        """Return the matrices with the rank and the limits of their fits."""
        graphs: list[tuple[Case, int, Limits]] = [
            (case, paper.REAL_RANK[case.key], real.LIMITS) for case in self.cases
        ]
        graphs.append((real.DIGITS, real.DIGITS_RANK, real.LIMITS))
        matrices = SYNTHETIC[:1] if self.quick else SYNTHETIC
        return [*((case, rank, synthetic.LIMITS) for case, rank in matrices), *graphs]

    def cells(self) -> Sequence[Cell]:
        """Return all fits, those of the same matrix one after another."""
        return [
            Cell(case, rank, method, seed, limits)
            for case, rank, limits in self.problems()
            for seed in range(self.seeds)
            for method in METHODS
        ]

    def _results(
        self, results: Results, problem: tuple[Case, int, Limits], method: ReluFit
    ) -> list[CellResult]:
        case, rank, limits = problem
        cells = (Cell(case, rank, method, seed, limits) for seed in range(self.seeds))
        return results_of(cells, results)

    def tables(self, results: Results) -> Sequence[Table]:
        """Return the errors and the evaluations."""
        rows = {
            method.name: [self._results(results, problem, method) for problem in self.problems()]
            for method in METHODS
        }
        errors = self._table("ablation_error", "Relative error", rows, lambda result: result.relative_error)
        evaluations = self._table(
            "ablation_evaluations", "Evaluations", rows, lambda result: result.n_evaluations
        )
        note = "With the safeguard, a step takes two evaluations."
        return [
            replace(errors, form=_three_digits),
            replace(evaluations, form=fixed(0), note=note),
        ]

    def _table(
        self,
        name: str,
        title: str,
        rows: dict[str, list[list[CellResult]]],
        number: Callable[[CellResult], float],
    ) -> Table:
        heads = tuple(f"{case.name}, r={rank}" for case, rank, _ in self.problems())
        entries = ((label, tuple(Entry.of(runs, number) for runs in row)) for label, row in rows.items())
        return Table(name, title, "setting", heads, tuple(entries), seeds=self.seeds)


def _three_digits(value: float) -> str:
    # The errors of one table range from 1e-4 to 1.
    return f"{value:.3f}" if value >= 0.1 else scientific(2)(value)


@register_experiment("ablation")
def make_ablation(data: DataHome = None, seeds: Seeds = None, quick: Quick = False) -> Ablation:
    """Step, start, alpha and safeguard changed one at a time from the paper's settings (3 seeds)."""
    cases, missing = find_chosen(real.find_data_sets, data, SETS, paper.REAL_RANK)
    return Ablation(cases, missing, seeds=1 if quick else seeds or 3, quick=quick)
