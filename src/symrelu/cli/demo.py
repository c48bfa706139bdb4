"""``symrelu demo``: fit and cluster the digits graph, compare models and draw a figure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from scipy.optimize import linear_sum_assignment

from symrelu import metrics
from symrelu.baselines import truncated_eigen
from symrelu.cli.layout import fitting_table
from symrelu.cli.options import with_options
from symrelu.cli.outputs import naming_output
from symrelu.cli.progress import fit_progress
from symrelu.cli.screen import check_plots, message_text, report
from symrelu.datasets import load_digits_graph
from symrelu.estimators import SymReLUClustering
from symrelu.files import check_output
from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import fit_without
from symrelu.fit.loop import Callback
from symrelu.fitted.solution import Solution
from symrelu.plots import new_figure, plot_clusters, plot_fit, save_figure
from symrelu.plots.figures import PALETTE
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
DRAWN = "the same, shrunk (alpha = 0.05)"
_EIGEN = "truncated eigendecomposition"
_SHORT = {  # names that fit into the figure
    _EIGEN: "eigenvectors",
    "max(0, U Uᵀ), the paper's model": "paper's model",
    "one negative column, no diagonal": "signed",
    DRAWN: "signed, shrunk",
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
    clustering: SymReLUClustering

    @property
    def accuracy(self) -> float:
        """Share of the images in the right cluster."""
        return metrics.clustering_accuracy(self.labels, self.clustering.labels_)

    @property
    def digits(self) -> np.ndarray:
        """The cluster of each image, numbered by the digit that most of its images show."""
        counts = np.zeros((10, 10), np.int64)
        np.add.at(counts, (self.clustering.labels_, self.labels), 1)
        _, digit = linear_sum_assignment(counts, maximize=True)
        return digit[self.clustering.labels_]


EXAMPLES = (
    "symrelu demo",
    "symrelu demo --output digits.svg --json",
)


@with_options([])
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the figure.")] = Path("demo.png"),
) -> None:
    """Fit and cluster the graph of scikit-learn's digits, and draw a figure.

    Three models are compared with an eigendecomposition, also on held-out pairs.
    """
    check_output(output)
    check_plots()
    with fit_progress("fitting", fits() * ITERATIONS) as callback:
        result = run_demo(callback)
    with naming_output(output):
        draw_demo(result, output)
    header = ("model of M", "relative error", "error on held-out pairs")
    rows = [(row.name, f"{row.relative_error:.2g}", f"{row.held_out_error:.2g}") for row in result.rows]
    title = f"{result.M.shape[0]} nodes, {result.M.nnz // 2} pairs, rank {RANK}"
    table = fitting_table(header, rows, title=title)
    found = {
        "command": "demo",
        "rank": RANK,
        "models": [row._asdict() for row in result.rows],
        "clustering_accuracy": result.accuracy,
        "output": output,
    }
    clusters = (
        f"SymReLUClustering(10) puts {result.accuracy:.1%} of the images into the cluster of their digit."
    )
    report(found, _QUESTION, table, _explanation(result), clusters, message_text("Figure:", str(output)))


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
    """Fit three models to the digits graph, compare them with the eigendecomposition, and cluster the images.

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
    rows = [Row(_EIGEN, error, held_out)]
    solutions = {}
    for name, (diagonal, model) in MODELS.items():
        problem = problems[diagonal]
        fit = partial(_fit, model, callback)
        solutions[name] = fit(problem)
        _, held_out = fit_without(problem, mask, fit)
        rows.append(Row(name, solutions[name].relative_error, held_out))
    clustering = SymReLUClustering(10, method="linkage", random_state=0).fit(M)
    return Demo(M, labels, solutions, rows, clustering)


def _fit(model: dict[str, Any], callback: Callback | None, problem: Problem) -> Solution:
    return decompose(problem, RANK, max_iter=ITERATIONS, random_state=0, callback=callback, **model)


def draw_demo(demo: Demo, path: Path) -> None:
    """Draw M and its best model, the errors of all models, and the clusters on the map.

    The figure is as wide as a page of text, at twice its resolution, so that it can be read there.
    """
    figure = new_figure(figsize=(8.3, 7.9))
    above, below = figure.subplots(2, 2, height_ratios=[1, 1.12])
    plot_fit(demo.M, demo.solutions[DRAWN], above, labels=demo.labels, bins=BINS)
    above[0].set_title(f"M: graph of {demo.M.shape[0]} digits, sorted")
    above[1].set_title(f"max(0, X) of rank {RANK}")
    _draw_errors(below[0], demo.rows)
    plot_clusters(demo.clustering, below[1], labels=demo.digits)
    below[1].set_title(f"clusters, named by digit: {demo.accuracy:.1%} right")
    save_figure(figure, path, dpi=200)


def _draw_errors(ax: Any, rows: list[Row]) -> None:
    """Draw the errors on fitted and on held-out pairs as bars, with their values."""
    place = np.arange(len(rows))
    for offset, column, name, colour in (
        (-0.2, "relative_error", "all pairs fitted", PALETTE[4]),
        (0.2, "held_out_error", "held-out pairs", PALETTE[5]),
    ):
        bars = ax.barh(place + offset, [getattr(row, column) for row in rows], 0.36, color=colour, label=name)
        ax.bar_label(bars, fmt="{:.2g}", padding=3)
    ax.set_yticks(place, [_SHORT[row.name] for row in rows])
    ax.invert_yaxis()
    ax.margins(x=0.18)
    ax.set_title("relative error")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
