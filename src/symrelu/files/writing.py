"""Output files, which are checked before the work starts and written atomically."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO

_PREFIX = ".symrelu"  # of temporary files
_LONGEST_NAME = 255  # bytes; the limit of all common file systems


def check_output(path: str | PathLike[str]) -> Path:
    """Return the path of a file that can be written, or raise an error before any work is done."""
    path = _target(path)
    # Permissions do not tell: not for root, for file systems that are read-only, or on Windows.
    probe = _temporary(path, _PREFIX)
    try:
        with open(probe, "xb"):
            pass
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def _target(path: str | PathLike[str]) -> Path:
    """Return where an output is to be written, with links resolved; raise if it cannot be a file there."""
    if len(os.fsencode(Path(path).name)) > _LONGEST_NAME:
        raise OSError(
            f"The name of the output {path} is longer than {_LONGEST_NAME} bytes. Choose a shorter one."
        )
    # Follow symbolic links: replacing the link itself would leave the file unchanged.
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"The output {path} is a folder. Choose a file in it.")
    if path.exists() and not path.is_file():
        raise OSError(f"The output {path} exists and is not a regular file. Choose another one.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The output folder {path.parent} does not exist. Create it, or choose another one."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The output folder {path.parent} cannot be written to.")
    return path


def make_folder(path: str | PathLike[str]) -> Path:
    """Return a folder for outputs, created if necessary, or raise a clear error."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"The output folder {folder} is a file. Choose another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"The output folder {folder} cannot be created: {error.strerror}. Choose another one."
        ) from error
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"The output folder {folder} cannot be written to.")
    return folder


def _temporary(path: Path, prefix: str) -> Path:
    return path.parent / f"{prefix}-{secrets.token_hex(8)}.part"


def _unwritable(path: Path, error: OSError) -> OSError:
    """Return an error that names the output in place of its temporary file."""
    return type(error)(f"The output {path} cannot be written: {error.strerror}. Choose another folder.")


@contextmanager
def write_atomically(path: str | PathLike[str], prefix: str = _PREFIX) -> Iterator[IO[bytes]]:
    """Open a temporary file in the folder of ``path``, and rename it to ``path`` when it is complete.

    Its name begins with ``prefix``, so that files left behind by a killed process can be recognised.
    """
    path = _target(path)
    temporary = _temporary(path, prefix)
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a power failure after the rename could leave an empty file
        os.replace(temporary, path)
    except BaseException as error:  # Ctrl-C too must not leave a temporary file
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename == str(temporary):
            raise _unwritable(path, error) from error
        raise
