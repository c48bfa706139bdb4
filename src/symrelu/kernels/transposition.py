"""The entries on one side of the diagonal of a sparse matrix, by column instead of by row, in threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.threads import run_tasks, shares, slices, workers_for

# Parts into which the rows are divided at most; a number for each part and column is held.
_PARTS = 16

# Cost of an entry, and of a column, in multiplications of a matrix product.
_WORK_OF_AN_ENTRY = 200
_WORK_OF_A_COLUMN = 200


class Transposed(NamedTuple):
    """Entries by column, those of a column in the order of their rows."""

    indptr: np.ndarray  # int64; entries indptr[j]:indptr[j + 1] are those of column j
    rows: np.ndarray  # int32
    places: np.ndarray  # int64; where the entries stood by row


def transposed(rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, n: int, *, below: bool) -> Transposed:
    """Return the entries below or above the diagonal by column.

    Parameters
    ----------
    rows : ndarray of int
        The rows that are given, in ascending order.
    indptr, indices : ndarray of int
        Entries indptr[t]:indptr[t + 1] are those of row rows[t], with their columns.
    n : int
        Number of columns.
    below : bool
        Whether the entries below the diagonal are returned, or those above it.

    Returns
    -------
    entries : Transposed
    """
    workers = workers_for(_WORK_OF_AN_ENTRY * len(indices) + _WORK_OF_A_COLUMN * n)
    parts = slices(len(rows), max(1, -(-len(rows) // min(workers, _PARTS))))
    columns = shares(n, workers)
    counts = np.empty((len(parts), n), np.int64)
    run_tasks(
        lambda k: count_part(parts[k].start, parts[k].stop, rows, indptr, indices, below, counts[k]),
        range(len(parts)),
        workers,
    )
    starts = np.zeros(n + 1, np.int64)

    def add_counts(part: slice) -> None:
        np.sum(counts[:, part], axis=0, out=starts[1:][part])

    run_tasks(add_counts, columns, workers)
    np.cumsum(starts, out=starts)
    run_tasks(lambda part: to_starts(part.start, part.stop, starts, counts), columns, workers)
    found, places = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int64)
    run_tasks(
        lambda k: fill_part(
            parts[k].start, parts[k].stop, rows, indptr, indices, below, counts[k], found, places
        ),
        range(len(parts)),
        workers,
    )
    return Transposed(starts, found, places)


@compiled
def count_part(first, last, rows, indptr, indices, below, counts):  # type: ignore[no-untyped-def]
    """Count the entries of some rows on the given side of the diagonal, by column."""
    for j in range(counts.size):
        counts[j] = 0
    for t in range(first, last):
        for p in range(indptr[t], indptr[t + 1]):
            if indices[p] != rows[t] and (indices[p] < rows[t]) == below:
                counts[indices[p]] += 1


@compiled
def to_starts(first, last, starts, counts):  # type: ignore[no-untyped-def]
    """Overwrite the counts of some columns by where the entries of each part begin."""
    for j in range(first, last):
        at = starts[j]
        for k in range(len(counts)):
            here = counts[k, j]
            counts[k, j] = at
            at += here


@compiled
def fill_part(first, last, rows, indptr, indices, below, at, found, places):  # type: ignore[no-untyped-def]
    """Write the rows and places of the entries of some rows, each where its column says."""
    for t in range(first, last):
        for p in range(indptr[t], indptr[t + 1]):
            j = indices[p]
            if j != rows[t] and (j < rows[t]) == below:
                found[at[j]] = rows[t]
                places[at[j]] = p
                at[j] += 1
