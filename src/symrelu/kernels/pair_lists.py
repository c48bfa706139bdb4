"""Lists of the zeros of M at which X can be positive, and the scans that make them.

A scan compares the cosines c_ij = <u_i * s, u_j> / (|u_i| |u_j|) of pairs of *reference* rows with a threshold,
-slack, in tiles: one matrix product and a comparison. Pairs above it are listed. Let row i have moved by the
fraction a_i of the length of its reference since then. As |s| = 1, X_ij / (|ref_i| |ref_j|) has changed by at
most

    a_i + a_j + a_i a_j,

so that a pair that is not listed is not positive as long as this is at most ``slack``, for example if no row
has moved by more than sqrt(1 + slack) - 1. Rows that have moved farther get a new reference, and only they are
scanned again, against the references of all others.

References are rounded to float32, also those of a factor in float64: a_i is the distance from the rounded one,
and the threshold is lower by more than the rounding error of a cosine.

Lists hold pairs i <= j at row i, with columns in ascending order, and neither support nor unobserved entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.atomics import fetch_add
from symrelu.kernels.bits import trailing_zeros
from symrelu.kernels.jit import compiled
from symrelu.kernels.row_references import References, rounding_of_cosines
from symrelu.kernels.threads import run_tasks, shares, slices, workers_for
from symrelu.kernels.transposition import transposed
from symrelu.kernels.vectors import concatenated

# Cost of comparing a pair with the threshold, in multiplications of a matrix product.
_WORK_OF_COMPARING = 8

# Cost of copying a pair of a list, in the same unit.
_WORK_OF_MERGING = 40

_BLOCKS_OF_A_SCAN = 64
_SMALLEST_SIDE, _LARGEST_SIDE = 128, 384
_FEWEST_ROWS = 96  # of a block, where few rows are scanned again

_FIRST_CAPACITY = 1024  # candidates of a block of rows; the buffer grows if there are more

# Pairs of a list per row, as a multiple of the rank: the memory of a list is then that of a few factors.
_PAIRS_PER_COLUMN = 32


class PairList(NamedTuple):
    """Pairs i <= j, as the columns j of each row i in ascending order."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32


class TooManyPairs(Exception):
    """A scan found more pairs than were allowed."""


def most_pairs(n: int, rank: int) -> int:
    """Return the number of pairs that a list may hold."""
    return min(_PAIRS_PER_COLUMN * rank * n, n * (n + 1) // 2)


def scan_side(n: int) -> int:
    """Return the side of the tiles of a scan: large ones are faster, but each worker needs a few of them."""
    return min(max(n // _BLOCKS_OF_A_SCAN, _SMALLEST_SIDE), _LARGEST_SIDE)


def scan_all(references: References, slack: float, known: Any, side: int, most: int) -> PairList:
    """Return all pairs of rows whose cosine is above -slack.

    Parameters
    ----------
    references : References
    slack : float
    known : csr_array
        Its stored entries are left out.
    side : int
        Rows of a block.
    most : int
        Allowed number of pairs; with more, TooManyPairs is raised.
    """
    n = len(references.directions)
    indptr, indices = _scan(
        np.arange(n), np.ones(n, np.bool_), references, slack, known, side, most, symmetric=True
    )
    return PairList(indptr, indices)


def scan_again(
    old: PairList, rows: np.ndarray, references: References, slack: float, known: Any, side: int, most: int
) -> PairList:
    """Return the list after some rows have got new references.

    Parameters
    ----------
    old : PairList
        The list before, with the same slack.
    rows : ndarray of int
        In ascending order.
    references, slack, known, side, most
        As in :func:`scan_all`.
    """
    n = len(references.directions)
    moved = np.zeros(n, np.bool_)
    moved[rows] = True
    found = PairList(*_scan(rows, moved, references, slack, known, side, most, symmetric=False))
    lower = transposed(rows, *found, n, below=True)
    lower_list = PairList(lower.indptr, lower.rows)
    place = np.full(n, -1, np.int64)  # of each row among those that were scanned
    place[rows] = np.arange(len(rows))
    lengths = np.empty(n, np.int64)
    workers = workers_for(_WORK_OF_MERGING * len(old.indices))
    parts = shares(n, workers)
    run_tasks(
        lambda part: count_rows(part.start, part.stop, *old, moved, place, *found, *lower_list, lengths),
        parts,
        workers,
    )
    indptr = _starts(lengths)
    if indptr[-1] > most:
        raise TooManyPairs
    indices = np.empty(indptr[-1], np.int32)
    run_tasks(
        lambda part: merge_rows(
            part.start, part.stop, *old, moved, place, *found, *lower_list, indptr, indices
        ),
        parts,
        workers,
    )
    return PairList(indptr, indices)


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _scan(
    rows: np.ndarray,
    moved: np.ndarray,
    references: References,
    slack: float,
    known: Any,
    side: int,
    most: int,
    *,
    symmetric: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the columns of each of the given rows begin, and the columns."""
    n, rank = references.directions.shape
    dtype = references.directions.dtype
    # The cosines are rounded: a pair that is positive in exact arithmetic must not be missed.
    threshold = dtype.type(-slack - rounding_of_cosines(rank))
    blocks = slices(len(rows), min(side, max(_FEWEST_ROWS, len(rows) // _BLOCKS_OF_A_SCAN)))
    found: list[Any] = [np.empty(0, np.int32)] * len(blocks)
    counts, total = np.zeros(len(rows), np.int64), np.zeros(1, np.int64)
    indptr, indices = known.indptr.astype(np.int64, copy=False), known.indices.astype(np.int32, copy=False)

    def scan(number: int) -> None:
        block = blocks[number]
        found[number] = scan_block(
            rows[block], *references, moved, threshold, indptr, indices, symmetric, most, total, counts[block]
        )

    pairs = len(rows) * n / (2 if symmetric else 1)
    run_tasks(scan, range(len(blocks)), workers_for(pairs * (rank + _WORK_OF_COMPARING)))
    if total[0] > most:
        raise TooManyPairs
    return _starts(counts), concatenated(found, np.int32)


@compiled
def scan_block(  # type: ignore[no-untyped-def]
    rows, directions, lengths, signs, moved, threshold, indptr, indices, symmetric, most, total, counts
):
    """Return the columns whose cosine with some rows is above the threshold, and count them by row.

    With ``symmetric`` only columns from the row on count. Otherwise all do, except that of a pair of rows that
    have both moved only the lower row lists the other. It stops if all blocks together have found more than
    ``most`` columns, which they add to ``total``.
    """
    n, side = len(directions), len(rows)
    A = np.empty((side, directions.shape[1]), directions.dtype)
    next_known = np.empty(side, np.int64)
    for k in range(side):
        for c in range(len(signs)):
            A[k, c] = directions[rows[k], c] * signs[c]
        next_known[k] = indptr[rows[k]]
    tile = np.empty(side * side, directions.dtype)
    above = np.zeros((side + 7) // 8 * 8, np.bool_)
    places = np.empty(_FIRST_CAPACITY + side * side, np.int64)  # the row in the block times n, plus the column
    size = 0
    for begin in range(rows[0] if symmetric else 0, n, side):
        end = min(begin + side, n)
        cosines = tile[: side * (end - begin)].reshape(side, end - begin)
        np.dot(A, directions[begin:end].T, cosines)
        if size + side * side > len(places):
            places = enlarged(places)
        before = size
        size = scan_tile(
            rows,
            cosines,
            begin,
            n,
            threshold,
            above,
            lengths,
            moved,
            next_known,
            indptr,
            indices,
            places,
            size,
            counts,
        )
        if fetch_add(total, 0, size - before) + size - before > most:
            break
    return columns_by_row(places[:size], n, counts)


@compiled
def scan_tile(  # type: ignore[no-untyped-def]
    rows, cosines, begin, n, threshold, above, lengths, moved, next_known, indptr, indices, places, size, counts
):
    """Append the places of the cosines above the threshold, and return how many there are now."""
    words = above.view(np.int64)
    for k in range(len(rows)):
        i = rows[k]
        if lengths[i] == 0:
            continue
        # The comparisons vectorise, and most words are zero: eight columns without a candidate. The others are
        # searched for their ones, the first column in the lowest byte, since a test of each column would often
        # be predicted wrongly.
        row = cosines[k]
        for c in range(len(row)):
            above[c] = row[c] > threshold
        for w in range((len(row) + 7) // 8):
            word = words[w]
            while word != 0:
                c = 8 * w + trailing_zeros(word) // 8
                word &= word - 1
                j = begin + c
                # Beyond the row there may be what is left of a longer one.
                if c >= len(row) or lengths[j] == 0 or (j < i and moved[j]):
                    continue
                while next_known[k] < indptr[i + 1] and indices[next_known[k]] < j:
                    next_known[k] += 1
                if next_known[k] < indptr[i + 1] and indices[next_known[k]] == j:
                    continue
                places[size] = k * n + j
                counts[k] += 1
                size += 1
    return size


@compiled
def enlarged(places):  # type: ignore[no-untyped-def]
    """Return an array of twice the length that begins with the given one."""
    larger = np.empty(2 * len(places), places.dtype)
    larger[: len(places)] = places
    return larger


@compiled
def columns_by_row(places, n, counts):  # type: ignore[no-untyped-def]
    """Return the columns of places row * n + column, row after row; those of a row keep their order."""
    at = np.zeros(len(counts), np.int64)
    for k in range(1, len(counts)):
        at[k] = at[k - 1] + counts[k - 1]
    columns = np.empty(len(places), np.int32)
    for p in range(len(places)):
        k = places[p] // n
        columns[at[k]] = places[p] - k * n
        at[k] += 1
    return columns


@compiled
def count_rows(  # type: ignore[no-untyped-def]
    first, last, indptr, indices, moved, place, found_indptr, found, lower_indptr, lower, lengths
):
    """Count the pairs of the rows from ``first`` to ``last`` in the new list."""
    for i in range(first, last):
        total = lower_indptr[i + 1] - lower_indptr[i]
        if moved[i]:
            for p in range(found_indptr[place[i]], found_indptr[place[i] + 1]):
                total += 1 if found[p] >= i else 0
        else:
            for p in range(indptr[i], indptr[i + 1]):
                total += 0 if moved[indices[p]] else 1
        lengths[i] = total


@compiled
def merge_rows(  # type: ignore[no-untyped-def]
    first, last, indptr, indices, moved, place, found_indptr, found, lower_indptr, lower, new_indptr, new
):
    """Write the rows from ``first`` to ``last`` of the new list.

    A row that has moved has what the scan found from its diagonal on. Another one keeps its pairs with rows
    that have not moved, and gets those in which the scan of a later row found it.
    """
    for i in range(first, last):
        at = new_indptr[i]
        if moved[i]:
            for p in range(found_indptr[place[i]], found_indptr[place[i] + 1]):
                if found[p] >= i:
                    new[at] = found[p]
                    at += 1
            continue
        q, q_end = lower_indptr[i], lower_indptr[i + 1]
        for p in range(indptr[i], indptr[i + 1]):
            if moved[indices[p]]:
                continue
            while q < q_end and lower[q] < indices[p]:
                new[at] = lower[q]
                at += 1
                q += 1
            new[at] = indices[p]
            at += 1
        while q < q_end:
            new[at] = lower[q]
            at += 1
            q += 1
