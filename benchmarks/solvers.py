"""Count the evaluations and seconds that each solver and start needs to reach the final error of AAPB.

    python benchmarks/solvers.py [--problems synthetic digits real] [--seeds 3] [--threads 2] [--output FOLDER]

For each problem and seed, AAPB with momentum 1 from the scaled random start makes 1000 iterations, or stops at
a relative error of 1e-4: once with step 1, which the theory allows, and once with step 10, which comes close to
the paper. Its final error is the target, and the first iteration of each candidate that reaches it counts. The
numbers are medians over the seeds of the ratio AAPB / candidate, in evaluations and in seconds. Seconds include
the start. The products with M that a start by eigenvectors needs are shown in a separate column, in units of a
product with a whole factor. Fits are stored when they end, so that an interrupted run resumes. With --output,
the table is also written as CSV, that of the default solver and start in a second file, and the ratios to step
10 are drawn.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from symrelu import AAPB, LBFGS, PALM, Eigen
from symrelu.experiments import Cell, CellResult, CellStore, Monitor, find_data_sets, paper, run_cells
from symrelu.experiments.cases import Case, ReluGram, matrix_of
from symrelu.experiments.environment import describe_environment
from symrelu.experiments.methods import ReluFit
from symrelu.experiments.real import DIGITS
from symrelu.fit.settings import Limits
from symrelu.fit.starts import start
from symrelu.operators import as_operator
from symrelu.plots import new_figure, save_figure

TOL = 1e-4  # as in the paper
BASELINES = {step: ReluFit(f"AAPB, step {step}", AAPB(step_size=float(step))) for step in (1, 10)}
CANDIDATES = (
    ReluFit("AAPB adaptive, random", AAPB(step_size="adaptive")),
    ReluFit("AAPB adaptive, imputed", AAPB(step_size="adaptive"), init="imputed"),
    ReluFit("iPALM, random", PALM(momentum=1.0)),
    ReluFit("Eigen, random", Eigen()),
    ReluFit("Eigen, imputed", Eigen(), init="imputed"),
    ReluFit("LBFGS, random", LBFGS()),
    ReluFit("LBFGS, spectral", LBFGS(), init="spectral"),
    ReluFit("LBFGS, imputed", LBFGS(), init="imputed"),
)

DEFAULT = "LBFGS, imputed"  # the default of decompose


class Problem(NamedTuple):
    """A matrix and a rank."""

    case: Case
    rank: int

    @property
    def name(self) -> str:
        return f"{self.case.name}, r={self.rank}"


def problems(kinds: Iterable[str]) -> list[Problem]:
    """Return the problems of these kinds: synthetic, digits, real (if found) or the name of a data set."""
    found = []
    for kind in kinds:
        if kind == "tiny":
            found.append(Problem(ReluGram(60, 3, 0.0), 3))
        elif kind == "synthetic":
            found += [Problem(ReluGram(n, planted, p), r) for n, planted, p, r in paper.SYNTHETIC_COLUMNS]
        elif kind == "digits":
            found.append(Problem(DIGITS, 20))
        else:
            cases, missing = find_data_sets(names=tuple(paper.REAL_RANK) if kind == "real" else (kind,))
            print("\n".join(missing))
            found += [Problem(case, paper.REAL_RANK[case.key]) for case in cases]
    return found


class Lines(Monitor):
    """Print a line for each fit that ends, with the remaining time."""

    def begin(self, cells: int, stored: int, cost: float) -> None:
        self.began, self.cost, self.spent = time.monotonic(), cost, 0.0

    def advance(self, cost: float) -> None:
        self.spent += cost

    def ended(self, cell: Cell, result: object) -> None:
        left = (time.monotonic() - self.began) * (self.cost / self.spent - 1) if self.spent else math.nan
        what = f"{cell.case.name}, r={cell.rank}, {cell.method.name}, seed {cell.seed}"
        print(f"{what}: {getattr(result, 'relative_error', result)}, {left:.0f} s left", flush=True)


@cache
def cost_of_start(problem: Problem, init: str, seed: int) -> tuple[float, float]:
    """Return the seconds of a start, and its products with M in units of a product with a whole factor."""
    if init == "random":
        return 0.0, 0.0
    op = as_operator(matrix_of(problem.case, seed), np.ones(problem.rank))
    columns = 0
    multiply = op.matmul

    def counted(V: np.ndarray) -> np.ndarray:
        nonlocal columns
        columns += V.shape[1]
        return multiply(V)

    # The start calls matmul of this instance only, so the class need not be changed.
    op.matmul = counted  # type: ignore[method-assign]
    begin = time.perf_counter()
    start(op, init, seed)
    return time.perf_counter() - begin, columns / problem.rank


def arrival(result: CellResult, target: float) -> int | None:
    """Return the index in the curves at which the error first reaches ``target``, or None."""
    # The factor forgives a difference in the last digits.
    there = np.flatnonzero(np.asarray(result.curves["relative_error"]) <= target * (1 + 1e-12))
    return int(there[0]) if there.size else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=["synthetic", "digits", "real"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=300, help="of the candidates")
    parser.add_argument("--store", type=Path, default=Path("build/benchmarks/solvers"))
    parser.add_argument("--output", type=Path, help="folder for solvers.csv, default.csv and solvers.png")
    options = parser.parse_args()
    with threadpool_limits(limits=options.threads, user_api="blas"):
        rows = measure(problems(options.problems), range(options.seeds), options.iterations, options.store)
    print_rows(rows)
    print(f"\n{describe_environment()}")
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        write_rows(rows, options.output / "solvers.csv")
        left_out = ("candidate", "error at 100", "error at 300")
        default = [
            {name: value for name, value in row.items() if name not in left_out}
            for row in rows
            if row["candidate"] == DEFAULT
        ]
        means = {"problem": "geometric mean", **geometric_means(default)}
        write_rows([*default, means], options.output / "default.csv")
        draw(rows, options.output / "solvers.png")


def measure(
    found: list[Problem], seeds: Iterable[int], iterations: int, store: Path
) -> list[dict[str, object]]:
    """Return one row per problem and candidate."""
    long = Limits(tol=TOL, gtol=0.0, ftol=0.0, max_iter=1000)
    short = Limits(tol=TOL, gtol=0.0, ftol=0.0, max_iter=iterations)

    def cell(problem: Problem, method: ReluFit, seed: int) -> Cell:
        return Cell(problem.case, problem.rank, method, seed, long if method in BASELINES.values() else short)

    methods = (*BASELINES.values(), *CANDIDATES)
    cells = [cell(problem, method, seed) for problem in found for seed in seeds for method in methods]
    results = run_cells(cells, CellStore(store), monitor=Lines())
    rows: list[dict[str, object]] = []
    for problem in found:
        for method in CANDIDATES:
            row: dict[str, object] = {"problem": problem.name, "candidate": method.name}
            runs = [results[cell(problem, method, seed)] for seed in seeds]
            starts = [cost_of_start(problem, method.init, seed) for seed in seeds]
            row["products"] = float(np.median([products for _, products in starts]))
            row["error at 100"] = float(np.median([run.error_within(100) for run in runs]))
            row["error at 300"] = float(np.median([run.error_within(300) for run in runs]))
            for step, baseline in BASELINES.items():
                in_evaluations, in_seconds = [], []
                for seed, run, (seconds, _) in zip(seeds, runs, starts, strict=True):
                    reference = results[cell(problem, baseline, seed)]
                    target = max(TOL, reference.relative_error)
                    mine, theirs = arrival(run, target), arrival(reference, target)
                    assert theirs is not None
                    if mine is None:  # a ratio of 0 keeps the medians and the table defined
                        in_evaluations.append(0.0)
                        in_seconds.append(0.0)
                        continue
                    curves, theirs_curves = run.curves, reference.curves
                    in_evaluations.append(theirs_curves["evaluations"][theirs] / curves["evaluations"][mine])
                    in_seconds.append(theirs_curves["seconds"][theirs] / (curves["seconds"][mine] + seconds))
                row[f"evaluations, step {step}"] = float(np.median(in_evaluations))
                row[f"least, step {step}"] = float(np.min(in_evaluations))
                row[f"seconds, step {step}"] = float(np.median(in_seconds))
            rows.append(row)
    return rows


def print_rows(rows: list[dict[str, object]]) -> None:
    """Print the ratios as a Markdown table; 0 means that the target was not reached."""
    numbers = [name for name in rows[0] if name not in ("problem", "candidate")]
    print("| problem | candidate | " + " | ".join(numbers) + " |")
    print("|---|---|" + "---:|" * len(numbers))
    for row in rows:
        cells = (f"{row[name]:.3g}" for name in numbers)
        print(f"| {row['problem']} | {row['candidate']} | " + " | ".join(cells) + " |")
    for candidate in dict.fromkeys(row["candidate"] for row in rows):
        means = geometric_means([row for row in rows if row["candidate"] == candidate])
        cells = (f"{means[name]:.3g}" if name in means else "" for name in numbers)
        print(f"| geometric mean | {candidate} | " + " | ".join(cells) + " |")


def geometric_means(rows: list[dict[str, object]]) -> dict[str, float]:
    """Return the geometric means of the ratios, or 0 if a target was not reached."""
    ratios = [name for name in rows[0] if "step" in name]
    values = {name: np.array([row[name] for row in rows], dtype=float) for name in ratios}
    return {name: float(np.exp(np.log(value).mean())) if value.all() else 0.0 for name, value in values.items()}


def write_rows(rows: list[dict[str, object]], path: Path) -> None:
    """Write a CSV file with three digits, because further digits would be noise."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            values = (row.get(name, "") for name in rows[0])
            writer.writerow([value if isinstance(value, str) else f"{value:.3g}" for value in values])


def draw(rows: list[dict[str, object]], path: Path) -> None:
    """Draw the ratios to step 10, with one row of points per problem and one colour per candidate."""
    names = list(dict.fromkeys(str(row["problem"]) for row in rows))
    figure = new_figure(figsize=(11.0, 1.6 + 0.34 * len(names)))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, what in zip(axes, ("evaluations", "seconds"), strict=True):
        for k, method in enumerate(CANDIDATES):
            ratios = {
                str(row["problem"]): row[f"{what}, step 10"] for row in rows if row["candidate"] == method.name
            }
            reached = [(float(str(ratio)), names.index(name)) for name, ratio in ratios.items() if ratio]
            if reached:
                x, y = zip(*reached, strict=True)
                big = {"s": 90, "color": "black", "zorder": 3} if method.name == DEFAULT else {"s": 28}
                ax.scatter(x, y, marker="osD^v<>*P"[k], label=method.name, **big)
        ax.axvline(1, color="black", linewidth=1)
        ax.set_xscale("log")
        ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
        ax.minorticks_off()
        ax.set_xlabel(f"times fewer {what} than AAPB at step 10")
        ax.grid(alpha=0.3)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    save_figure(figure, path, dpi=130)


if __name__ == "__main__":
    main()
