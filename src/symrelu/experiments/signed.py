"""The signed model compared with the paper's: errors of the fit and on held-out pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from symrelu.experiments import paper, real
from symrelu.experiments.cases import Case, PublishedGraph, ReluGram, SampleGraph, find_cases, matrix_of
from symrelu.experiments.cells import Cell
from symrelu.experiments.experiment import Experiment, Results, results_of
from symrelu.experiments.methods import ModelFit
from symrelu.experiments.registry import DataHome, Option, Quick, Seeds, find_chosen, register_experiment
from symrelu.experiments.tables import Entry, Table, fixed
from symrelu.fit.settings import Limits
from symrelu.metrics import parameters_per_pair

HELD_OUT = 0.1
LIMITS = Limits(tol=paper.TOL, gtol=0.0, ftol=0.0, max_iter=200)
# The graphs of the paper's data take minutes, so they get only as many iterations as in the paper.
GRAPH_LIMITS = replace(LIMITS, max_iter=paper.REAL_MAX_ITER)

# The diagonal of a synthetic matrix is data. That of a graph is zero by convention, so most models ignore it.
MATRIX_MODELS = (
    ModelFit("the paper's model"),
    ModelFit("one negative column", n_negative=1),
    ModelFit("n_negative='auto'", n_negative="auto"),
)
GRAPH_MODELS = (
    ModelFit("the paper's model"),
    ModelFit("no diagonal", diagonal="ignore"),
    ModelFit("one negative column, no diagonal", n_negative=1, diagonal="ignore"),
    ModelFit("n_negative='auto', no diagonal", n_negative="auto", diagonal="ignore"),
)

# One negative column in addition to the planted ones makes an exact fit possible.
SHIFTED = tuple((ReluGram(n, planted, p), planted + 1) for n, planted, p in paper.SHIFTED)
GRAPHS = ("cora", "email-Eu-core", "polblogs")
GRAPH_RANK = 32  # these graphs are not in the paper; the rank is our choice
QUICK_SETS = ("ORL", "COIL20")


class Part(NamedTuple):
    """Matrices with their ranks, and the models that are fitted to them."""

    name: str
    title: str
    problems: Sequence[tuple[Case, int]]
    models: Sequence[ModelFit]
    limits: Limits
    seeds: int


@dataclass(frozen=True)
class Signed(Experiment):
    """Relative error, error on held-out pairs and evaluations of four models.

    Parameters
    ----------
    cases : tuple of SampleGraph or PublishedGraph
        The graphs that were found, see :func:`find_signed_data`. The digits are always included.
    missing : tuple of str
        Messages about the graphs that were not found.
    seeds : int, default=5
        Number of synthetic matrices of each kind. Each graph is fitted once.
    quick : bool, default=False
        Whether to use one seed only.
    """

    cases: tuple[SampleGraph | PublishedGraph, ...] = ()
    missing: tuple[str, ...] = ()
    seeds: int = 5
    quick: bool = False

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"The signed model{' (quick version)' if self.quick else ''}"

    def introduction(self) -> Sequence[str]:
        """Return paragraphs that say what was run."""
        return (
            "X = (U * s) Uᵀ with signs s: with negative columns X can have negative eigenvalues. Fitted with "
            "the defaults of decompose (LBFGS from the imputed start), stopped at a relative error of "
            f"{paper.TOL:g}, after {LIMITS.max_iter} iterations on the synthetic matrices and after "
            f"{GRAPH_LIMITS.max_iter} on the graphs.",
            "A closer fit may be interpolation: once U has at least one number per positive pair, the "
            "model can reproduce all of them. The tables therefore also show the numbers in U per positive "
            "pair, and a second error: a separate fit with the same settings is evaluated on held-out "
            f'pairs, a fraction {HELD_OUT:g} of all ("hidden pairs"). It is relative to the norm of the '
            "held-out entries, so that predicting zero gives 1.",
            *(f"Not run. {reason}" for reason in self.missing),
        )

    def parts(self) -> list[Part]:
        """Return the synthetic matrices at one rank above the planted one, and the graphs, small ones first."""
        graphs: list[tuple[Case, int]] = [(real.DIGITS, real.DIGITS_RANK)]
        for case in self.cases:
            rank = paper.REAL_RANK[case.key] if isinstance(case, SampleGraph) else GRAPH_RANK
            graphs.append((case, rank))
        graphs.sort(key=lambda item: item[0].n)  # the first results of a long run come early
        seeds = 1 if self.quick else self.seeds
        return [
            Part("matrices", "synthetic matrices", SHIFTED, MATRIX_MODELS, LIMITS, seeds),
            Part("graphs", "graphs", graphs, GRAPH_MODELS, GRAPH_LIMITS, seeds=1),
        ]

    def cells(self) -> Sequence[Cell]:
        """Return all fits, those of the same matrix one after another."""
        return [
            Cell(case, rank, fit, seed, part.limits)
            for part in self.parts()
            for case, rank in part.problems
            for seed in range(part.seeds)
            for model in part.models
            for fit in (model, _on_held_out_pairs(model))
        ]

    def tables(self, results: Results) -> Sequence[Table]:
        """Return the errors, those on held-out pairs included, and the evaluations."""
        parts = self.parts()
        return [
            *(self._errors(results, part) for part in parts),
            *(self._evaluations(results, part) for part in parts),
        ]

    def _entry(
        self, results: Results, part: Part, problem: tuple[Case, int], fit: ModelFit, number: str
    ) -> Entry | None:
        case, rank = problem
        cells = (Cell(case, rank, fit, seed, part.limits) for seed in range(part.seeds))
        return Entry.of(results_of(cells, results), lambda result: float(getattr(result, number)))

    def _errors(self, results: Results, part: Part) -> Table:
        fits = [fit for model in part.models for fit in (model, _on_held_out_pairs(model))]
        rows = []
        for problem in part.problems:
            entries = (self._entry(results, part, problem, fit, "relative_error") for fit in fits)
            # The matrices of all seeds have about the same number of positive pairs; that of seed 0 is shown.
            per_pair = Entry(parameters_per_pair(matrix_of(problem[0], 0), problem[1]), count=part.seeds)
            rows.append((_label(*problem), (per_pair, *entries)))
        return Table(
            f"signed_{part.name}_error",
            f"Relative errors, {part.title}",
            "matrix",
            ("numbers per pair", *(fit.name for fit in fits)),
            tuple(rows),
            form=_at_most_three_digits,
            note="With many numbers per pair, only the error on held-out pairs tells how good a close fit is.",
            seeds=part.seeds,
        )

    def _evaluations(self, results: Results, part: Part) -> Table:
        rows = []
        for problem in part.problems:
            entries = (self._entry(results, part, problem, model, "n_evaluations") for model in part.models)
            rows.append((_label(*problem), tuple(entries)))
        return Table(
            f"signed_{part.name}_evaluations",
            f"Evaluations, {part.title}",
            "matrix",
            tuple(model.name for model in part.models),
            tuple(rows),
            form=fixed(0),
            note=f"Up to a relative error of {paper.TOL:g} or {part.limits.max_iter} iterations.",
            seeds=part.seeds,
        )


def _on_held_out_pairs(model: ModelFit) -> ModelFit:
    """Return the same fit, evaluated on pairs that are held out."""
    return replace(model, name=f"{model.name}: hidden pairs", held_out=HELD_OUT)


def _label(case: Case, rank: int) -> str:
    size = "" if isinstance(case, ReluGram) else f", n={case.n}"
    return f"{case.name}{size}, r={rank}"


def _at_most_three_digits(value: float) -> str:
    return f"{value:.3g}" if value >= 1e-3 else f"{value:.1e}".replace("e-0", "e-")


def find_signed_data(
    data_home: str | None = None, names: Sequence[str] = (*paper.REAL_RANK, *GRAPHS)
) -> tuple[tuple[SampleGraph | PublishedGraph, ...], tuple[str, ...]]:
    """Find the files of the paper's data sets and of three graphs.

    Parameters
    ----------
    data_home : str, optional
        Folder that holds the files. Defaults to the folder named by ``SYMRELU_DATA``.
    names : sequence of str
        Names of the sets and graphs to look for. Defaults to all nine.

    Returns
    -------
    cases : tuple of SampleGraph or PublishedGraph
        The sets and graphs that were found.
    missing : tuple of str
        As returned by :func:`~symrelu.experiments.find_data_sets`.
    """

    def find(name: str) -> SampleGraph | PublishedGraph:
        return (PublishedGraph if name in GRAPHS else SampleGraph).find(name, data_home)

    return find_cases(find, names)


Only = Annotated[list[str] | None, Option("A set or graph (repeatable; all if none).", chosen_by_quick=True)]


@register_experiment("signed")
def make_signed(only: Only = None, data: DataHome = None, seeds: Seeds = None, quick: Quick = False) -> Signed:
    """The signed model compared with the paper's, with errors on held-out pairs (5 seeds)."""
    known = (*paper.REAL_RANK, *GRAPHS)
    cases, missing = find_chosen(find_signed_data, data, only or (QUICK_SETS if quick else known), known)
    return Signed(cases, missing, seeds=seeds or 5, quick=quick)
