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

Lists hold a pair i, j at both of its rows, so that each row can be computed without the others, and neither
support nor unobserved entries.
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

# Entries of a list per row, as a multiple of the rank: the memory of a list is then that of some factors.
_ENTRIES_PER_COLUMN = 64


class PairList(NamedTuple):
    """Pairs i, j, as the columns j of each row i in ascending order: a pair is there as j, i as well."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32


class TooManyPairs(Exception):
    """A scan found more pairs than were allowed."""


def most_entries(n: int, rank: int) -> int:
    """Return the number of entries that a list may have; a pair of two items has two."""
    return min(_ENTRIES_PER_COLUMN * rank * n, n * n)


def scan_all(references: References, slack: float, known: Any, most: int) -> PairList:
    """Return all pairs of rows whose references have a product above -slack.

    Parameters
    ----------
    references : References
    slack : float
    known : csr_array
        Its stored entries are left out.
    most : int
        Allowed number of entries; with more, TooManyPairs is raised.
    """
    n = len(references.nonzero)
    rows = np.arange(n)
    indptr, upper = _scan(rows, references, slack, known, most, symmetric=True)
    # Entries below the diagonal come first in each row.
    both = transposed(rows, indptr, upper, np.ones(n, np.bool_), np.diff(indptr))
    workers = workers_for(_WORK_OF_MERGING * len(upper))
    run_tasks(
        lambda part: copy_rows(part.start, part.stop, indptr, upper, both.ends, both.rows),
        shares(n, workers),
        workers,
    )
    return PairList(both.indptr, both.rows)


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
    found = PairList(*_scan(rows, references, slack, known, most, symmetric=False))
    place = np.full(n, -1, np.int64)  # of each row among those that were scanned
    place[rows] = np.arange(len(rows))
    kept = place < 0
    others = transposed(rows, *found, kept, np.zeros(n, np.int64))
    workers = workers_for(_WORK_OF_MERGING * len(old.indices))
    parts = shares(n, workers)
    merged: list[Any] = [None] * len(parts)
    lengths = np.empty(n, np.int64)

    def merge(number: int) -> None:
        part = parts[number]
        merged[number] = merge_rows(
            part.start, part.stop, *old, kept, place, *found, others.indptr, others.rows, lengths
        )

    run_tasks(merge, range(len(parts)), workers)
    indptr = _starts(lengths)
    if indptr[-1] > most:
        raise TooManyPairs
    return PairList(indptr, concatenated(merged, np.int32))


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _scan(
    rows: np.ndarray,
    references: References,
    slack: float,
    known: Any,
    most: int,
    *,
    symmetric: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the columns of each of the given rows begin, and the columns.

    With ``symmetric``, columns before the row are left out.
    """
    n, columns = len(references.nonzero), len(references.signs)
    longest = 1 + rounding_of_rows(columns)  # of a reference
    threshold = np.int32(max(np.floor(-slack * longest**2 * SCALE**2) - 1, np.iinfo(np.int32).min))
    wanted = packed_bits(references.nonzero)
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
            rows[part], *references, wanted, threshold, indptr, indices, symmetric, most, total, counts[part]
        )

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
    threshold,
    indptr,
    indices,
    symmetric,
    most,
    total,
    counts,
):
    """Return the columns whose product with some rows is above the threshold, and count them by row.

    Columns must be in ``wanted``, a set of bits; with ``symmetric``, those before the row are left out. It
    stops if all calls together have found more than ``most`` entries of a list, which they add to ``total``.
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
        entries = 0
        for k in range(count):
            i = rows[begin + k]
            if nonzero[i]:
                clear_unwanted(i, words[k], first, wanted, symmetric, indptr, indices)
                number = ones_of(words[k], first, strips)
                if size + number > len(columns):
                    columns = enlarged(columns, size + number)
                entries += 2 * number - has_bit(words[k], i) if symmetric else number
                counts[begin + k] = number
                size = write_ones(words[k], first, strips, columns, size)
        if fetch_add(total, 0, entries) + entries > most:
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
def clear_unwanted(i, words, first, wanted, symmetric, indptr, indices):  # type: ignore[no-untyped-def]
    """Clear the bits of a row at columns that do not count, in words from the number ``first`` on."""
    for w in range(first, len(wanted)):
        words[w] &= wanted[w]
    if symmetric:
        for w in range(first, i // STRIP):
            words[w] = 0
        words[i // STRIP] &= ~((np.int64(1) << np.int64(i % STRIP)) - 1)
    for p in range(indptr[i], indptr[i + 1]):
        w = indices[p] // STRIP
        if w >= first:
            words[w] &= ~(np.int64(1) << np.int64(indices[p] % STRIP))


@compiled
def has_bit(words, i):  # type: ignore[no-untyped-def]
    """Return bit i of some words."""
    return (words[i // STRIP] >> np.int64(i % STRIP)) & 1


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
def copy_rows(first, last, indptr, indices, starts, out):  # type: ignore[no-untyped-def]
    """Copy the columns of some rows, those of each row to where it begins in ``out``."""
    for i in range(first, last):
        for p in range(indptr[i], indptr[i + 1]):
            out[starts[i] + p - indptr[i]] = indices[p]


@compiled
def merge_rows(  # type: ignore[no-untyped-def]
    first, last, indptr, indices, kept, place, found_indptr, found, others_indptr, others, lengths
):
    """Return the rows from ``first`` to ``last`` of the new list, one after the other, and write their lengths.

    A row that was scanned has what was found. Another one keeps its pairs with rows that were not scanned, and
    gets those in whose scan it was found.
    """
    most = indptr[last] - indptr[first] + others_indptr[last] - others_indptr[first]
    for i in range(first, last):
        if not kept[i]:
            most += found_indptr[place[i] + 1] - found_indptr[place[i]]
    new, at = np.empty(most, np.int32), 0
    for i in range(first, last):
        begin = at
        if kept[i]:
            # Written in any case, since branches would often be predicted wrongly.
            for p in range(indptr[i], indptr[i + 1]):
                new[at] = indices[p]
                at += kept[indices[p]]
            at = insert_sorted(new, begin, at, others[others_indptr[i] : others_indptr[i + 1]])
        else:
            for p in range(found_indptr[place[i]], found_indptr[place[i] + 1]):
                new[at] = found[p]
                at += 1
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
