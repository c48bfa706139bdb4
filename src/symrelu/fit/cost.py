"""``estimate_cost``: the memory and the time of a fit, before it begins."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from symrelu.fit.backends import check_settings_supported
from symrelu.fit.calibration import calibrate
from symrelu.fit.loop import Callback
from symrelu.fit.memory_check import Refusal, available_for, cannot_fit, refusal
from symrelu.fit.memory_model import Case, Memory, memory_of
from symrelu.fit.settings import Limits, Model, Run, Start, documented, values_of
from symrelu.kernels.memory import in_words
from symrelu.kernels.threads import at_most_threads, kept_threads, single_threaded_blas
from symrelu.operators.pass_costs import least_share_of_scans
from symrelu.plots.cards import card
from symrelu.problem import Problem, remember_gpu
from symrelu.validation import check_choice, check_integer


class Range(NamedTuple):
    """The ends of a range."""

    low: float
    high: float


# How many evaluations fits took. Those in results/signed and results/starts that reached their tolerance, and
# graphs of 4000 to 64,000 nodes to a relative error of 1e-4, took 27 to 116 with LBFGS; in results/scaling,
# PubMed took 356 from a multilevel start; the synthetic matrices of results/synthetic that do not have so low
# a rank ended at the limit of 300 there. Newton took 17 to 59 in results/newton, 1.2 to 2.6 times fewer than
# LBFGS on the same graphs: its range is that of LBFGS, divided by 1.5. Methods of first order took 66 and more,
# and most of them ended at a limit of 1000.
_EVALUATIONS = {
    "LBFGS": Range(20, 400),
    "Newton": Range(13, 270),
    "Eigen": Range(30, 500),
    "AAPB": Range(70, 1000),
    "PALM": Range(70, 1000),
}
_EVALUATIONS_OF_OTHERS = Range(30, 1000)

# A step of LBFGS tries at most so many factors. In results/signed, fits that ended at a limit of 200 steps took
# up to 2.6 evaluations a step.
_EVALUATIONS_OF_A_STEP = 3

# An evaluation of Newton with its products takes so many times as long as one of LBFGS: the cpu time for each
# evaluation in results/newton, to 1e-3 and 1e-4. Calibration times steps of LBFGS, which Newton makes at large
# errors.
_NEWTON_PER_LBFGS = Range(1.2, 2.5)

_KEEP_CURVATURE = ("active", "reference")  # with others, each step of Newton has one more pass


@dataclass(frozen=True)
class Cost:
    """What a fit will cost, as :func:`symrelu.estimate_cost` returns it.

    Attributes
    ----------
    n, entries, rank : int
        Items, positive entries of M, and columns of U.
    dtype, solver, backend : str
        As in the fit; the backend is not "auto".
    threads : int
        That a pass may use.
    memory : Memory
        Bytes that the fit needs in addition to M: ``total`` is its peak, the sum of ``matrix``, ``factors``,
        ``tiles``, ``pairs``, ``levels``, ``systems`` and ``rest``, which is negative if not all of these are
        held at once.
    available : int or None
        Bytes that this process can still allocate, or None if the system does not say.
    seconds_per_evaluation : Range or None
        With what the solver does in between. The ends differ with the backend "active": the lower one is a pass
        over the support with a quarter of a scan of all pairs, as late in a fit. The upper one is a pass over
        all pairs in tiles; one with a long list, early in a fit, takes about as long. Those of ``Newton`` are
        estimated as 1.2 to 2.5 times those of ``LBFGS``. None for the backend "dask", whose speed is that of
        its workers, and if the fit is refused.
    evaluations : Range
        How many evaluations fits take that were measured with this solver, within ``max_iter``. Where yours
        ends depends on M.
    fit_seconds : Range or None
        Of a fit, without its start and without compilation: the product of the two ranges, within ``max_time``.
    refusal : Refusal or None
        Why the fit would be refused: its text has the figures and what to do. None if it fits into memory.
    """

    n: int
    entries: int
    rank: int
    dtype: str
    solver: str
    backend: str
    threads: int
    memory: Memory
    available: int | None
    seconds_per_evaluation: Range | None
    evaluations: Range
    fit_seconds: Range | None
    refusal: Refusal | None = None

    @property
    def fits(self) -> bool:
        """Whether the fit can fit into memory; :func:`symrelu.decompose` refuses it otherwise.

        It may need a fifth less than was counted, so more than 1.25 times what is available is refused.
        """
        return self.refusal is None

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as plain values, for JSON."""
        plain = asdict(self)
        for name in ("seconds_per_evaluation", "evaluations", "fit_seconds"):
            plain[name] = None if plain[name] is None else list(plain[name])
        plain["memory"] |= {"rest": self.memory.rest, "total": self.memory.total}
        return plain | {"fits": self.fits, "refusal": "" if self.fits else str(self.refusal)}

    def rows(self) -> list[tuple[str, str]]:
        """Return the figures as names with texts."""
        memory = self.memory
        needed = _between(in_words(memory.least), in_words(memory.total))
        available = "unknown" if self.available is None else in_words(self.available)
        per, total = self.seconds_per_evaluation, self.fit_seconds
        unknown = "depends on the workers" if self.fits else "not measured"
        return [
            ("matrix", f"{self.n} x {self.n}, {self.entries} entries, {self.dtype}"),
            ("model", f"rank {self.rank}, {self.solver}, backend {self.backend}, {_threads(self.threads)}"),
            ("memory", f"{needed} in addition to M; {available} available"),
            ("of which", _parts(memory)),
            ("an evaluation", unknown if per is None else _between(*map(_seconds, per))),
            (
                f"a fit of {self.evaluations.low:g} to {self.evaluations.high:g} evaluations",
                unknown if total is None else _between(*map(_seconds, total)),
            ),
            ("fits into memory", self._whether_it_fits()),
        ]

    def _whether_it_fits(self) -> str:
        if not self.fits:
            return f"no. {self.refusal}"
        scarce = self.available is not None and self.memory.total > self.available
        return "perhaps: it may need less than was counted" if scarce else "yes"

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:{width}}  {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        return card("The cost of a fit", self.rows())


def _parts(memory: Memory) -> str:
    """Return the parts of the memory as a sum."""
    parts = [("M as packed", memory.matrix), ("factors", memory.factors), ("tiles", memory.tiles)]
    parts += [("list of pairs, at most", memory.pairs), ("smaller matrices, at most", memory.levels)]
    parts += [("systems of rows, at most", memory.systems), ("the start and sorting", max(0, memory.rest))]
    shown = ", ".join(f"{name} {in_words(size)}" for name, size in parts if size)
    return shown + (f"; less {in_words(-memory.rest)}, as not all are held at once" if memory.rest < 0 else "")


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _seconds(seconds: float) -> str:
    """Return a duration with two digits, or in hours and minutes if it is long."""
    if seconds >= 100:
        return str(timedelta(seconds=round(seconds)))
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1e3 * seconds:.2g} ms"


@documented
def estimate_cost(
    M: Any,
    rank: int,
    *,
    solver: Any = Run.solver,
    n_negative: int | str = Model.n_negative,
    diagonal: str = Model.diagonal,
    mask: Any | None = None,
    zero_weight: float = Model.zero_weight,
    support: str = Model.support,
    alpha: float = Model.alpha,
    init: Any = Start.init,
    tol: float = Limits.tol,
    gtol: float = Limits.gtol,
    ftol: float = Limits.ftol,
    max_iter: int = Limits.max_iter,
    max_time: float | None = Limits.max_time,
    random_state: Any = Start.random_state,
    backend: str = Run.backend,
    precision: str = Run.precision,
    client: Any | None = Run.client,
    callback: Callback | None = Run.callback,
    checkpoint: Any | None = Run.checkpoint,
    verbose: int = Run.verbose,
    dtype: Any | None = None,
    threads: int | None = None,
) -> Cost:
    """Estimate the memory and the time of a fit, without making it.

    Memory is counted. Time is measured for less than a second, with the same kernels on smaller data (the first
    call in a new environment also compiles them). All settings of :func:`symrelu.decompose` are accepted, so
    that the same keywords can be passed to both. They are checked in the same way, and the backend must offer
    what they require; those that change neither memory nor time, such as ``tol``, are not used.

    Parameters
    ----------
    M : matrix, graph, table, tensor, block folder or Problem
        As for :func:`symrelu.decompose`.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry of M is unobserved.
    dtype : {"float32", "float64"}, optional
        As if M had this type; by default its own.
    threads : int, optional
        As if a pass could use so many threads; by default as many as it will (those of BLAS).

    Returns
    -------
    cost : Cost
        ``print(cost)`` shows it. What most need: ``cost.memory.total``, ``cost.seconds_per_evaluation``,
        ``cost.fit_seconds`` and ``cost.fits``.

    Examples
    --------
    >>> from symrelu import estimate_cost
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(200, 5, random_state=0)
    >>> cost = estimate_cost(M, 5)
    >>> cost.fits, cost.backend, cost.memory.factors == 27 * 200 * 5 * 8
    (True, 'dense', True)
    """
    model, start, limits, run = values_of(locals())  # these are the keywords so far
    if dtype is not None:
        dtype = np.dtype(check_choice("dtype", str(np.dtype(dtype)), ("float32", "float64")))
    if threads is not None:
        threads = check_integer("threads", threads, 1)
    problem = Problem.of(M, mask, diagonal)
    remember_gpu(problem, M)
    model = replace(model, diagonal=problem.diagonal).for_size(problem.n)
    start = start.for_factor(problem.n, model.rank, problem.dtype, largest=problem.largest)
    with nullcontext() if threads is None else at_most_threads(threads):
        case = Case.of(problem, model, start, run, limits, dtype)
        check_settings_supported(case.backend, problem.n, model, start, run)
        return _cost(case, _degrees(problem), limits)


def _degrees(problem: Problem) -> np.ndarray:
    """Return the number of entries of each row of M; for a block folder, no numbers."""
    if hasattr(problem.M, "manifest"):
        return np.empty(0, np.int64)
    return np.diff(problem.M.indptr) if problem.is_sparse else np.count_nonzero(problem.M, axis=1)


def _evaluations(case: Case, max_iter: int) -> Range:
    """Return how many evaluations fits took with the solver, as far as the limit of steps allows."""
    name = type(case.solver).__name__
    low, high = _EVALUATIONS.get(name, _EVALUATIONS_OF_OTHERS)
    of_a_step = _EVALUATIONS_OF_A_STEP
    if name == "Newton" and case.backend not in _KEEP_CURVATURE:
        high, of_a_step = 2 * high, of_a_step + 1
    # The starting factor takes one.
    return Range(min(low, max_iter + 1), min(high, of_a_step * max_iter + 1))


def _cost(case: Case, degrees: np.ndarray, limits: Limits) -> Cost:
    memory = memory_of(case)
    available = available_for(case.backend)
    name = type(case.solver).__name__
    evaluations = _evaluations(case, limits.max_iter)
    refused = None
    if available is not None and cannot_fit(memory, available):
        refused = refusal(case, memory, available)
    per, seconds = None, None
    if case.backend != "dask" and refused is None:
        with single_threaded_blas(), kept_threads():
            timed = calibrate(case, degrees)
        least, most = _NEWTON_PER_LBFGS if name == "Newton" else (1.0, 1.0)
        scans = least_share_of_scans(case.dtype) * timed.tiles if case.backend == "active" else 0.0
        late = min(timed.support + scans, timed.tiles)
        per = Range(float(least * (late + timed.solver)), float(most * (timed.tiles + timed.solver)))
        longest = limits.max_time or np.inf
        seconds = Range(*(float(min(a * b, longest)) for a, b in zip(per, evaluations, strict=True)))
    return Cost(
        n=case.n,
        entries=case.entries,
        rank=case.rank,
        dtype=str(case.dtype),
        solver=name,
        backend=case.backend,
        threads=case.threads,
        memory=memory,
        available=available,
        seconds_per_evaluation=per,
        evaluations=evaluations,
        fit_seconds=seconds,
        refusal=refused,
    )
