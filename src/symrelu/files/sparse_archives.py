"""The entries of a sparse matrix in an npz file, part by part: the matrix is never held as a whole."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from symrelu.files.archives import read_array
from symrelu.files.checks import WrongKind, check_readable, naming_damaged_file

_ENTRIES_OF_A_PART = 1_000_000
_FORMATS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}


def sparse_npz_parts(path: Path) -> tuple[tuple[int, int], np.dtype[Any], Iterator[tuple[np.ndarray, ...]]]:
    """Return shape and type of the matrix that ``scipy.sparse.save_npz`` wrote, and its entries in parts.

    Parameters
    ----------
    path : Path

    Returns
    -------
    shape : tuple of two int
    dtype : dtype
    parts : iterator
        Of rows, columns and values.
    """
    check_readable(path)
    with naming_damaged_file(path, "npz"), zipfile.ZipFile(path) as archive:
        members = set(archive.namelist())
        if "shape.npy" not in members or "data.npy" not in members:
            raise WrongKind(
                f"{path} must hold a scipy sparse matrix (scipy.sparse.save_npz) to be read in parts."
            )
        kind = _small(archive, "format").item() if "format.npy" in members else "csr"
        kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
        if kind not in _FORMATS:
            raise WrongKind(
                f"{path} must be a sparse matrix in csr, csc or coo format to be read in parts: {kind}."
            )
        rows, columns = (int(size) for size in _small(archive, "shape"))
        with archive.open("data.npy") as member:
            dtype, _ = _open_array(member)
    return (rows, columns), dtype, _parts(path, kind, (rows, columns))


def _small(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Return an array that is held as a whole."""
    with archive.open(f"{name}.npy") as member:
        return read_array(member, archive.getinfo(f"{name}.npy").file_size)


def _open_array(member: IO[bytes]) -> tuple[np.dtype[Any], int]:
    """Read the header of a one-dimensional array of numbers; return its type and length."""
    if npy.read_magic(member) != (1, 0):
        raise ValueError("an array of numbers must have npy version (1, 0)")
    shape, _, dtype = npy.read_array_header_1_0(member)
    if dtype.hasobject or dtype.kind not in "biuf" or len(shape) != 1:
        raise ValueError(
            f"the entries of a sparse matrix must be a list of numbers, got {dtype} of shape {shape}"
        )
    return dtype, math.prod(shape)


def _parts(path: Path, kind: str, shape: tuple[int, int]) -> Iterator[tuple[np.ndarray, ...]]:
    with naming_damaged_file(path, "npz"), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(path))
        names = ("row", "col", "data") if kind == "coo" else ("indices", "data")
        members = [stack.enter_context(archive.open(f"{name}.npy")) for name in names]
        arrays = [_open_array(member) for member in members]
        count = arrays[0][1]
        if any(length != count for _, length in arrays):
            raise ValueError("indices and values must be equally many")
        pointers = None if kind == "coo" else _pointers(_small(archive, "indptr"), count, shape, kind)
        for first in range(0, count, _ENTRIES_OF_A_PART):
            size = min(_ENTRIES_OF_A_PART, count - first)
            part = [_take(member, *array, size) for member, array in zip(members, arrays, strict=True)]
            if pointers is not None:
                numbers = np.searchsorted(pointers, np.arange(first, first + size), side="right") - 1
                part = [numbers, *part] if kind == "csr" else [part[0], numbers, part[1]]
            rows, cols = (index.astype(np.int64) for index in part[:2])
            if any(
                (index < 0).any() or (index >= side).any()
                for index, side in zip((rows, cols), shape, strict=True)
            ):
                raise ValueError("there are indices outside of the matrix")
            yield rows, cols, part[2]
        # zipfile verifies the checksum only when the end is reached.
        if any(member.read(1) for member in members):
            raise ValueError("an array is longer than its header says")


def _pointers(indptr: np.ndarray, count: int, shape: tuple[int, int], kind: str) -> np.ndarray:
    lines = shape[0] if kind == "csr" else shape[1]
    if indptr.shape != (lines + 1,) or indptr[0] != 0 or indptr[-1] != count or (np.diff(indptr) < 0).any():
        raise ValueError("indptr does not belong to its indices")
    return indptr.astype(np.int64)


def _take(member: IO[bytes], dtype: np.dtype[Any], _: int, count: int) -> np.ndarray:
    content = member.read(count * dtype.itemsize)
    if len(content) != count * dtype.itemsize:
        raise ValueError("an array ends before its last entry")
    return np.frombuffer(content, dtype)
