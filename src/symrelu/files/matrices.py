"""Read matrices from npz, npy and MatrixMarket files."""

from __future__ import annotations

import os
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files.archives import read_array, read_npz
from symrelu.files.checks import (
    WrongKind,
    check_indices,
    check_readable,
    check_room,
    check_rows,
    naming_damaged_file,
)
from symrelu.files.matrix_market import read_matrix_market

_READABLE = ".npz (scipy sparse, or one dense array), .npy, .mtx or .mtx.gz"
# The index arrays that scipy.sparse.save_npz writes for each format.
_SPARSE_PARTS = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}


def read_matrix(path: str | PathLike[str]) -> Any:
    """Read a matrix from a .npz (scipy sparse, or one dense array), .npy, .mtx or .mtx.gz file.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    M : sparse array or ndarray
        A two-dimensional array. Its entries are not validated here but by :func:`symrelu.decompose`.
    """
    path = Path(path)
    check_readable(path)
    suffixes = ("".join(path.suffixes[-2:]) if path.suffix.lower() == ".gz" else path.suffix).lower()
    readers = {".npz": _read_npz, ".npy": _read_npy, ".mtx": read_matrix_market, ".mtx.gz": read_matrix_market}
    if suffixes not in readers:
        raise ValueError(f"{path} must be one of {_READABLE}, got the extension {path.suffix!r}.")
    with naming_damaged_file(path, suffixes.lstrip(".")):
        matrix = readers[suffixes](path)
        if matrix.ndim != 2:
            raise WrongKind(f"{path} must hold a matrix, got an array of shape {matrix.shape}.")
        return matrix


def _read_npy(path: Path) -> np.ndarray:
    if zipfile.is_zipfile(path):
        raise WrongKind(f"{path} is an npz archive with the extension .npy. Rename it to .npz.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        check_room(path, size)
        return read_array(file, size)


def _read_npz(path: Path) -> Any:
    arrays = read_npz(path)
    if "shape" in arrays and ("format" in arrays or {"data", "indices", "indptr"} <= set(arrays)):
        return _sparse_array(path, arrays)
    if "solution" in arrays:
        raise WrongKind(f"{path} is a saved Solution, not a matrix. Read it with Solution.load.")
    if len(arrays) != 1:
        raise WrongKind(
            f"{path} must hold one dense array or a scipy sparse matrix, got the arrays {list(arrays)}."
        )
    return arrays.popitem()[1]


def _sparse_array(path: Path, arrays: dict[str, np.ndarray]) -> Any:
    """Return a sparse array from the parts that ``scipy.sparse.save_npz`` writes, csr if no format is given."""
    kind = arrays["format"].item() if "format" in arrays else "csr"
    # scipy writes the format as bytes.
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind not in _SPARSE_PARTS:
        raise ValueError(f"the sparse format must be one of {', '.join(_SPARSE_PARTS)}, got {kind!r}")
    data, shape = arrays["data"], arrays["shape"]
    indices = [arrays[name] for name in _SPARSE_PARTS[kind]]
    if shape.shape != (2,) or any(index.dtype.kind not in "iu" for index in (shape, *indices)):
        raise ValueError("a sparse matrix must have a shape of two integers, and integer indices")
    if kind == "bsr" and (data.ndim != 3 or 0 in data.shape[1:]):
        raise ValueError(
            f"the blocks of a bsr matrix must have rows and columns, got data of shape {data.shape}"
        )
    rows, columns = (int(size) for size in shape)
    check_rows(path, rows, columns)
    parts = (data, tuple(indices)) if kind == "coo" else (data, *indices)
    matrix = getattr(sparse, f"{kind}_array")(parts, shape=(rows, columns))
    # scipy stores offsets as 32-bit integers and wraps larger ones.
    if kind == "dia" and not np.array_equal(matrix.offsets, indices[0]):
        raise ValueError("the offsets of the diagonals are too large")
    check_indices(matrix)
    return matrix
