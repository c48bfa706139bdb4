"""``symrelu rank``: choose the rank of the matrix in a file by held-out pairs."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from symrelu import RankSelection, select_rank
from symrelu.cli.fit import as_mask
from symrelu.cli.options import chosen_settings, fit_options, flag_of, with_options
from symrelu.cli.screen import INTERRUPTED_CODE, check_plots, console, errors, message_text
from symrelu.files import check_output, read_matrix, write_atomically
from symrelu.fit.rank_grid import GRID
from symrelu.fit.selection import LIMITS
from symrelu.fit.settings import Model

# Limits are left to select_rank unless they are given: its defaults are not those of a fit.
_OPTIONS = [
    option for option in fit_options() if option.name not in (*GRID, *LIMITS) and option.name != "checkpoint"
]


@with_options(_OPTIONS)
def rank(
    file: Annotated[Path, typer.Argument(help="Similarity matrix: .npz (sparse or dense), .npy or .mtx.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="CSV file for the scores.")] = None,
    plot: Annotated[Path | None, typer.Option(help="PNG or SVG file for the curve of scores.")] = None,
    mask: Annotated[Path | None, typer.Option(help="Boolean matrix file, true where M is unobserved.")] = None,
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
    """Choose the rank of the matrix in FILE by held-out pairs. Ctrl-C shows the scores so far."""
    _check_paths(file, mask, output, plot)
    limits = {"max_iter": max_iter, "ftol": ftol}
    settings = chosen_settings(options) | {name: value for name, value in limits.items() if value is not None}
    unknown = None if mask is None else as_mask(read_matrix(mask))
    try:
        selection = select_rank(
            read_matrix(file),
            None if ranks is None else _numbers("--ranks", ranks),
            n_negative=_numbers("--n-negative", n_negative),
            alpha=_numbers("--alpha", alpha),
            zero_weight=_numbers("--zero-weight", zero_weight),
            scoring=scoring,
            rule=rule,
            n_repeats=repeats,
            mask=unknown,
            n_jobs=jobs,
            verbose=1,
            **settings,
        )
    except KeyboardInterrupt:
        errors.print("Interrupted before the first score: nothing was written.")
        raise typer.Exit(INTERRUPTED_CODE) from None
    if output is not None:
        _write_scores(selection, output)
    if plot is not None:
        _draw_scores(selection, plot)
    _print_selection(selection, file)
    if not selection.complete:
        raise typer.Exit(INTERRUPTED_CODE)


def _check_paths(file: Path, mask: Path | None, output: Path | None, plot: Path | None) -> None:
    """Raise before any work if an output cannot be written or would overwrite another file of the command."""
    for path in (output, plot):
        if path is not None:
            check_output(path)
    if plot is not None:
        check_plots()
    named = [path.resolve() for path in (file, mask, output, plot) if path is not None]
    if len(set(named)) < len(named):
        raise ValueError("The matrix, the mask, the output and the plot must be different files.")


def _numbers(flag: str, text: str) -> list[Any]:
    """Parse numbers, or "auto", separated by commas; a-b is a range of integers."""
    values: list[Any] = []
    for part in (part.strip() for part in text.split(",")):
        if ends := re.fullmatch(r"(\d+)-(\d+)", part):
            values += range(int(ends[1]), int(ends[2]) + 1)
        elif re.fullmatch(r"[+-]?\d+|auto", part):
            values.append(part if part == "auto" else int(part))
        else:
            try:
                values.append(float(part))
            except ValueError:
                raise ValueError(f"{flag} must be numbers such as 2,4,8 or 6-14, got {text!r}.") from None
    return values


def _write_scores(selection: RankSelection, path: Path) -> None:
    records = selection.records()
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    with write_atomically(path) as file:
        file.write(text.getvalue().encode())


def _draw_scores(selection: RankSelection, path: Path) -> None:
    from symrelu.plots import new_figure, save_figure

    figure = new_figure(figsize=(6.4, 4.2))
    selection.plot(figure.add_subplot())
    save_figure(figure, path)


def _print_selection(selection: RankSelection, file: Path) -> None:
    shown = [name for name in GRID if name == "rank" or len({row[name] for row in selection.table}) > 1]
    table = Table()
    for name in (*shown, selection.scoring, "standard error", "parameters per pair", ""):
        table.add_column(name, justify="right")
    for row in selection.table:
        marks = ["chosen"] * _is(row, selection.chosen) + ["best"] * _is(row, selection.best)
        numbers = (f"{row[name]:.4g}" for name in ("mean", "standard_error", "parameters_per_pair"))
        table.add_row(*(str(row[name]) for name in shown), *numbers, ", ".join(marks))
    console.print(table)
    if not selection.complete:
        console.print(f"Interrupted after {selection.n_fits} fits: the choice may change with more.")
    flags = [
        f"{flag_of(name)} {selection.chosen[name]}"
        for name in (*GRID, "diagonal")
        if selection.chosen[name] != getattr(Model, name, None)
    ]
    console.print(
        message_text("Next:", f"symrelu fit {file} {' '.join(flags)} --output fit.npz"), soft_wrap=True
    )


def _is(row: dict[str, Any], setting: dict[str, Any]) -> bool:
    return all(row[name] == setting[name] for name in GRID)
