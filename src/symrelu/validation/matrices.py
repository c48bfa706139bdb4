"""Check matrices: M, its mask, and the rows of new items.

The order is always the same: check the format, check the mask, remove unobserved entries, then check values and
symmetry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.tiles import TILE
from symrelu.validation.entries import (
    NOTHING_OBSERVED,
    NOTHING_TO_FIT,
    NothingObserved,
    any_nonzero,
    within,
    without,
)
from symrelu.validation.formats import check_square, to_boolean, to_floats, without_stored_zeros
from symrelu.validation.parameters import check_choice

DIAGONALS = ("fit", "ignore")  # whether the diagonal of M is fitted or treated as unobserved
DIAGONAL_SETTINGS = (*DIAGONALS, "auto")  # what a user may pass; Problem.of resolves "auto"
SUPPORTS = ("equal", "at_least")  # whether X = M is required where M > 0, or X >= M suffices

# Asymmetry up to this fraction of the largest entry is taken as rounding errors of a kernel or a normalisation.
_SYMMETRY_TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}


def symmetry_tolerance(dtype: Any) -> float:
    """Return up to which fraction of the largest entry an asymmetry is taken as rounding errors."""
    return _SYMMETRY_TOLERANCE[np.dtype(dtype)]


def check_similarity(M: Any, name: str = "M") -> Any:
    """Return M as a canonical csr_array or a C-contiguous ndarray, in float32 or float64.

    Integers and booleans become float64. Asymmetry at the level of rounding errors is averaged out. The input
    is never modified; a dense array that needs no change is returned without a copy.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Nonnegative, symmetric, finite, with at least one positive entry.
    name : str, default="M"
        Name of M in messages.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    """
    return check_observed(M, name=name)[0]


def check_observed(
    M: Any, mask: Any | None = None, diagonal: str = "fit", *, name: str = "M"
) -> tuple[Any, Any | None]:
    """Return M as :func:`check_similarity` does, with zeros at the unobserved entries, and its checked mask.

    Unobserved entries are removed before any other check: they may hold any value, including NaN and infinity,
    and no result depends on them.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Its observed entries must be nonnegative, symmetric and finite, and at least one of them positive.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry is unobserved.
    diagonal : {"fit", "ignore"}, default="fit"
        "ignore" treats the diagonal as unobserved.
    name : str, default="M"
        Name of M in messages.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    mask : csr_array or ndarray of bool of shape (n, n), or None
    """
    check_choice("diagonal", diagonal, DIAGONALS)
    M = to_floats(M, name, check_square)
    mask = check_mask(mask, M.shape[0])
    # Before any other check, since unobserved entries may hold anything.
    observed = without(M, mask, without_diagonal=diagonal == "ignore")
    _check_values(observed, name)
    observed = _check_symmetric(observed, name)
    if not any_nonzero(observed):
        if any_nonzero(M):
            raise NothingObserved(NOTHING_OBSERVED.format(name))
        raise ValueError(NOTHING_TO_FIT.format(name))
    return observed, mask


def check_hidden(M: Any, mask: Any) -> tuple[Any, Any]:
    """Return M as :func:`check_similarity` does, with zeros outside the mask, and the checked mask.

    This is the complement of :func:`check_observed`, for scoring a fit on its held-out entries.
    """
    M = to_floats(M, "M", check_square)
    M, mask = hidden_part(M, mask)
    _check_values(M, "M")
    return _check_symmetric(M, "M"), mask


def hidden_part(M: Any, mask: Any, unknown: Any | None = None) -> tuple[Any, Any]:
    """Return a checked M with zeros outside the mask, and the checked mask.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
    mask : sparse or dense bool matrix of shape (n, n)
        True at the held-out entries.
    unknown : csr_array of bool of shape (n, n), optional
        Entries that M itself does not have. They are removed from the mask.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    mask : csr_array or ndarray of bool of shape (n, n)
    """
    if mask is None:
        raise TypeError("mask must be a boolean matrix, got None: the error is taken over the masked entries.")
    mask = check_mask(mask, M.shape[0])
    if unknown is not None:
        mask = without(sparse.csr_array(mask), unknown)
    if not any_nonzero(mask):
        observed = "observed " if unknown is not None else ""
        raise ValueError(f"mask must hide at least one {observed}entry, got none.")
    return within(M, mask), mask


def check_rows(M: Any, n: int, mask: Any | None = None, name: str = "M_new") -> tuple[Any, Any | None]:
    """Return the similarities of new items to n fitted ones, with zeros where unobserved, and their mask.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n_new, n)
        Its observed entries must be nonnegative and finite.
    n : int
        Number of fitted items.
    mask : sparse or dense bool matrix of shape (n_new, n), optional
        True where a similarity is unobserved.
    name : str, default="M_new"
        Name of M in messages.

    Returns
    -------
    M : csr_array or ndarray of shape (n_new, n)
        In float32 or float64; a csr_array is canonical.
    mask : csr_array or ndarray of bool of shape (n_new, n), or None
    """
    M, mask = read_rows(M, n, mask, name)
    _check_values(M, name)
    return M, mask


def read_rows(M: Any, n: int, mask: Any | None, name: str) -> tuple[Any, Any | None]:
    """Return rows as :func:`check_rows` does, without a check of their values."""

    def check_shape(shape: tuple[int, ...], name: str) -> None:
        if len(shape) != 2 or shape[1] != n:
            raise ValueError(
                f"{name} must have shape (n_new, {n}), the similarities of new items to the {n} fitted ones, "
                f"got shape {shape}."
            )

    M = to_floats(M, name, check_shape)
    if mask is not None:
        mask = to_boolean(mask)
        if mask.shape != M.shape:
            raise ValueError(f"mask must have the shape of {name}, {M.shape}, got {mask.shape}.")
    return without(M, mask), mask


def check_mask(mask: Any | None, n: int) -> Any | None:
    """Return the mask of unobserved entries as a csr_array or ndarray of bool, or None."""
    if mask is None:
        return None
    mask = to_boolean(mask)
    if mask.shape != (n, n):
        raise ValueError(f"mask must have the shape of M, {(n, n)}, got {mask.shape}.")
    one_sided = sparse.coo_array(mask != mask.T)
    if one_sided.nnz:
        i, j = (int(index[0]) for index in one_sided.coords)
        raise ValueError(
            f"mask must be symmetric, but only one of ({i}, {j}) and ({j}, {i}) is masked. "
            "Pass mask | mask.T (or mask + mask.T if sparse)."
        )
    return mask


def find_asymmetry(M: Any) -> tuple[int, int] | None:
    """Return where a matrix of real numbers differs most from its transpose; None if only by rounding."""
    # Differences of unsigned integers wrap around, and those of booleans do not exist.
    M = M if M.dtype.kind == "f" else M.astype(np.float64)
    worst, i, j, largest = _asymmetry(M)
    # NaN compares false: it is not asymmetry, and the check of values reports it.
    return (i, j) if worst > _SYMMETRY_TOLERANCE.get(M.dtype, 0.0) * largest else None


def _check_values(M: Any, name: str) -> None:
    # NaN is tested first, because a NaN may have its sign bit set.
    infinity_advice = "Replace it by a number, or mark it as unobserved with mask=."
    negative_advice = "Negative values in data such as correlations: pass {0}, whichever is intended."
    for bad, requirement, advice, sparse_advice in (
        (
            np.isnan,
            "must not contain NaN",
            "Mark unobserved entries: mask=numpy.isnan({0}).",
            "Mark unobserved entries by a sparse mask= that is True there.",
        ),
        (np.isinf, "must be finite, without infinity", infinity_advice, infinity_advice),
        (
            np.signbit,
            "must be nonnegative",
            negative_advice.format("numpy.maximum({0}, 0), abs({0}) or {0} ** 2"),
            negative_advice.format("{0}.maximum(0), abs({0}) or {0}.power(2)"),
        ),
    ):
        found = _find_entry(M, bad)
        if found is not None:
            i, j, value = found
            if sparse.issparse(M):
                advice = sparse_advice
            raise ValueError(f"{name} {requirement}: entry ({i}, {j}) is {value:g}. {advice.format(name)}")


def _find_entry(M: Any, bad: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first entry for which ``bad`` holds; -0.0 counts as zero."""
    if sparse.issparse(M):
        hits = np.flatnonzero(bad(M.data) & (M.data != 0))
        if hits.size == 0:
            return None
        row = int(np.searchsorted(M.indptr, hits[0], side="right")) - 1
        return row, int(M.indices[hits[0]]), float(M.data[hits[0]])
    # In blocks of rows, so that no boolean n x n array is formed.
    for start in range(0, len(M), TILE):
        rows = M[start : start + TILE]
        hits = bad(rows) & (rows != 0)
        if hits.any():  # much faster than to list them
            i, j = (int(k) for k in np.argwhere(hits)[0])
            return start + i, j, float(rows[i, j])
    return None


def _check_symmetric(M: Any, name: str) -> Any:
    worst, i, j, largest = _asymmetry(M)
    if worst == 0:
        return M
    if worst > _SYMMETRY_TOLERANCE[M.dtype] * largest:
        larger = f"{name}.maximum({name}.T)" if sparse.issparse(M) else f"np.maximum({name}, {name}.T)"
        raise ValueError(
            f"{name} must be symmetric: |{name} - {name}.T| reaches {worst:g} at ({i}, {j}). "
            f"Pass ({name} + {name}.T) / 2 if that is intended, or the larger of both entries for a graph of "
            f"nearest neighbours, {larger}; for samples x features, pass a graph of them: "
            f"symrelu.graphs.self_tuning_graph({name})."
        )
    half = M.dtype.type(0.5)  # halved before adding, since a sum of two large entries may overflow
    average = half * M + half * M.T
    return without_stored_zeros(sparse.csr_array(average)) if sparse.issparse(M) else average


def _asymmetry(M: Any) -> tuple[float, int, int, float]:
    """Return the largest |M - M.T|, its row and column, and the largest entry of M."""
    if sparse.issparse(M):
        difference = abs(M - M.T).tocoo()
        if difference.nnz == 0:
            return 0.0, 0, 0, float(M.data.max(initial=0))
        k = int(difference.data.argmax())
        rows, cols = difference.coords
        return float(difference.data[k]), int(rows[k]), int(cols[k]), float(M.data.max(initial=0))
    # By pairs of tiles, because M - M.T would take another n x n array.
    worst, place, largest = 0.0, (0, 0), 0.0
    for i in range(0, len(M), TILE):
        largest = max(largest, float(M[i : i + TILE].max()))
        for j in range(i, len(M), TILE):
            with np.errstate(invalid="ignore"):  # infinity minus infinity; the check of values reports it
                gap = np.abs(M[i : i + TILE, j : j + TILE] - M[j : j + TILE, i : i + TILE].T)
            if gap.max() > worst:
                row, col = divmod(int(gap.argmax()), gap.shape[1])
                worst, place = float(gap[row, col]), (i + row, j + col)
    return worst, *place, largest
