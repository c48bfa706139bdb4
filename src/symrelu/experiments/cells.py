"""A cell is one fit of an experiment. Each is stored as it ends, so that a stopped run goes on where it was."""

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
from symrelu.kernels.threads import allowed_threads
from symrelu.validation import check_integer

FORMAT = "symrelu cell"
FORMAT_VERSION = 1
CURVES = ("iteration", "evaluations", "seconds", "relative_error")


@dataclass(frozen=True)
class Cell:
    """One fit: everything that determines its numbers.

    Parameters
    ----------
    case : Case
        The matrix.
    rank : int
    method : Method
    seed : int
        Of the matrix, where it is random, and of the start.
    limits : Limits
        Iterations and tolerances; never a time, since machines differ.
    """

    case: Case
    rank: int
    method: Method
    seed: int
    limits: Limits

    def __post_init__(self) -> None:
        if self.limits.max_time is not None:
            raise ValueError("A cell stops by iterations and tolerances, not by the clock.")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the stored file must say of itself."""
        return {
            "symrelu": symrelu.__version__,
            "case": repr(self.case),
            "rank": self.rank,
            "method": repr(self.method),
            "seed": self.seed,
            "limits": repr(self.limits),
        }

    @cached_property
    def file_name(self) -> str:
        """A name to read, made unique by the digest of the settings."""
        words = f"{self.case.name} {self.rank} {self.method.name} {self.seed}"
        words = re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-.")
        return f"{words}-{_digest(self.settings)[:16]}.json"

    @property
    def cost(self) -> float:
        """Return a rough measure of the work, for the estimate of the time left."""
        return self.method.cost(self.case.n, self.rank) * self.limits.max_iter

    def fit(self, callback: Callback | None = None) -> Solution:
        """Make the fit; Ctrl-C raises, since half a fit is no result."""
        M = matrix_of(self.case, self.seed)
        solution = self.method.fit(M, self.rank, self.seed, self.limits, callback)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return solution


@dataclass(frozen=True)
class CellResult:
    """What a cell gave.

    Attributes
    ----------
    status : str
        Name of the :class:`~symrelu.Status`.
    n_iter, n_evaluations : int
    seconds, relative_error : float
    curves : dict of str to list
        The columns of the history that figures draw.
    environment : dict of str to str
        Versions and machine.
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
        """Keep what tables and figures need."""
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
        """relative_error^2 / 2."""
        return self.relative_error**2 / 2

    def error_within(self, evaluations: int) -> float:
        """Return the lowest relative error within so many evaluations."""
        curves = zip(self.curves["evaluations"], self.curves["relative_error"], strict=True)
        return min(error for count, error in curves if count <= evaluations)

    @property
    def ran_away(self) -> bool:
        """Whether the fit left the finite numbers, or ended farther from M than it began."""
        first, last = self.curves["relative_error"][0], self.curves["relative_error"][-1]
        return self.status == Status.NON_FINITE.name or last > first


class Refused(NamedTuple):
    """A file that is not trusted, and why."""

    path: Path
    reason: str


class CellStore:
    """A folder of cells, one JSON file each.

    A file is taken only if it is whole (its own SHA-256 agrees), says the settings that were asked for, and
    holds numbers of the right kind. Anything else is computed anew.

    Parameters
    ----------
    folder : path
        Made when the first cell is saved.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell) -> Path:
        """Return where a cell is kept."""
        return self.folder / cell.file_name

    def save(self, cell: Cell, result: CellResult) -> None:
        """Write a cell aside and put it in place."""
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
        """Return the stored result, None where there is no file, or why the file is not trusted."""
        path = self.path(cell)
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            return Refused(path, f"it cannot be read ({error})")
        try:
            return _checked(content, cell)
        except (KeyError, TypeError, ValueError) as error:
            return Refused(path, str(error))


def _checked(content: Any, cell: Cell) -> CellResult:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"it is no {FORMAT} file")
    if content.get("version") != FORMAT_VERSION:
        raise ValueError(f"its version is {content.get('version')}, expected {FORMAT_VERSION}")
    if content.pop("sha256", None) != _digest(content):
        raise ValueError("its SHA-256 does not agree with what it holds")
    if content.get("settings") != cell.settings:
        raise ValueError("it belongs to other settings")
    result = CellResult(**content["result"])
    counts, numbers = (result.n_iter, result.n_evaluations), (result.seconds, result.relative_error)
    curves = [result.curves[name] for name in CURVES]
    if not (
        result.status in Status.__members__
        and all(type(count) is int and count >= 0 for count in counts)
        and all(map(_is_size, numbers))
        and all(isinstance(curve, list) and all(map(_is_size, curve)) for curve in curves)
        and len({len(curve) for curve in curves}) == 1
        and len(curves[0]) > 0
        and isinstance(result.environment, dict)
        and all(isinstance(text, str) for text in result.environment.values())
    ):
        raise ValueError("it holds something else than the numbers of a fit")
    return result


def _is_size(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Failure(NamedTuple):
    """What a cell said that ended with an error."""

    message: str


class Monitor:
    """What :func:`run_cells` tells while it works; this one keeps silent."""

    def begin(self, cells: int, stored: int, cost: float) -> None:
        """Say how many cells there are, how many of them are stored, and the cost of the others."""

    def refused(self, refused: Refused) -> None:
        """Say that a stored file is not trusted."""

    def advance(self, cost: float) -> None:
        """Say how much of the cost has been spent since the last call."""

    def ended(self, cell: Cell, result: CellResult | Failure) -> None:
        """Say that a cell has ended."""


def run_cells(
    cells: Iterable[Cell], store: CellStore, *, jobs: int = 1, monitor: Monitor | None = None
) -> dict[Cell, CellResult]:
    """Return the results of all cells, from the store where they are there; run and store the others.

    Parameters
    ----------
    cells : iterable of Cell
    store : CellStore
    jobs : int, default=1
        Cells that run at a time, each in a process of its own with its share of the threads.
    monitor : Monitor, optional

    Returns
    -------
    results : dict of Cell to CellResult
        Cells that ended with an error are missing; the monitor was told.
    """
    check_integer("jobs", jobs, 1)
    monitor = Monitor() if monitor is None else monitor
    results: dict[Cell, CellResult] = {}
    pending: list[Cell] = []
    cells = list(dict.fromkeys(cells))
    for cell in cells:
        stored = store.load(cell)
        if isinstance(stored, CellResult):
            results[cell] = stored
            continue
        if isinstance(stored, Refused):
            monitor.refused(stored)
        pending.append(cell)
    monitor.begin(len(cells), len(results), sum(cell.cost for cell in pending))
    jobs = min(jobs, len(pending))
    outcomes = (
        _run_in_processes(pending, store, jobs, monitor) if jobs > 1 else _run_in_turn(pending, store, monitor)
    )
    for cell, outcome in outcomes:
        monitor.ended(cell, outcome)
        if isinstance(outcome, CellResult):
            results[cell] = outcome
    return {cell: results[cell] for cell in cells if cell in results}


Outcome = tuple[Cell, CellResult | Failure]


def _run_in_turn(cells: Sequence[Cell], store: CellStore, monitor: Monitor) -> Iterable[Outcome]:
    for cell in cells:
        share = cell.cost / cell.limits.max_iter
        spent = [0.0]

        def advance(progress: FitProgress, share: float = share, spent: list[float] = spent) -> None:
            spent[0] += share
            monitor.advance(share)

        outcome = _run_one(cell, store, advance)
        monitor.advance(cell.cost - spent[0])
        yield outcome


def _run_in_processes(
    cells: Sequence[Cell], store: CellStore, jobs: int, monitor: Monitor
) -> Iterable[Outcome]:
    threads = max(1, joblib.cpu_count() // jobs)
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=threads):
        # One cell at a time to whoever is free: they differ by factors of a hundred.
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        try:
            for cell, outcome in parallel(joblib.delayed(_run_one)(cell, store) for cell in cells):
                monitor.advance(cell.cost)
                yield cell, outcome
        except BrokenProcessPool as error:
            raise MemoryError(
                "A process that made a fit was killed, most likely because memory ran out. What had ended is "
                "stored: run the command again with fewer jobs."
            ) from error


def _run_one(cell: Cell, store: CellStore, callback: Callable[[FitProgress], None] | None = None) -> Outcome:
    stored = store.load(cell)  # by another run in the same folder, meanwhile
    if isinstance(stored, CellResult):
        return cell, stored
    try:
        result = CellResult.from_solution(cell.fit(callback))
    except Exception as error:  # one cell must not end the others; the monitor says it
        return cell, Failure(f"{type(error).__name__}: {error}")
    store.save(cell, result)  # where this fails, the next ones would be lost too
    return cell, result
