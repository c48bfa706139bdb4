"""Output files of the commands: checked before the work, and named if they cannot be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from symrelu.files import check_output


def check_files(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Raise before any work if an output cannot be written or would overwrite another file of the command."""
    outputs = [path for path in written if path is not None]
    for path in outputs:
        check_output(path)
    seen: set[Path] = set()
    for path in (*(path for path in read if path is not None), *outputs):
        if path.resolve() in seen:
            raise ValueError(
                f"The inputs and outputs must be different files, but {path} is given twice. Choose another "
                "name."
            )
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
