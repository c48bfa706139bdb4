"""Read npz archives. Declared sizes are checked against the file before memory is allocated for them."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from symrelu.files.checks import WrongKind, check_readable, check_room, naming_damaged_file

_CHUNK = 2**20


@contextmanager
def open_npz(path: str | PathLike[str]) -> Iterator[Any]:
    """Open an npz file without unpickling anything; errors name the file."""
    check_readable(Path(path))
    with open(path, "rb") as file:  # given a path, NumPy does not close a damaged file
        with naming_damaged_file(path, "npz"):
            content = np.load(file, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise WrongKind(f"{path} is a single npy array, not an npz archive.")
        with content:
            yield content


def read_npz(path: str | PathLike[str], kind: str | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an npz archive, with checksums verified and nothing unpickled.

    Parameters
    ----------
    path : str or path-like
    kind : str, optional
        Kind of file that is expected, if files of that kind are never compressed. A compressed archive is then
        refused, so that the arrays take no more memory than the file on disk.

    Returns
    -------
    arrays : dict of str to ndarray
    """
    path = Path(path)
    check_readable(path)
    with open(path, "rb") as file, naming_damaged_file(path, "npz"):
        return _read_members(path, file, path.stat().st_size, kind)


def read_npz_bytes(content: bytes, name: str | PathLike[str], kind: str | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an npz archive whose content has been read, as :func:`read_npz` does.

    Parameters
    ----------
    content : bytes
    name : str or path-like
        Where it comes from, for errors.
    kind : str, optional
        As for :func:`read_npz`.

    Returns
    -------
    arrays : dict of str to ndarray
    """
    with naming_damaged_file(name, "npz"):
        return _read_members(Path(name), io.BytesIO(content), len(content), kind)


def _read_members(path: Path, file: IO[bytes], size: int, kind: str | None) -> dict[str, np.ndarray]:
    if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
        raise WrongKind(f"{path} is a single npy array, not an npz archive.")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        _check_members(path, members, size, kind)
        # zipfile ignores this count, so that a damaged directory would lose arrays without an error.
        if len(members) != _declared_members(file, archive):
            raise ValueError("the directory does not list all arrays")
        return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}


def _check_members(path: Path, members: list[zipfile.ZipInfo], size: int, kind: str | None) -> None:
    """Raise unless the directory of an archive lists arrays that fit into the file and into memory."""
    names = [info.filename for info in members]
    if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
        raise ValueError(
            f"the arrays of an npz archive must have different names that end in .npy, got {names}"
        )
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED:
            if kind is not None:
                raise WrongKind(
                    f"{path} must be a {kind} file, which is never compressed, got a compressed archive."
                )
        elif info.compress_size != info.file_size:
            raise ValueError(f"the directory lists two different sizes for {info.filename}")
    if sum(info.compress_size for info in members) > size:
        raise ValueError("the arrays in the directory are larger than the file")
    check_room(path, sum(info.file_size for info in members))


def _declared_members(file: IO[bytes], archive: zipfile.ZipFile) -> int:
    """Return the number of members in the end record of an archive (at most 65535: it has two bytes)."""
    # The record ends with: members (2 bytes), directory size (4), offset (4), comment length (2), comment.
    file.seek(-len(archive.comment) - 12, os.SEEK_END)
    return int.from_bytes(file.read(2), "little")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        array = read_array(member, info.file_size)
        if member.read(1):  # zipfile verifies the checksum only when the end is reached
            raise ValueError(f"{info.filename} is longer than its array")
        return array


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an array in npy format from a file that must have ``size`` bytes."""
    version = npy.read_magic(file)
    # Later versions are written for structured arrays only, and their headers may have gigabytes.
    if version != (1, 0):
        raise ValueError(f"an array of numbers must have npy version (1, 0), got {version}")
    shape, fortran_order, dtype = npy.read_array_header_1_0(file)
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape} and type {dtype} cannot be loaded")
    declared, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared != held:
        raise ValueError(f"an array of shape {shape} and type {dtype} takes {declared} bytes, got {held}")
    # The buffer grows while reading: a small compressed file may declare far more than it contains.
    content = bytearray()
    while len(content) < held:
        chunk = file.read(min(_CHUNK, held - len(content)))
        if not chunk:
            raise ValueError(f"an array ends after {len(content)} of {held} bytes")
        content += chunk
    return np.ndarray(shape, dtype, content, order="F" if fortran_order else "C")


def read_header(arrays: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    """Return the dict that is stored as JSON in the entry ``name`` of an archive."""
    text = arrays[name]
    if text.dtype.kind != "U" or text.ndim:
        raise ValueError(f"its entry {name!r} is not a string")
    try:
        header = json.loads(str(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its entry {name!r} is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise ValueError(f"its entry {name!r} must hold a JSON object, got the type {type(header).__name__}")
    return header


def without_objects(**arrays: Any) -> dict[str, Any]:
    """Return arrays for ``np.savez``, or raise if one holds Python objects, which would be pickled.

    ``np.savez`` refuses them itself with ``allow_pickle=False``, but NumPy 2.1 stores that as an array.
    """
    objects = sorted(name for name, array in arrays.items() if np.asarray(array).dtype.hasobject)
    if objects:
        raise ValueError(f"arrays in a file must hold numbers or text, got Python objects in {objects}")
    return arrays


def check_names(owner: str, names: Iterable[str], required: set[str], optional: Iterable[str] = ()) -> None:
    """Raise unless all required names are present, and no others but the optional ones."""
    missing, unknown = required.difference(names), set(names).difference(required, optional)
    if missing:
        raise ValueError(f"{owner} has no {', '.join(map(repr, sorted(missing)))}")
    if unknown:
        raise ValueError(f"{owner} has an unknown {', '.join(map(repr, sorted(unknown)))}")
