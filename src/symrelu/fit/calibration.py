"""How long an evaluation takes, from short runs of the same kernels on smaller data.

Three things are timed with random data of the same rank and type, and as many threads: a pass over tiles, one
over the support alone with a list, and a step of the solver with passes that cost nothing. The size of the
data is doubled until a run takes long enough: a small one does not keep many threads busy. A pass scales with
n^2, and everything else with the rows and the entries. Compilation happens before the clock starts.

Factors with many columns would take minutes and much memory even then. They are timed with fewer columns: the
work of a pass grows with their number, that of a solver partly with their number and partly with its square.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.fit.memory_model import Case
from symrelu.kernels.tiles import tile_side
from symrelu.operators import Evaluation, operator_class
from symrelu.solvers.lbfgs import ENTRIES_WORTH

_FIRST_SIZE = 500
_ROUNDS = 3  # of which the median counts

# Seconds that a pass, and all steps of a solver, must take; else the size is doubled.
_SECONDS_OF_A_PASS = 0.03
_SECONDS_OF_STEPS = 0.1

# Steps in addition to those after which the memory of a solver is full; the last ones are timed.
_FURTHER_STEPS = 4
_TIMED_STEPS = 3

_MOST_COLUMNS = 256  # that are timed: matrix products of so many are as fast as they get

_SOLVER_POWER = 1.5  # of the number of columns; between its parts

_LARGEST_SHARE = 0.25  # of positive entries, in the data of a pass
_LARGEST_DEGREE = 200  # in the data of a step


class Seconds(NamedTuple):
    """Seconds of the parts of an evaluation."""

    tiles: float  # a pass over all pairs
    support: float  # a pass over the support, if no zero has to be listed
    solver: float  # what the solver does besides


class RowWork(NamedTuple):
    """The work in the systems of all rows, in multiplications, and how many of them have so many entries."""

    rows: int
    entries: int
    systems: float

    @classmethod
    def of(cls, degrees: np.ndarray, rank: int) -> RowWork:
        """Return the work of rows with these numbers of entries."""
        k = degrees.astype(np.float64)
        # A row with fewer entries than columns has a system of its entries: see symrelu.kernels.row_systems.
        side = np.minimum(k, rank)
        systems = np.where(k < rank, k * k * rank, k * rank * rank) / 2 + side**3 / 6 + 4 * k * rank
        return cls(len(k), int(k.sum()), float(systems.sum()))


def calibrate(case: Case, degrees: np.ndarray) -> Seconds:
    """Return how long the parts of an evaluation take.

    Parameters
    ----------
    case : Case
        Its backend must not be "dask", whose workers are elsewhere.
    degrees : ndarray of int of shape (n,)
        Positive entries of each row of M.

    Returns
    -------
    seconds : Seconds
    """
    timed = replace(case, rank=min(case.rank, _MOST_COLUMNS))
    more = case.rank / timed.rank
    tiles = more * _growing(timed, lambda size: _time_pass(timed, size), _SECONDS_OF_A_PASS)
    support = tiles
    if case.backend == "active":
        support = more * _growing(timed, lambda size: _time_list(timed, size, degrees), _SECONDS_OF_A_PASS)
    work = RowWork.of(degrees, case.rank), more**_SOLVER_POWER
    solver = _growing(timed, lambda size: _time_solver(timed, size, degrees, *work), _SECONDS_OF_STEPS)
    return Seconds(tiles, min(support, tiles), solver)


def _growing(case: Case, timed: Callable[[int], tuple[float, float]], enough: float) -> float:
    """Return the estimate of a timing, which returns it with the seconds it took, at the first good size."""
    size = min(case.n, max(_FIRST_SIZE, 2 * case.rank + 2))
    while True:
        estimate, taken = timed(size)
        if size == case.n or taken >= enough:
            return estimate
        size = min(case.n, 2 * size)


def _time_pass(case: Case, size: int) -> tuple[float, float]:
    share = min(_LARGEST_SHARE, case.entries / case.n**2)
    op = _operator(case, size, share * size, tiled=True)
    U = op.asarray(np.random.default_rng(1).standard_normal((size, case.rank)) / case.rank**0.5)
    typical, fastest = _timed(lambda: op.residual_product(U, U))
    return typical * (case.n / size) ** 2, fastest


def _time_list(case: Case, size: int, degrees: np.ndarray) -> tuple[float, float]:
    """Time a pass in which no zero is positive: a constant column with a minus sign exceeds all others."""
    op = _operator(case, size, _degree(case, size, degrees))
    signs = np.ones(case.rank)
    signs[-1] = -1
    op = op.with_signature(signs)
    U = np.random.default_rng(1).standard_normal((size, case.rank)) / (10 * case.rank**0.5)
    U[:, -1] = 1
    U = op.asarray(U)
    typical, fastest = _timed(lambda: op.residual_product(U, U))  # the first call, not timed, makes the list
    return typical * (len(degrees) + degrees.sum()) / (size + op.n_positive), fastest


def _time_solver(
    case: Case, size: int, degrees: np.ndarray, there: RowWork, more: float
) -> tuple[float, float]:
    """Time steps without passes, for a fit with the work ``there`` in its systems, and ``more`` columns."""
    op = _operator(case, size, _degree(case, size, degrees), free=True)
    op.alike = case.entries * case.rank > ENTRIES_WORTH * case.n**2
    here = RowWork.of(np.diff(op.support[0]), case.rank) if hasattr(op, "support") else None
    U = op.asarray(np.random.default_rng(1).standard_normal((size, case.rank)))
    state = case.solver.init(op, U)
    took, systems, passes = [], [], []
    for _ in range(getattr(case.solver, "memory", 0) + _FURTHER_STEPS):
        op.seconds_of_systems, before = 0.0, op.evaluations
        begin = time.perf_counter()
        state = case.solver.step(op, state)
        took.append(time.perf_counter() - begin)
        systems.append(op.seconds_of_systems)
        passes.append(op.evaluations - before)
    last = slice(-_TIMED_STEPS, None)
    step, of_systems = statistics.median(took[last]), statistics.median(systems[last])
    of_fit = more * case.n / size if here is None else there.systems / max(here.systems, 1.0)
    estimate = (step - of_systems) * more * case.n / size + of_systems * of_fit
    return estimate / max(1.0, statistics.mean(passes[last])), len(took) * min(took[last])


def _degree(case: Case, size: int, degrees: np.ndarray) -> float:
    """Return the entries of a row in the data of a step: as in M, if they are not too many for the size."""
    most = min(size / 4, _LARGEST_DEGREE, 0.9 * ENTRIES_WORTH * size / case.rank)
    return min(float(degrees.mean()), most)


def _timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the median and the least of the seconds that a call takes.

    The least decides whether the size is large enough: on a busy machine, even a tiny call may take long.
    """
    call()  # fills caches, and compiles what a warm-up leaves out
    seconds = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), min(seconds)


def _operator(case: Case, size: int, degree: float, *, tiled: bool = False, free: bool = False) -> Any:
    """Return an operator of random data, compiled; of the same kind as that of the fit.

    Parameters
    ----------
    case : Case
    size : int
    degree : float
        Entries of a row.
    tiled : bool
        Whether a pass visits all pairs, also with the backend "active", in tiles of the size that M has.
    free : bool
        Whether passes cost nothing.
    """
    backend = "sparse" if case.backend == "active" and tiled else case.backend
    kind = operator_class(backend)
    M: Any = _random_graph(size, degree).astype(case.dtype)
    if not case.index_bytes:
        M = M.toarray()
    settings: dict[str, Any] = {"signature": np.ones(case.rank)}
    if tiled and hasattr(kind, "side"):
        settings["tile"] = min(size, tile_side(case.n, case.rank))
    op = (_free(kind) if free else kind).of(M, None, **settings)
    op.warm_up()
    return op


def _random_graph(n: int, degree: float) -> Any:
    """Return a symmetric sparse array with about so many positive entries in each row."""
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, n, (2, max(1, round(n * degree / 2))))
    upper = sparse.csr_array((rng.random(len(rows)) + 0.1, (rows, cols)), shape=(n, n))
    return sparse.csr_array(upper + upper.T)


def _free(kind: Any) -> Any:
    """Return a class of operators whose passes cost nothing, so that only the solver is timed.

    In place of the model it has a convex quadratic function, sum_ij w_ij U_ij^2 / 2, on which a solver makes
    the steps that it makes in a fit.
    """

    class Free(kind):
        alike = False
        seconds_of_systems = 0.0

        def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
            if not hasattr(self, "_weights"):
                exponents = np.random.default_rng(2).random((self.n, self.rank))
                self._weights = self.asarray(100**exponents)
            value = self.inner(self._weights * U, U) / 2
            same = V is not None and V.shape[1] == self.rank
            product = V * (self.signature * -0.5) * self._weights if same else -V if V is not None else None
            return Evaluation(product, value, value, self.norm**2 + value, 0.0, -value)

        @property
        def n_positive(self) -> int:
            count: int = super().n_positive
            return 3 * self.n**2 if self.alike else count

        def solve_rows(self, *arguments: Any) -> Any:
            begin = time.perf_counter()
            found = super().solve_rows(*arguments)
            self.seconds_of_systems += time.perf_counter() - begin
            return found

    return Free
