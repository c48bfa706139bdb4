"""Compare default fits of the problems of results/solvers with an older source tree, as ratios within one run.

    git worktree add ../before 5289457
    python benchmarks/never_loses.py ../before [--problems synthetic digits ORL COIL20 YaleB] [--rounds 7]
                                               [--threads 1] [--iterations 100] [--output FOLDER]

That commit is the last one before the work on large graphs: small problems must not have become slower. Each
tree has its own process, in which everything is compiled in advance, and they take turns in random order. A fit
has the defaults of ``decompose``, except that it makes fewer iterations. A round has another random state, the
same for both trees. "Evaluations" are those until the error is within 0.1 % of the final one, the larger one if
they differ; seconds and CPU seconds are those of whole fits. Numbers are medians over the rounds, and so are
the ratios, here / before.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from overhead import Tree

# Columns, and the format of their numbers.
COLUMNS = {
    "evaluations before": ".0f", "evaluations": ".0f", "evaluations ratio": ".3f",
    "ms before": ".1f", "ms": ".1f", "seconds ratio": ".3f", "cpu ratio": ".3f",
}  # fmt: skip
_CLOSE = 1.001  # times the final error


def serve() -> None:
    """Make the fits that are read from stdin, one per line."""
    from solvers import problems
    from threadpoolctl import threadpool_limits

    from symrelu import decompose
    from symrelu.experiments.cases import matrix_of

    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        with redirect_stdout(sys.stderr):  # it prints what is missing
            found = problems(question["problems"])
        if question["number"] is None:
            print(json.dumps([problem.name for problem in found]), flush=True)
            continue
        (case, rank), seed = found[question["number"]], question["seed"]
        M = matrix_of(case, seed)
        with threadpool_limits(limits=question["threads"]):
            decompose(M, rank, max_iter=12, random_state=seed)  # compiles, and fills caches
            began = time.perf_counter(), time.process_time()
            solution = decompose(M, rank, max_iter=question["iterations"], random_state=seed)
            seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
        answer = {
            "seconds": seconds,
            "cpu": cpu,
            "final": solution.relative_error,
            "errors": solution.history.relative_error.tolist(),
            "evaluations": solution.history.evaluations.tolist(),
        }
        print(json.dumps(answer), flush=True)


def evaluations_until(fit: dict[str, Any], target: float) -> int:
    """Return the evaluations of a fit when its error first reached a target."""
    return fit["evaluations"][int(np.argmax(np.array(fit["errors"]) <= target))]


def measure(trees: dict[str, Tree], question: dict[str, Any], rounds: int) -> dict[str, float]:
    """Return the row of a problem, without its name."""
    order = random.Random(0)  # neither tree should always be second
    values: list[dict[str, float]] = []
    for seed in range(rounds):
        fits = {name: trees[name].answer({**question, "seed": seed}) for name in order.sample(list(trees), 2)}
        target = _CLOSE * max(fit["final"] for fit in fits.values())
        before, here = fits["before"], fits["here"]
        counts = [evaluations_until(fit, target) for fit in (before, here)]
        values.append({
            "evaluations before": counts[0], "evaluations": counts[1],
            "evaluations ratio": counts[1] / counts[0],
            "ms before": 1e3 * before["seconds"], "ms": 1e3 * here["seconds"],
            "seconds ratio": here["seconds"] / before["seconds"], "cpu ratio": here["cpu"] / before["cpu"],
        })  # fmt: skip
    return {name: statistics.median(value[name] for value in values) for name in values[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="source tree to compare with")
    parser.add_argument("--problems", nargs="+", default=["synthetic", "digits", "ORL", "COIL20", "YaleB"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--output", type=Path, help="folder for never_loses.csv")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.before is None:
        parser.error("name the source tree to compare with")
    places = {"before": options.before, "here": Path(__file__).parents[1]}
    trees = {name: Tree(path, Path(__file__)) for name, path in places.items()}
    question = {name: getattr(options, name) for name in ("problems", "threads", "iterations")}
    print("| problem | " + " | ".join(COLUMNS) + " |\n|---|" + "---:|" * len(COLUMNS))
    rows = []
    for number, name in enumerate(trees["here"].answer({**question, "number": None})):
        row = measure(trees, {**question, "number": number}, options.rounds)
        rows.append([name, *(format(row[column], digits) for column, digits in COLUMNS.items())])
        print("| " + " | ".join(rows[-1]) + " |", flush=True)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        with open(options.output / "never_loses.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["problem", *COLUMNS], *rows])


if __name__ == "__main__":
    main()
