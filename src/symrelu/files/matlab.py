"""Read a matrix from a MATLAB file, whose sizes are checked before SciPy reads it."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import io, sparse

from symrelu.files.checks import WrongKind, check_readable, check_room, check_rows, naming_damaged_file
from symrelu.kernels.memory import available_memory

_CHUNK = 2**16
_COMPRESSED = 15  # the type of a compressed element
_NEWEST = b"MATLAB 7.3"
_NUMBERS = {"double", "single", "logical", "sparse"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_HEADER = 128  # bytes, of files from version 5 on
_COPIES = 2  # SciPy decompresses a variable before it copies the parts


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
    with naming_damaged_file(path, "mat"):
        _check_size(path)
        variables = {name: (shape, kind) for name, shape, kind in io.whosmat(str(path), appendmat=False)}
        key = _only_square(path, variables) if key is None else key
        if key not in variables:
            raise WrongKind(f"{path} must have a variable {key!r}, got {_listed(variables)}. Pass another key.")
        shape, kind = variables[key]
        if kind not in _NUMBERS or len(shape) != 2:
            raise WrongKind(
                f"{path}: {key!r} must be a matrix of numbers, got {_listed({key: (shape, kind)})}."
            )
        if kind == "sparse":
            check_rows(path, *shape)
        else:
            check_room(path, 8 * shape[0] * shape[1])
        matrix = io.loadmat(str(path), appendmat=False, variable_names=[key])[key]
        if sparse.issparse(matrix):
            matrix = sparse.csr_array(matrix)
            matrix.check_format(full_check=True)  # compiled code would read outside the arrays
            return matrix
        return np.asarray(matrix)


def _only_square(path: Path, variables: dict[str, tuple[tuple[int, ...], str]]) -> str:
    square = [
        name
        for name, (shape, kind) in variables.items()
        if kind in _NUMBERS and len(shape) == 2 and shape[0] == shape[1] > 1
    ]
    if len(square) != 1:
        raise WrongKind(
            f"{path} must have one square matrix, got {_listed(variables)}. Pass key= to choose a variable."
        )
    return square[0]


def _listed(variables: dict[str, tuple[tuple[int, ...], str]]) -> str:
    each = (f"{name!r} ({' x '.join(map(str, shape))} {kind})" for name, (shape, kind) in variables.items())
    return "the variables " + ", ".join(each) if variables else "no variables"


def _check_size(path: Path) -> None:
    """Raise if the elements of a file do not fit into memory, decompressed if necessary."""
    with open(path, "rb") as file:
        header = file.read(_HEADER)
        if header.startswith(_NEWEST):
            raise WrongKind(
                f"{path} must be a MATLAB file of version 4 to 7, got version 7.3. Save it again in MATLAB: "
                "save(file, variable, '-v7')."
            )
        order = {b"IM": "<", b"MI": ">"}.get(header[-2:])
        if order is None:  # version 4, which is not compressed
            return
        size, total = path.stat().st_size, 0
        while len(tag := file.read(8)) == 8:
            kind, length = struct.unpack(f"{order}II", tag)
            if file.tell() + length > size:
                raise ValueError("it ends inside a variable")
            if kind == _COMPRESSED:
                total += _decompressed(path, file, length, total)
            else:
                file.seek(length, 1)
                total += length
        check_room(path, _COPIES * total, "its variables")


def _decompressed(path: Path, file: IO[bytes], length: int, before: int) -> int:
    """Return the size of the next bytes of a file, decompressed; stop if that is more than the memory."""
    available = available_memory()
    decompressor, count = zlib.decompressobj(), 0
    while length:
        chunk = file.read(min(_CHUNK, length))
        length -= len(chunk)
        while chunk:
            count += len(decompressor.decompress(chunk, _CHUNK))
            if available is not None and _COPIES * (before + count) > available:
                check_room(path, _COPIES * (before + count), "its variables")
            chunk = decompressor.unconsumed_tail
    return count
