"""``symrelu demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from symrelu import demo as demonstration
from symrelu import metrics
from symrelu.cli.screen import check_plots, console, fit_progress, sentence
from symrelu.files import check_output


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the picture goes.")] = Path("demo.png"),
) -> None:
    """Fit the graph of scikit-learn's digits, compare with eigenvectors, draw a picture."""
    check_output(output)
    check_plots()
    console.print(
        "M is the nearest-neighbour graph of 1797 handwritten digits: which factor U of rank "
        f"{demonstration.RANK} gives M ~ max(0, X)?"
    )
    with fit_progress("fitting", demonstration.fits() * demonstration.ITERATIONS) as callback:
        result = demonstration.run_demo(callback)
    table = Table(title=f"{result.M.shape[0]} nodes, {result.M.nnz // 2} pairs, rank {demonstration.RANK}")
    table.add_column("model of M")
    table.add_column("relative error", justify="right")
    table.add_column("of the pairs held out", justify="right")
    for row in result.rows:
        table.add_row(row.name, f"{row.relative_error:.2g}", f"{row.held_out_error:.2g}")
    console.print(table)
    ratio = metrics.parameters_per_pair(result.M, demonstration.RANK)
    console.print(
        f"U holds {ratio:.1f} numbers for each positive pair, so a close fit alone proves little: "
        "the last column is the error on a tenth of the pairs, hidden from a second fit (zeros to the "
        "eigendecomposition, which knows no unknown entries). All are judged by max(0, X). The negative column "
        "lets the fit go through every pair, which is interpolation; shrunk by alpha it predicts better."
    )
    demonstration.draw_demo(result, output)
    console.print(sentence("Picture:", str(output)))
