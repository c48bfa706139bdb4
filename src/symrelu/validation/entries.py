"""Takes entries out of a matrix whose format is known, and judges whether anything is left to fit.

It is apart because unknown entries go before values and symmetry are judged, and because hidden pairs and
rescaling need the same of matrices that are judged already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.validation.formats import without_stored_zeros

NOTHING_OBSERVED = "{} must have a positive entry that is observed, but mask and diagonal hide them all."
NOTHING_TO_FIT = "{} must have a positive entry, but all are zero: there is nothing to fit."


class NothingObserved(ValueError):
    """All positive entries are unknown."""


def stored(M: Any) -> Any:
    """Return the entries that a matrix holds: those of a sparse one, and a dense one as it is."""
    return M.data if sparse.issparse(M) else M


def as_array(M: Any) -> Any:
    """Return a checked matrix as an ndarray."""
    return M.toarray() if sparse.issparse(M) else M


def any_nonzero(M: Any) -> bool:
    """Return whether a matrix has an entry other than zero; NaN is one."""
    return bool(stored(M).any())


def without(M: Any, mask: Any | None, *, without_diagonal: bool = False) -> Any:
    """Return M with zeros where the mask is true, and on the diagonal if that is asked; M if it has them."""
    if sparse.issparse(M):
        rows, cols = _places(M)
        unknown = rows == cols if without_diagonal else np.zeros(len(rows), bool)
        if mask is not None:
            unknown |= _entries(mask, rows, cols)
        return _kept(M, rows, ~unknown) if unknown.any() else M
    places = None if mask is None else _true_places(mask)
    if not (places is not None and M[places].any()) and not (without_diagonal and M.diagonal().any()):
        return M
    M = M.copy()
    if places is not None:
        M[places] = 0
    if without_diagonal:
        np.fill_diagonal(M, 0)
    return M


def within(M: Any, mask: Any) -> Any:
    """Return M with zeros where the mask is false."""
    if sparse.issparse(M):
        rows, cols = _places(M)
        return _kept(M, rows, _entries(mask, rows, cols))
    places = _true_places(mask)
    masked = np.zeros_like(M)
    masked[places] = M[places]
    return masked


def hidden(M: Any, mask: Any) -> Any:
    """Return a checked M with zeros where a checked mask is true, or raise if nothing is left."""
    observed = without(M, mask)
    if not any_nonzero(observed):
        raise NothingObserved(NOTHING_OBSERVED.format("M"))
    return observed


def divided(M: Any, d: np.ndarray) -> Any:
    """Return M_ij / (d_i d_j) for a checked M and positive d: it has the properties of M, and needs no check.

    It is symmetric to the last bit, since a product of two numbers does not depend on their order.
    """
    if sparse.issparse(M):
        rows, cols = _places(M)
        values = M.data / (d[rows] * d[cols])
        quotient = sparse.csr_array((values.astype(M.dtype), M.indices, M.indptr), shape=M.shape)
        quotient = without_stored_zeros(quotient)  # of what left the range
    else:
        quotient = (M / np.multiply.outer(d, d)).astype(M.dtype, copy=False)
    if not any_nonzero(quotient):
        raise ValueError(NOTHING_TO_FIT.format("M"))
    return quotient


def _places(M: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the stored entries of a csr_array."""
    return np.repeat(np.arange(M.shape[0]), np.diff(M.indptr)), M.indices


def _kept(M: Any, rows: np.ndarray, kept: np.ndarray) -> Any:
    """Return a csr_array with some of its stored entries, whose rows are given, forgotten."""
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=M.shape[0]))])
    return sparse.csr_array((M.data[kept], M.indices[kept], indptr), shape=M.shape)


def _entries(mask: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    if not len(rows):  # for which scipy has another kind of answer
        return np.zeros(0, bool)
    cols = np.array(cols)  # a view of bytes, as of a pickle, has flags that scipy fails to write
    return np.asarray(mask[rows, cols], dtype=bool).ravel()


def _true_places(mask: Any) -> Any:
    return mask.nonzero() if sparse.issparse(mask) else mask
