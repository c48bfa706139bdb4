"""``symrelu rank``: choose the rank of the matrix in a file by held-out pairs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from symrelu import RankSelection, SymReLU, select_rank
from symrelu.cli.embed import OWN
from symrelu.cli.inputs import GraphArgument, MaskFile, graph_options, read_input, read_mask
from symrelu.cli.layout import fitting_table
from symrelu.cli.local_workers import running_workers
from symrelu.cli.options import chosen_settings, estimator_options, fit_options, flag_of_option, with_options
from symrelu.cli.outputs import check_files, naming_output, table_option
from symrelu.cli.progress import search_progress
from symrelu.cli.screen import INTERRUPTED_CODE, next_command, print_interrupted, report
from symrelu.cli.tables import check_table_output, write_table
from symrelu.fit.rank_grid import GRID
from symrelu.fit.selection import LIMITS

# Limits are left to select_rank unless they are given: its defaults are not those of a fit.
_OPTIONS = [
    option for option in fit_options() if option.name not in (*GRID, *LIMITS) and option.name != "checkpoint"
]

_OF_EMBED = {"rank": "n_components"}  # names of the same parameter

EXAMPLES = (
    "symrelu rank graph.csv",
    "symrelu rank graph.csv --ranks 2,4,8 --n-negative 0,1 -o scores.csv",
    "symrelu rank matrix.npz --ranks 2-4 --scoring auc --plot curve.png --json",
)


@with_options([*_OPTIONS, *graph_options()], fits=True)
def rank(
    file: GraphArgument,
    output: Annotated[Path | None, table_option("Table of the scores")] = None,
    plot: Annotated[Path | None, typer.Option(help="PNG or SVG file for the curve of scores.")] = None,
    mask: MaskFile = None,
    ranks: Annotated[
        str | None, typer.Option(help="Ranks to compare, such as 2,4,8 or 6-14. By default they are searched.")
    ] = None,
    n_negative: Annotated[str, typer.Option(help="Numbers of negative columns, such as 0,1 or auto.")] = "0",
    alpha: Annotated[str, typer.Option(help="Weights of the Tikhonov penalty, such as 0,0.05.")] = "0",
    zero_weight: Annotated[str, typer.Option(help="Weights in (0, 1] of the zeros of M.")] = "1",
    scoring: Annotated[str, typer.Option(help="'error', 'auc' or 'neighbors'.")] = "error",
    rule: Annotated[str, typer.Option(help="'one_standard_error' or 'best'.")] = "one_standard_error",
    repeats: Annotated[int, typer.Option(help="Number of random splits.")] = 5,
    jobs: Annotated[int, typer.Option(help="Number of fits that run in parallel.")] = 1,
    max_iter: Annotated[int | None, typer.Option(help="Maximum number of steps of a fit.")] = None,
    ftol: Annotated[
        float | None, typer.Option(help="Stop a fit when the relative change of the objective is at most this.")
    ] = None,
    **options: Any,
) -> None:
    """Choose the rank of the matrix in FILE by held-out pairs.

    Ctrl-C shows the scores so far.
    """
    check_files((file, mask), (output,), plot=plot)
    check_table_output(output)
    limits = {"max_iter": max_iter, "ftol": ftol}
    given = options | {name: value for name, value in limits.items() if value is not None}
    settings = chosen_settings(given)
    matrix, _ = read_input(file, options, masked=mask is not None)
    unknown = read_mask(mask)
    n = matrix.shape[0]
    settings |= {
        "ranks": None if ranks is None else _integers("--ranks", ranks, n, "2,4,8 or 6-14"),
        "n_negative": _integers("--n-negative", n_negative, n, "0,1 or 0-3, or auto", words=("auto",)),
        "alpha": _numbers("--alpha", alpha, "0,0.05"),
        "zero_weight": _numbers("--zero-weight", zero_weight, "0.1,1"),
        "scoring": scoring,
        "rule": rule,
        "n_repeats": repeats,
        "n_jobs": jobs,
    }
    try:
        with running_workers(options["workers"], settings), search_progress() as verbose:
            selection = select_rank(matrix, mask=unknown, verbose=verbose, **settings)
    except KeyboardInterrupt:
        print_interrupted()
        raise typer.Exit(INTERRUPTED_CODE) from None
    if output is not None:
        write_table(output, _columns(selection.records()))
    if plot is not None:
        with naming_output(plot):
            _draw_scores(selection, plot)
    following = _next_command(selection, file, mask, given)
    report(
        {
            "command": "rank",
            "file": file,
            "rank": selection.chosen["rank"],
            "chosen": selection.chosen,
            "best": selection.best,
            "scoring": selection.scoring,
            "scores": selection.table,
            "fits": selection.n_fits,
            "converged": _converged(selection),
            "status": "done" if selection.complete else "interrupted",
            "next": following,
            "output": output,
            "plot": plot,
        },
        *_shown(selection, following, limited=settings["max_time"] is not None),
    )
    if not selection.complete:
        raise typer.Exit(INTERRUPTED_CODE)


def _integers(flag: str, text: str, n: int, example: str, words: tuple[str, ...] = ()) -> list[Any]:
    """Parse integers, ranges a-b of integers up to n and the given words, separated by commas."""
    values: list[Any] = []
    for part in _parts(text):
        if ends := re.fullmatch(r"(\d+)-(\d+)", part):
            first, last = int(ends[1]), int(ends[2])
            if first > last:
                raise ValueError(
                    f"{flag} must have ranges from a smaller to a larger number, got {part!r}. "
                    f"Pass {last}-{first}."
                )
            if last > n:  # before the range becomes a list, which might not fit in memory
                raise ValueError(
                    f"{flag} must have ranges up to {n}, the number of rows, got {part!r}. Pass smaller ones."
                )
            values += range(first, last + 1)
        elif part in words:
            values.append(part)
        elif re.fullmatch(r"[+-]?\d+", part):
            values.append(int(part))
        else:
            raise ValueError(f"{flag} must be integers such as {example}, got {text!r}.")
    return values


def _numbers(flag: str, text: str, example: str) -> list[float]:
    """Parse numbers separated by commas."""
    try:
        return [float(part) for part in _parts(text)]
    except ValueError:
        raise ValueError(f"{flag} must be numbers such as {example}, got {text!r}.") from None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _columns(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [record[name] for record in records] for name in records[0]}


def _draw_scores(selection: RankSelection, path: Path) -> None:
    from symrelu.plots import new_figure, save_figure

    figure = new_figure(figsize=(6.4, 4.2))
    selection.plot(figure.add_subplot())
    save_figure(figure, path)


def _converged(selection: RankSelection) -> int:
    """Return how many fits met a stopping test."""
    return sum(row["converged"] for row in selection.table)


def _shown(selection: RankSelection, following: list[str], *, limited: bool) -> list[Any]:
    """Return what to print: the scores, what limits them, and the command that makes the chosen fit."""
    shown = [name for name in GRID if name == "rank" or len({row[name] for row in selection.table}) > 1]
    rows = []
    for row in selection.table:
        marks = ["chosen"] * _is(row, selection.chosen) + ["best"] * _is(row, selection.best)
        numbers = (f"{row[name]:.4g}" for name in ("mean", "standard_error", "parameters_per_pair"))
        rows.append([*(str(row[name]) for name in shown), *numbers, ", ".join(marks)])
    header = [*shown, selection.scoring, "standard error", "parameters per pair", ""]
    table = fitting_table(header, rows)
    interrupted = f"Interrupted after {selection.n_fits} fits: the choice may change with more."
    parts = [table, *([] if selection.complete else [interrupted])]
    unfinished = selection.n_fits - _converged(selection)
    if limited and unfinished:
        parts.append(
            f"{unfinished} of {selection.n_fits} fits had not converged when their time or steps were used up: "
            "the choice may change with a larger --max-time."
        )
    return [*parts, *next_command(following)]


def _next_command(selection: RankSelection, file: Path, mask: Path | None, given: dict[str, Any]) -> list[str]:
    """Return the arguments of the command that fits the chosen setting, with all that was given for it.

    This is embed, which writes vectors with names, unless only fit has one of the options.
    """
    chosen = {name: selection.chosen[name] for name in (*GRID, "diagonal")}
    asked = {
        option.name: given[option.name]
        for option in [*fit_options(), *graph_options()]
        if given.get(option.name, option.default) != option.default
    }
    settings = asked | chosen
    as_embedding = {_OF_EMBED.get(name, name): value for name, value in settings.items()}
    offered = {option.name: option for option in [*estimator_options(SymReLU, OWN), *graph_options()]}
    has_no_option = {
        name for name, value in as_embedding.items() if name not in offered and (value or name in asked)
    }
    if mask is None and not has_no_option:
        command, output = ["symrelu", "embed", str(file)], "embedding.csv"
        settings = as_embedding
    else:
        command, output = ["symrelu", "fit", str(file)], "fit.npz"
        offered = {option.name: option for option in [*fit_options(), *graph_options()]}
    for name, option in offered.items():
        if settings.get(name, option.default) != option.default:
            command += _arguments(option, settings[name])
    if mask is not None:
        command += ["--mask", str(mask)]
    return [*command, "--output", output]


def _arguments(option: inspect.Parameter, value: Any) -> list[str]:
    """Return a setting as it is given on the command line."""
    flag = flag_of_option(option)
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    return [flag, str(value)]


def _is(row: dict[str, Any], setting: dict[str, Any]) -> bool:
    return all(row[name] == setting[name] for name in GRID)
