"""The entries of some rows of a sparse matrix, by column instead of by row, in threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.threads import run_tasks, slices, workers_for

# Parts into which the rows are divided at most; a number for each part and column is held.
_PARTS = 8

# Cost of an entry, and of a column, in multiplications of a matrix product.
_WORK_OF_AN_ENTRY = 200
_WORK_OF_A_COLUMN = 200


class Transposed(NamedTuple):
    """Entries by column, those of a column in the order of their rows, and room after them."""

    indptr: np.ndarray  # int64; entries and room of column j are indptr[j]:indptr[j + 1]
    rows: np.ndarray  # int32; undefined where there is room
    ends: np.ndarray  # int64; where the entries of each column end


def transposed(
    rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, wanted: np.ndarray, room: np.ndarray
) -> Transposed:
    """Return the entries by column, without those on the diagonal.

    Parameters
    ----------
    rows : ndarray of int
        The rows that are given, in ascending order.
    indptr, indices : ndarray of int
        Entries indptr[t]:indptr[t + 1] are those of row rows[t], with their columns.
    wanted : ndarray of bool of shape (n,)
        The columns whose entries are returned.
    room : ndarray of int of shape (n,)
        Places that are left free after the entries of each column.

    Returns
    -------
    entries : Transposed
    """
    n = len(wanted)
    workers = workers_for(_WORK_OF_AN_ENTRY * len(indices) + _WORK_OF_A_COLUMN * n)
    parts = slices(len(rows), max(1, -(-len(rows) // min(workers, _PARTS))))
    counts = np.empty((len(parts), n), np.int64)
    run_tasks(
        lambda k: count_part(parts[k].start, parts[k].stop, rows, indptr, indices, wanted, counts[k]),
        range(len(parts)),
        workers,
    )
    starts, ends = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    to_starts(counts, room, starts, ends)  # in threads, it would take longer to start them
    found = np.empty(starts[-1], np.int32)
    run_tasks(
        lambda k: fill_part(parts[k].start, parts[k].stop, rows, indptr, indices, wanted, counts[k], found),
        range(len(parts)),
        workers,
    )
    return Transposed(starts, found, ends)


@compiled
def count_part(first, last, rows, indptr, indices, wanted, counts):  # type: ignore[no-untyped-def]
    """Count the entries of some rows by column."""
    for j in range(counts.size):
        counts[j] = 0
    for t in range(first, last):
        for p in range(indptr[t], indptr[t + 1]):
            if indices[p] != rows[t] and wanted[indices[p]]:
                counts[indices[p]] += 1


@compiled
def to_starts(counts, room, starts, ends):  # type: ignore[no-untyped-def]
    """Write where each column begins and its entries end; counts become where those of each part begin."""
    at = np.int64(0)
    for j in range(len(room)):
        starts[j] = at
        for k in range(len(counts)):
            here = counts[k, j]
            counts[k, j] = at
            at += here
        ends[j] = at
        at += room[j]
    starts[len(room)] = at


@compiled
def fill_part(first, last, rows, indptr, indices, wanted, at, found):  # type: ignore[no-untyped-def]
    """Write the rows of the entries of some rows, each where its column says."""
    for t in range(first, last):
        for p in range(indptr[t], indptr[t + 1]):
            j = indices[p]
            if j != rows[t] and wanted[j]:
                found[at[j]] = rows[t]
                at[j] += 1
