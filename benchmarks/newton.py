"""Compare Newton with LBFGS: evaluations and seconds to two errors, on graphs of nearest neighbours.

    python benchmarks/newton.py [--sizes 4000 8000] [--graphs plane blobs] [--starts imputed multilevel]
        [--dtypes float64 float32] [--repeats 3] [--output FOLDER]

Signed fits (rank 32, one negative column, diagonal ignored) with the backend "active". The solvers take turns,
after a short fit that compiles, and the least seconds of the repeats count: those of all steps, and those that
all threads together were running (cpu), which other programs on the machine disturb less. Evaluations of
smaller matrices of the multilevel start count as the square of their part of the items. Each fit is written to
FOLDER/newton.json when it ends, so that an interrupted run resumes; the table is FOLDER/newton.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from starts import points

from symrelu import LBFGS, Newton, decompose

ERRORS = (1e-3, 1e-4)
SOLVERS = {"LBFGS": LBFGS(), "Newton": Newton()}


def fit(M: Any, solver: Any, start: str, **limits: Any) -> tuple[Any, list[float]]:
    """Return the solution, and the time of the processor after each record of its history."""
    cpu: list[float] = []
    begin = time.process_time()

    def note(progress: Any) -> None:
        if progress.level == 0:
            cpu.append(time.process_time() - begin)

    model = {"n_negative": 1, "diagonal": "ignore", "backend": "active", "random_state": 0}
    found = decompose(M, 32, solver=solver, init=start, callback=note, **model, **limits)
    return found, cpu


def measure(M: Any, name: str, start: str) -> dict[str, Any]:
    """Fit once, and return the evaluations and seconds to each error (None if it was not reached)."""
    solution, cpu = fit(M, SOLVERS[name], start, tol=ERRORS[-1], max_iter=400)
    history, row = solution.history, {}
    for error in ERRORS:
        reached = np.flatnonzero(history.relative_error <= error)
        at = int(reached[0]) if len(reached) else None
        row[f"evaluations, {error:g}"] = None if at is None else int(history.evaluations[at])
        row[f"seconds, {error:g}"] = None if at is None else float(history.seconds[at])
        # The first record is that of the start, before the callback is first called.
        row[f"cpu, {error:g}"] = None if at is None else cpu[max(at - 1, 0)]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[4000, 8000])
    parser.add_argument("--graphs", nargs="+", default=["plane", "blobs"])
    parser.add_argument("--starts", nargs="+", default=["imputed", "multilevel"])
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks/newton"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    store = options.output / "newton.json"
    runs = json.loads(store.read_text()) if store.exists() else []
    for dtype in options.dtypes:
        for solver in SOLVERS.values():  # compile
            fit(points("plane", 1000).astype(dtype), solver, "imputed", tol=ERRORS[0], max_iter=60)
    for n in options.sizes:
        for graph in options.graphs:
            for dtype in options.dtypes:
                M = points(graph, n).astype(dtype)
                for start in options.starts:
                    case = {"graph": graph, "n": n, "dtype": dtype, "start": start}
                    for missing in missing_runs(runs, case, options):
                        runs.append(missing | measure(M, missing["solver"], start))
                        print(runs[-1], flush=True)
                        store.write_text(json.dumps(runs, indent=1) + "\n")
    write_table(runs, options.output / "newton.csv")


def missing_runs(runs: list[dict[str, Any]], case: dict[str, Any], options: Any) -> list[dict[str, Any]]:
    """Return the runs of a case that are not stored, in turns of all solvers."""
    wanted = [
        case | {"solver": solver, "repeat": repeat}
        for repeat in range(options.repeats)
        for solver in options.solvers
    ]
    return [one for one in wanted if not any(one.items() <= run.items() for run in runs)]


def write_table(runs: list[dict[str, Any]], path: Path) -> None:
    """Write a line for each case and solver, with the least seconds of its repeats."""
    keys = ("graph", "n", "dtype", "start", "solver")
    cases = dict.fromkeys(tuple(run[key] for key in keys) for run in runs)
    numbers = [key for key in runs[0] if key not in (*keys, "repeat")]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*keys, *numbers])
        for case in cases:
            same = [run for run in runs if tuple(run[key] for key in keys) == case]
            writer.writerow([*case, *(least([run[number] for run in same]) for number in numbers)])
    print(path.read_text())


def least(values: list[Any]) -> str:
    return "" if None in values else f"{min(values):.3g}"


if __name__ == "__main__":
    main()
