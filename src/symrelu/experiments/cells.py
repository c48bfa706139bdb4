"""Cells, the single fits of an experiment. Each is stored when it ends, so that an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import joblib

import symrelu
from symrelu.experiments.cases import Case, matrix_of
from symrelu.experiments.environment import describe_environment
from symrelu.experiments.methods import Method
from symrelu.files import make_folder, write_atomically
from symrelu.fit.loop import Callback, FitProgress
from symrelu.fit.settings import Limits
from symrelu.fitted.history import Status
from symrelu.fitted.solution import Solution
from symrelu.kernels.interrupts import ctrl_c_ignored
from symrelu.kernels.threads import allowed_threads
from symrelu.validation import check_integer

# Increase the version if the fields of a stored cell change; files of another version are computed again.
FORMAT = "symrelu cell"
FORMAT_VERSION = 1
CURVES = ("iteration", "evaluations", "seconds", "relative_error")


@dataclass(frozen=True)
class Cell:
    """One fit, described by everything that determines its numbers.

    Parameters
    ----------
    case : Case
        The matrix.
    rank : int
    method : Method
    seed : int
        Seed of the start, and of the matrix if it is random.
    limits : Limits
        Iterations and tolerances. A time limit is not allowed, because results would depend on the machine.
    """

    case: Case
    rank: int
    method: Method
    seed: int
    limits: Limits

    def __post_init__(self) -> None:
        if self.limits.max_time is not None:
            raise ValueError(
                f"A cell must not have a time limit, got max_time={self.limits.max_time}. Use max_iter and the "
                "tolerances, which do not depend on the machine."
            )

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings that are stored with the result, and checked when it is loaded."""
        return {
            # Another release may give other numbers, so its cells are not reused.
            "symrelu": symrelu.__version__,
            "case": repr(self.case),
            "rank": self.rank,
            "method": repr(self.method),
            "seed": self.seed,
            "limits": repr(self.limits),
        }

    @cached_property
    def file_name(self) -> str:
        """A readable file name, made unique by the digest of the settings."""
        words = f"{self.case.name} {self.rank} {self.method.name} {self.seed}"
        # Names of cases contain characters that some file systems do not allow.
        words = re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-.")
        return f"{words}-{_digest(self.settings)[:16]}.json"

    @property
    def cost(self) -> float:
        """A rough measure of the work, from which the remaining time is estimated."""
        return self.method.cost(self.case.n, self.rank) * self.limits.max_iter

    def fit(self, callback: Callback | None = None) -> Solution:
        """Run the fit. Ctrl-C raises KeyboardInterrupt, because a partial fit must not be stored."""
        M = matrix_of(self.case, self.seed)
        solution = self.method.fit(M, self.rank, self.seed, self.limits, callback)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return solution


@dataclass(frozen=True)
class CellResult:
    """The result of a cell.

    Attributes
    ----------
    status : str
        Name of the :class:`~symrelu.Status`.
    n_iter, n_evaluations : int
    seconds, relative_error : float
    curves : dict of str to list
        The columns of the history that the figures draw.
    environment : dict of str to str
        Versions of the packages, and the machine.
    """

    status: str
    n_iter: int
    n_evaluations: int
    seconds: float
    relative_error: float
    curves: dict[str, list[float]]
    environment: dict[str, str]

    @classmethod
    def from_solution(cls, solution: Solution) -> CellResult:
        """Return the numbers of a fit that tables and figures need."""
        columns = solution.history.as_dict()
        return cls(
            status=solution.status.name,
            n_iter=solution.n_iter,
            n_evaluations=solution.n_evaluations,
            seconds=float(solution.history.seconds[-1]),
            relative_error=solution.relative_error,
            curves={name: columns[name].tolist() for name in CURVES},
            environment={**describe_environment(), "threads": str(allowed_threads())},
        )

    @property
    def half_squared_error(self) -> float:
        """``relative_error**2 / 2``, the number that the paper prints for real data."""
        return self.relative_error**2 / 2

    def error_within(self, evaluations: int) -> float:
        """Return the lowest relative error within that number of evaluations."""
        curves = zip(self.curves["evaluations"], self.curves["relative_error"], strict=True)
        return min(error for count, error in curves if count <= evaluations)

    @property
    def ran_away(self) -> bool:
        """Whether the fit diverged: it became non-finite, or ended farther from M than it began."""
        first, last = self.curves["relative_error"][0], self.curves["relative_error"][-1]
        return self.status == Status.NON_FINITE.name or last > first


class Refused(NamedTuple):
    """A stored file that failed validation, and the reason."""

    path: Path
    reason: str


class CellStore:
    """A folder of cells, one JSON file each.

    Files are validated on load: the SHA-256 of the content, the settings and the types of all numbers must
    match. A cell whose file fails is computed again.

    Parameters
    ----------
    folder : path
        Created when the first cell is saved.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell) -> Path:
        """Return the path of a cell's file."""
        return self.folder / cell.file_name

    def save(self, cell: Cell, result: CellResult) -> None:
        """Write a cell atomically."""
        content = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "settings": cell.settings,
            "result": asdict(result),
        }
        content["sha256"] = _digest(content)
        make_folder(self.folder)
        with write_atomically(self.path(cell)) as file:
            file.write(json.dumps(content, allow_nan=False).encode())

    def load(self, cell: Cell) -> CellResult | Refused | None:
        """Return the stored result, None if there is no file, or the reason why the file is refused."""
        path = self.path(cell)
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            return Refused(path, f"it cannot be read ({error})")
        try:
            return _validated_result(content, cell)
        except (KeyError, TypeError, ValueError) as error:
            return Refused(path, str(error))


def _validated_result(content: Any, cell: Cell) -> CellResult:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"it is not a {FORMAT} file")
    if content.get("version") != FORMAT_VERSION:
        raise ValueError(f"its version is {content.get('version')}, expected {FORMAT_VERSION}")
    # The digest was computed before it was added to the content, so it is removed for the comparison.
    if content.pop("sha256", None) != _digest(content):
        raise ValueError("its SHA-256 does not match its content")
    if content.get("settings") != cell.settings:
        raise ValueError("it was computed with other settings")
    result = CellResult(**content["result"])
    counts, numbers = (result.n_iter, result.n_evaluations), (result.seconds, result.relative_error)
    curves = [result.curves[name] for name in CURVES]
    if not (
        result.status in Status.__members__
        and all(type(count) is int and count >= 0 for count in counts)
        and all(map(_is_nonnegative_number, numbers))
        and all(isinstance(curve, list) and all(map(_is_nonnegative_number, curve)) for curve in curves)
        and len({len(curve) for curve in curves}) == 1
        and len(curves[0]) > 0
        and isinstance(result.environment, dict)
        and all(isinstance(text, str) for text in result.environment.values())
    ):
        raise ValueError("its content is not the result of a fit")
    return result


def _is_nonnegative_number(value: Any) -> bool:
    # bool is a subclass of int, so isinstance would accept True.
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _digest(content: Any) -> str:
    # Sorted keys make the digest independent of the order in which a dict was filled.
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Failure(NamedTuple):
    """The error message of a cell that failed."""

    message: str


class Monitor:
    """Receives the progress of :func:`symrelu.experiments.run_cells`. This base class ignores it."""

    def begin(self, cells: int, stored: int, cost: float) -> None:
        """Receive the number of cells, how many of them are stored, and the cost of the others."""

    def refused(self, refused: Refused) -> None:
        """Receive a stored file that failed validation."""

    def advance(self, cost: float) -> None:
        """Receive the cost that has been spent since the last call."""

    def ended(self, cell: Cell, result: CellResult | Failure) -> None:
        """Receive the result or the error of a cell that has ended."""


def run_cells(
    cells: Iterable[Cell], store: CellStore, *, jobs: int = 1, monitor: Monitor | None = None
) -> dict[Cell, CellResult]:
    """Return the results of all cells: load those in the store, run and store the others.

    Parameters
    ----------
    cells : iterable of Cell
    store : CellStore
    jobs : int, default=1
        Number of cells to run in parallel, each in its own process with its share of the threads.
    monitor : Monitor, optional
        Receives the progress.

    Returns
    -------
    results : dict of Cell to CellResult
        Cells that failed are left out; the monitor receives their errors.
    """
    check_integer("jobs", jobs, 1)
    monitor = Monitor() if monitor is None else monitor
    results: dict[Cell, CellResult] = {}
    pending: list[Cell] = []
    cells = list(dict.fromkeys(cells))  # tables may share cells
    for cell in cells:
        stored = store.load(cell)
        if isinstance(stored, CellResult):
            results[cell] = stored
            continue
        if isinstance(stored, Refused):
            monitor.refused(stored)
        pending.append(cell)
    monitor.begin(len(cells), len(results), sum(cell.cost for cell in pending))
    jobs = min(jobs, len(pending))  # no process without a cell, and no pool for a single one
    outcomes = (
        _run_in_processes(pending, store, jobs, monitor) if jobs > 1 else _run_serially(pending, store, monitor)
    )
    for cell, outcome in outcomes:
        monitor.ended(cell, outcome)
        if isinstance(outcome, CellResult):
            results[cell] = outcome
    return {cell: results[cell] for cell in cells if cell in results}


Outcome = tuple[Cell, CellResult | Failure]


def _run_serially(cells: Sequence[Cell], store: CellStore, monitor: Monitor) -> Iterable[Outcome]:
    for cell in cells:
        # The cost assumes max_iter iterations, so each one advances the display by an equal share.
        share = cell.cost / cell.limits.max_iter
        spent = [0.0]

        def advance(progress: FitProgress, share: float = share, spent: list[float] = spent) -> None:
            spent[0] += share
            monitor.advance(share)

        outcome = _run_one(cell, store, advance)
        monitor.advance(cell.cost - spent[0])  # a fit may stop before max_iter
        yield outcome


def _run_in_processes(
    cells: Sequence[Cell], store: CellStore, jobs: int, monitor: Monitor
) -> Iterable[Outcome]:
    # More threads than cores in total would slow all processes down.
    threads = max(1, joblib.cpu_count() // jobs)
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=threads):
        # Dispatch cells one by one, because their run times differ by factors of a hundred.
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        with ctrl_c_ignored():
            outcomes = parallel(joblib.delayed(_run_one)(cell, store) for cell in cells)  # starts the processes
        try:
            for cell, outcome in outcomes:
                monitor.advance(cell.cost)
                yield cell, outcome
        except BrokenProcessPool as error:
            raise MemoryError(
                "A worker process was killed, most likely because memory ran out. Finished fits are stored: "
                "run the command again with fewer jobs."
            ) from error


def _run_one(cell: Cell, store: CellStore, callback: Callable[[FitProgress], None] | None = None) -> Outcome:
    # Another run in the same folder may have finished the cell in the meantime.
    stored = store.load(cell)
    if isinstance(stored, CellResult):
        return cell, stored
    try:
        result = CellResult.from_solution(cell.fit(callback))
    except Exception as error:  # one failed cell must not stop the others; the monitor reports it
        return cell, Failure(f"{type(error).__name__}: {error}")
    # Not inside the try: if saving fails, the results of all later cells would be lost too.
    store.save(cell, result)
    return cell, result
