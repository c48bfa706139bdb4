"""Compare what ``estimate_cost`` announces with what fits take: seconds per evaluation and peak memory.

    python benchmarks/cost.py [--sizes 2000 5000 10000 20000] [--rank 32] [--steps 20] [--output FILE]

The graphs join points in the plane to their ten nearest neighbours. Each fit has a process of its own, which
first calls ``estimate_cost`` (this also compiles) and then fits. Its memory is the rise of the resident size
above that before the fit. A ratio is what was measured divided by what was announced. With the backend "active"
the announced seconds are a range, and so are their ratios: to the upper end, and to the lower one. The memory
announced there contains the longest list that is allowed, and the second ratio is without it.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SETTINGS = {"n_negative": 1, "diagonal": "ignore"}


def plane_graph(n: int, dtype: str, seed: int = 0) -> Any:
    """Return the graph of the ten nearest neighbours of random points, with weights between 0 and 1."""
    import numpy as np
    from scipy import sparse
    from sklearn.neighbors import kneighbors_graph

    points = np.random.default_rng(seed).random((n, 2))
    distances = sparse.csr_array(kneighbors_graph(points, 10, mode="distance"))
    distances.data = np.exp(-n * distances.data**2)
    return sparse.csr_array(distances.maximum(distances.T)).astype(dtype)


def resident(entry: str) -> int:
    """Return an entry of /proc/self/status in bytes, or the peak where there is none."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(entry))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """Return free memory to the system, and let the peak of the resident size begin again, on Linux."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def child(n: int, dtype: str, backend: str, rank: int, steps: int) -> None:
    """Estimate, fit, and print the figures as JSON."""
    from symrelu import decompose, estimate_cost

    M = plane_graph(n, dtype)
    settings = {**SETTINGS, "backend": backend}
    estimate_cost(M, rank, **settings)  # compiles
    begin = time.perf_counter()
    cost = estimate_cost(M, rank, **settings)
    calibration = time.perf_counter() - begin
    forget_peak()
    before = resident("VmRSS")
    limits = {"max_iter": steps, "tol": 0, "gtol": 0, "ftol": 0}
    solution = decompose(M, rank, random_state=0, **settings, **limits)
    peak = resident("VmHWM") - before
    history = solution.history
    evaluations = history.evaluations[-1] - history.evaluations[0]
    measured = (history.seconds[-1] - history.seconds[0]) / evaluations
    low, high = cost.seconds_per_evaluation
    row = {
        "n": n,
        "entries": cost.entries,
        "dtype": dtype,
        "backend": backend,
        "threads": cost.threads,
        "calibration": calibration,
        "announced": high,
        "announced, low": low,
        "seconds": float(measured),
        "ratio": float(measured / high),
        "ratio to low": float(measured / low),
        "announced MB": cost.memory.total / 1e6,
        "announced MB, without list": cost.memory.least / 1e6,
        "peak MB": peak / 1e6,
        "memory ratio": peak / cost.memory.total,
        "memory ratio, without list": peak / cost.memory.least,
    }
    print(json.dumps(row))


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print a Markdown table."""
    header = ("n", "type", "backend", "announced (ms)", "measured", "ratio", "announced (MB)", "peak", "ratio")
    lines = [header]
    for row in rows:
        active = row["backend"] == "active"
        low, high = 1e3 * row["announced, low"], 1e3 * row["announced"]
        memory, without = row["memory ratio"], row["memory ratio, without list"]
        line = [
            row["n"],
            row["dtype"],
            row["backend"],
            f"{low:.3g} to {high:.3g}" if active else f"{high:.3g}",
            f"{1e3 * row['seconds']:.3g}",
            f"{row['ratio']:.2f} to {row['ratio to low']:.2f}" if active else f"{row['ratio']:.2f}",
            f"{row['announced MB']:.3g}",
            f"{row['peak MB']:.3g}",
            f"{memory:.2f}, {without:.2f}" if active else f"{memory:.2f}",
        ]
        lines.append(tuple(map(str, line)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * (width - 1) + ":" for width in widths))
    for line in lines:
        print("| " + " | ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) + " |")


def write(options: argparse.Namespace, machine: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write the rows that there are, since a run can be cut off."""
    options.output.parent.mkdir(parents=True, exist_ok=True)
    settings = {"rank": options.rank, "steps": options.steps}
    content = {"machine": machine, "settings": settings, "rows": rows}
    options.output.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 5000, 10000, 20000])
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--backends", nargs="+", default=["sparse", "active"])
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        n, dtype, backend = options.child
        child(int(n), dtype, backend, options.rank, options.steps)
        return
    rows: list[dict[str, Any]] = []
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    for n in options.sizes:
        for dtype in options.dtypes:
            for backend in options.backends:
                command = [sys.executable, __file__, "--child", str(n), dtype, backend]
                command += [f"--rank={options.rank}", f"--steps={options.steps}"]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                rows.append(json.loads(done.stdout))
                print(rows[-1], file=sys.stderr, flush=True)
                if options.output:
                    write(options, machine, rows)
    threads = rows[0]["threads"]
    print(
        f"rank {options.rank}, {options.steps} steps of LBFGS, {threads} threads; milliseconds per evaluation\n"
    )
    print_rows(rows)
    print(f"\n{machine}")


if __name__ == "__main__":
    main()
