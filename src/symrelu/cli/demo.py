"""``symrelu demo``: fit the digits graph, compare models and draw a figure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table

from symrelu import metrics
from symrelu.baselines import truncated_eigen
from symrelu.cli.options import with_options
from symrelu.cli.outputs import naming_output
from symrelu.cli.screen import check_plots, fit_progress, message_text, report
from symrelu.datasets import load_digits_graph
from symrelu.files import check_output
from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import fit_without
from symrelu.fit.loop import Callback
from symrelu.fitted.solution import Solution
from symrelu.plots import binned, binned_gram, new_figure, plot_convergence, plot_matrices, save_figure
from symrelu.problem import Problem

RANK = 20
ITERATIONS = 100
HELD_OUT = 0.1
BINS = 150

# Name -> how the diagonal is treated, and the settings of the model.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "max(0, U Uᵀ), the paper's model": ("fit", {}),
    "one negative column, no diagonal": ("ignore", {"n_negative": 1}),
    "the same, shrunk (alpha = 0.05)": ("ignore", {"n_negative": 1, "alpha": 0.05}),
}


class Row(NamedTuple):
    """One row of the comparison."""

    name: str
    relative_error: float
    held_out_error: float


class Demo(NamedTuple):
    """The result of the demo."""

    M: Any
    labels: np.ndarray
    solutions: dict[str, Solution]
    rows: list[Row]


EXAMPLES = (
    "symrelu demo",
    "symrelu demo --output digits.svg --json",
)


@with_options([])
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the figure.")] = Path("demo.png"),
) -> None:
    """Fit the graph of scikit-learn's digits, and draw a figure.

    Three models are compared with an eigendecomposition, also on held-out pairs.
    """
    check_output(output)
    check_plots()
    with fit_progress("fitting", fits() * ITERATIONS) as callback:
        result = run_demo(callback)
    with naming_output(output):
        draw_demo(result, output)
    table = Table(title=f"{result.M.shape[0]} nodes, {result.M.nnz // 2} pairs, rank {RANK}")
    table.add_column("model of M")
    table.add_column("relative error", justify="right")
    table.add_column("error on held-out pairs", justify="right")
    for row in result.rows:
        table.add_row(row.name, f"{row.relative_error:.2g}", f"{row.held_out_error:.2g}")
    found = {
        "command": "demo",
        "rank": RANK,
        "models": [row._asdict() for row in result.rows],
        "output": output,
    }
    report(found, _QUESTION, table, _explanation(result), message_text("Figure:", str(output)))


_QUESTION = (
    "M is the nearest-neighbour graph of 1797 handwritten digits: which factor U of rank "
    f"{RANK} gives M ~ max(0, X)?"
)


def _explanation(result: Demo) -> str:
    ratio = metrics.parameters_per_pair(result.M, RANK)
    return (
        f"U has {ratio:.1f} parameters for each positive pair, so a close fit alone proves little. The last "
        "column is the error on a tenth of the pairs, held out from a second fit (the eigendecomposition does "
        "not support unobserved entries and sees them as zeros). All errors are those of max(0, X). With the "
        "negative column the fit interpolates every pair; with the penalty alpha it predicts better."
    )


def fits() -> int:
    """Return the number of fits that :func:`run_demo` makes."""
    return 2 * len(MODELS)  # the eigendecomposition has no callback


def run_demo(callback: Callback | None = None) -> Demo:
    """Fit three models to the digits graph and compare them with the eigendecomposition.

    Each is fitted twice: to all pairs, and with a tenth of the pairs held out, on which it is scored. The error
    is always that of max(0, X). The eigendecomposition does not support unobserved entries: it sees held-out
    pairs as zeros.
    """
    M, labels = load_digits_graph()
    mask = metrics.random_mask(M.shape[0], HELD_OUT, random_state=0)
    problems = {diagonal: Problem.of(M, diagonal=diagonal) for diagonal in ("fit", "ignore")}
    whole = problems["fit"]
    eigen = truncated_eigen(whole, RANK)
    # The eigendecomposition does not support unobserved entries; problem.M has zeros in their place.
    _, held_out = fit_without(whole, mask, lambda problem: truncated_eigen(problem.M, RANK))
    error = metrics.relative_error(whole, eigen.U, eigen.signature)
    rows = [Row("truncated eigendecomposition", error, held_out)]
    solutions = {}
    for name, (diagonal, model) in MODELS.items():
        problem = problems[diagonal]
        fit = partial(_fit, model, callback)
        solutions[name] = fit(problem)
        _, held_out = fit_without(problem, mask, fit)
        rows.append(Row(name, solutions[name].relative_error, held_out))
    return Demo(M, labels, solutions, rows)


def _fit(model: dict[str, Any], callback: Callback | None, problem: Problem) -> Solution:
    return decompose(problem, RANK, max_iter=ITERATIONS, random_state=0, callback=callback, **model)


def draw_demo(demo: Demo, path: Path) -> None:
    """Draw M, the fitted models and the convergence curves, with the nodes sorted by digit."""
    order = np.argsort(demo.labels, kind="stable")
    matrices = {"M: graph of 1797 digits": binned(demo.M, order, BINS)}
    for name, solution in demo.solutions.items():
        matrices[name] = binned_gram(solution, order, BINS)
    figure = new_figure(figsize=(18.5, 4.2))
    *squares, curves = figure.subplots(1, 5, width_ratios=[1, 1, 1, 1, 1.2])
    image = plot_matrices(matrices, squares)
    figure.colorbar(image, ax=squares, shrink=0.85, pad=0.01, label="mean similarity in a cell")
    plot_convergence({name: solution.history for name, solution in demo.solutions.items()}, curves)
    eigen = demo.rows[0]
    curves.axhline(eigen.relative_error, color="black", linestyle=":", linewidth=1.2, label=eigen.name)
    curves.legend(loc="upper right", bbox_to_anchor=(1, 0.76), frameon=False, fontsize=7)
    curves.set_title(f"rank {RANK}")
    figure.get_layout_engine().set(wspace=0.06)
    save_figure(figure, path, dpi=110)
