"""Measure the page of symrelu.report: its size, the time to write it, and the time until it can be used.

    python benchmarks/report.py [--sizes 1000 5000 20000] [--rounds 3] [--no-browser] [--output results/report]

The graphs have communities and 10 links of a node on average, weighted ones and others. The fit is one step and
the map is given: neither is part of the page. The time to interactive is that of Chromium, without a GPU, from
the start of the navigation until the script of the page has drawn everything and listens; the time of a redraw
is that of the whole map. Each time is the shortest of the rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from symrelu import decompose, report

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE / "tests"))

import chromium  # noqa: E402

DEGREE, COMMUNITIES, RANK = 10, 25, 16
REDRAW = """
const begin = performance.now();
document.getElementById("zoom-in").click();
const done = arguments[0];
requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
"""


def example(n: int, weighted: bool) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """Return a graph with communities, the community of each node, and places for a map."""
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(0, COMMUNITIES, n))
    begin, end = np.searchsorted(group, [group, group + 1])
    count = n * DEGREE // 2
    i = rng.integers(0, n, count)
    inside = rng.random(count) < 0.75
    j = np.where(inside, rng.integers(begin[i], end[i]), rng.integers(0, n, count))
    weights = rng.exponential(size=count) if weighted else np.ones(count)
    half = sparse.csr_array((weights, (i, j)), shape=(n, n))
    graph = sparse.csr_array(half.maximum(half.T))
    order = rng.permutation(n)  # else neighbours would have similar numbers
    graph = sparse.csr_array(graph - sparse.diags_array(graph.diagonal()))[order][:, order]
    graph.eliminate_zeros()
    if not weighted:
        graph.data[:] = 1  # some pairs were drawn twice
    centres = rng.standard_normal((COMMUNITIES, 2)) * 5
    return sparse.csr_array(graph), group[order], centres[group[order]] + rng.standard_normal((n, 2))


def measure(n: int, weighted: bool, rounds: int, folder: Path, browser: bool) -> dict[str, object]:
    """Return the size and times of one page."""
    M, labels, places = example(n, weighted)
    solution = decompose(M, RANK, diagonal="ignore", max_iter=1, random_state=0)
    path = folder / f"report_{n}_{weighted}.html"
    names = [f"node {k}" for k in range(n)]
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        report.write(path, M, solution, labels, names=names, positions=places, hidden=None)
        seconds.append(time.perf_counter() - begin)
    row = {
        "n": n,
        "links": M.nnz // 2,
        "weighted": weighted,
        "bytes": path.stat().st_size,
        "seconds_to_write": min(seconds),
    }
    return row | (in_browser(path, rounds) if browser else {})


def in_browser(path: Path, rounds: int) -> dict[str, float]:
    """Return the times of a page in Chromium, in seconds."""
    ready, redraw = [], []
    with chromium.started() as driver:
        for _ in range(rounds + 1):  # the first one also reads fonts from disk
            driver.get(path.as_uri())
            ready.append(int(driver.execute_script("return document.documentElement.dataset.ready")))
            redraw.append(driver.execute_async_script(REDRAW))
    return {
        "seconds_to_interactive": min(ready[1:]) / 1000,
        "seconds_of_a_redraw": min(redraw[1:]) / 1000,
    }


def line(row: dict[str, object]) -> str:
    """Return a row of the table."""
    kind = "weighted" if row["weighted"] else "equal weights"
    times = [row.get(name) for name in ("seconds_to_write", "seconds_to_interactive", "seconds_of_a_redraw")]
    shown = " | ".join("-" if value is None else f"{value:.2f}" for value in times)
    return f"| {row['n']} | {row['links']} | {kind} | {row['bytes'] / 1000:.0f} | {shown} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 5000, 20000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="measure no times in Chromium"
    )
    parser.add_argument("--output", type=Path, help="folder for report.json")
    options = parser.parse_args()
    print("| nodes | links | weights | kB | to write (s) | to interactive (s) | redraw (s) |")
    print("|---:|---:|---|---:|---:|---:|---:|")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n in options.sizes:
            for weighted in (False, True):
                rows.append(measure(n, weighted, options.rounds, Path(folder), options.browser))
                print(line(rows[-1]), flush=True)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "report.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
