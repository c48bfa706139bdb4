"""The signed model beside the paper's: errors, with what a fit is worth on pairs it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from symrelu.experiments import paper, real
from symrelu.experiments.cases import Case, PublishedGraph, ReluGram, SampleGraph, matrix_of
from symrelu.experiments.cells import Cell, CellResult
from symrelu.experiments.experiment import Experiment, Figure, Results, results_of
from symrelu.experiments.methods import ModelFit
from symrelu.experiments.tables import Entry, Table
from symrelu.loop import Limits
from symrelu.metrics import parameters_per_pair

HELD_OUT = 0.1
LIMITS = Limits(tol=paper.TOL, gtol=0.0, ftol=0.0, max_iter=200)
# The graphs of the paper's data take minutes: they get as many iterations as in the paper.
GRAPH_LIMITS = replace(LIMITS, max_iter=paper.REAL_MAX_ITER)

# The diagonal of the synthetic matrices is data, that of a graph is not.
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

SHIFTED = tuple((ReluGram(n, planted, p), planted + 1) for n, planted, p in paper.SHIFTED)
GRAPHS = ("cora", "email-Eu-core", "polblogs")
GRAPH_RANK = 32
QUICK_SETS = ("ORL", "COIL20")


@dataclass(frozen=True)
class Signed(Experiment):
    """Relative error, error on hidden pairs and evaluations of four models.

    Parameters
    ----------
    cases : tuple of SampleGraph or PublishedGraph
        The graphs that were found, see :func:`find_signed_data`. The digits are always there.
    missing : tuple of str
        What was not found, and where to get it.
    seeds : int, default=5
        Number of synthetic matrices of each kind; a graph is fitted once.
    quick : bool, default=False
        One seed.
    """

    cases: tuple[SampleGraph | PublishedGraph, ...] = ()
    missing: tuple[str, ...] = ()
    seeds: int = 5
    quick: bool = False

    @property
    def title(self) -> str:
        """Say what it is."""
        return f"The signed model{' (quick version)' if self.quick else ''}"

    def introduction(self) -> Sequence[str]:
        """Say what was run."""
        return (
            "X = (U * s) Uᵀ with signs s: with negative columns X may have negative eigenvalues. Fitted by the "
            "defaults of decompose (LBFGS from the imputed start), stopped at a relative error of "
            f"{paper.TOL:g}, after {LIMITS.max_iter} iterations on the synthetic matrices and after "
            f"{GRAPH_LIMITS.max_iter} on the graphs.",
            "A closer fit may be interpolation: from one number in U for each positive pair on, the model can "
            "go through all of them. Therefore the numbers per pair and a second error stand beside each fit: "
            f"that on a tenth ({HELD_OUT:g}) of the pairs, which another fit of the same kind was not shown. "
            "It is relative to the norm of the hidden entries, so that 1 is what predicting zero would give.",
            *(f"Not run. {reason}" for reason in self.missing),
        )

    def _seeds(self, case: Case) -> range:
        return range(1 if self.quick or not case.random else self.seeds)

    def matrices(self) -> list[tuple[Case, int]]:
        """Return the synthetic matrices and their rank, one more than planted."""
        return list(SHIFTED)

    def graphs(self) -> list[tuple[Case, int]]:
        """Return the graphs and the rank of their fits, small ones first."""
        found: list[tuple[Case, int]] = [(real.DIGITS, real.DIGITS_RANK)]
        for case in self.cases:
            rank = paper.REAL_RANK[case.key] if isinstance(case, SampleGraph) else GRAPH_RANK
            found.append((case, rank))
        return sorted(found, key=lambda item: item[0].n)

    def cells(self) -> Sequence[Cell]:
        """Return all fits, those of a matrix after each other."""
        found = []
        for problems, models, limits in (
            (self.matrices(), MATRIX_MODELS, LIMITS),
            (self.graphs(), GRAPH_MODELS, GRAPH_LIMITS),
        ):
            for case, rank in problems:
                for seed in self._seeds(case):
                    for model in models:
                        found += [Cell(case, rank, fit, seed, limits) for fit in (model, _judged(model))]
        return found

    def tables(self, results: Results) -> Sequence[Table]:
        """Return the errors with what stands beside them, and the evaluations."""
        matrices = (self.matrices(), MATRIX_MODELS, LIMITS)
        graphs = (self.graphs(), GRAPH_MODELS, GRAPH_LIMITS)
        return [
            self._errors(results, "signed_matrices_error", "Relative errors, synthetic matrices", *matrices),
            self._errors(results, "signed_graphs_error", "Relative errors, graphs", *graphs),
            self._evaluations(results, "signed_matrices_evaluations", "Evaluations, synthetic", *matrices),
            self._evaluations(results, "signed_graphs_evaluations", "Evaluations, graphs", *graphs),
        ]

    def _runs(
        self, results: Results, case: Case, rank: int, model: ModelFit, limits: Limits
    ) -> list[CellResult]:
        return results_of((Cell(case, rank, model, seed, limits) for seed in self._seeds(case)), results)

    def _errors(
        self,
        results: Results,
        name: str,
        title: str,
        problems: Sequence[tuple[Case, int]],
        models: Sequence[ModelFit],
        limits: Limits,
    ) -> Table:
        rows = []
        for case, rank in problems:
            entries: list[Entry | None] = [_numbers_per_pair(case, rank)]
            for model in models:
                for fit in (model, _judged(model)):
                    runs = self._runs(results, case, rank, fit, limits)
                    entries.append(Entry.of(runs, lambda result: result.relative_error))
            rows.append((_label(case, rank), tuple(entries)))
        heads = [head for model in models for head in (model.name, f"{model.name}: hidden pairs")]
        return Table(
            name,
            title,
            "matrix",
            ("numbers per pair", *heads),
            tuple(rows),
            form=_short,
            note="Of a close fit with many numbers per pair only the error of the hidden pairs says something.",
        )

    def _evaluations(
        self,
        results: Results,
        name: str,
        title: str,
        problems: Sequence[tuple[Case, int]],
        models: Sequence[ModelFit],
        limits: Limits,
    ) -> Table:
        rows = []
        for case, rank in problems:
            runs = (self._runs(results, case, rank, model, limits) for model in models)
            entries = tuple(Entry.of(run, lambda result: result.n_evaluations) for run in runs)
            rows.append((_label(case, rank), entries))
        heads = tuple(model.name for model in models)
        note = f"To a relative error of {paper.TOL:g}, or for {limits.max_iter} iterations."
        return Table(name, title, "matrix", heads, tuple(rows), form=lambda value: f"{value:.0f}", note=note)

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return none: the tables say it."""
        return []


def _judged(model: ModelFit) -> ModelFit:
    """Return the same fit, judged by pairs that it is not shown."""
    return replace(model, name=f"{model.name}: hidden pairs", held_out=HELD_OUT)


def _label(case: Case, rank: int) -> str:
    size = "" if isinstance(case, ReluGram) else f", n={case.n}"
    return f"{case.name}{size}, r={rank}"


def _numbers_per_pair(case: Case, rank: int) -> Entry:
    return Entry(parameters_per_pair(matrix_of(case, 0), rank))


def _short(value: float) -> str:
    return f"{value:.3g}" if value >= 1e-3 else f"{value:.1e}".replace("e-0", "e-")


def find_signed_data(
    data_home: str | None = None, names: Sequence[str] = (*paper.REAL_RANK, *GRAPHS)
) -> tuple[tuple[SampleGraph | PublishedGraph, ...], tuple[str, ...]]:
    """Look for the files of the data sets and graphs.

    Parameters
    ----------
    data_home : str, optional
        Folder with the files; by default the one in ``SYMRELU_DATA``.
    names : sequence of str
        Which of the six sets and three graphs are wanted.

    Returns
    -------
    cases : tuple of SampleGraph or PublishedGraph
        Those that were found.
    missing : tuple of str
        A sentence for each of the others.
    """
    cases: list[SampleGraph | PublishedGraph] = []
    missing = []
    for name in names:
        kind = PublishedGraph if name in GRAPHS else SampleGraph
        try:
            cases.append(kind.find(name, data_home))
        except (OSError, ValueError) as error:
            missing.append(str(error))
    return tuple(cases), tuple(missing)
