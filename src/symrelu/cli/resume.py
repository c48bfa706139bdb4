"""``symrelu resume``: continue the fit in a checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from symrelu import Solution
from symrelu.cli.fit import fit, run_fit
from symrelu.cli.options import option, with_options
from symrelu.cli.origins import arguments_of
from symrelu.cli.screen import note
from symrelu.fit.checkpoint import DifferentFit
from symrelu.fit.settings import Description, Limits

EXAMPLES = (
    "symrelu fit graph.csv --rank 8 --max-iter 50 --checkpoint fit.ckpt -o fit.npz",
    "symrelu resume fit.ckpt --max-iter 1000",
    "symrelu resume fit.ckpt --max-time 60 --data graph.csv -o better.npz --json",
)


def _limit_options() -> list[Any]:
    """Return options for the limits of a fit, which are those of the first part unless they are given."""
    hints = get_type_hints(Limits)
    return [
        option(entry.name, hints[entry.name], None, f"{entry.metadata[Description].brief} Default: as before.")
        for entry in dataclasses.fields(Limits)
    ]


@with_options(_limit_options())
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
    **limits: Any,
) -> None:
    """Resume the fit in a checkpoint.

    The checkpoint names the data and the options of the 'symrelu fit' that wrote it. The same files are
    written, and the result is that of a fit that was never stopped.
    """
    arguments = arguments_of(checkpoint, fit, data)
    if output is not None:
        arguments["output"] = output
    for name in ("output", "plot"):
        if arguments[name] is not None and (name, output) != ("output", arguments[name]):
            _check_overwrite(arguments[name], checkpoint)
    given = {name: value for name, value in limits.items() if value is not None}
    note(f"resuming the fit of {arguments['file']}")
    try:
        run_fit("resume", **arguments | given)
    except ValueError as error:
        raise _explained(error, checkpoint, arguments) from error


def _check_overwrite(path: Path, checkpoint: Path) -> None:
    """Raise if a checkpoint, which may come from someone else, would replace a file that is not a result.

    Files in its own folder may be replaced, because a fit that is interrupted has written its results there.
    """
    if not path.exists() or path.resolve().is_relative_to(checkpoint.resolve().parent):
        return
    try:
        Solution.load(path)
    except (ValueError, OSError):
        raise ValueError(
            f"The checkpoint {checkpoint} says that its fit writes {path}, which exists and is neither a "
            "Solution nor in the folder of the checkpoint. Pass --output to choose a file, or move that one."
        ) from None


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
