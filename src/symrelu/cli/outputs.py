"""Output files of the commands: checked before the work, and named if they cannot be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from symrelu.cli.screen import check_plots
from symrelu.cli.streams import STDOUT
from symrelu.files import check_output


def table_option(text: str, more: str = "") -> Any:
    """Return the option ``--output`` for a table, which the text describes."""
    text = f"{text}: .csv, .tsv, .parquet or .json{more}; - for CSV on stdout."
    return typer.Option("--output", "-o", help=text)


def check_files(
    read: Iterable[Path | None], written: Iterable[Path | None], *, plot: Path | None = None
) -> None:
    """Raise before any work if an output cannot be written or would overwrite another file of the command."""
    inputs = [path for path in read if path is not None]
    outputs = [path for path in (*written, plot) if path is not None]
    for path in outputs:
        if path != STDOUT:
            check_output(path)
    if plot == STDOUT:
        raise ValueError("--plot must be the name of a PNG or SVG file: only a table can go to stdout (-).")
    if STDOUT in inputs:
        raise ValueError("The inputs must be files: stdin (-) cannot be read. Pass the name of a file.")
    _check_different("inputs", inputs, "Pass another file")
    _check_different("inputs and outputs", [*inputs, *outputs], "Choose another name")
    if plot is not None:
        check_plots()


def _check_different(what: str, paths: Iterable[Path], advice: str) -> None:
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise ValueError(f"The {what} must be different files, but {path} is given twice. {advice}.")
        seen.add(path.resolve())


def check_archive_output(path: Path | None, what: str, *, or_table: bool = False) -> None:
    """Raise before any work if a file for a model or a Solution, if there is one, has another extension."""
    if path is None or path.suffix.lower() == ".npz":
        return
    table = ", or in .csv, .tsv, .parquet or .json for a table" if or_table else ""
    raise ValueError(
        f"The output {path} must end in .npz for {what}{table}, got {path.suffix or 'no extension'!r}."
    )


@contextmanager
def naming_output(path: Path) -> Iterator[None]:
    """Turn an error of the operating system, such as a full disk, into one that names the file."""
    try:
        yield
    except OSError as error:
        if error.strerror is None or error.filename is not None:  # its message names the file already
            raise
        raise OSError(
            f"{path} could not be written: {error.strerror}. No part of it was left behind. Free some space, "
            "or choose another folder."
        ) from error
