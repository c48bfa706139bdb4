"""``symrelu resume``: continue the fit in a checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from symrelu import Solution
from symrelu.cli.fit import check_outputs, fit, run_fit
from symrelu.cli.options import fit_options, option, with_options
from symrelu.cli.origins import arguments_of
from symrelu.cli.streams import STDOUT
from symrelu.cli.tables import is_embedding_table, is_table
from symrelu.fit.checkpoint import DifferentFit
from symrelu.fit.settings import Description, Limits
from symrelu.plots.figures import is_our_figure

EXAMPLES = (
    "symrelu fit graph.csv --rank 8 --max-iter 50 --checkpoint fit.ckpt -o fit.npz",
    "symrelu resume fit.ckpt --max-iter 1000",
    "symrelu resume fit.ckpt --max-time 60 --data graph.csv -o better.npz --json",
)

_CLUSTER = ("client", "workers")


def _limit_options() -> list[Any]:
    """Return options for the limits of a fit, which are those of the first part unless they are given."""
    hints = get_type_hints(Limits)
    counted = dict.fromkeys(
        ("max_iter", "max_time"), " It counts the whole fit, so that more must be given than was used before."
    )
    counted["max_time"] += " 'inf' is no limit."
    return [
        option(
            entry.name,
            hints[entry.name],
            None,
            f"{entry.metadata[Description].brief}{counted.get(entry.name, '')} Default: that of 'symrelu fit'.",
        )
        for entry in dataclasses.fields(Limits)
    ]


def _cluster_options() -> list[Any]:
    """Return options for the cluster, which may have another address than before."""
    return [one for one in fit_options() if one.name in _CLUSTER]


@with_options([*_limit_options(), *_cluster_options()], fits=True)
def resume(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="File that 'symrelu fit --checkpoint' wrote.")
    ],
    data: Annotated[
        Path | None, typer.Option(help="The data, if they are no longer where the checkpoint says.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Another file for the result. Default: as before.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Another PNG or SVG file for the convergence curve. Default: as before."),
    ] = None,
    **options: Any,
) -> None:
    """Resume the fit in a checkpoint.

    The checkpoint names the data and the options of the 'symrelu fit' that wrote it. The same files are
    written, and the result is that of a fit that was never stopped. Limits that are given here hold for this
    run.
    """
    arguments = arguments_of(checkpoint, fit, data)
    chosen = {name: path for name, path in (("output", output), ("plot", plot)) if path is not None}
    arguments |= chosen
    check_outputs(arguments)
    for name in ("output", "plot"):
        if name not in chosen and arguments[name] not in (None, STDOUT):
            _check_overwrite(name, arguments[name], checkpoint)
    given = {name: value for name, value in options.items() if value is not None}
    cluster = {name: given.pop(name) for name in _CLUSTER if name in given}
    if cluster:
        arguments |= dict.fromkeys(_CLUSTER) | cluster  # one of them replaces either
    try:
        run_fit("resume", given, **arguments)
    except ValueError as error:
        raise _explained(error, checkpoint, arguments) from error


def _check_overwrite(name: str, path: Path, checkpoint: Path) -> None:
    """Raise if a checkpoint, which may come from someone else, would replace a file that is not a result.

    The content of the file decides. Its folder does not: checkpoints lie in folders with other files too.
    """
    kinds = {"output": ("the Solution or the table of U", _is_result), "plot": ("the curve", is_our_figure)}
    what, is_such_a_result = kinds[name]
    if path.exists() and not is_such_a_result(path):
        raise ValueError(
            f"The checkpoint {checkpoint} says that its fit writes {what} to {path}, which exists and is not "
            f"such a result. Pass --{name} FILE, or move that one."
        )


def _is_result(path: Path) -> bool:
    """Return whether a file is the Solution or the table of an earlier fit."""
    if is_table(path):
        return is_embedding_table(path)
    try:
        Solution.load(path)
    except (ValueError, OSError):
        return False
    return True


def _explained(error: ValueError, checkpoint: Path, arguments: dict[str, Any]) -> ValueError:
    """Return an error that says which file has changed, if that is why the fit cannot resume."""
    part = error.__cause__.part if isinstance(error.__cause__, DifferentFit) else None
    changed = {"matrix": arguments["file"], "mask": arguments["mask"]}.get(str(part))
    if changed is None:
        return error
    return ValueError(
        f"{changed} must be the file that the fit in {checkpoint} began with, but its content has changed. "
        "Restore the file, or start again with 'symrelu fit' and another checkpoint."
    )
