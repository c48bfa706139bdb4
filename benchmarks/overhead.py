"""Compare the time of evaluations and small fits with another source tree, as ratios within one run.

    git worktree add ../base 324cf23
    python benchmarks/overhead.py --base ../base [--rounds 41] [--json FILE]

Each tree has its own process, in which everything is compiled in advance. The processes take turns in random
order, so that other processes on the machine affect both equally; the result is the median ratio over the
rounds. At n = 200 a fit takes milliseconds, so that the overhead outside the passes is visible.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Jobs = dict[str, Callable[[], object]]


def jobs() -> Jobs:
    """Return the functions to time by name. They use only what both trees have."""
    import numpy as np
    from scipy import sparse

    from symrelu import AAPB, LinkPredictor, SymReLU, decompose, select_rank
    from symrelu.datasets import make_relu_gram
    from symrelu.operators import SparseOperator

    rng = np.random.default_rng(0)

    def graph(n: int) -> sparse.csr_array:
        rows, cols = rng.integers(0, n, (2, 15 * n // 2))
        upper = sparse.csr_array((rng.random(len(rows)), (rows, cols)), shape=(n, n))
        return sparse.csr_array(upper + upper.T)

    def evaluation(n: int, rank: int = 32) -> Callable[[], object]:
        op = SparseOperator(graph(n), signature=np.ones(rank))
        U = rng.standard_normal((n, rank)) / np.sqrt(rank)
        return lambda: op.residual_product(U, U)

    M, _ = make_relu_gram(200, 5, random_state=0)
    sparse_M = graph(200)
    # Without stopping tests, both trees make the same number of steps.
    fixed = {"tol": 0, "gtol": 0, "ftol": 0, "max_iter": 20, "random_state": 0}
    return {
        "evaluation, n=2000": evaluation(2000),
        "evaluation, n=5000": evaluation(5000),
        "decompose, dense": lambda: decompose(M, 5, **fixed),
        "decompose, sparse": lambda: decompose(sparse_M, 5, **fixed),
        "decompose, AAPB": lambda: decompose(M, 5, solver=AAPB(), **fixed),
        "decompose, to the end": lambda: decompose(M, 5, random_state=0),
        "one step": lambda: decompose(M, 5, **{**fixed, "max_iter": 1}),
        "SymReLU": lambda: SymReLU(5, n_negative=0, diagonal="fit", **{**fixed, "gtol": 1.0}).fit(M),
        "LinkPredictor": lambda: LinkPredictor(5, random_state=0).fit(sparse_M),
        "select_rank": lambda: select_rank(M, [3, 5], n_repeats=2, max_iter=10, random_state=0),
    }


def serve() -> None:
    """Time the jobs whose names are read from stdin, one per line."""
    from threadpoolctl import threadpool_limits

    table = jobs()
    with threadpool_limits(limits=1):
        for job in table.values():  # the first call compiles, the second fills caches
            job()
            job()
        print(json.dumps(list(table)), flush=True)
        for line in sys.stdin:
            job = table[json.loads(line)]
            start = time.perf_counter()
            job()
            print(time.perf_counter() - start, flush=True)


class Tree:
    """A process that imports the package from one source tree."""

    def __init__(self, path: Path, script: Path = Path(__file__)) -> None:
        # PYTHONPATH takes precedence over an installed symrelu.
        environment = {**os.environ, "PYTHONPATH": str(path.resolve() / "src")}
        command = [sys.executable, "-W", "ignore", str(script), "--serve"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.names = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("The process of a source tree ended early; its error message is above.")
        return line

    def answer(self, question: object) -> Any:
        """Send a line to the process, and return what it answers."""
        assert self.process.stdin is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self._line())

    def seconds(self, name: object) -> float:
        """Return the time of a job."""
        return float(self.answer(name))


def compare(base: Path, rounds: int) -> list[dict[str, object]]:
    """Return the median times of both trees and the median ratio, for each job."""
    trees = {"base": Tree(base), "here": Tree(Path(__file__).parents[1])}
    shuffled = random.Random(0)  # neither tree should always run second
    rows: list[dict[str, object]] = []
    for name in trees["here"].names:
        seconds: dict[str, list[float]] = {tree: [] for tree in trees}
        for _ in range(rounds):
            for tree in shuffled.sample(list(trees), 2):
                seconds[tree].append(trees[tree].seconds(name))
        ratios = [here / there for here, there in zip(seconds["here"], seconds["base"], strict=True)]
        medians = {tree: 1e3 * statistics.median(values) for tree, values in seconds.items()}
        rows.append({"job": name, **medians, "ratio": statistics.median(ratios)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="source tree to compare with")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.base is None:
        parser.error("--base must name the source tree to compare with")
    rows = compare(options.base, options.rounds)
    print(f"milliseconds, one thread, median of {options.rounds} interleaved rounds\n")
    print("| job                    |   base |   here | here / base |")
    print("|:-----------------------|-------:|-------:|------------:|")
    for row in rows:
        print(f"| {row['job']:22} | {row['base']:6.1f} | {row['here']:6.1f} | {row['ratio']:11.2f} |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
