"""Count the evaluations that LBFGS needs from each start, and the active zeros that a list of pairs would hold.

    python benchmarks/starts.py [--problems NAME ...] [--starts NAME ...] [--output FOLDER]

The target is a relative error of 1e-3 or, if the imputed start does not reach it within 150 evaluations, the
error that it has then; it is fitted first. Evaluations are in units of passes over M: those of a smaller matrix
of the multilevel start count as the square of its part of the items. "Active zeros" is the number of zeros of M
with X > 0 divided by n: at the first evaluation of M itself, and the largest in a whole fit of M. Each fit is
written to FOLDER/starts.json when it ends, so that an interrupted run resumes; the table is FOLDER/starts.csv.
Graphs that need a data folder (SYMRELU_DATA) are left out if it is missing.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from large_graphs import points
from scipy import sparse

from symrelu import LBFGS, decompose
from symrelu.datasets import load_digits_graph, load_graph, make_relu_gram
from symrelu.fit.loop import FitProgress

TOL = 1e-3
MOST = 150  # evaluations
STARTS = ("imputed", "multilevel", "spectral", "random")


def block_model(n: int, blocks: int) -> Any:
    """Return a stochastic block model with 12 links of a node inside its block and 2 to others, on average."""
    inside, between = 12 * blocks / n, 2 / (n - n / blocks)
    probabilities = np.full((blocks, blocks), between) + np.eye(blocks) * (inside - between)
    return adjacency(nx.stochastic_block_model([n // blocks] * blocks, probabilities, seed=0))


def adjacency(graph: Any) -> Any:
    return sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=np.float64))


@dataclass(frozen=True)
class Problem:
    """A matrix, and how it is fitted."""

    matrix: Callable[[], Any]
    rank: int = 32
    n_negative: int = 1
    diagonal: str = "ignore"
    starts: tuple[str, ...] = STARTS


LARGE = STARTS[:2]
PROBLEMS = {
    "digits": Problem(lambda: load_digits_graph()[0]),
    "Cora": Problem(lambda: load_graph("cora").M),
    "email-Eu-core": Problem(lambda: load_graph("email-Eu-core").M),
    "polblogs": Problem(lambda: load_graph("polblogs").M),
    "ppi": Problem(lambda: load_graph("ppi").M),
    "block model, n=4000": Problem(partial(block_model, 4000, 20)),
    "power law, n=4000": Problem(lambda: adjacency(nx.barabasi_albert_graph(4000, 5, seed=0))),
    "power law with clusters, n=4000": Problem(
        lambda: adjacency(nx.powerlaw_cluster_graph(4000, 5, 0.9, seed=0))
    ),
    "grid, n=4096": Problem(lambda: adjacency(nx.grid_2d_graph(64, 64))),
    "synthetic, n=2000, p=.1": Problem(
        lambda: make_relu_gram(2000, 10, shift=0.1, random_state=0)[0], rank=21, diagonal="fit"
    ),
    "digits, paper's model": Problem(lambda: load_digits_graph()[0], n_negative=0, diagonal="fit"),
    "plane, n=4000": Problem(partial(points, "plane", 4000)),
    "blobs, n=4000": Problem(partial(points, "blobs", 4000)),
    "sphere, n=4000": Problem(partial(points, "sphere", 4000)),
    "plane, n=16000": Problem(partial(points, "plane", 16000), starts=LARGE),
    "blobs, n=16000": Problem(partial(points, "blobs", 16000), starts=LARGE),
    "sphere, n=16000": Problem(partial(points, "sphere", 16000), starts=LARGE),
    "PubMed": Problem(lambda: load_graph("pubmed").M, rank=33, starts=LARGE),
}


class Watched(LBFGS):
    """LBFGS that notes the active zeros of each state."""

    seen: list[tuple[int, float]] = []  # noqa: RUF012  # items, and active zeros per item

    def init(self, op: Any, U0: Any) -> Any:
        return self._noted(op, super().init(op, U0))

    def step(self, op: Any, state: Any) -> Any:
        return self._noted(op, super().step(op, state))

    def _noted(self, op: Any, state: Any) -> Any:
        self.seen.append((op.n, state.active_zeros / op.n))
        return state


def measure(M: Any, problem: Problem, start: str, target: float) -> dict[str, Any]:
    """Fit from a start until the target or the most evaluations are reached."""

    def enough(progress: FitProgress) -> bool:
        return progress.level == 0 and progress.record.evaluations >= MOST

    Watched.seen.clear()
    solution = decompose(
        M,
        problem.rank,
        n_negative=problem.n_negative,
        diagonal=problem.diagonal,
        solver=Watched(),
        init=start,
        tol=target,
        random_state=0,
        callback=enough,
    )
    active = [zeros for n, zeros in Watched.seen if n == M.shape[0]]
    return {
        "n": M.shape[0],
        "rank": problem.rank,
        "start": start,
        "target": target,
        "reached": solution.relative_error <= target,
        "evaluations": solution.n_evaluations,
        "before M": int(solution.history.evaluations[0]) - 1,
        "relative error": solution.relative_error,
        "error at first": float(solution.history.relative_error[0]),
        "active zeros at first": active[0],
        "active zeros at most": max(active),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--starts", nargs="+", default=list(STARTS), choices=STARTS)
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks/starts"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    store = options.output / "starts.json"
    rows = json.loads(store.read_text()) if store.exists() else []
    for name in options.problems:
        problem = PROBLEMS[name]
        try:
            M = problem.matrix()
        except FileNotFoundError as error:
            print(f"{name}: {error}")
            continue
        for start in problem.starts:
            if start in options.starts and not [r for r in rows if (r["problem"], r["start"]) == (name, start)]:
                rows.append({"problem": name, **measure(M, problem, start, target_of(rows, name))})
                print(rows[-1], flush=True)
                store.write_text(json.dumps(rows, indent=1) + "\n")
    write_table(rows, options.output / "starts.csv")


def target_of(rows: list[dict[str, Any]], name: str) -> float:
    """Return the target of a problem: what the imputed start has reached, if that was fitted already."""
    reached = [row["relative error"] for row in rows if (row["problem"], row["start"]) == (name, "imputed")]
    return max(TOL, *reached) if reached else TOL


def write_table(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the rows as CSV, with three digits."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: shortened(value) for key, value in row.items()})


def shortened(value: Any) -> Any:
    return f"{value:.3g}" if isinstance(value, float) and math.isfinite(value) else value


if __name__ == "__main__":
    main()
