"""Measure fits of large sparse graphs: every pair in tiles or a list of pairs, imputed or multilevel start.

    python benchmarks/scaling.py [--problems KIND:N:TOL ...] [--ways START+BACKEND ...] [--dtype float64]
                                 [--rank 32] [--most SECONDS] [--output FOLDER]
    python benchmarks/scaling.py --plot FOLDER

Each problem is fitted in every way in the same process, one after the other, after everything was compiled.
Only rows of the same run should be compared: they have the same "run", the time at which it began, and "ratio"
is to the first way of that run. "Cpu" are the seconds of all threads. KIND is plane, blobs or sphere (the graph
of 10 neighbours of random points, in 2, 20 and 5 dimensions), blocks, "power law" or PubMed; the model has one
negative column, and the diagonal is ignored. "Visited" and "scanned" are pairs, divided by those of all passes
over M itself, n (n + 1) / 2 each: visited ones are in tiles or on a list, scanned ones were compared with the
threshold of a list. Memory (Linux only) is the growth of the process during a fit, sampled; M is not in it.
A fit that takes longer than --most is stopped, and its row has the error it reached. Rows are written to
FOLDER/scaling.json as they come, with the number of cores, in place of those of the same problem from earlier
runs; --plot makes FOLDER/scaling.png and FOLDER/scaling.csv from it, and prints the table.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gc
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from large_graphs import graph

from symrelu import LBFGS, decompose
from symrelu.kernels.threads import allowed_threads
from symrelu.operators.active import ActiveOperator

KINDS = ("plane", "sphere", "blobs", "blocks", "power law", "PubMed")  # in the order of the table
WAYS = ("imputed+sparse", "imputed+active", "multilevel+active")
PROBLEMS = [f"{kind}:{n}:1e-3" for kind in ("plane", "blobs", "sphere") for n in (2000, 8000)]
COLUMNS = (
    "run", "problem", "n", "entries", "rank", "dtype", "target", "way", "threads", "seconds", "ratio", "cpu",
    "evaluations", "error", "visited", "scanned", "megabytes",
)  # fmt: skip

# What makes a problem: its rows of different runs are not kept next to each other.
OF_A_PROBLEM = ("problem", "n", "rank", "dtype", "target")

# What a table on a page has room for.
IN_TABLE = (
    "problem", "n", "target", "way", "seconds", "ratio", "evaluations", "visited", "scanned", "megabytes",
)  # fmt: skip


class Watched(LBFGS):
    """LBFGS that keeps the operator of the last level, for the counts of its visits."""

    latest: Any = None

    def init(self, op: Any, U0: Any) -> Any:
        Watched.latest = op
        return super().init(op, U0)


class Memory:
    """The largest growth of this process while the block runs, in bytes, sampled a hundred times a second."""

    def __enter__(self) -> Memory:
        # What earlier fits have freed goes back to the system, or this one would seem to need none.
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        self._first, self.growth, self._done = self._now(), 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.growth = max(self.growth, self._now() - self._first)

    def _now(self) -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fit(M: Any, way: str, rank: int, tol: float, most: float | None, steps: int = 1000) -> Any:
    start, backend = way.split("+")
    return decompose(
        M,
        rank,
        n_negative=1,
        diagonal="ignore",
        solver=Watched(),
        init=start,
        backend=backend,
        tol=tol,
        max_iter=steps,
        max_time=most,
        random_state=0,
    )


def measure(M: Any, way: str, rank: int, tol: float, most: float | None) -> dict[str, Any]:
    """Fit once, and return what it took."""
    with Memory() as memory:
        began, cpu_before = time.perf_counter(), time.process_time()
        solution = fit(M, way, rank, tol, most)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_before
    op, n = Watched.latest, M.shape[0]
    passes = op.evaluations * n * (n + 1) / 2
    visits = getattr(op, "visits", None)
    return {
        "way": way,
        "threads": allowed_threads(),
        "seconds": seconds,
        "cpu": cpu,
        "evaluations": solution.n_evaluations,
        "error": solution.relative_error,
        "visited": 1.0 if visits is None else (visits.tiled + visits.listed) / passes,
        "scanned": 0.0 if visits is None else visits.scanned / passes,
        "megabytes": memory.growth / 1e6,
    }


def compile_all(ways: list[str], dtype: str, rank: int) -> None:
    """Compile what the fits will need, so that none of them has to wait for it."""
    small = graph("plane", 3000).astype(dtype)
    for way in ways:
        fit(small, way, rank, 0.0, None, steps=15)  # so many that the memory of LBFGS is full
    # A graph so small is never listed. Smaller levels are in float32, whatever the type of M.
    for kind in {"float32", dtype}:
        ActiveOperator(small.astype(kind), signature=np.ones(rank), always_lists=True).warm_up()


def run(options: argparse.Namespace) -> None:
    options.output.mkdir(parents=True, exist_ok=True)
    store = options.output / "scaling.json"
    rows = json.loads(store.read_text()) if store.exists() else []
    name = time.strftime("%Y-%m-%d %H:%M:%S")
    compile_all(options.ways, options.dtype, options.rank)
    for problem in options.problems:
        kind, n, tol = problem.split(":")
        M = graph(kind, int(n)).astype(options.dtype)
        first = None
        for way in options.ways:
            row = {
                "run": name, "problem": kind, "n": M.shape[0], "entries": M.nnz, "rank": options.rank,
                "dtype": options.dtype, "target": float(tol), "cores": os.cpu_count(),
                **measure(M, way, options.rank, float(tol), options.most),
            }  # fmt: skip
            first = first or row["seconds"]
            row["ratio"] = row["seconds"] / first
            rows = [*without_earlier(rows, row), row]
            print(line(row), flush=True)
            store.write_text(json.dumps(rows, indent=1) + "\n")


def without_earlier(rows: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that are about another problem, or from the same run."""
    return [row for row in rows if row["run"] == new["run"] or any(row[k] != new[k] for k in OF_A_PROBLEM)]


def line(row: dict[str, Any]) -> str:
    return "| " + " | ".join(shortened(row[name]) for name in COLUMNS) + " |"


def shortened(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def plot(folder: Path) -> None:
    """Draw seconds against n for each kind of graph, and write and print the table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    rows = json.loads((folder / "scaling.json").read_text())
    rows.sort(key=lambda row: (KINDS.index(row["problem"]), row["n"], row["target"]))
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    with (folder / "scaling.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow("MB" if name == "megabytes" else name for name in IN_TABLE)
        for row in rows:
            print(line(row))
            writer.writerow(shortened(row[name]) for name in IN_TABLE)
    kinds = list(dict.fromkeys(row["problem"] for row in rows))
    rows_of_axes, columns = -(-len(kinds) // 3), min(len(kinds), 3)
    figure = Figure(figsize=(3.2 * columns, 0.4 + 2.8 * rows_of_axes), layout="constrained")
    axes = figure.subplots(rows_of_axes, columns, squeeze=False, sharex=True, sharey=True).flat
    for ax in axes[len(kinds) :]:
        ax.set_axis_off()
    for ax, kind in zip(axes, kinds, strict=False):
        targets = sorted({row["target"] for row in rows if row["problem"] == kind})
        for way, marker, color in zip(WAYS, "osD", ("C0", "C1", "C2"), strict=True):
            for target in targets:  # fits to different errors are not joined by a line
                wanted = (kind, way, target)
                # Of several runs, the last one counts.
                latest = {
                    row["n"]: row["seconds"]
                    for row in rows
                    if (row["problem"], row["way"], row["target"]) == wanted
                }
                label = None if target > targets[0] else way.replace("+", ", ")
                chosen = np.array(sorted(latest.items()), float).reshape(-1, 2)
                ax.loglog(*chosen.T, marker=marker, color=color, label=label)
        ax.set(title=kind, xlabel="nodes")
        ax.grid(True, which="both", alpha=0.25)
    for ax in figure.axes[::columns]:
        ax.set_ylabel("seconds of a fit")
    figure.axes[0].legend()
    figure.savefig(folder / "scaling.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=PROBLEMS, metavar="KIND:N:TOL")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--dtype", default="float64", choices=("float32", "float64"))
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--most", type=float)
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks/scaling"))
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    plot(options.plot) if options.plot else run(options)


if __name__ == "__main__":
    main()
