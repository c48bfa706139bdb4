"""Apply the rules for self loops, repeated entries and directions to a matrix that was read from a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs.pairs import NOT_ADDED, Combined, Pairs, Rules, once_each, sort_pairs
from symrelu.validation import find_asymmetry

DONE = {"max": "combined to the larger entry", "sum": "added", "mean": "averaged"}


def similarity_of_matrix(matrix: Any, rules: Rules, weighted: bool = True) -> Combined:
    """Return a square matrix combined by the rules, with its values or with ones in place of its nonzeros.

    Values that are kept are validated by the fit.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"The matrix of a graph must be square, got shape {matrix.shape}.")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"The matrix of a graph must hold real numbers, got the type {matrix.dtype}.")
    matrix, notes = entries_once(matrix, rules.duplicates, weighted)
    matrix, on_diagonal = _diagonal(matrix, rules.self_loops)
    matrix, directions = _symmetric(matrix, rules.directed or "error")
    return Combined(matrix, notes + on_diagonal + directions)


def entries_once(matrix: Any, duplicates: str, weighted: bool = True) -> tuple[Any, tuple[str, ...]]:
    """Return a matrix as a canonical csr_array if it is sparse, with repeated entries combined, and notes."""
    if not weighted:
        _check_values(matrix)
    notes: tuple[str, ...] = ()
    if sparse.issparse(matrix):
        entries = sparse.coo_array(matrix)
        rows, cols = (index.astype(np.int64) for index in entries.coords)
        pairs = Pairs(rows, cols, range(max(matrix.shape, default=0)))
        pairs, values, notes = once_each(*sort_pairs(pairs, entries.data), duplicates)
        matrix = sparse.csr_array((values, (pairs.rows, pairs.cols)), shape=matrix.shape)
    return (matrix if weighted else (matrix != 0).astype(np.float64)), notes


def _check_values(matrix: Any) -> None:
    """Raise if there is a value that the fit would refuse, because it cannot see the values of ones."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    bad = values[~((values >= 0) & (values < np.inf))]  # catches NaN, which compares false
    if bad.size:
        raise ValueError(
            f"The matrix must hold finite, nonnegative numbers, also if weights are ignored, got {bad[0]:g}. "
            "Set such entries to zero, or to one if they are edges."
        )


def _diagonal(matrix: Any, self_loops: str) -> tuple[Any, tuple[str, ...]]:
    places = np.flatnonzero(matrix.diagonal())
    if not places.size:
        return matrix, ()
    loops = f"{places.size} self loop{'s' if places.size > 1 else ''}"
    if self_loops == "keep":
        if places.size == matrix.shape[0]:  # similarities of items with themselves, as a kernel has them
            return matrix, ()
        return matrix, (f"{loops} {'are' if places.size > 1 else 'is'} on the diagonal",)
    if self_loops == "error":
        raise ValueError(
            f"The matrix has {loops} on its diagonal, the first in row {places[0]}. "
            'Pass self_loops="drop" to leave them out, or "keep".'
        )
    matrix = matrix.copy()
    matrix[places, places] = 0
    if sparse.issparse(matrix):
        matrix.eliminate_zeros()
    return matrix, (f"{loops} {'were' if places.size > 1 else 'was'} left out",)


def _symmetric(matrix: Any, directed: str) -> tuple[Any, tuple[str, ...]]:
    found = find_asymmetry(matrix)
    if found is None:
        return matrix, (NOT_ADDED,) if directed == "sum" else ()
    i, j = found
    if directed == "error":
        raise ValueError(
            f"The matrix must be symmetric, but entry ({i}, {j}) is {matrix[i, j]:g} and ({j}, {i}) is "
            f'{matrix[j, i]:g}. Pass directed="max" to keep the larger, "sum" to add them, or "mean" to '
            "average them."
        )
    matrix = matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)  # sums of integers may overflow
    other = matrix.T
    if directed == "max":
        combined = matrix.maximum(other) if sparse.issparse(matrix) else np.maximum(matrix, other)
    elif directed == "mean":
        half = matrix.dtype.type(0.5)  # a Python number would turn sparse float32 into float64
        combined = half * matrix + half * other
    else:
        combined = matrix + other
        # A self loop has one direction.
        places = np.flatnonzero(matrix.diagonal())
        combined[places, places] = matrix.diagonal()[places]
    combined = sparse.csr_array(combined) if sparse.issparse(combined) else combined
    return combined, (f"the two directions of all pairs were {DONE[directed]}",)
