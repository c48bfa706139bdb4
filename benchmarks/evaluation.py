"""Measure the cost of one evaluation of a sparse matrix, as ratios within one run.

    python benchmarks/evaluation.py [--sizes 2000 5000 10000 20000] [--rank 32] [--threads 2] [--json FILE]
    python benchmarks/evaluation.py --tiles 128 256 384 512      compares tile sizes
    python benchmarks/evaluation.py --ranks 8 32 128             compares ranks and dtypes

An evaluation is R(U) V with its norms. It contains two matrix products for each tile: one to form the tile of
X and one to multiply it by V, on both sides for a tile above the diagonal. "Bare products" are exactly these
products, on the same tiles and as many threads, without the work in between and without waiting. "NumPy" is
the formula on whole n x n arrays, in place if possible. Each number is the median over rounds in which all
candidates take turns, so that other processes on the machine affect all of them equally.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import scipy
from scipy import sparse
from threadpoolctl import threadpool_limits

from symrelu.operators import SparseOperator

ENTRIES_PER_ROW = 15
MEMORY_FOR_NUMPY = 2e9  # bytes; the whole-matrix formula is left out if it needs more


def random_graph(n: int, dtype: type, seed: int = 0) -> sparse.csr_array:
    """Return a symmetric matrix with about 15 positive entries in each row."""
    rng = np.random.default_rng(seed)
    half = n * ENTRIES_PER_ROW // 2
    rows, cols = rng.integers(0, n, (2, half))
    upper = sparse.csr_array((rng.random(half), (rows, cols)), shape=(n, n))
    return sparse.csr_array(upper + upper.T).astype(dtype)


def whole_matrix(M: sparse.csr_array, U: np.ndarray) -> Callable[[], object]:
    """Return the evaluation in NumPy with as few n x n arrays as possible."""
    # Indices and values are prepared once, as the sparse operator does.
    support = M.nonzero()
    values = np.asarray(M[support]).ravel()

    def evaluate() -> object:
        X = U @ U.T
        on_support = X[support]
        X[support] = 0
        all_squares = np.vdot(X, X)
        np.maximum(X, 0, out=X)
        positive = np.vdot(X, X)
        fit, error = on_support - values, np.maximum(on_support, 0) - values
        X[support] = fit
        latent_norm_squared = np.vdot(values, values) + all_squares - positive
        return -(X @ U), positive + np.vdot(fit, fit), positive + np.vdot(error, error), latent_norm_squared

    return evaluate


def bare_products(U: np.ndarray) -> Callable[[], object]:
    """Return a function that makes the products of all tiles of U U^T, each thread for itself."""
    from numba import njit

    from symrelu.kernels import streaming
    from symrelu.kernels.threads import allowed_threads, single_threaded_blas
    from symrelu.kernels.tiles import tile_side

    gram_tile, multiply_tile, tile_of = streaming.gram_tile, streaming.multiply_tile, streaming.tile_of

    @njit(nogil=True)
    def products(shared, desk, first, step):  # type: ignore[no-untyped-def]
        for t in range(first, shared.rounds[-1], step):
            i, j, _ = tile_of(shared, t)
            multiply_tile(shared, desk, 0, gram_tile(shared, desk, i, j), i, j)

    shared = streaming._new_pass(U, U, U, True, tile_side(*U.shape))

    def run() -> None:
        count = allowed_threads()
        with single_threaded_blas():
            tasks = [(shared, streaming._new_desk(shared), k, count) for k in range(count)]
            threads = [threading.Thread(target=products, args=task) for task in tasks]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    return run


def medians(candidates: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median time of each candidate in milliseconds; they take turns."""
    for run in candidates.values():  # compile, and fill caches
        run()
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for k in range(rounds):
        # The order changes each time, because the candidate after the n x n formula finds a cold cache.
        for name in np.random.default_rng(k).permutation(names):
            run = candidates[name]
            time.sleep(0.1)  # BLAS threads keep spinning for a while after the n x n formula
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(values) for name, values in seconds.items()}


def problem(n: int, rank: int, dtype: type) -> tuple[sparse.csr_array, np.ndarray]:
    """Return a graph and a random factor for it."""
    U = np.random.default_rng(1).standard_normal((n, rank)) / np.sqrt(rank)
    return random_graph(n, dtype), U.astype(dtype)


def evaluation(M: sparse.csr_array, U: np.ndarray, tile: int | None = None) -> Callable[[], object]:
    """Return the evaluation of this library."""
    op = SparseOperator(M, signature=np.ones(U.shape[1]), tile=tile)
    return lambda: op.residual_product(U, U)


def compare(n: int, rank: int, rounds: int) -> dict[str, float]:
    """Return the times of all candidates at one size, in milliseconds."""
    M, U = problem(n, rank, np.float64)
    candidates = {
        "float64": evaluation(M, U),
        "bare products": bare_products(U),
        "float32": evaluation(*problem(n, rank, np.float32)),
    }
    if n * n * 16 <= MEMORY_FOR_NUMPY:
        candidates["NumPy"] = whole_matrix(M, U)
    return medians(candidates, rounds)


def print_comparison(rows: list[dict[str, float]]) -> None:
    """Print milliseconds and ratios as a Markdown table."""
    print("|     n | evaluation | bare products | NumPy | float32 | / bare | / NumPy | float32 / float64 |")
    print("|------:|-----------:|--------------:|------:|--------:|-------:|--------:|------------------:|")
    for row in rows:
        double, single, bare = row["float64"], row["float32"], row["bare products"]
        whole = row.get("NumPy", math.nan)
        print(
            f"| {row['n']:5.0f} | {double:10.1f} | {bare:13.1f} | {whole:5.0f} | {single:7.1f} "
            f"| {double / bare:6.2f} | {double / whole:7.2f} | {single / double:17.2f} |"
        )


def compare_dtypes(n: int, rank: int, rounds: int) -> dict[str, float]:
    """Return times, speeds and their ratio at one size and rank."""
    candidates = {
        np.dtype(dtype).name: evaluation(*problem(n, rank, dtype)) for dtype in (np.float32, np.float64)
    }
    times = medians(candidates, rounds)
    speeds = {f"{name} GFLOP/s": 3 * n * n * rank / time / 1e6 for name, time in times.items()}
    return {"n": n, "rank": rank, **times, **speeds, "ratio": times["float32"] / times["float64"]}


def print_table(rows: list[dict[str, float]]) -> None:
    """Print the columns as a Markdown table."""
    names = list(rows[0])
    print("| " + " | ".join(f"{name:>8}" for name in names) + " |")
    print("|" + "|".join("---------:" for _ in names) + "|")
    for row in rows:
        print("| " + " | ".join(f"{value:8.4g}" for value in row.values()) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 5000, 10000, 20000])
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tiles", type=int, nargs="+")
    parser.add_argument("--ranks", type=int, nargs="+")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from symrelu.kernels.threads import kept_threads

    rows: list[dict[str, float]] = []
    # As in a fit: threads are kept from pass to pass.
    with threadpool_limits(limits=options.threads, user_api="blas"), kept_threads():
        for n in options.sizes:
            if options.ranks:
                rows += [compare_dtypes(n, rank, options.rounds) for rank in options.ranks]
            elif options.tiles:
                M, U = problem(n, options.rank, np.float64)
                candidates = {f"tile {tile}": evaluation(M, U, tile) for tile in options.tiles}
                rows.append({"n": n, **medians(candidates, options.rounds)})
            else:
                rows.append({"n": n, **compare(n, options.rank, options.rounds)})
    rank = "" if options.ranks else f" rank {options.rank},"
    print(f"one evaluation, sparse M with {ENTRIES_PER_ROW} entries a row,{rank}", end=" ")
    print(f"{options.threads} threads, milliseconds (median of {options.rounds})\n")
    (print_table if options.tiles or options.ranks else print_comparison)(rows)
    versions = {module.__name__: module.__version__ for module in (np, scipy, numba)}
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), **versions}
    print(f"\n{machine}")
    if options.json:
        content = {"machine": machine, "rank": options.rank, "threads": options.threads, "rows": rows}
        options.json.write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
