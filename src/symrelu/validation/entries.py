"""Remove entries from a matrix of known format, and check that something is left to fit.

This is a separate module because unobserved entries are removed before values and symmetry are checked, and
because held-out pairs and rescaling need the same operations on matrices that have been checked already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.validation.formats import without_stored_zeros

NOTHING_OBSERVED = "{} must have a positive entry that is observed, but mask and diagonal hide them all."
NOTHING_TO_FIT = "{} must have a positive entry, but all are zero: there is nothing to fit."


class NothingObserved(ValueError):
    """All positive entries are unobserved."""


def stored(M: Any) -> Any:
    """Return the stored entries of a sparse matrix, or a dense matrix itself."""
    return M.data if sparse.issparse(M) else M


def as_array(M: Any) -> Any:
    """Return a checked matrix as an ndarray."""
    return M.toarray() if sparse.issparse(M) else M


def any_nonzero(M: Any) -> bool:
    """Return whether a matrix has a nonzero entry; NaN counts as nonzero."""
    return bool(stored(M).any())


def without(M: Any, mask: Any | None, *, without_diagonal: bool = False) -> Any:
    """Return M with zeros where the mask is true, and optionally on the diagonal; M if nothing changes."""
    if sparse.issparse(M):
        rows, cols = _coordinates(M)
        unknown = rows == cols if without_diagonal else np.zeros(len(rows), bool)
        if mask is not None:
            unknown |= _mask_at(mask, rows, cols)
        return _keep(M, rows, ~unknown) if unknown.any() else M
    masked = None if mask is None else _true_index(mask)
    if not (masked is not None and M[masked].any()) and not (without_diagonal and M.diagonal().any()):
        return M
    M = M.copy()
    if masked is not None:
        M[masked] = 0
    if without_diagonal:
        np.fill_diagonal(M, 0)
    return M


def within(M: Any, mask: Any) -> Any:
    """Return M with zeros where the mask is false."""
    if sparse.issparse(M):
        rows, cols = _coordinates(M)
        return _keep(M, rows, _mask_at(mask, rows, cols))
    inside = _true_index(mask)
    result = np.zeros_like(M)
    result[inside] = M[inside]
    return result


def hidden(M: Any, mask: Any) -> Any:
    """Return a checked M with zeros where a checked mask is true, or raise if no positive entry is left."""
    observed = without(M, mask)
    if not any_nonzero(observed):
        raise NothingObserved(NOTHING_OBSERVED.format("M"))
    return observed


def divided(M: Any, d: np.ndarray) -> Any:
    """Return M_ij / (d_i d_j) for a checked M and positive d, which needs no further check.

    It is exactly symmetric, because floating-point multiplication is commutative.
    """
    if sparse.issparse(M):
        rows, cols = _coordinates(M)
        values = M.data / (d[rows] * d[cols])
        quotient = sparse.csr_array((values.astype(M.dtype), M.indices, M.indptr), shape=M.shape)
        quotient = without_stored_zeros(quotient)  # entries that underflowed
    else:
        quotient = (M / np.multiply.outer(d, d)).astype(M.dtype, copy=False)
    if not any_nonzero(quotient):
        raise ValueError(NOTHING_TO_FIT.format("M"))
    return quotient


def off_diagonal(matrix: Any) -> int:
    """Return the number of nonzero off-diagonal entries."""
    return int(np.count_nonzero(stored(matrix)) - np.count_nonzero(matrix.diagonal()))


def above_diagonal(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of the nonzero entries with i < j."""
    upper = sparse.coo_array(sparse.triu(matrix, 1) if sparse.issparse(matrix) else np.triu(matrix, 1))
    i, j = (index.astype(np.int64) for index in upper.coords)
    return i, j, upper.data


def pair_mask(i: np.ndarray, j: np.ndarray, n: int) -> Any:
    """Return a mask of pairs of n items, in both directions, as a csr_array of bool."""
    if i.shape != j.shape:
        raise ValueError(f"i and j must have the same length, got shapes {i.shape} and {j.shape}.")
    rows, cols = np.concatenate([i, j], axis=None), np.concatenate([j, i], axis=None)
    return sparse.csr_array((np.ones(len(rows), dtype=bool), (rows, cols)), shape=(n, n))


def _coordinates(M: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column indices of the stored entries of a csr_array."""
    return np.repeat(np.arange(M.shape[0]), np.diff(M.indptr)), M.indices


def _keep(M: Any, rows: np.ndarray, kept: np.ndarray) -> Any:
    """Return a csr_array with only some of its stored entries; ``rows`` are the row indices of all of them."""
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=M.shape[0]))])
    return sparse.csr_array((M.data[kept], M.indices[kept], indptr), shape=M.shape)


def _mask_at(mask: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Return the mask at some entries."""
    if not len(rows):  # scipy returns another type for an empty index
        return np.zeros(0, bool)
    cols = np.array(
        cols
    )  # a copy: scipy fails to set flags on arrays over read-only bytes, as unpickled ones are
    return np.asarray(mask[rows, cols], dtype=bool).ravel()


def _true_index(mask: Any) -> Any:
    """Return what selects the true entries of a mask in a dense matrix."""
    return mask.nonzero() if sparse.issparse(mask) else mask
