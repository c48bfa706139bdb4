"""Measure how evaluations, LBFGS steps and what surrounds them speed up with threads, as ratios within one run.

    python benchmarks/threads.py [--sizes 2000 20000] [--threads 1 2 4 8 16] [--json FILE]
    python benchmarks/threads.py --jobs "row systems" start error transform "top k" pairs
    git worktree add ../base 324cf23
    python benchmarks/threads.py --base ../base

With ``--base``, the evaluation and the step of another source tree are measured too. Each tree has its own
process, in which everything is compiled in advance. They take turns in random order, so that other processes on
the machine affect both equally; a figure is the median over the rounds.

The "limit" is what the machine can do: as many threads, each of which forms tiles of the same side and
multiplies them by V with single-threaded BLAS, without M, without sums, and without waiting for other threads.
GFLOP/s counts the multiplications and additions of the three products of a tile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

from overhead import Tree

Job = Callable[[], object]

IN_BOTH_TREES = ("evaluation", "step")
STANDARD = ("evaluation", "step", "limit")


class Jobs:
    """What is timed at one size; a job is prepared when it is first asked for."""

    def __init__(self, n: int, rank: int, dtype: str) -> None:
        import numpy as np
        from evaluation import problem

        from symrelu.operators import SparseOperator

        self.M, self.U = problem(n, rank, np.dtype(dtype).type)
        self.op = SparseOperator(self.M, signature=np.ones(rank))
        self.makers: dict[str, Callable[[], Job]] = {
            "evaluation": lambda: lambda: self.op.residual_product(self.U, self.U),
            "step": self.step,
            "limit": self.limit,
            "row systems": self.row_systems,
            "start": self.start,
            "error": self.error,
            "transform": self.transform,
            "top k": self.top_k,
            "pairs": self.pairs,
        }
        self.ready: dict[str, Job] = {}

    def __getitem__(self, name: str) -> Job:
        if name not in self.ready:
            self.ready[name] = self.makers[name]()
            self.ready[name]()  # compiles, and fills caches
            time.sleep(0.2)  # until the threads of BLAS no longer spin
        return self.ready[name]

    @cached_property
    def state(self) -> Any:
        """The state of LBFGS when its memory is full."""
        from symrelu.solvers import LBFGS

        solver = LBFGS()
        state = solver.init(self.op, self.U)
        for _ in range(solver.memory + 1):
            state = solver.step(self.op, state)
        return state

    @cached_property
    def model(self) -> Any:
        import numpy as np

        from symrelu.fitted import SymmetricReLU

        return SymmetricReLU(self.U, np.ones(self.U.shape[1], self.U.dtype))

    def step(self) -> Job:
        from symrelu.solvers import LBFGS

        state = self.state
        return lambda: LBFGS().step(self.op, state)

    def limit(self) -> Job:
        from evaluation import bare_products

        return bare_products(self.U)

    def row_systems(self) -> Job:
        """Two right-hand sides for each row, as in a step."""
        from symrelu.solvers.lbfgs import precondition

        state = self.state
        return lambda: precondition(self.op, state, state.gradient, state.gradient)

    def start(self) -> Job:
        from symrelu.fit.starts import start

        return lambda: start(self.op, "imputed", 0)

    def error(self) -> Job:
        from symrelu.metrics import relative_error

        return lambda: relative_error(self.M, self.U)

    def transform(self) -> Job:
        """1000 new rows."""
        rows = self.M[:1000]
        return lambda: self.model.transform(rows)

    def top_k(self) -> Job:
        """Ten neighbours of 2000 nodes."""
        import numpy as np

        nodes = np.arange(min(2000, len(self.U)))
        return lambda: self.model.top_k(nodes, 10)

    def pairs(self) -> Job:
        """The scores of a million pairs."""
        import numpy as np

        i, j = np.random.default_rng(0).integers(0, len(self.U), (2, 1_000_000))
        return lambda: self.model.score_pairs(i, j)


def serve() -> None:
    """Time the jobs that are read from stdin, one per line."""
    from threadpoolctl import threadpool_limits

    from symrelu.kernels import threads as kernel_threads

    print(json.dumps([]), flush=True)
    size, table = None, None
    # As in a fit: threads are kept, and BLAS has only one outside the kernels, because its own keep spinning.
    keep = getattr(kernel_threads, "kept_threads", nullcontext)  # 0.1.0 kept none
    with keep():
        for line in sys.stdin:
            name, threads, *case = json.loads(line)
            if case != size:
                size, table = case, Jobs(*case)
            job = table[name]
            with threadpool_limits(threads, user_api="blas"), kernel_threads.single_threaded_blas():
                start = time.perf_counter()
                job()
                print(time.perf_counter() - start, flush=True)


Seconds = dict[tuple[str, str, int], float]


def measure(
    trees: dict[str, Tree], names: list[str], case: tuple[int, int, str], threads: list[int], rounds: int
) -> Seconds:
    """Return the median time by tree, job and number of threads."""
    wanted = [
        (tree, name, count)
        for tree in trees
        for name in names
        for count in threads
        if tree == "here" or name in IN_BOTH_TREES
    ]
    seconds: dict[tuple[str, str, int], list[float]] = {job: [] for job in wanted}
    order = random.Random(0)
    for _ in range(rounds):
        for tree, name, count in order.sample(wanted, len(wanted)):
            seconds[tree, name, count].append(trees[tree].seconds([name, count, *case]))
    return {job: statistics.median(values) for job, values in seconds.items()}


def rows_of(case: tuple[int, int, str], names: list[str], threads: list[int], seconds: Seconds) -> list[dict]:
    """Return the lines of the table of one size: milliseconds, and speed-ups over the fewest threads."""
    n, rank, _ = case
    lines = []
    for count in threads:
        line = {"n": n, "threads": count}
        for tree, name in dict.fromkeys((tree, name) for tree, name, _ in seconds):
            label = name if tree == "here" else f"base {name}"
            line[label] = 1e3 * seconds[tree, name, count]
            if name != "limit":
                line[f"x {label}"] = seconds[tree, name, threads[0]] / seconds[tree, name, count]
        if "evaluation" in names:
            here = seconds["here", "evaluation", count]
            line["GFLOP/s"] = 3 * n * n * rank / here / 1e9
            if "limit" in names:
                line["of limit"] = seconds["here", "limit", count] / here
            if ("base", "evaluation", count) in seconds:
                line["base 1 / here"] = seconds["base", "evaluation", threads[0]] / here
        lines.append(line)
    return lines


def print_rows(rows: list[dict]) -> None:
    """Print lines as a Markdown table."""
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "|".join("---:" for _ in rows[0]) + "|")
    for row in rows:
        values = (f"{v}" if isinstance(v, int) else f"{v:.2f}" if v < 10 else f"{v:.0f}" for v in row.values())
        print("| " + " | ".join(values) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="source tree to compare with")
    parser.add_argument("--jobs", nargs="+", default=list(STANDARD), help="what to measure")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 10000, 20000, 60000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    places = {"here": Path(__file__).parents[1]} | ({"base": options.base} if options.base else {})
    trees = {name: Tree(path, Path(__file__)) for name, path in places.items()}
    print(f"milliseconds (median of {options.rounds}), {options.dtype}, rank {options.rank};", end=" ")
    print(f"x is the speed-up over {options.threads[0]} thread(s)\n")
    rows: list[dict] = []
    for n in options.sizes:
        case = (n, options.rank, options.dtype)
        seconds = measure(trees, options.jobs, case, options.threads, options.rounds)
        lines = rows_of(case, options.jobs, options.threads, seconds)
        print_rows(lines)
        rows += lines
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    settings = {"rank": options.rank, "dtype": options.dtype, "rounds": options.rounds}
    print(f"\n{machine} {settings}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "settings": settings, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
