"""npz archives: sizes are checked against the bytes of the file before memory is taken for them."""

from __future__ import annotations

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

from symrelu.files.checks import WrongKind, check_readable, check_room, damage_named

_CHUNK = 2**20


@contextmanager
def open_npz(path: str | PathLike[str]) -> Iterator[Any]:
    """Open an npz file without unpickling anything, with an error that names the file."""
    check_readable(Path(path))
    with open(path, "rb") as file:  # numpy would leave a damaged file open
        with damage_named(path, "npz"):
            content = np.load(file, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise WrongKind(f"{path} is a single npy array, not an npz archive.")
        with content:
            yield content


def read_npz(path: str | PathLike[str], kind: str | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an npz archive, each compared with its checksum. Nothing is unpickled.

    Parameters
    ----------
    path : str or path-like
    kind : str, optional
        What the file should be, if that is never compressed: its arrays then take as much memory as the file
        takes on disk.

    Returns
    -------
    arrays : dict of str to ndarray
    """
    path = Path(path)
    check_readable(path)
    with open(path, "rb") as file, damage_named(path, "npz"):
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise WrongKind(f"{path} is a single npy array, not an npz archive.")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(path, members, kind)
            if len(members) != _count_at_the_end(file, archive):  # which zipfile does not look at
                raise ValueError("the directory does not list all arrays")
            return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}


def _check_members(path: Path, members: list[zipfile.ZipInfo], kind: str | None) -> None:
    """Raise unless the directory of an archive lists arrays that the file can hold."""
    names = [info.filename for info in members]
    if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
        raise ValueError(f"an npz archive holds arrays of different names, got {names}")
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED:
            if kind is not None:
                raise WrongKind(f"{path} is compressed, and no {kind} is: it holds something else.")
        elif info.compress_size != info.file_size:
            raise ValueError(f"the directory has two sizes of {info.filename}")
    if sum(info.compress_size for info in members) > path.stat().st_size:
        raise ValueError("the arrays in the directory are larger than the file")
    check_room(path, sum(info.file_size for info in members))


def _count_at_the_end(file: IO[bytes], archive: zipfile.ZipFile) -> int:
    """Return how many members the last record of an archive tells of (at most 65535: it has two bytes)."""
    file.seek(-len(archive.comment) - 12, os.SEEK_END)
    return int.from_bytes(file.read(2), "little")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        array = read_array(member, info.file_size)
        if member.read(1):  # reading on to the end compares the checksum
            raise ValueError(f"{info.filename} is longer than its array")
        return array


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an array in npy format from a file that should have ``size`` bytes."""
    version = npy.read_magic(file)
    if version != (1, 0):  # the later ones are for structured arrays, and their headers may have gigabytes
        raise ValueError(f"an array in npy version {version} holds something else than numbers")
    shape, fortran_order, dtype = npy.read_array_header_1_0(file)
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape} and type {dtype} cannot be loaded")
    declared, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared != held:
        raise ValueError(f"an array of shape {shape} and type {dtype} takes {declared} bytes, got {held}")
    content = bytearray()  # grows with what is read: what a compressed file holds is not known before
    while len(content) < held:
        chunk = file.read(min(_CHUNK, held - len(content)))
        if not chunk:
            raise ValueError(f"an array ends after {len(content)} of {held} bytes")
        content += chunk
    return np.ndarray(shape, dtype, content, order="F" if fortran_order else "C")


def read_header(arrays: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    """Return the names and values that the entry ``name`` of an archive holds as JSON."""
    text = arrays[name]
    if text.dtype.kind != "U" or text.ndim:
        raise ValueError(f"its entry {name!r} is not a text")
    try:
        header = json.loads(str(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its entry {name!r} is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise ValueError(f"its entry {name!r} holds a {type(header).__name__}, not names and values")
    return header


def check_names(owner: str, names: Iterable[str], required: set[str], optional: Iterable[str] = ()) -> None:
    """Raise unless all required names are there, and none that is not known."""
    missing, unknown = required.difference(names), set(names).difference(required, optional)
    if missing:
        raise ValueError(f"{owner} has no {', '.join(map(repr, sorted(missing)))}")
    if unknown:
        raise ValueError(f"{owner} has an unknown {', '.join(map(repr, sorted(unknown)))}")
