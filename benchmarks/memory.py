"""Measure the peak memory of a fit in a separate process.

    python benchmarks/memory.py [--n 20000] [--rank 32] [--steps 15] [--solver lbfgs] [--json FILE]

The child process compiles on a small matrix, builds M, records its peak resident size, fits, and records it
again. The rise is what the fit needs in addition to M. The n x n matrix, which is never formed, would need
n * n * 8 bytes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

from evaluation import ENTRIES_PER_ROW, random_graph


def peak_megabytes() -> float:
    """Return the peak resident size of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)  # bytes on macOS, kilobytes on Linux


def child(n: int, rank: int, steps: int, solver: str) -> None:
    """Fit, and print the peak sizes as JSON."""
    import numpy as np

    from symrelu import decompose

    settings = {"solver": solver, "tol": 0, "gtol": 0, "ftol": 0, "random_state": 0}
    # Compiling needs memory too, so it happens before the first measurement.
    decompose(random_graph(2000, np.float64), rank, max_iter=2, **settings)
    M = random_graph(n, np.float64)
    before = peak_megabytes()
    solution = decompose(M, rank, max_iter=steps, **settings)
    print(json.dumps({"before": before, "after": peak_megabytes(), "error": solution.relative_error}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20000)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--solver", default="lbfgs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n, rank, steps, solver = arguments.n, arguments.rank, arguments.steps, arguments.solver
    if arguments.child:
        child(n, rank, steps, solver)
        return
    command = [sys.executable, __file__, "--child", f"--n={n}", f"--rank={rank}", f"--steps={steps}"]
    command.append(f"--solver={solver}")
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rise, matrix = measured["after"] - measured["before"], n * n * 8 / 1e6
    print(f"fit of n = {n}, {ENTRIES_PER_ROW} entries a row, rank {rank}, {steps} steps of {solver}, float64\n")
    print("| peak before (MB) | peak after (MB) | rise (MB) | n x n matrix (MB) | rise / n x n |")
    print("|-----------------:|----------------:|----------:|------------------:|-------------:|")
    print(
        f"| {measured['before']:16.0f} | {measured['after']:15.0f} | {rise:9.0f} | {matrix:17.0f} "
        f"| {rise / matrix:12.3f} |"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({**measured, "rise": rise, "matrix": matrix}, indent=2))


if __name__ == "__main__":
    main()
