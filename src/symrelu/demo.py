"""The main job on embedded data: the digits graph, fitted, compared and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu import metrics
from symrelu.baselines import truncated_eigen
from symrelu.datasets import load_digits_graph
from symrelu.decompose import decompose
from symrelu.loop import Callback
from symrelu.plots import binned, binned_gram, new_figure, plot_convergence, plot_matrices, save_figure
from symrelu.problem import Problem
from symrelu.solution import Solution

RANK = 20
ITERATIONS = 100
HELD_OUT = 0.1
BINS = 150

# Name -> whether the diagonal is data, and the model.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "max(0, U Uᵀ), the paper's model": ("fit", {}),
    "one negative column, no diagonal": ("ignore", {"n_negative": 1}),
    "the same, shrunk (alpha = 0.05)": ("ignore", {"n_negative": 1, "alpha": 0.05}),
}


class Row(NamedTuple):
    """One line of the comparison."""

    name: str
    relative_error: float
    held_out_error: float


class Demo(NamedTuple):
    """What the demo fitted."""

    M: Any
    labels: np.ndarray
    solutions: dict[str, Solution]
    rows: list[Row]


def fits() -> int:
    """Return how many fits :func:`run_demo` makes."""
    return 2 * len(MODELS)


def run_demo(callback: Callback | None = None) -> Demo:
    """Fit the digits graph by three models and compare them with the eigendecomposition.

    Each is fitted twice: to all pairs, and without a tenth of the pairs, which then judge it. All are
    judged by max(0, X). The eigendecomposition knows no unknown entries: hidden pairs are zeros to it.
    """
    M, labels = load_digits_graph()
    mask = metrics.random_mask(M.shape[0], HELD_OUT, random_state=0)
    seen = sparse.csr_array(M - M.multiply(mask))
    problems = {diagonal: Problem.of(M, diagonal=diagonal) for diagonal in ("fit", "ignore")}
    whole = problems["fit"]
    eigen, eigen_of_seen = truncated_eigen(whole, RANK), truncated_eigen(seen, RANK)
    rows = [
        Row(
            "truncated eigendecomposition",
            metrics.relative_error(whole, eigen.U, eigen.signature),
            metrics.held_out_error(whole, eigen_of_seen.U, eigen_of_seen.signature, mask=mask),
        )
    ]
    solutions = {}
    for name, (diagonal, model) in MODELS.items():
        problem = problems[diagonal]
        solutions[name] = _fit(problem, callback, **model)
        partial = _fit(problem.hide(mask), callback, **model)
        held_out = metrics.held_out_error(whole, partial.U, partial.signature, mask=mask)
        rows.append(Row(name, solutions[name].relative_error, held_out))
    return Demo(M, labels, solutions, rows)


def _fit(problem: Problem, callback: Callback | None, **model: Any) -> Solution:
    return decompose(problem, RANK, max_iter=ITERATIONS, random_state=0, callback=callback, **model)


def draw_demo(demo: Demo, path: Path) -> None:
    """Draw M, the fits and the error curves; nodes are sorted by digit."""
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
