"""Checks of all input files, with errors that name the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from symrelu.kernels.memory import available_memory

# Memory per row of a rank-1 fit by the default solver: the index pointers of M, U, and 10 past steps.
_BYTES_PER_ROW = 200


class WrongKind(ValueError):
    """A file that can be read but has unexpected contents."""


class DamagedFile(ValueError):
    """A file that cannot be read; the message names it and the reason."""


def check_readable(path: Path) -> None:
    """Raise unless there is a regular file at ``path``."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file.")
    if not path.exists():
        raise FileNotFoundError(f"The file {path} does not exist.")
    if not path.is_file():  # a pipe or device has no size to check, and cannot be read twice
        raise OSError(f"{path} is not a regular file. Copy its content to one.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"The file {path} cannot be read: permission denied.")


@contextmanager
def naming_damaged_file(path: str | PathLike[str], kind: str) -> Iterator[None]:
    """Turn any error of a parser into one that names the damaged file."""
    try:
        yield
    except (WrongKind, DamagedFile):
        raise
    except MemoryError as error:
        if str(path) in str(error):
            raise
        raise MemoryError(
            f"{path} must fit into memory, but it does not: {str(error) or 'out of memory'}. "
            "The file may be damaged."
        ) from error
    except Exception as error:  # zlib, zipfile, NumPy and SciPy each raise different types
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFile(f"{path} is not a readable {kind} file (damaged or truncated?): {reason}") from error


@contextmanager
def naming_missing_library(library: str, extra: str, kind: str) -> Iterator[None]:
    """Turn an ImportError into one that says how to install what reads a kind of file."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"Reading a {kind} file needs {library}, which cannot be imported: pip install 'symrelu[{extra}]'."
        ) from error


def check_room(path: Path, needed: int, owner: str = "its arrays") -> None:
    """Raise if a file needs more memory than is available."""
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{path} must fit into memory, but {owner} need {in_units(needed)}, and only "
            f"{in_units(available)} are available. Use a part of the data, or a machine with more memory."
        )


def in_units(count: int) -> str:
    """Return a number of bytes in readable units."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def check_rows(path: Path, rows: int, columns: int) -> None:
    """Raise if a sparse matrix has too many rows for any fit; empty rows take no space in a file."""
    check_room(path, _BYTES_PER_ROW * max(rows, columns), f"fits of a {rows} x {columns} matrix")


def check_indices(matrix: Any) -> None:
    """Raise if a sparse matrix has indices outside of its shape, before any code works with it."""
    # Compiled code does not check indices, and would read outside the arrays. coo checks its own.
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
