"""Measure an evaluation on a cluster of processes: time, bytes moved and memory against the number of workers.

    python benchmarks/cluster.py [--n 20000] [--rank 16] [--workers 1 2 4] [--rounds 3] [--json FILE]
    python benchmarks/cluster.py --csv EDGES.csv --rank 2 --workers 2 --rounds 1 --cold
    python benchmarks/cluster.py --csv EDGES.csv --rounds 0                          (memory alone)
    python benchmarks/cluster.py --make-csv EDGES.csv --n 1000000                    (10 entries per row)

Each number of workers is a LocalCluster of its own, with one thread per worker. The memory of a worker is its
peak so far: with its blocks, then with whole rows for a product, then with all evaluations.

The processor time of all workers hardly depends on what else the machine does, so that it can be compared with
that of one process; both are given for a pair of nodes too. --cold times the first evaluation, which sorts the
entries by tile; otherwise one is made before. Bytes are what the loopback interface of the machine counted
during the evaluations (Linux only), next to the formula of the block grid: rows of the factor that the driver
sends, that workers get from each other, and that come back.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from evaluation import ENTRIES_PER_ROW, random_graph

PANELS = 8


def peak_megabytes() -> float:
    """Return the peak resident size of this process."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def loopback_bytes() -> int:
    """Return the bytes that the loopback interface has received, or 0 where that is not known."""
    counters = Path("/proc/net/dev")
    if not counters.exists():
        return 0
    line = next(line for line in counters.read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.partition(":")[2].split()[0])


def make_csv(path: Path, n: int) -> None:
    """Write a list of 5 n different edges between nodes in random order."""
    rng = np.random.default_rng(0)
    order = rng.permutation(n)
    with open(path, "w") as file:
        file.write("source,target,weight\n")
        for step in range(1, 6):
            ends = zip(order.tolist(), np.roll(order, step).tolist(), rng.random(n).tolist(), strict=True)
            file.writelines(f"v{i},v{j},{w + 0.1:.3f}\n" for i, j, w in ends)


def convert(path: Path, folder: Path, rows: int) -> dict[str, float]:
    """Convert a list of edges in a process of its own; return seconds and the peak size."""
    program = (
        "import sys, resource; from symrelu.graphs import convert_to_blocks;"
        "convert_to_blocks(sys.argv[1], sys.argv[2], rows=int(sys.argv[3]), dtype='float32');"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)"
    )
    begin = time.perf_counter()
    command = [sys.executable, "-c", program, str(path), str(folder), str(rows)]
    peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {"seconds": time.perf_counter() - begin, "megabytes": peak}


def processor_seconds(client: object) -> float:
    """Return the processor time that all workers have used."""
    return sum(client.run(time.process_time).values())


def measure(folder: Path, rank: int, workers: int, rounds: int, cold: bool) -> dict[str, float]:
    """Return what evaluations on so many workers take."""
    from distributed import Client, LocalCluster

    from symrelu import Problem
    from symrelu.kernels.block_grid import traffic

    problem = Problem.of(folder, diagonal="ignore")
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL, "threads_per_worker": 1}
    with LocalCluster(n_workers=workers, **quiet) as cluster, Client(cluster) as client:
        begin = time.perf_counter()
        op = problem.operator(np.ones(rank), client=client)
        loading = time.perf_counter() - begin
        loaded = max(client.run(peak_megabytes).values())
        op.imputed_matmul(np.ones((problem.n, 1), problem.dtype), -1.0)
        with_rows = max(client.run(peak_megabytes).values())
        op.warm_up()
        U = (np.random.default_rng(0).standard_normal((problem.n, rank)) / 3).astype(problem.dtype)
        if rounds and not cold:
            op.residual_product(U, U)
        used = processor_seconds(client)
        seconds, before = [], loopback_bytes()
        for _ in range(rounds):
            begin = time.perf_counter()
            op.residual_product(U, U)
            seconds.append(time.perf_counter() - begin)
        moved = (loopback_bytes() - before) / max(1, rounds)
        used = (processor_seconds(client) - used) / max(1, rounds)
        peaks = client.run(peak_megabytes).values()
        problem.release()
    formula = sum(traffic(problem.M.grid, workers).values()) * rank * problem.dtype.itemsize
    return {
        "workers": workers,
        "loading": loading,
        "loaded": loaded,
        "with rows": with_rows,
        "seconds": float(np.median(seconds)) if seconds else 0.0,
        "processor": used,
        "nanoseconds of a pair": used * 1e9 / (problem.n**2 / 2),
        "moved": moved,
        "formula": formula,
        "peak": max(peaks),
        "driver": peak_megabytes(),
    }


def one_machine(rank: int, M: object, rounds: int) -> tuple[float, float]:
    """Return the seconds of an evaluation in this process, and the processor time of one thread."""
    from symrelu import Problem
    from symrelu.kernels.threads import at_most_threads

    op = Problem.of(M, diagonal="ignore").operator(np.ones(rank))
    U = (np.random.default_rng(0).standard_normal((op.n, rank)) / 3).astype(op.dtype)
    op.residual_product(U, U)
    begin = time.perf_counter()
    for _ in range(rounds):
        op.residual_product(U, U)
    seconds = (time.perf_counter() - begin) / rounds
    begin = time.process_time()
    with at_most_threads(1):
        op.residual_product(U, U)
    return seconds, time.process_time() - begin


COLUMNS = {
    "workers": ("workers", 1, "d"),
    "loading (s)": ("loading", 1, ".1f"),
    "evaluation (s)": ("seconds", 1, ".3f"),
    "processor (s)": ("processor", 1, ".3f"),
    "ns of a pair": ("nanoseconds of a pair", 1, ".2f"),
    "moved (MB)": ("moved", 1e-6, ".2f"),
    "formula (MB)": ("formula", 1e-6, ".2f"),
    "ratio": ("ratio", 1, ".2f"),
    "loaded (MB)": ("loaded", 1, ".0f"),
    "with rows (MB)": ("with rows", 1, ".0f"),
    "peak (MB)": ("peak", 1, ".0f"),
    "driver (MB)": ("driver", 1, ".0f"),
}


def print_row(cells: list[str]) -> None:
    """Print a row of a table, as wide as its header."""
    widths = map(len, COLUMNS)
    print(
        "| " + " | ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) + " |",
        flush=True,
    )


def prepare(arguments: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Write the block folder, and return what was measured on the way."""
    from symrelu.graphs import write_blocks

    if arguments.csv:
        made = convert(arguments.csv, folder, arguments.rows or 100_000)
        print(f"conversion: {made['seconds']:.1f} s, peak {made['megabytes']:.0f} MB\n")
        return {"conversion": made}
    M = random_graph(arguments.n, np.dtype(arguments.dtype))
    write_blocks(M, folder, rows=arguments.rows or -(-arguments.n // PANELS))
    seconds, processor = one_machine(arguments.rank, M, arguments.rounds)
    pair = processor * 1e9 / (arguments.n**2 / 2)
    print(f"n = {arguments.n}, {ENTRIES_PER_ROW} entries a row, rank {arguments.rank}, {arguments.dtype}")
    print(
        f"one process: {seconds:.3f} s; one thread: {processor:.3f} s of processor, {pair:.2f} ns of a pair\n"
    )
    return {"one machine": seconds, "one thread": processor, "nanoseconds of a pair": pair}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20000)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64", help="of a random graph")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="make no evaluation before those that are timed")
    parser.add_argument("--rows", type=int, help="rows of a block; default: n / 8, or 100000 of a list")
    parser.add_argument("--csv", type=Path, help="fit this list of edges instead of a random graph")
    parser.add_argument("--make-csv", type=Path, help="only write a list of edges of --n nodes")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.make_csv:
        make_csv(arguments.make_csv, arguments.n)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "blocks")
        result = prepare(arguments, folder)
        print_row(list(COLUMNS))
        print("|" + "|".join("-" * (len(name) + 1) + ":" for name in COLUMNS) + "|")
        rows = []
        for workers in arguments.workers:
            row = measure(folder, arguments.rank, workers, arguments.rounds, arguments.cold)
            row["ratio"] = row["moved"] / row["formula"]
            rows.append(row)
            print_row([f"{scale * row[name]:{form}}" for name, scale, form in COLUMNS.values()])
    result["rows"] = rows
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":  # workers import this file again
    main()
