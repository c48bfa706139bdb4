"""Check the type and format of an object that should be a matrix, before its values are read.

Foreign objects, text, malformed sparse matrices, wrong types and shapes are rejected; everything else becomes a
canonical csr_array or a C-contiguous ndarray, and all later checks rely on that.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.memory import available_memory

CheckShape = Callable[[tuple[int, ...], str], None]

# Any of these lets NumPy convert an object without iterating over it.
_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__", "__buffer__", "__dlpack__")


def to_floats(M: Any, name: str, check_shape: CheckShape) -> Any:
    """Return M as a canonical csr_array or a C-contiguous ndarray, in float32 or float64."""
    reject_foreign_objects(M, name)
    return _to_float_csr(M, name, check_shape) if sparse.issparse(M) else _to_float_array(M, name, check_shape)


def as_rectangular_array(M: Any, name: str) -> np.ndarray:
    """Return M as an ndarray of any type, or raise for rows of different lengths."""
    try:
        return np.asarray(M)
    except ValueError as error:
        raise ValueError(f"{name} must be a matrix, got rows of different lengths.") from error


def _to_float_csr(M: Any, name: str, check_shape: CheckShape) -> Any:
    check_shape(M.shape, name)
    dtype = _check_dtype(M.dtype, name)
    check_well_formed(M, name)
    if M.dtype != bool:  # convert first: sums of duplicates in small integer types would overflow
        M = M.astype(dtype, copy=False)
    csr = M.tocsr()
    # A new object over the same buffers, because cached format flags of the old one may be wrong.
    csr = sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return without_stored_zeros(csr.astype(dtype, copy=False))


def _to_float_array(M: Any, name: str, check_shape: CheckShape) -> np.ndarray:
    array = as_rectangular_array(M, name)
    if array.dtype.kind == "O":
        raise TypeError(
            f"{name} must hold numbers, got an object array (of {type(M).__name__}). "
            f"Convert it with numpy.asarray({name}, dtype=float); for a list of edges with names, pass "
            f"symrelu.graphs.from_edges({name}).matrix."
        )
    dtype = _check_dtype(array.dtype, name)
    check_shape(array.shape, name)
    if check_shape is check_square and array.flags.f_contiguous and not array.flags.c_contiguous:
        array = array.T  # avoids a copy; M is checked to be symmetric later
    if array.dtype != dtype or not array.flags.c_contiguous:
        check_memory(array.shape, dtype, name)
        array = np.ascontiguousarray(array, dtype=dtype)
    return array


def to_boolean(mask: Any) -> Any:
    """Return a mask of any shape as a canonical csr_array or an ndarray of bool."""
    if sparse.issparse(mask):
        check_well_formed(mask, "mask")
        # A copy, because the next two calls work in place.
        mask = sparse.csr_array(mask, copy=True)
        mask.sum_duplicates()
        mask.eliminate_zeros()
    else:
        mask = np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(
            f"mask must be boolean (True = unobserved), got entries of type {mask.dtype}. "
            "Pass mask.astype(bool) if that is intended."
        )
    return mask


def _check_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return the floating-point type to work in."""
    if dtype.kind == "c":
        raise TypeError(f"{name} must be real, got complex entries ({dtype}). Pass its modulus or real part.")
    if dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers, got entries of type {dtype}. Convert them to float first; for a list "
            f"of edges with names, pass symrelu.graphs.from_edges({name}).matrix."
        )
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def check_square(shape: tuple[int, ...], name: str) -> None:
    """Raise if a shape is not (n, n) with n >= 1."""
    if len(shape) != 2:
        raise ValueError(f"{name} must be a square matrix, got {len(shape)} dimension(s), shape {shape}.")
    if shape[0] != shape[1]:
        raise ValueError(
            f"{name} must be square (similarities of n items with each other), got shape {shape}. "
            f"{_advice_for_shape(shape, name)}."
        )
    if shape[0] == 0:
        raise ValueError(f"{name} must have at least one row, got an empty matrix of shape {shape}.")


def _advice_for_shape(shape: tuple[int, ...], name: str) -> str:
    """Return what to pass instead of a matrix that is not square."""
    samples = f"For samples x features, build a graph first: symrelu.graphs.self_tuning_graph({name})"
    # Two or three columns may be a list of edges: (i, j) or (i, j, weight).
    edges = f"; for a list of edges, pass symrelu.graphs.from_edges({name}).matrix"
    return samples + edges * (shape[1] in (2, 3))


def check_memory(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Raise a MemoryError if a dense array of a given shape does not fit into memory."""
    needed = math.prod(shape) * dtype.itemsize
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{name} as a dense {shape[0]} x {shape[1]} array needs {needed / 1e9:.1f} GB as {dtype}; "
            f"{available / 1e9:.1f} GB are available. Pass a scipy.sparse matrix and leave backend at 'auto': "
            "it is never made dense."
        )


def check_well_formed(M: Any, name: str) -> None:
    """Raise if the indices of a sparse matrix are invalid: compiled code would read out of bounds."""
    try:
        if M.format == "bsr" and 0 in M.blocksize:
            raise ValueError(f"its blocks have size {M.blocksize}")
        if M.format in ("csr", "csc", "bsr"):
            # A new object over the same buffers, since check_format may modify the one it is called on.
            type(M)((M.data, M.indices, M.indptr), shape=M.shape).check_format(full_check=True)
            return
        if M.format == "lil" and list(map(len, M.rows)) != list(map(len, M.data)):
            raise ValueError("each row must have as many values as column indices")
        M = M.tocoo(copy=False)
        for index, size in zip(M.coords, M.shape, strict=True):
            if len(index) != len(M.data) or (len(index) and not 0 <= index.min() <= index.max() < size):
                raise ValueError("coordinates must lie inside the shape, one for each value")
    except Exception as error:  # scipy raises many types for malformed input
        reason = str(error).rstrip(".") or type(error).__name__
        raise ValueError(f"{name} must be a well-formed sparse matrix: {reason}.") from error


def is_well_formed_sparse(M: Any, name: str) -> bool:
    """Return whether M is a sparse matrix; raise if it is one with invalid indices."""
    if not sparse.issparse(M):
        return False
    check_well_formed(M, name)
    return True


def without_stored_zeros(csr: Any) -> Any:
    """Return a csr_array without stored zeros; the same object if it has none."""
    if csr.data.all():
        return csr
    csr = csr.copy()
    csr.eliminate_zeros()
    return csr


def reject_foreign_objects(M: Any, name: str = "M") -> None:
    """Raise for objects that NumPy would convert to something unintended."""
    reject_text(M, name)
    if hasattr(M, "adjacency") and hasattr(M, "nodes") and hasattr(M, "edges"):
        raise TypeError(
            f"{name} must be a matrix, got a networkx {type(M).__name__}. "
            "Pass symrelu.graphs.from_networkx(graph).matrix."
        )
    if hasattr(M, "obsp") and hasattr(M, "obs_names"):
        raise TypeError(
            f"{name} must be a matrix, got an {type(M).__name__}. "
            "Pass symrelu.graphs.from_anndata(adata).matrix for its graph, or an array such as adata.X."
        )
    if isinstance(M, tuple) and hasattr(M, "_fields"):
        raise TypeError(  # NumPy would take the fields for rows
            f"{name} must be a matrix, got a {type(M).__name__} with the fields {', '.join(M._fields)}. "
            "Pass the field that holds the matrix."
        )
    reject_masked_arrays(M, name)
    foreign = hasattr(M, "__getitem__") and not isinstance(M, Sequence) and not sparse.issparse(M)
    if foreign and not any(hasattr(M, protocol) for protocol in _ARRAY_PROTOCOLS):
        raise TypeError(  # NumPy would iterate over such an object item by item, possibly without end
            f"{name} must be an array, a scipy.sparse matrix, or data that symrelu.graphs.as_similarity reads, "
            f"got {type(M).__name__}."
        )


def reject_text(M: Any, name: str) -> None:
    """Raise for a file name or other text."""
    if isinstance(M, (bytes, str, os.PathLike)):
        text = os.fsdecode(M)
        tables = os.path.splitext(text)[1].lower() in (".csv", ".tsv", ".txt")
        read = f"pandas.read_csv({text!r}, index_col=0)" if tables else f"symrelu.files.read_matrix({text!r})"
        raise TypeError(
            f"{name} must be a matrix or a graph, got the {type(M).__name__} {text!r}. "
            f"If it names a file, read that first: {read}."
        )


def reject_non_matrix(M: Any, name: str = "M") -> None:
    """Raise for rows of different lengths, and for objects that are not a sequence."""
    if sparse.issparse(M) or hasattr(M, "shape"):
        return
    array = as_rectangular_array(M, name)
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"{name} must be a matrix or a graph, got {type(M).__name__}.")


def reject_masked_arrays(M: Any, name: str = "M") -> None:
    """Raise for a masked array, because NumPy would drop its mask."""
    if isinstance(M, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a plain array, got a masked array. "
            f"Pass {name}.filled(0) and mask={name}.mask: masked entries are then unobserved, not zero."
        )
