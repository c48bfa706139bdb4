"""Read a matrix from a MATLAB file.

Files of version 5 to 7 are parsed here, because SciPy's compiled reader crashes on some damaged ones (seen with
SciPy 1.17: a part of an unknown type). Files of version 4 are read by SciPy.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy import io, sparse

from symrelu.files.checks import (
    WrongKind,
    check_indices,
    check_readable,
    check_room,
    check_rows,
    naming_damaged_file,
)
from symrelu.kernels.memory import available_memory

_HEADER = 128  # bytes, of files from version 5 on
_NEWEST = b"MATLAB 7.3"
_CHUNK = 2**16
_MATRIX, _COMPRESSED = 14, 15  # types of the elements of a file
# Types of the parts of a variable, as NumPy names them.
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = ["cell", "struct", "object", "char", "sparse", "double", "single"] + [
    f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")
]  # numbered from 1
_NUMBERS = {*_CLASSES[4:], "logical"}
_DTYPES = {"double": "f8", "single": "f4"}
_COMPLEX, _LOGICAL = 0x800, 0x200  # flags


class _Variable(NamedTuple):
    """The name and the kind of a variable, and where it is in the file."""

    name: str
    shape: tuple[int, ...]
    kind: str
    place: int = 0
    length: int = 0
    compressed: bool = False

    @property
    def is_matrix(self) -> bool:
        return self.kind in _NUMBERS and len(self.shape) == 2

    def __str__(self) -> str:
        return f"{self.name!r} ({' x '.join(map(str, self.shape))} {self.kind})"


def read_matlab(path: Path, key: str | None = None) -> Any:
    """Read a matrix from a .mat file of version 4 to 7.

    Parameters
    ----------
    path : Path
    key : str, optional
        Name of the variable. Defaults to the only square matrix of numbers.

    Returns
    -------
    M : csr_array or ndarray
    """
    check_readable(path)
    with naming_damaged_file(path, "mat"), open(path, "rb") as file:
        order = _byte_order(path, file.read(_HEADER))
        if order is None:
            variables = [_Variable(*found) for found in io.whosmat(str(path), appendmat=False)]
        else:
            variables = list(_variables(file, path.stat().st_size, order))
        chosen = _choose(path, variables, key)
        if chosen.kind == "sparse":
            check_rows(path, *chosen.shape)
        else:
            check_room(path, 8 * chosen.shape[0] * chosen.shape[1])
        if order is None:
            matrix = io.loadmat(str(path), appendmat=False, variable_names=[chosen.name])[chosen.name]
        else:
            matrix = _load(path, file, chosen, order)
        if not sparse.issparse(matrix):
            return np.asarray(matrix)
        check_indices(matrix)
        return sparse.csr_array(matrix)


def _byte_order(path: Path, header: bytes) -> str | None:
    """Return the byte order of a file of version 5 to 7; None for version 4."""
    if header.startswith(_NEWEST):
        raise WrongKind(
            f"{path} must be a MATLAB file of version 4 to 7, got version 7.3. Save it again in MATLAB: "
            "save(file, variable, '-v7')."
        )
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    # Version 4 has no header, and begins with a small number of four bytes.
    if order is None and 0 not in header[:4]:
        raise ValueError("it has no header of a MATLAB file")
    return order


def _choose(path: Path, variables: list[_Variable], key: str | None) -> _Variable:
    listed = "the variables " + ", ".join(map(str, variables)) if variables else "no variables"
    if key is None:
        square = [v for v in variables if v.is_matrix and v.shape[0] == v.shape[1] > 1]
        if len(square) != 1:
            raise WrongKind(
                f"{path} must have one square matrix, got {listed}. Pass key= to choose a variable."
            )
        return square[0]
    chosen = next((variable for variable in variables if variable.name == key), None)
    if chosen is None:
        raise WrongKind(f"{path} must have a variable {key!r}, got {listed}. Pass another key.")
    if not chosen.is_matrix:
        raise WrongKind(f"{path}: the variable must be a matrix of numbers, got {chosen}.")
    return chosen


def _variables(file: IO[bytes], size: int, order: str) -> Iterator[_Variable]:
    """Yield the variables of a file. Only the beginning of each is decompressed."""
    while len(tag := file.read(8)) == 8:
        kind, length = struct.unpack(f"{order}II", tag)
        place = file.tell()
        if place + length > size or kind not in (_MATRIX, _COMPRESSED):
            raise ValueError("it ends inside a variable, or has an element of an unknown type")
        start = file.read(min(length, _CHUNK))
        if kind == _COMPRESSED:
            start = zlib.decompressobj().decompress(start, _CHUNK)[8:]  # without the tag of the matrix
        (_, flags), (_, shape), (_, name) = islice(_parts(start, order), 3)
        (flag,) = struct.unpack_from(f"{order}I", flags)
        if 1 <= flag & 0xFF <= len(_CLASSES):  # others are objects of newer versions
            lengths = tuple(np.frombuffer(shape, f"{order}i4").tolist())
            if min(lengths, default=-1) < 0:
                raise ValueError(f"a variable has the shape {lengths}")
            text = name.decode("ascii", "replace")
            yield _Variable(text, lengths, _CLASSES[(flag & 0xFF) - 1], place, length, kind == _COMPRESSED)
        file.seek(place + length)


def _parts(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield type and bytes of the parts of a variable.

    Each has a tag: the type and the length in 4 bytes each, or in 2 bytes each if the part has at most 4 bytes,
    which are then in the second half of the tag. Other parts are filled up to a multiple of 8 bytes.
    """
    place = 0
    while place + 8 <= len(content):
        kind, length = struct.unpack_from(f"{order}II", content, place)
        place += 4 if kind >> 16 else 8
        kind, length = (kind & 0xFFFF, min(kind >> 16, 4)) if kind >> 16 else (kind, length)
        yield kind, content[place : place + length]
        place = -(-(place + length) // 8) * 8


def _load(path: Path, file: IO[bytes], variable: _Variable, order: str) -> Any:
    file.seek(variable.place)
    content = file.read(variable.length)
    if variable.compressed:
        content = _decompressed(path, content)[8:]
    (_, flags), _, _, *stored = _parts(content, order)
    (flag,) = struct.unpack_from(f"{order}I", flags)
    if flag & _COMPLEX:
        raise WrongKind(f"{path}: the variable {variable.name!r} must hold real numbers, got complex ones.")
    arrays = [_array(kind, part, order) for kind, part in stored]
    if variable.kind == "sparse":
        rows, starts, values = arrays
        count = int(starts[-1])
        matrix = sparse.csc_array(
            (values[:count].astype(np.float64), rows[:count], starts), shape=variable.shape
        )
    else:
        (values,) = arrays
        # Numbers are stored in the smallest type that holds them.
        matrix = values.astype(_DTYPES.get(variable.kind, variable.kind)).reshape(variable.shape, order="F")
    return matrix.astype(bool) if flag & _LOGICAL else matrix


def _array(kind: int, content: bytes, order: str) -> np.ndarray:
    if kind not in _TYPES:
        raise ValueError(f"a variable has a part of the unknown type {kind}")
    return np.frombuffer(content, f"{order}{_TYPES[kind]}")


def _decompressed(path: Path, content: bytes) -> bytes:
    """Return decompressed bytes; raise if they, their parts and the matrix would not fit into memory."""
    available = available_memory()
    decompressor, whole = zlib.decompressobj(), bytearray()
    while content:
        whole += decompressor.decompress(content, _CHUNK)
        if available is not None and 3 * len(whole) > available:
            check_room(path, 3 * len(whole), "its variables")
        content = decompressor.unconsumed_tail
    if not decompressor.eof:
        raise ValueError("a compressed variable ends early")
    return bytes(whole)
