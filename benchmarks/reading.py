"""Compare the time of reading a list of edges with pandas, and measure the peak memory in a separate process.

    python benchmarks/reading.py [--edges 1000000] [--rounds 5] [--output FILE]

The file is a CSV with a header, names as text and weights, about ten edges for each node. pandas reads it
(read_csv), numbers the names (factorize), and SciPy makes a csr_array of that, which is not symmetric yet.
read_graph also checks every line, and combines repeated edges and both directions. The two take turns. Times
are CPU seconds, because both use one thread and the machine may be shared; the ratio is the median over the
rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from memory import peak_megabytes

EDGES_OF_NODE = 5  # each has two ends
CHUNK = 10_000
RULES = {"duplicates": "sum", "directed": "sum"}


def write_edges(path: Path, count: int) -> None:
    """Write random edges between named nodes."""
    rng = np.random.default_rng(0)
    nodes = max(count // EDGES_OF_NODE, 2)
    with open(path, "w", encoding="utf-8") as file:
        file.write("source,target,weight\n")
        for start in range(0, count, CHUNK):
            ends = rng.integers(0, nodes, (min(CHUNK, count - start), 2)).tolist()
            file.writelines(f"node{i:06d},node{j:06d},{rng.random():.6f}\n" for i, j in ends)


def read_by_pandas(path: Path) -> object:
    """Return the csr_array of the edges and their names."""
    import pandas
    from scipy import sparse

    table = pandas.read_csv(path)
    ends = np.concatenate([table["source"].to_numpy(), table["target"].to_numpy()])
    numbers, names = pandas.factorize(ends)
    places = (numbers[: len(table)], numbers[len(table) :])
    return sparse.csr_array((table["weight"].to_numpy(), places), shape=(len(names), len(names))), names


def read_by_symrelu(path: Path) -> object:
    """Return the matrix and the names."""
    from symrelu.graphs import read_graph

    return read_graph(path, **RULES)


READERS: dict[str, Callable[[Path], object]] = {"symrelu": read_by_symrelu, "pandas": read_by_pandas}


def seconds(read: Callable[[Path], object], path: Path) -> float:
    start = time.process_time()
    read(path)
    return time.process_time() - start


def peak_of(name: str, path: Path) -> dict[str, float]:
    """Return the peak size of a process before and after it reads the file."""
    command = [sys.executable, __file__, "--child", name, str(path)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def child(name: str, path: Path, small: Path) -> None:
    """Read a file, and print the peak sizes as JSON."""
    write_edges(small, 100)
    READERS[name](small)  # imports need memory too
    before = peak_megabytes()
    READERS[name](path)
    print(json.dumps({"before": before, "after": peak_megabytes()}))


def measure(path: Path, rounds: int) -> list[dict[str, object]]:
    """Return times, ratios and memory of both readers."""
    # First, because Linux counts the size of this process at the start of another one as a peak of that.
    peaks = {name: peak_of(name, path) for name in READERS}
    for read in READERS.values():  # the first call imports
        read(path)
    times: dict[str, list[float]] = {name: [] for name in READERS}
    for k in range(rounds):
        for name in list(READERS)[:: 1 if k % 2 else -1]:  # neither always runs second
            times[name].append(seconds(READERS[name], path))
    rows: list[dict[str, object]] = []
    for name, own in times.items():
        ratios = [mine / theirs for mine, theirs in zip(own, times["pandas"], strict=True)]
        rows.append(
            {
                "reader": name,
                "seconds": statistics.median(own),
                "ratio": statistics.median(ratios),
                **peaks[name],
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.child:
            child(options.child[0], Path(options.child[1]), Path(folder, "small.csv"))
            return
        path = Path(folder, "edges.csv")
        write_edges(path, options.edges)
        megabytes = path.stat().st_size / 1e6
        rows = measure(path, options.rounds)
    print(f"{options.edges} edges, {megabytes:.0f} MB of text, median of {options.rounds} rounds\n")
    print("| reader  | CPU (s) | / pandas | peak before (MB) | peak after (MB) |")
    print("|---------|--------:|---------:|-----------------:|----------------:|")
    for row in rows:
        print(
            f"| {row['reader']:7} | {row['seconds']:7.2f} | {row['ratio']:8.2f} "
            f"| {row['before']:16.0f} | {row['after']:15.0f} |"
        )
    if options.output:
        options.output.write_text(json.dumps({"edges": options.edges, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
