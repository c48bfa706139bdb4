"""``symrelu fit``: decompose the matrix in a file and save the Solution."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from scipy import sparse

from symrelu import Checkpoint, Problem, Solution, Status, decompose, metrics
from symrelu.cli.advice import advice_of, following, for_command_line
from symrelu.cli.dry_run import DryRun, estimate, report_costs
from symrelu.cli.inputs import GraphArgument, MaskFile, graph_options, read_input, read_mask
from symrelu.cli.local_workers import running_workers
from symrelu.cli.options import chosen_settings, fit_options, with_options
from symrelu.cli.origins import note_resuming, origin_of
from symrelu.cli.outputs import check_archive_output, check_files, naming_output, table_option
from symrelu.cli.progress import fit_progress
from symrelu.cli.screen import (
    INTERRUPTED_CODE,
    next_command,
    note,
    print_interrupted,
    printable,
    report,
    verbosity,
)
from symrelu.cli.tables import check_table_output, embedding_columns, is_table, write_table
from symrelu.fit.backends import backend_of
from symrelu.fit.holdout import fit_without
from symrelu.fit.settings import values_of
from symrelu.operators import EvaluationFailed

EXAMPLES = (
    "symrelu fit graph.csv --rank 8 -o fit.npz",
    "symrelu fit matrix.npz -r 8 --n-negative auto --held-out 0.1 -o fit.npz",
    "symrelu fit graph.csv -r 8 --checkpoint fit.ckpt -o u.csv --plot curve.png",
    "symrelu fit graph.csv -r 8 --dry-run",
)


@with_options([*fit_options(), *graph_options()], fits=True)
def fit(
    file: GraphArgument,
    output: Annotated[
        Path | None,
        table_option("npz file for the Solution; or a table of U"),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="PNG or SVG file for the convergence curve.")] = None,
    mask: MaskFile = None,
    held_out: Annotated[
        float | None,
        typer.Option(help="Fit again with this fraction of the pairs held out, and report the error on them."),
    ] = None,
    dry_run: DryRun = False,
    **options: Any,
) -> None:
    """Decompose the matrix in FILE and save the Solution.

    FILE may be a folder that 'symrelu blocks' wrote. Ctrl-C saves the best factor so far.
    """
    arguments: dict[str, Any] = {
        "file": file,
        "output": output,
        "plot": plot,
        "mask": mask,
        "held_out": held_out,
    }
    if dry_run:
        _estimate(**arguments, **options)
    elif output is None:
        raise ValueError("fit must write something: pass --output fit.npz, or --dry-run to see what it costs.")
    else:
        run_fit("fit", **arguments, **options)


def _estimate(**arguments: Any) -> None:
    """Print what the fit would cost."""
    file, mask = arguments["file"], arguments["mask"]
    settings = chosen_settings(arguments)
    matrix, _ = read_input(file, arguments, masked=mask is not None, folders=True)
    problem = Problem.of(matrix, read_mask(mask), settings["diagonal"])
    count = 1 if arguments["held_out"] is None else 2
    report_costs("fit", file, [estimate(problem, settings, arguments["workers"], count)])


def run_fit(command: str, limits: Mapping[str, Any] | None = None, **arguments: Any) -> None:
    """Do the work of :func:`fit` for a command.

    The arguments are those of ``fit``, which a checkpoint records; the limits are for this run only.
    """
    check_outputs(arguments)
    settings = chosen_settings({**arguments, **(limits or {})}) | {"verbose": verbosity()}
    mask = arguments["mask"]
    again = command == "resume"
    matrix, labels = read_input(
        arguments["file"], arguments, masked=mask is not None, again=again, folders=True
    )
    problem = Problem.of(matrix, read_mask(mask), settings["diagonal"])
    with running_workers(arguments["workers"], settings):
        try:
            _run_fit(command, problem, labels, settings, arguments)
        finally:
            problem.release()  # before the workers go


def _run_fit(
    command: str, problem: Problem, labels: Any | None, settings: dict[str, Any], arguments: Mapping[str, Any]
) -> None:
    own = ("file", "output", "plot", "held_out")
    file, output, plot, held_out = (arguments[name] for name in own)
    # The second fit, with held-out pairs, must not use the checkpoint of the first.
    checkpoint, max_iter = settings.pop("checkpoint"), settings["max_iter"]
    hidden = None if held_out is None else _hidden_pairs(problem, held_out, settings["random_state"])
    begun = note_resuming(file, checkpoint)
    steps = 0

    def count(progress: Any) -> None:
        nonlocal steps
        steps += 1
        callback(progress)

    try:
        with fit_progress(file.name, max_iter, begun or 0) as callback:
            solution = decompose(problem, **settings, callback=count, checkpoint=_named(checkpoint, arguments))
    except KeyboardInterrupt:
        print_interrupted(checkpoint)
        raise typer.Exit(INTERRUPTED_CODE) from None
    except EvaluationFailed as failure:
        if failure.solution is not None:
            _save(failure.solution, labels, output)
            note(f"the best factor so far is in {output}")
        raise
    _save(solution, labels, output)  # before anything else can fail or be interrupted
    if plot is not None:
        with naming_output(plot):
            _draw_convergence(solution, file.name, plot)
    interrupted, error = solution.status is Status.INTERRUPTED, None
    if hidden is not None and not interrupted:
        with fit_progress(f"{file.name}, with held-out pairs", max_iter) as callback:
            error, interrupted = _measure_held_out(problem, hidden, settings, callback)
    result = {"command": command, "file": file, **fit_results(solution, checkpoint), "held_out_error": error}
    if begun is not None and not steps:
        result["advice"] = f"The fit had ended before, so that no step was made. {result['advice']}"
    result |= {
        "backend": _backend(problem, settings),
        "precision": settings["precision"],
        "dtype": problem.dtype.name,
        "steps": steps,
        "parameters_per_pair": problem.parameters_per_pair(solution.rank),
        "output": output,
        "plot": plot,
    }
    shown = _summary(solution, result, _held_out_text(error, hidden is not None))
    report(result, shown, *next_command(result["next"]))
    if interrupted:
        raise typer.Exit(INTERRUPTED_CODE)


def _backend(problem: Problem, settings: Mapping[str, Any]) -> str:
    """Return the backend of a fit."""
    model, _, _, run = values_of(settings)
    return backend_of(problem, model, run)


def _named(checkpoint: Path | None, arguments: Mapping[str, Any]) -> Checkpoint | None:
    """Return a checkpoint that names the data and the options of its fit, for ``symrelu resume``."""
    if checkpoint is None:
        return None
    return Checkpoint(checkpoint, origin=origin_of("fit", arguments, checkpoint))


def fit_results(solution: Solution, checkpoint: Path | None = None) -> dict[str, Any]:
    """Return what ``--json`` prints about a fit, with advice in words of the command that was called."""
    status = solution.status
    used = solution.history.seconds[-1] if status is Status.MAX_TIME else solution.n_iter
    return {
        "nodes": solution.U.shape[0],
        "rank": solution.rank,
        "n_negative": solution.n_negative,
        "diagonal": solution.diagonal,
        "relative_error": solution.relative_error,
        "half_squared_error": solution.half_squared_error,
        "iterations": solution.n_iter,
        "evaluations": solution.n_evaluations,
        "fit_seconds": solution.history.seconds[-1],
        "status": status,
        "level": solution.level,
        "converged": solution.converged,
        "stopped_because": for_command_line(solution.stop_reason),
        "advice": advice_of(
            status, level=solution.level, resumes=checkpoint is not None, used=used, signed=_is_signed(solution)
        ),
        "next": following(status, checkpoint, used),
    }


def _is_signed(solution: Solution) -> bool:
    return solution.n_negative > 0 and solution.diagonal == "ignore"


def _save(solution: Solution, labels: Any | None, output: Path) -> None:
    if is_table(output):
        write_table(output, embedding_columns(labels, solution.U))
    else:
        with naming_output(output):
            solution.save(output)


def _held_out_text(error: float | None, asked: bool) -> str:
    """Return the row on held-out pairs; empty if it is left to the model whether there should be one."""
    if error is not None:
        return f"{error:.6g} (of a second fit; predicting zero gives 1)"
    return "not measured: interrupted" if asked else ""


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
) -> tuple[float | None, bool]:
    """Fit without the held-out pairs; return the error there, and whether the fit was interrupted."""
    try:
        solution, error = fit_without(problem, hidden, partial(decompose, **settings, callback=callback))
    except KeyboardInterrupt:
        return None, True
    interrupted = solution.status is Status.INTERRUPTED
    return None if interrupted else error, interrupted


def check_outputs(arguments: Mapping[str, Any]) -> None:
    """Raise before any work if an output of a fit cannot be written or would overwrite another of its files."""
    output = arguments["output"]
    inputs, checkpoint = (arguments["file"], arguments["mask"]), arguments["checkpoint"]
    check_files(inputs, (output, checkpoint), plot=arguments["plot"])
    if is_table(output):
        check_table_output(output)
    else:
        check_archive_output(output, "the Solution", or_table=True)


def _draw_convergence(solution: Solution, name: str, path: Path) -> None:
    from symrelu.plots import new_figure, plot_convergence, save_figure

    figure = new_figure(figsize=(6.4, 4.2))
    ax = plot_convergence({name: solution.history}, figure.add_subplot())
    title = printable(f"{name}, rank {solution.rank}: {solution.solver}")
    ax.set_title(title, fontsize=10, parse_math=False)  # a $ in a file name is not mathematics
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the font draws a box instead
        save_figure(figure, path)


def _how_computed(result: dict[str, Any]) -> str:
    """Return the row on the backend, with the precision and the type of numbers if they are not the default."""
    precision = "" if result["precision"] == "auto" else f", precision {result['precision']}"
    dtype = "" if result["dtype"] == "float64" else f", {result['dtype']}"
    return f"{result['backend']}{precision}{dtype}"


def _summary(solution: Solution, result: dict[str, Any], held_out: str) -> list[tuple[str, Any]]:
    n_negative, evaluations = solution.n_negative, solution.n_evaluations
    # With a negative column a fit can interpolate M, so the user is told to measure the held-out error.
    if n_negative and not held_out:
        held_out = "not measured: add --held-out 0.1 before you trust a close fit"
    negative = f"{n_negative or 'no'} negative column{'s' if n_negative != 1 else ''}"
    rows = [
        ("factor", f"{solution.U.shape[0]} x {solution.rank}, {negative}"),
        ("backend", _how_computed(result)),
        ("parameters per pair", f"{result['parameters_per_pair']:.3g}"),
        ("relative error", f"{solution.relative_error:.6g}"),
        ("half squared error", f"{solution.half_squared_error:.6g}"),
        ("error on held-out pairs", held_out),
        ("iterations", f"{solution.n_iter} ({evaluations} evaluation{'s' if evaluations != 1 else ''})"),
        ("seconds", f"{result['fit_seconds']:.2f}"),
        ("stopped because", result["stopped_because"]),
        ("advice", result["advice"]),
        ("solution", result["output"]),
        ("figure", result["plot"]),
    ]
    return [(label, value) for label, value in rows if value not in ("", None)]
