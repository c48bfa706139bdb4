"""Reading matrices, and writing files so that nothing is lost when writing fails."""

from __future__ import annotations

import gzip
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import io, sparse

_LONGEST_NAME = 255  # on every file system in common use
_NUMBER_BYTES = b"0123456789+-.eEdDnaifNAIF \t\r\n"
_BANNER = re.compile(rb"%%MatrixMarket +matrix +(coordinate|array) +\w+ +[\w-]+", re.IGNORECASE)
_READABLE = ".npz (scipy sparse, or one dense array), .npy, .mtx or .mtx.gz"


def check_output(path: str | PathLike[str]) -> Path:
    """Return the path of a file that can be written, or raise before any work is done for it."""
    if len(os.fsencode(Path(path).name)) > _LONGEST_NAME:
        raise OSError(f"The name of the output {path} is longer than {_LONGEST_NAME} bytes.")
    path = Path(os.path.realpath(path))  # through a symbolic link to the file itself
    if path.is_dir():
        raise IsADirectoryError(f"The output {path} is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        raise OSError(f"The output {path} exists and is not an ordinary file. Name another one.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The output folder {path.parent} does not exist. Create it, or name another place."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The output folder {path.parent} cannot be written to.")
    return path


def make_folder(path: str | PathLike[str]) -> Path:
    """Return a folder for outputs, made if it is not there, or raise a sentence."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"The output folder {folder} is a file. Name a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"The output folder {folder} cannot be made: {error.strerror}.") from error
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"The output folder {folder} cannot be written to.")
    return folder


@contextmanager
def write_aside(path: str | PathLike[str], prefix: str = ".symrelu") -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path`` that takes its place when everything has been written.

    Its name begins with ``prefix``, so that what a killed process left behind can be told.
    """
    path = check_output(path)
    temporary = path.parent / f"{prefix}-{secrets.token_hex(8)}.part"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def open_npz(path: str | PathLike[str]) -> Iterator[Any]:
    """Open an npz file without unpickling anything, with an error that names the file."""
    _check_readable(Path(path))
    with open(path, "rb") as file:  # numpy would leave a damaged file open
        with damage_named(path, "npz"):
            content = np.load(file, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise _WrongKind(f"{path} is a single npy array, not an npz archive.")
        with content:
            yield content


@contextmanager
def damage_named(path: str | PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever a parser says of a damaged file into one error that names the file."""
    try:
        yield
    except _WrongKind:
        raise
    except Exception as error:  # zlib, zipfile, numpy and scipy each have errors of their own
        raise ValueError(f"{path} is not a readable {kind} file (damaged or cut short?): {error}") from error


def read_matrix(path: str | PathLike[str]) -> Any:
    """Read a matrix from a .npz (scipy sparse, or one dense array), .npy, .mtx or .mtx.gz file.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    M : sparse array or ndarray
        As it is in the file: :func:`symrelu.decompose` checks it.
    """
    path = Path(path)
    _check_readable(path)
    suffixes = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    readers = {".npz": _read_npz, ".npy": _read_npy, ".mtx": _read_mtx, ".mtx.gz": _read_mtx}
    if suffixes not in readers:
        raise ValueError(f"{path} must be one of {_READABLE}; the ending {path.suffix!r} is not known.")
    with damage_named(path, suffixes.lstrip(".")):
        return readers[suffixes](path)


class _WrongKind(ValueError):
    """A file that can be read but holds no matrix."""


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a matrix file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")


def _read_npy(path: Path) -> np.ndarray:
    with open(path, "rb") as file:
        array = np.load(file, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise _WrongKind(f"{path} is an npz archive with the ending .npy. Rename it.")
    return array


def _read_mtx(path: Path) -> Any:
    """Read MatrixMarket, with a look at the text first: scipy's reader crashes on some damaged files.

    Seen with scipy 1.17: bytes that are no text, and a last line that ends in a blank without a line feed.
    """
    with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
        text = file.read() + b"\n"
    for number, line in enumerate(text.splitlines()):
        if number == 0 and not _BANNER.fullmatch(line.strip()):
            raise ValueError("the first line is not that of a MatrixMarket file")
        if not line.startswith(b"%") and line.translate(None, _NUMBER_BYTES):
            raise ValueError(f"line {number + 1} holds something else than numbers")
    return io.mmread(BytesIO(text), spmatrix=False)


def _read_npz(path: Path) -> Any:
    with open_npz(path) as content:
        names = content.files
        if "format" in names and "shape" in names:
            return sparse.load_npz(path)
        if {"data", "indices", "indptr", "shape"} <= set(names):
            parts = (content["data"], content["indices"], content["indptr"])
            return sparse.csr_array(parts, shape=tuple(content["shape"]))
        if "solution" in names:
            raise _WrongKind(f"{path} is a saved Solution, not a matrix. Read it with Solution.load.")
        if len(names) != 1:
            raise _WrongKind(
                f"{path} must hold one dense array or a scipy sparse matrix, got the arrays {names}."
            )
        return content[names[0]]
