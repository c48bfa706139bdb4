"""Measure the cost of embedding new rows, relative to an evaluation of a fit of the same size.

    python benchmarks/transform.py [--n 10000] [--new 10000] [--rank 32] [--threads 1] [--json FILE]

The items are points on a sphere; they are similar if their angle is small. Half of them are fitted and half are
new, so that the matrix of the fit and that of the new rows have the same size and distribution. Time of an
evaluation: the shortest of five. Time of the new rows: one run, after compiling. Memory: the peak in addition
to input and result while a tenth of the rows is embedded.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from symrelu import decompose
from symrelu.kernels.threads import single_threaded_blas
from symrelu.operators import as_operator

CASES = {
    "paper's model, 1 % positive": (0.01, {}),
    "signed, 1 % positive": (0.01, {"n_negative": 1, "diagonal": "ignore"}),
    "paper's model, 10 % positive": (0.1, {}),
    "alpha, 1 % positive": (0.01, {"alpha": 1.0}),
}


def similarities(A: np.ndarray, B: np.ndarray, threshold: float) -> sparse.csr_array:
    """Return max(0, A B^T - threshold), computed in blocks of rows."""
    parts = [sparse.csr_array(np.maximum(0, A[batch] @ B.T - threshold)) for batch in gen_batches(len(A), 500)]
    return sparse.csr_array(sparse.vstack(parts))


def measure(n: int, n_new: int, rank: int, share: float, fit: dict[str, object]) -> dict[str, float]:
    """Return the measurements of one case."""
    points = np.random.default_rng(0).standard_normal((n + n_new, rank))
    points /= np.linalg.norm(points, axis=1)[:, None]
    old, new = points[:n], points[n:]
    threshold = float(np.quantile(old[:200] @ old.T, 1 - share))
    M, M_new = similarities(old, old, threshold), similarities(new, old, threshold)
    solution = decompose(M, rank, max_iter=30, tol=0, random_state=0, **fit)
    op = as_operator(M, solution.signature, diagonal=solution.diagonal)
    solution.transform(M_new[:2])  # compiles
    begin = time.perf_counter()
    U_new = solution.transform(M_new)
    seconds = time.perf_counter() - begin
    part = M_new[: n_new // 10]  # tracemalloc slows everything down
    tracemalloc.start()
    solution.transform(part)
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    op.warm_up()
    evaluations = []
    with single_threaded_blas():
        for _ in range(5):
            begin = time.perf_counter()
            op.residual_product(solution.U, solution.U)
            evaluations.append(time.perf_counter() - begin)
    return {
        "evaluation": min(evaluations),
        "transform": seconds,
        "ratio": seconds / min(evaluations),
        "memory": memory,
        "explained": solution.score(M_new[:1000]),
        "size": float(np.abs(U_new).max() / np.abs(solution.U).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10000)
    parser.add_argument("--new", type=int, default=10000)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    n, n_new, rank = arguments.n, arguments.new, arguments.rank
    print(f"{n_new} new rows against n = {n}, rank {rank}, {arguments.threads} thread(s)\n", flush=True)
    print("| fit | evaluation (ms) | new rows (ms) | in evaluations | memory (MB) | explained |")
    print("|---|---:|---:|---:|---:|---:|")
    measured = {}
    with threadpool_limits(arguments.threads, "blas"):
        for name, (share, fit) in CASES.items():
            result = measured[name] = measure(n, n_new, rank, share, fit)
            print(
                f"| {name} | {1e3 * result['evaluation']:.0f} | {1e3 * result['transform']:.0f} "
                f"| {result['ratio']:.1f} | {result['memory']:.0f} | {result['explained']:.3f} |",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
