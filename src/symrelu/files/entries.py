"""Arrays, sparse matrices and names as entries of an npz archive, validated when they are read.

The errors complete a sentence about the file ("... cannot be read as ...: its degrees must be finite").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse


def sparse_entries(matrix: Any) -> dict[str, np.ndarray]:
    """Return a csr_array as entries of an archive. Booleans need no data: all stored entries are true.

    Parameters
    ----------
    matrix : csr_array or csr_matrix

    Returns
    -------
    entries : dict of str to ndarray
    """
    matrix = sparse.csr_array(matrix, copy=True)
    matrix.sum_duplicates()  # read_sparse accepts the canonical form only
    entries = {"indptr": matrix.indptr.astype(np.int64), "indices": matrix.indices.astype(np.int64)}
    return entries if matrix.dtype == bool else entries | {"data": matrix.data}


def read_sparse(entries: Mapping[str, np.ndarray], shape: tuple[int, int], owner: str) -> Any:
    """Return the csr_array of :func:`sparse_entries`.

    Parameters
    ----------
    entries : mapping of str to ndarray
    shape : tuple of two int
    owner : str
        What the matrix is, for errors.

    Returns
    -------
    matrix : csr_array of float64 or bool
    """
    indptr, indices = entries["indptr"], entries["indices"]
    if any(array.dtype.kind not in "iu" or array.ndim != 1 for array in (indptr, indices)):
        raise ValueError(f"indptr and indices of {owner} must be lists of integers")
    has_data = "data" in entries
    data = read_floats(entries, "data", indices.shape, owner) if has_data else np.ones(len(indices), bool)
    matrix = sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        raise ValueError(f"{owner} must list the columns of each row once and in order")
    return matrix


def read_floats(
    entries: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], owner: str = "it"
) -> np.ndarray:
    """Return an entry that must hold finite numbers and have a given shape.

    Parameters
    ----------
    entries : mapping of str to ndarray
    name : str
    shape : tuple of int
    owner : str, default="it"
        What the entry belongs to, for errors.

    Returns
    -------
    array : ndarray of float32 or float64, in native byte order
    """
    array = entries[name]
    dtype = array.dtype.newbyteorder("=")
    if dtype not in (np.float32, np.float64) or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} of {owner} must be finite floats of shape {shape}, got {_brief(array)}")
    return array.astype(dtype, copy=False)


def read_integer(entries: Mapping[str, np.ndarray], name: str, low: int, high: int) -> int:
    """Return an entry that must be one integer from ``low`` to ``high``."""
    array = entries[name]
    if array.dtype.kind not in "iu" or array.shape != () or not low <= int(array) <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {_brief(array)}")
    return int(array)


def _brief(array: np.ndarray) -> str:
    return f"{array.dtype} of shape {array.shape}" if array.ndim else repr(array.item())


def names_to_json(names: Any) -> list[Any]:
    """Return the names of nodes as JSON can hold them: a tuple as a list, which cannot be a name itself.

    Parameters
    ----------
    names : iterable of str, int, or tuple of these

    Returns
    -------
    names : list of str, int, or list of these
    """
    return [_to_json(name) for name in names]


def names_of_json(stored: Any, n: int) -> np.ndarray:
    """Return the names that :func:`names_to_json` wrote, or raise unless there is a valid one for each node.

    Parameters
    ----------
    stored : object
        As it was read.
    n : int

    Returns
    -------
    names : ndarray of object of shape (n,)
    """
    if not isinstance(stored, list) or len(stored) != n:
        raise ValueError(f"its header must have a name for each of its {n} nodes")
    names = [tuple(name) if isinstance(name, list) else name for name in stored]
    for name in names:
        if not all(map(_is_text_or_integer, name if isinstance(name, tuple) else (name,))):
            raise ValueError(f"names must be strings, integers or tuples of these, got {name!r}")
    return np.fromiter(names, dtype=object, count=n)  # np.array would make a matrix of tuples


def _to_json(name: Any) -> Any:
    if isinstance(name, tuple) and all(_is_text_or_integer(part) for part in name):
        return [_to_json(part) for part in name]
    if not _is_text_or_integer(name):
        raise TypeError(
            f"Names in a file must be strings, integers or tuples of these, got {name!r} of type "
            f"{type(name).__name__}. Set node_names_ = node_names_.astype(str).astype(object), or delete "
            "node_names_, and save again."
        )
    return str(name) if isinstance(name, str) else int(name)


def _is_text_or_integer(value: Any) -> bool:
    # NumPy's strings and integers are equal to those of Python and have their hashes; True would become 1.
    return isinstance(value, (str, int, np.integer)) and not isinstance(value, bool)
