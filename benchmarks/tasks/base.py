"""What a task is, and how its jobs are run: in parallel, with a store from which an interrupted run resumes."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

FIELDS = ("task", "data", "method", "seed", "setting", "measure", "value", "seconds")


class Value(NamedTuple):
    """One number that a method reached, for one of its settings if it has several."""

    measure: str
    value: float
    setting: str = ""


class Job(NamedTuple):
    """One method on one data set with one seed."""

    task: str
    data: str
    method: str
    seed: int


@dataclass(frozen=True)
class Table:
    """A table to print.

    Attributes
    ----------
    name : str
        Name of its file.
    title : str
    measures : dict of str to str
        The measure to print for each data set, a column.
    methods : tuple of str, optional
        The rows; all methods by default.
    """

    name: str
    title: str
    measures: dict[str, str]
    methods: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Task:
    """Methods to compare on several data sets.

    Attributes
    ----------
    name : str
    data : tuple of str
    methods : tuple of str
    perform : callable
        Values from the name of a data set, a method and a seed.
    applies : callable
        Whether a method is run on a data set, by their names and a seed.
    tables : tuple of Table
    hindsight : str
        Measure whose mean decides which setting of a method is reported.
    controls : tuple
        Ingredient, the method with it, and the method without it.
    """

    name: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    perform: Callable[[str, str, int], Iterable[Value]]
    applies: Callable[[str, str, int], bool]
    tables: tuple[Table, ...]
    hindsight: str
    controls: tuple[tuple[str, str, str], ...] = ()

    def jobs(self, data: Iterable[str] | None, methods: Iterable[str] | None, seeds: int) -> list[Job]:
        """Return the jobs, limited to some data sets and methods."""
        return [
            Job(self.name, name, method, seed)
            for name in self.data
            if data is None or name in data
            for method in self.methods
            if methods is None or method in methods
            for seed in range(seeds)
            if self.applies(method, name, seed)
        ]


def perform(task: Task, job: Job) -> list[dict[str, Any]]:
    """Return the records of a job, one for each setting and measure."""
    with threadpool_limits(1):  # the jobs run in parallel
        began = time.perf_counter()
        values = list(task.perform(job.data, job.method, job.seed))
        seconds = time.perf_counter() - began
    return [{**job._asdict(), **value._asdict(), "seconds": seconds} for value in values]


def run_jobs(tasks: dict[str, Task], wanted: list[Job], path: Path, n_jobs: int) -> list[dict[str, Any]]:
    """Run the jobs that are not stored yet, and return the records of all wanted jobs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {_job_of(record) for record in _stored(path)}
    if not known:
        path.write_text(",".join(FIELDS) + "\n", encoding="utf-8")
    missing = [job for job in wanted if job not in known]
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(perform)(tasks[job.task], job) for job in missing
    )
    for count, records in enumerate(results, start=1):
        with open(path, "a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, FIELDS).writerows(records)
        print(f"{count}/{len(missing)} " + " | ".join(map(str, _job_of(records[0]))), flush=True)
    asked = set(wanted)
    return [record for record in _stored(path) if _job_of(record) in asked]


def _stored(path: Path) -> list[dict[str, str]]:
    """Return the records of earlier runs."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def _job_of(record: dict[str, Any]) -> Job:
    return Job(record["task"], record["data"], record["method"], int(record["seed"]))
