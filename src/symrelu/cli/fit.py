"""``symrelu fit``: decompose the matrix in a file and save the Solution."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text
from scipy import sparse

from symrelu import Problem, Solution, Status, decompose, metrics
from symrelu.cli.options import chosen_settings, fit_options, with_options
from symrelu.cli.screen import INTERRUPTED_CODE, check_plots, console, errors, fit_progress, printable
from symrelu.files import check_output, read_matrix
from symrelu.fit.holdout import fit_without


@with_options(fit_options())
def fit(
    file: Annotated[Path, typer.Argument(help="Similarity matrix: .npz (sparse or dense), .npy or .mtx.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="npz file for the Solution.")],
    plot: Annotated[Path | None, typer.Option(help="PNG or SVG file for the convergence curve.")] = None,
    mask: Annotated[Path | None, typer.Option(help="Boolean matrix file, true where M is unobserved.")] = None,
    held_out: Annotated[
        float | None,
        typer.Option(help="Fit again with this fraction of the pairs held out, and report the error on them."),
    ] = None,
    **options: Any,
) -> None:
    """Decompose the matrix in FILE and save the Solution. Ctrl-C saves the best factor so far."""
    _check_paths(file, mask, output, plot, options["checkpoint"])
    settings = chosen_settings(options)
    # The second fit, with held-out pairs, must not use the checkpoint of the first.
    checkpoint, max_iter = settings.pop("checkpoint"), settings["max_iter"]
    unknown = None if mask is None else as_mask(read_matrix(mask))
    problem = Problem.of(read_matrix(file), unknown, settings["diagonal"])
    hidden = None if held_out is None else _hidden_pairs(problem, held_out, settings["random_state"])
    try:
        with fit_progress(file.name, max_iter) as callback:
            solution = decompose(problem, **settings, callback=callback, checkpoint=checkpoint)
    except KeyboardInterrupt:
        errors.print("Interrupted before the first evaluation: nothing was written.")
        raise typer.Exit(INTERRUPTED_CODE) from None
    solution.save(output)  # before anything else can fail or be interrupted
    if plot is not None:
        _draw_convergence(solution, file.name, plot)
    interrupted, held_out_error = solution.status is Status.INTERRUPTED, _NOT_MEASURED
    if hidden is not None and not interrupted:
        with fit_progress(f"{file.name}, with held-out pairs", max_iter) as callback:
            held_out_error, interrupted = _measure_held_out(problem, hidden, settings, callback)
    numbers_per_pair = problem.parameters_per_pair(solution.rank)
    console.print(_summary(solution, numbers_per_pair, held_out_error, output, plot))
    if interrupted:
        raise typer.Exit(INTERRUPTED_CODE)


_NOT_MEASURED = "not measured: add --held-out 0.1 before you trust a close fit"


def _hidden_pairs(problem: Problem, fraction: float, seed: int | None) -> Any:
    """Return the pairs to hold out, all of them observed; raise before any work if there are none."""
    hidden = metrics.random_mask(problem.n, fraction, random_state=seed)
    if problem.mask is not None:
        hidden = sparse.csr_array(hidden > sparse.csr_array(problem.mask))
    if hidden.nnz == 0:
        raise ValueError(
            f"--held-out must hide at least one pair, but {fraction:g} of {problem.n} items hides none. "
            "Pass a larger fraction."
        )
    return hidden


def _measure_held_out(
    problem: Problem, hidden: Any, settings: dict[str, Any], callback: Any
) -> tuple[str, bool]:
    """Fit without the held-out pairs; return a text on the error there, and whether it was interrupted."""
    try:
        solution, error = fit_without(problem, hidden, partial(decompose, **settings, callback=callback))
    except KeyboardInterrupt:
        return "not measured: interrupted", True
    if solution.status is Status.INTERRUPTED:
        return "not measured: interrupted", True
    return f"{error:.6g} (of a second fit; predicting zero gives 1)", False


def _check_paths(
    file: Path, mask: Path | None, output: Path, plot: Path | None, checkpoint: Path | None
) -> None:
    """Raise before any work if an output cannot be written or would overwrite another file of the command."""
    check_output(output)
    if plot is not None:
        check_output(plot)
        check_plots()
    if checkpoint is not None:
        check_output(checkpoint)
    named = [path.resolve() for path in (file, mask, output, plot, checkpoint) if path is not None]
    if len(set(named)) < len(named):
        raise ValueError(
            "The matrix, the mask, the output, the plot and the checkpoint must be different files."
        )


def as_mask(matrix: Any) -> Any:
    """Convert a mask that was stored as 0 and 1 to booleans, which MatrixMarket does not have."""
    values = getattr(matrix, "data", matrix) if not isinstance(matrix, np.ndarray) else matrix
    return matrix.astype(bool) if np.isin(values, (0, 1)).all() else matrix


def _draw_convergence(solution: Solution, name: str, path: Path) -> None:
    from symrelu.plots import new_figure, plot_convergence, save_figure

    figure = new_figure(figsize=(6.4, 4.2))
    ax = plot_convergence({name: solution.history}, figure.add_subplot())
    title = printable(f"{name}, rank {solution.rank}: {solution.solver}")
    ax.set_title(title, fontsize=10, parse_math=False)  # a $ in a file name is not mathematics
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the font draws a box instead
        save_figure(figure, path)


def _summary(
    solution: Solution, numbers_per_pair: float, held_out_error: str, output: Path, plot: Path | None
) -> Table:
    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(overflow="fold")
    n_negative = solution.n_negative
    negative = f"{n_negative or 'no'} negative column{'s' if n_negative != 1 else ''}"
    table.add_row("factor", f"{solution.U.shape[0]} x {solution.rank}, {negative}")
    table.add_row("parameters per pair", f"{numbers_per_pair:.3g}")
    table.add_row("relative error", f"{solution.relative_error:.6g}")
    table.add_row("half squared error", f"{solution.half_squared_error:.6g}")
    # With a negative column a fit can interpolate M, so the user is told to measure the held-out error.
    if n_negative or held_out_error != _NOT_MEASURED:
        table.add_row("error on held-out pairs", held_out_error)
    table.add_row("iterations", f"{solution.n_iter} ({solution.n_evaluations} evaluations)")
    table.add_row("seconds", f"{solution.history.seconds[-1]:.2f}")
    table.add_row("stopped because", solution.status.value)
    table.add_row("advice", solution.status.advice)
    table.add_row("solution", Text(printable(str(output))))
    if plot is not None:
        table.add_row("figure", Text(printable(str(plot))))
    return table
