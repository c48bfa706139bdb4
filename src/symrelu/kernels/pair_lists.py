"""Lists of the zeros of M at which X can be positive, and the scans that make them.

A scan compares the products <ref_i * s, ref_j> of *references*, rows of length one, with a threshold, -slack.
Pairs above it are listed. Let a_i be the distance of reference i from the line through the present row i. As
|s| = 1, this row times a positive number has with that of another row a product that differs from that of the
references by at most

    a_i + a_j + a_i a_j,

so that a pair that is not listed is not positive as long as this is at most ``slack``, for example if no row
has moved by more than sqrt(1 + slack) - 1. Rows that have moved farther get a new reference, and only they are
scanned again, against the references of all others.

References are rounded to 16-bit integers, whose products are exact (:mod:`symrelu.kernels.integer_rows`): a_i
is the distance of the rounded one, and as that can be longer than one, the threshold is a little lower.

Lists hold pairs i <= j at row i, with columns in ascending order, and neither support nor unobserved entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.atomics import fetch_add
from symrelu.kernels.bits import count_ones, trailing_zeros
from symrelu.kernels.integer_rows import (
    ROWS_AT_ONCE,
    SCALE,
    STRIP,
    compare_rows,
    rounding_of_rows,
)
from symrelu.kernels.jit import compiled
from symrelu.kernels.row_references import References
from symrelu.kernels.threads import run_tasks, shares, slices, workers_for
from symrelu.kernels.transposition import transposed
from symrelu.kernels.vectors import concatenated

# Cost of comparing a pair with the threshold, in multiplications of a matrix product: by column, and once.
_WORK_OF_A_COLUMN = 0.25
_WORK_OF_A_PAIR = 4

# Cost of copying a pair of a list, in the same unit.
_WORK_OF_MERGING = 40

# Rows that are compared before what was found is written, and the largest number for one call. Each worker
# should get several shares, because they take different times.
_GROUP = 128
_LARGEST_SHARE = 8 * _GROUP
_SHARES_OF_A_WORKER = 6

_FIRST_CAPACITY = 1024  # columns found by a call; the array grows if there are more

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


def scan_all(references: References, slack: float, known: Any, most: int) -> PairList:
    """Return all pairs of rows whose references have a product above -slack.

    Parameters
    ----------
    references : References
    slack : float
    known : csr_array
        Its stored entries are left out.
    most : int
        Allowed number of pairs; with more, TooManyPairs is raised.
    """
    n = len(references.nonzero)
    indptr, indices = _scan(np.arange(n), np.ones(n, np.bool_), references, slack, known, most, symmetric=True)
    return PairList(indptr, indices)


def scan_again(
    old: PairList, rows: np.ndarray, references: References, slack: float, known: Any, most: int
) -> PairList:
    """Return the list after some rows have got new references.

    Parameters
    ----------
    old : PairList
        The list before, with the same slack.
    rows : ndarray of int
        In ascending order.
    references, slack, known, most
        As in :func:`scan_all`.
    """
    n = len(references.nonzero)
    moved = np.zeros(n, np.bool_)
    moved[rows] = True
    found = PairList(*_scan(rows, moved, references, slack, known, most, symmetric=False))
    lower = transposed(rows, *found, n, below=True)
    lower_list = PairList(lower.indptr, lower.rows)
    place = np.full(n, -1, np.int64)  # of each row among those that were scanned
    place[rows] = np.arange(len(rows))
    workers = workers_for(_WORK_OF_MERGING * len(old.indices))
    parts = shares(n, workers)
    merged: list[Any] = [None] * len(parts)
    lengths = np.empty(n, np.int64)

    def merge(number: int) -> None:
        part = parts[number]
        merged[number] = merge_rows(part.start, part.stop, *old, moved, place, *found, *lower_list, lengths)

    run_tasks(merge, range(len(parts)), workers)
    indptr = _starts(lengths)
    if indptr[-1] > most:
        raise TooManyPairs
    return PairList(indptr, concatenated(merged, np.int32))


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _scan(
    rows: np.ndarray,
    moved: np.ndarray,
    references: References,
    slack: float,
    known: Any,
    most: int,
    *,
    symmetric: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the columns of each of the given rows begin, and the columns.

    With ``symmetric`` only columns from the row on count. Otherwise all do, except that of a pair of rows that
    have both moved only the lower row lists the other.
    """
    n, columns = len(references.nonzero), len(references.signs)
    longest = 1 + rounding_of_rows(columns)  # of a reference
    threshold = np.int32(max(np.floor(-slack * longest**2 * SCALE**2) - 1, np.iinfo(np.int32).min))
    wanted = packed_bits(references.nonzero)
    unwanted_below = packed_bits(moved)
    pairs = len(rows) * n / (2 if symmetric else 1)
    workers = workers_for(pairs * (columns * _WORK_OF_A_COLUMN + _WORK_OF_A_PAIR))
    size = -(-len(rows) // (_SHARES_OF_A_WORKER * workers * _GROUP)) * _GROUP
    parts = slices(len(rows), min(max(_GROUP, size), _LARGEST_SHARE))
    found: list[Any] = [np.empty(0, np.int32)] * len(parts)
    counts, total = np.zeros(len(rows), np.int64), np.zeros(1, np.int64)
    indptr, indices = known.indptr.astype(np.int64, copy=False), known.indices.astype(np.int32, copy=False)

    def scan(number: int) -> None:
        part = parts[number]
        found[number] = scan_rows(
            rows[part], *references, wanted, unwanted_below, threshold, indptr, indices, symmetric, most, total,
            counts[part],
        )  # fmt: skip

    run_tasks(scan, range(len(parts)), workers)
    if total[0] > most:
        raise TooManyPairs
    return _starts(counts), concatenated(found, np.int32)


@compiled
def packed_bits(flags):  # type: ignore[no-untyped-def]
    """Return the flags as bits of words, the first one in the lowest bit."""
    words = np.zeros((len(flags) + STRIP - 1) // STRIP, np.int64)
    for i in range(len(flags)):
        words[i // STRIP] |= np.int64(flags[i]) << np.int64(i % STRIP)
    return words


@compiled
def scan_rows(  # type: ignore[no-untyped-def]
    rows,
    packed,
    nonzero,
    signs,
    wanted,
    unwanted_below,
    threshold,
    indptr,
    indices,
    symmetric,
    most,
    total,
    counts,
):
    """Return the columns whose product with some rows is above the threshold, and count them by row.

    Columns must be in ``wanted``, and those below the row not in ``unwanted_below``, sets of bits. It stops if
    all calls together have found more than ``most`` columns, which they add to ``total``.
    """
    strips = len(packed)
    signed = np.zeros((_GROUP, 2 * packed.shape[1]), np.int16)
    # An odd number of cache lines: with a power of two, all rows would use the same part of the cache.
    words = np.empty((_GROUP, (strips // 16 * 2 + 3) * 8), np.int64)
    columns = np.empty(_FIRST_CAPACITY, np.int32)
    size = 0
    for begin in range(0, len(rows), _GROUP):
        count = min(_GROUP, len(rows) - begin)
        sign_rows(rows[begin : begin + count], packed, signs, signed)
        first = rows[begin] // STRIP if symmetric else 0
        for strip in range(first, strips):
            for k in range(0, count, ROWS_AT_ONCE):
                compare_rows(signed, k, packed, strip, threshold, words)
        before = size
        for k in range(count):
            i = rows[begin + k]
            if nonzero[i]:
                clear_unwanted(i, words[k], first, wanted, unwanted_below, indptr, indices)
                counts[begin + k] = ones_of(words[k], first, strips)
                if size + counts[begin + k] > len(columns):
                    columns = enlarged(columns, size + counts[begin + k])
                size = write_ones(words[k], first, strips, columns, size)
        if fetch_add(total, 0, size - before) + size - before > most:
            break
    return columns[:size].copy()


@compiled
def sign_rows(rows, packed, signs, signed):  # type: ignore[no-untyped-def]
    """Write some packed rows, times the signs of the columns, one after the other."""
    for k in range(len(rows)):
        strip, place = rows[k] // STRIP, rows[k] % STRIP
        for c in range(len(signs)):
            signed[k, c] = packed[strip, c // 2, place, c % 2] * signs[c]


@compiled
def clear_unwanted(i, words, first, wanted, unwanted_below, indptr, indices):  # type: ignore[no-untyped-def]
    """Clear the bits of a row at columns that do not count, in words from the number ``first`` on."""
    own = i // STRIP
    for w in range(first, len(wanted)):
        words[w] &= wanted[w]
    for w in range(first, own):
        words[w] &= ~unwanted_below[w]
    words[own] &= ~(unwanted_below[own] & ((np.int64(1) << np.int64(i % STRIP)) - 1))
    for p in range(indptr[i], indptr[i + 1]):
        w = indices[p] // STRIP
        if w >= first:
            words[w] &= ~(np.int64(1) << np.int64(indices[p] % STRIP))


@compiled
def ones_of(words, first, last):  # type: ignore[no-untyped-def]
    """Return the number of ones in words from ``first`` to ``last``."""
    total = 0
    for w in range(first, last):
        total += count_ones(words[w])
    return total


@compiled
def write_ones(words, first, last, columns, size):  # type: ignore[no-untyped-def]
    """Append the places of the ones in words from ``first`` to ``last``, and return their number."""
    for w in range(first, last):
        word = words[w]
        while word != 0:
            columns[size] = STRIP * w + trailing_zeros(word)
            size += 1
            word &= word - 1
    return size


@compiled
def enlarged(columns, least):  # type: ignore[no-untyped-def]
    """Return an array that begins with the given one, of at least twice its length."""
    larger = np.empty(max(least, 2 * len(columns)), columns.dtype)
    larger[: len(columns)] = columns
    return larger


@compiled
def merge_rows(  # type: ignore[no-untyped-def]
    first, last, indptr, indices, moved, place, found_indptr, found, lower_indptr, lower, lengths
):
    """Return the rows from ``first`` to ``last`` of the new list, one after the other, and write their lengths.

    A row that has moved has what the scan found from its diagonal on. Another one keeps its pairs with rows
    that have not moved, and gets those in which the scan of a later row found it.
    """
    most = indptr[last] - indptr[first] + lower_indptr[last] - lower_indptr[first]
    for i in range(first, last):
        if moved[i]:
            most += found_indptr[place[i] + 1] - found_indptr[place[i]]
    new, at = np.empty(most, np.int32), 0
    for i in range(first, last):
        begin = at
        if moved[i]:
            for p in range(found_indptr[place[i]], found_indptr[place[i] + 1]):
                new[at] = found[p]
                at += found[p] >= i
        else:
            # Written in any case, since branches would often be predicted wrongly.
            for p in range(indptr[i], indptr[i + 1]):
                new[at] = indices[p]
                at += not moved[indices[p]]
            at = insert_sorted(new, begin, at, lower[lower_indptr[i] : lower_indptr[i + 1]])
        lengths[i] = at - begin
    return new[:at].copy()


@compiled
def insert_sorted(numbers, begin, end, others):  # type: ignore[no-untyped-def]
    """Insert ``others``, in ascending order, into numbers[begin:end], which are too, and return the new end."""
    left, right, at = end - 1, len(others) - 1, end + len(others) - 1
    while right >= 0:
        if left >= begin and numbers[left] > others[right]:
            numbers[at] = numbers[left]
            left -= 1
        else:
            numbers[at] = others[right]
            right -= 1
        at -= 1
    return end + len(others)
