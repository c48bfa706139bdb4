"""Evaluation and LBFGS step against the number of threads, next to another source tree: ratios within one run.

    git worktree add ../base 324cf23
    python benchmarks/threads.py [--base ../base] [--sizes 2000 20000] [--threads 1 2 4 8 16] [--json FILE]

Each tree has its own process, in which everything is compiled. They take turns, job by job, so that a busy
neighbour disturbs both alike; a figure is the median over the rounds.

The "limit" is what the machine can do: as many threads, each of which forms tiles of the same side and
multiplies them with V by single-threaded BLAS, without M, without sums, and without waiting for other threads.
GFLOP/s counts multiplications and additions of the three products of a tile.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

from overhead import Tree

Job = Callable[[], object]


def jobs(n: int, rank: int, dtype: str) -> dict[str, Job]:
    """Return what is timed at one size, by name. Everything but the limit exists in both trees."""
    import numpy as np
    from evaluation import bare_products, problem

    from symrelu.operators import SparseOperator
    from symrelu.solvers import LBFGS

    M, U = problem(n, rank, np.dtype(dtype).type)
    op = SparseOperator(M, signature=np.ones(rank))
    solver = LBFGS(memory=3)
    state = solver.init(op, U)
    for _ in range(4):  # until the memory is full
        state = solver.step(op, state)
    table: dict[str, Job] = {
        "evaluation": lambda: op.residual_product(U, U),
        "step": lambda: solver.step(op, state),
    }
    with suppress(ImportError):  # 0.1.0 had no compiled pass
        table["limit"] = bare_products(U)
    return table


def serve() -> None:
    """Time the jobs whose names come in, one line each."""
    from threadpoolctl import threadpool_limits

    print(json.dumps([]), flush=True)
    size, table = None, {}
    for line in sys.stdin:
        name, threads, *case = json.loads(line)
        if case != size:
            size, table = case, jobs(*case)
            for job in table.values():
                job()
        if name not in table:
            print("nan", flush=True)
            continue
        with threadpool_limits(threads, user_api="blas"):
            start = time.perf_counter()
            table[name]()
            print(time.perf_counter() - start, flush=True)


def measure(
    trees: dict[str, Tree], case: tuple[int, int, str], threads: list[int], rounds: int
) -> dict[str, float]:
    """Return the median seconds of each tree, job and number of threads."""
    wanted = [
        (tree, name, count) for tree in trees for name in ("evaluation", "step", "limit") for count in threads
    ]
    wanted = [job for job in wanted if job[0] == "here" or job[1] != "limit"]
    seconds: dict[tuple[str, str, int], list[float]] = {job: [] for job in wanted}
    order = random.Random(0)
    for _ in range(rounds):
        for tree, name, count in order.sample(wanted, len(wanted)):
            seconds[tree, name, count].append(trees[tree].seconds([name, count, *case]))
    return {
        f"{tree} {name} {count}": statistics.median(values) for (tree, name, count), values in seconds.items()
    }


def print_table(rows: list[dict[str, Any]], with_base: bool) -> None:
    """Print one line for each size and number of threads."""
    head = ["n", "threads", "evaluation", "speed-up", "GFLOP/s", "of limit", "step", "step speed-up"]
    head += ["base", "base step", "base 1 / here"] if with_base else []
    print("| " + " | ".join(f"{name:>10}" for name in head) + " |")
    print("|" + "|".join("-----------:" for _ in head) + "|")
    for row in rows:
        print("| " + " | ".join(f"{row.get(name, float('nan')):10.4g}" for name in head) + " |")


def rows_of(case: tuple[int, int, str], threads: list[int], seconds: dict[str, float]) -> list[dict[str, Any]]:
    """Return the lines of the table of one size."""
    n, rank, _ = case
    lines = []
    for count in threads:
        here, step = seconds[f"here evaluation {count}"], seconds[f"here step {count}"]
        line = {
            "n": n,
            "threads": count,
            "evaluation": 1e3 * here,
            "speed-up": seconds[f"here evaluation {threads[0]}"] / here,
            "GFLOP/s": 3 * n * n * rank / here / 1e9,
            "of limit": seconds[f"here limit {count}"] / here,
            "step": 1e3 * step,
            "step speed-up": seconds[f"here step {threads[0]}"] / step,
        }
        if f"base evaluation {count}" in seconds:
            line |= {
                "base": 1e3 * seconds[f"base evaluation {count}"],
                "base step": 1e3 * seconds[f"base step {count}"],
                "base 1 / here": seconds[f"base evaluation {threads[0]}"] / here,
            }
        lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="source tree to compare with")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 10000, 20000])
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
    rows = []
    for n in options.sizes:
        case = (n, options.rank, options.dtype)
        rows += rows_of(case, options.threads, measure(trees, case, options.threads, options.rounds))
        print_table(rows[-len(options.threads) :], options.base is not None)
    machine = {
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "rank": options.rank,
        "dtype": options.dtype,
    }
    print(f"\n{machine}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
