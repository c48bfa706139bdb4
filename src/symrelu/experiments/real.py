"""The paper's table of real data: six graphs, four methods, and the four panels of its second figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from symrelu.experiments import paper
from symrelu.experiments.cases import Case, DigitsGraph, SampleGraph, find_cases
from symrelu.experiments.cells import Cell, CellResult
from symrelu.experiments.experiment import Experiment, Figure, Results, results_of
from symrelu.experiments.figures import MethodCurve, draw_methods
from symrelu.experiments.methods import OURS, SYMANLS, SYMHALS, EigenvalueBound, Method, aapb
from symrelu.experiments.registry import DataHome, Option, Quick, Seeds, find_chosen, register_experiment
from symrelu.experiments.tables import Entry, Table, fixed
from symrelu.fit.settings import Limits

# Only the tolerance on the relative error may stop a fit early, as in the paper.
LIMITS = Limits(tol=paper.TOL, gtol=0.0, ftol=0.0, max_iter=paper.REAL_MAX_ITER)
BOUND = EigenvalueBound()

# Name in the paper's table -> method.
PAPER_METHODS: dict[str, Method] = {
    "SymANLS": SYMANLS,
    "SymHALS": SYMHALS,
    "APB": aapb(paper.STEP, 0.0),
    "AAPB": aapb(paper.STEP),
}
# Compared with step 1, which the paper's theory allows, and with the solvers that the paper does not have.
METHODS: tuple[Method, ...] = (
    *PAPER_METHODS.values(),
    aapb(paper.THEORY_STEP, 0.0),
    aapb(paper.THEORY_STEP),
    *OURS,
)

DIGITS = DigitsGraph()
DIGITS_RANK = 10  # the number of classes, as in the paper's table
QUICK_SETS = ("ORL", "COIL20")


@dataclass(frozen=True)
class Real(Experiment):
    """Half squared error after 100 iterations, for each data set and method.

    Parameters
    ----------
    cases : tuple of SampleGraph
        The data sets that were found, see :func:`find_data_sets`.
    missing : tuple of str
        Messages about the sets that were not found.
    seeds : int, default=1
        Number of starts.
    """

    cases: tuple[SampleGraph, ...] = ()
    missing: tuple[str, ...] = ()
    seeds: int = 1

    @property
    def title(self) -> str:
        """Title of the page, which says how many sets are missing."""
        absent = len(paper.REAL_RANK) - len(self.cases)
        part = f" ({absent} of the paper's {len(paper.REAL_RANK)} sets are not in it)" if absent else ""
        return f"Real data: graphs of images and texts{part}"

    def introduction(self) -> Sequence[str]:
        """Return paragraphs that say what was run."""
        setting = (
            "M is the self-tuning graph of the samples (floor(log2 n) + 1 neighbours, scaled by the distance "
            f"to the 7th, normalised). Each fit makes {paper.REAL_MAX_ITER} iterations, with no time limit. "
            "SymANLS and SymHALS fit M ~ U Uᵀ with U ≥ 0 (coupling 0.66, uniform random start) and are scored "
            "by it; APB and AAPB fit M ~ max(0, U Uᵀ) from a random start scaled to M; Eigen and LBFGS, which "
            "the paper does not have, fit the same model from the imputed start. An iteration of LBFGS or "
            "adaptive AAPB may take more than one evaluation. Seconds are those of the steps on the machine "
            "below, which may have been busy."
        )
        which = (
            "The caption of the paper's table says relative error, but its numbers are half squared errors, ½ "
            "(relative error)²: no U Uᵀ of that rank can have a relative error below the eigenvalue bound, "
            "and all of its numbers for SymANLS and SymHALS would lie far below it. Both are shown here."
        )
        return (setting, which, *(f"Not run. {reason}" for reason in self.missing))

    def ranks(self) -> dict[Case, int]:
        """Return the rank of the fits of each graph."""
        return {**{case: paper.REAL_RANK[case.key] for case in self.cases}, DIGITS: DIGITS_RANK}

    def cells(self) -> Sequence[Cell]:
        """Return all fits, those of small graphs first."""
        ranks = sorted(self.ranks().items(), key=lambda item: item[0].n)
        return [
            self._cell(case, rank, method, seed)
            for case, rank in ranks
            for method in (BOUND, *METHODS)
            for seed in range(self.seeds)
        ]

    def _cell(self, case: Case, rank: int, method: Method, seed: int) -> Cell:
        return Cell(case, rank, method, seed, LIMITS)

    def _results(self, results: Results, case: Case, rank: int, method: Method) -> list[CellResult]:
        cells = (self._cell(case, rank, method, seed) for seed in range(self.seeds))
        return results_of(cells, results)

    def tables(self, results: Results) -> Sequence[Table]:
        """Return both errors, the errors within as many evaluations as AAPB makes, and the seconds."""
        note = f"After {paper.REAL_MAX_ITER} iterations. The bound is that of any U Uᵀ of this rank."
        columns = (BOUND, *METHODS)
        return [
            self._table(
                results,
                columns,
                lambda result: result.half_squared_error,
                name="real_half_squared_error",
                title="Half squared error, ½ (‖M - model‖ / ‖M‖)²",
                note=note,
                with_paper_numbers=True,
            ),
            self._table(
                results,
                columns,
                lambda result: result.relative_error,
                name="real_relative_error",
                title="Relative error, ‖M - model‖ / ‖M‖",
                note=note,
            ),
            self._table(
                results,
                OURS,
                lambda result: result.error_within(paper.REAL_MAX_ITER) ** 2 / 2,
                name="real_within_evaluations",
                title=f"Half squared error within {paper.REAL_MAX_ITER} evaluations",
                note="Methods that are not in the paper, with the same number of evaluations as its methods.",
            ),
            self._table(
                results,
                METHODS,
                lambda result: result.seconds,
                name="real_seconds",
                title=f"Seconds for {paper.REAL_MAX_ITER} iterations",
                note=f"Without the time to build the graph. The paper allows {paper.REAL_MAX_SECONDS} s.",
                digits=1,
            ),
        ]

    def _table(
        self,
        results: Results,
        columns: Sequence[Method],
        number: Callable[[CellResult], float],
        *,
        name: str,
        title: str,
        note: str,
        digits: int = 3,
        with_paper_numbers: bool = False,
    ) -> Table:
        rows = []
        for case, rank in self.ranks().items():
            entries = (
                Entry.of(
                    self._results(results, case, rank, method),
                    number,
                    printed_value(case, method) if with_paper_numbers else None,
                )
                for method in columns
            )
            rows.append((f"{case.name}, n={case.n}, r={rank}", tuple(entries)))
        heads = tuple(method.name for method in columns)
        return Table(
            name,
            title,
            "graph",
            heads,
            tuple(rows),
            form=fixed(digits),
            paper_form=fixed(2),
            note=note,
            seeds=self.seeds,
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the paper's second figure, or that of the digits if its data are missing."""
        ranks = self.ranks()
        found = {case.key: case for case in self.cases}
        shown: list[Case] = [found[key] for key in paper.REAL_FIGURE if key in found]
        panels, bounds = {}, {}
        for case in shown or [DIGITS]:
            # The name of a reconstruction is too long for one line above its panel.
            title = f"{case.name}, r={ranks[case]}".replace(" (", "\n(")
            curves = [
                MethodCurve(
                    method.name,
                    self._results(results, case, ranks[case], method),
                    printed_value(case, method),
                )
                for method in METHODS
            ]
            if not any(curve.runs for curve in curves):  # all cells of a panel may have failed
                continue
            panels[title] = curves
            bound = self._results(results, case, ranks[case], BOUND)
            if bound:
                bounds[title] = bound[0].half_squared_error
        if not panels:
            return []
        caption = (
            "Half squared error against iterations (above) and seconds (below) for the first start. Symbols at "
            "the right edge: the values of the paper's table (square SymANLS, diamond SymHALS, triangle APB, "
            "circle AAPB). Dotted line: lower bound for any U Uᵀ of this rank."
        )
        return [Figure("figure2", caption, draw_methods(panels, bounds))]


def printed_value(case: Case, method: Method) -> float | None:
    """Return the value in the paper's table for a set and a method, or None if there is none."""
    # The digits are not in the paper and have no key.
    row = paper.REAL_HALF_SQUARED_ERROR.get(getattr(case, "key", ""), {})
    return next((row[name] for name, ours in PAPER_METHODS.items() if ours == method and row), None)


def find_data_sets(
    data_home: str | None = None, names: Sequence[str] = tuple(paper.REAL_RANK)
) -> tuple[tuple[SampleGraph, ...], tuple[str, ...]]:
    """Find the files of the paper's data sets.

    Parameters
    ----------
    data_home : str, optional
        Folder that holds the files. Defaults to the folder named by ``SYMRELU_DATA``.
    names : sequence of str
        Names of the sets to look for. Defaults to all six.

    Returns
    -------
    cases : tuple of SampleGraph
        The sets that were found.
    missing : tuple of str
        One message for each of the others, which says what is missing and where it is published.
    """
    return find_cases(lambda name: SampleGraph.find(name, data_home), names)


Only = Annotated[list[str] | None, Option("A data set (repeatable; all if none).", chosen_by_quick=True)]


@register_experiment("real")
def make_real(only: Only = None, data: DataHome = None, seeds: Seeds = None, quick: Quick = False) -> Real:
    """Nine methods on the paper's six data sets and the digits, with its second figure (1 seed)."""
    names = only or (QUICK_SETS if quick else tuple(paper.REAL_RANK))
    cases, missing = find_chosen(find_data_sets, data, names, paper.REAL_RANK)
    return Real(cases, missing, seeds=seeds or 1)
