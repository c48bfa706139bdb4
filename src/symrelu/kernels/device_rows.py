"""Passes over listed entries on a GPU: a program sums up the residual of one row times V.

The sums of a row run in the order of its columns, and a long row is divided in the same way each time, so the
result is the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

# What is summed up for each row, in float64: see symrelu.kernels.tiles.Sums. "visited" is the sum of X^2 over
# the listed entries.
SUMS = ("fit", "error", "positive", "free", "active", "inner", "visited")

# Entries that a program adds up at once: the numbers of their rows of U and V have to stay in the registers.
_ENTRIES_AT_ONCE = 16
_NUMBERS_AT_ONCE = 2048

# Entries of a row that one program adds up. Longer rows, of items that many others are similar to, are divided.
LONGEST = 1024

KINDS = SUPPORT, ZEROS, UNKNOWN = 0, 1, 2  # what the listed entries are


class Pieces(NamedTuple):
    """What follows the first ``LONGEST`` entries of long rows, in pieces of at most so many."""

    rows: Any  # the long rows, ascending
    first: Any  # where the pieces of each long row begin, and their number
    owners: Any  # the row of each piece
    begins: Any  # where its entries begin and end
    ends: Any


class DeviceEntries(NamedTuple):
    """Entries of a matrix by row, with columns in ascending order, all of one kind.

    At zeros that are not positive the residual is zero, at unknown entries always.
    """

    kind: int  # SUPPORT, ZEROS or UNKNOWN
    indptr: Any  # int64
    indices: Any  # int32
    values: Any | None = None  # M at the support
    pieces: Pieces | None = None

    @classmethod
    def of(cls, kind: int, indptr: Any, indices: Any, values: Any | None = None) -> DeviceEntries:
        """Return entries with their long rows divided, which waits for the device."""
        return cls(kind, indptr, indices, values, pieces_of(indptr))

    @classmethod
    def of_one_row(cls, kind: int, count: int, U: Any) -> DeviceEntries:
        """Return so many entries in the first row, all at the same place, for a factor U."""
        ends = torch.full((len(U) + 1,), count, dtype=torch.int64, device=U.device)
        ends[0] = 0
        indices = torch.zeros(count, dtype=torch.int32, device=U.device)
        return cls.of(kind, ends, indices, torch.ones(count, dtype=U.dtype, device=U.device))


def pieces_of(indptr: Any) -> Pieces | None:
    """Return the pieces of the long rows, or None if there is none."""
    lengths = indptr.diff()
    rows = torch.nonzero(lengths > LONGEST)[:, 0]
    if not len(rows):
        return None
    counts = (lengths[rows] - 1) // LONGEST
    first = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    owners = torch.repeat_interleave(rows, counts)
    before = torch.repeat_interleave(first[:-1], counts, output_size=len(owners))
    number = torch.arange(len(owners), device=rows.device) - before
    begins = indptr[owners] + (number + 1) * LONGEST
    return Pieces(rows, first, owners, begins, torch.minimum(begins + LONGEST, indptr[owners + 1]))


def entry_sums(
    lists: Sequence[DeviceEntries],
    U: Any,
    signs: Any,
    V: Any | None,
    zero_weight: float,
    at_least: bool,
    order: Any | None = None,
) -> tuple[Any | None, Any]:
    """Return the residual at listed entries times V, and the sums over them.

    Parameters
    ----------
    lists : sequence of DeviceEntries
        At most one of each kind.
    U : tensor of shape (n, rank)
    signs : tensor of shape (rank,)
        X = (U * signs) U^T.
    V : tensor of shape (n, columns), or None
    zero_weight : float
    at_least : bool
    order : tensor of int64 of shape (n,), optional
        The order in which rows are visited: where it joins rows with the same columns, the caches have these.

    Returns
    -------
    product : tensor of the shape of V, or None
    sums : tensor of float64 of shape (n, 7)
        See ``SUMS``.
    """
    # Also those without entries: each choice of kinds is compiled.
    given = {entries.kind: entries for entries in lists}
    # As a tensor: a kernel would get a Python number in float32.
    weight = torch.full((1,), zero_weight, dtype=U.dtype, device=U.device)
    factors = U, signs, weight, V, at_least
    n = len(U)
    product, sums = _results(n, U, V)
    ranges = {kind: (entries.indptr, entries.indptr[1:]) for kind, entries in given.items()}
    _launch(n, order, False, ranges, given, factors, product, sums)
    for kind, entries in given.items():
        if entries.pieces is not None:
            rows, first, owners, *ends = entries.pieces
            parts = _results(len(owners), U, V)
            _launch(len(owners), owners, True, {kind: ends}, given, factors, *parts)
            _add_pieces(rows, first, parts, product, sums)
    return product, sums


def entries_at_once(width: int) -> int:
    """Return how many entries a program adds up at once, for factors that are padded to so many columns."""
    return max(1, min(_ENTRIES_AT_ONCE, _NUMBERS_AT_ONCE // width))


def _results(count: int, U: Any, V: Any | None) -> tuple[Any | None, Any]:
    product = None if V is None else torch.empty((count, V.shape[1]), dtype=V.dtype, device=V.device)
    return product, torch.empty((count, len(SUMS)), dtype=torch.float64, device=U.device)


def _launch(
    count: int, owners: Any | None, pieces: bool, ranges: dict[int, Any], given: dict[int, DeviceEntries],
    factors: tuple[Any, ...], product: Any | None, sums: Any,
) -> None:  # fmt: skip
    """Sum up a range of entries of each kind, for each row or for each piece; ``owners`` are the rows."""
    U, signs, weight, V, at_least = factors
    rank, columns = U.shape[1], 1 if V is None else V.shape[1]
    padded = triton.next_power_of_2(rank), triton.next_power_of_2(columns)
    nothing = sums  # in place of an array that a kernel does not touch
    lists: list[Any] = []
    for kind in KINDS:
        lists += (*ranges[kind], given[kind].indices) if kind in ranges else (nothing,) * 3
    support = given.get(SUPPORT)
    _sum_entries[(count,)](
        U, signs, weight, U if V is None else V, nothing if owners is None else owners, *lists,
        U if support is None else support.values, sums if product is None else product, sums, rank, columns,
        OWNERS=owners is not None, PIECES=pieces,
        SUPPORT=SUPPORT in ranges, ZEROS=ZEROS in ranges, UNKNOWN=UNKNOWN in ranges,
        AT_LEAST=at_least, MULTIPLIES=V is not None,
        RANK=padded[0], COLUMNS=padded[1], CHUNK=entries_at_once(max(padded)),
        LONGEST=LONGEST, DOUBLE=U.dtype == torch.float64, num_warps=1,
    )  # fmt: skip


def _add_pieces(rows: Any, first: Any, parts: tuple[Any, Any], product: Any | None, sums: Any) -> None:
    """Add the results of pieces to those of their rows, in the order of the pieces."""
    for part, out in zip(parts, (product, sums), strict=True):
        if out is not None:
            columns = out.shape[1]
            _add_parts[(len(rows),)](
                part, rows, first, out, columns, COLUMNS=triton.next_power_of_2(columns), num_warps=1
            )


@triton.jit
def _square(x):  # type: ignore[no-untyped-def]
    """Return x^2 in float64."""
    return x.to(tl.float64) * x.to(tl.float64)


@triton.jit
def _add_range(  # type: ignore[no-untyped-def]
    found, a, U, V, weight, begins, ends, indices, values, p, rank, columns,
    KIND: tl.constexpr, AT_LEAST: tl.constexpr, MULTIPLIES: tl.constexpr,
    RANK: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, LONGEST: tl.constexpr,
):  # fmt: skip
    """Return what was found so far, the product and the sums, with a range of entries of one kind added.

    Each sum is added up to one number at once: as vectors, they would take most of the registers.
    """
    total, fit, error, positive, free, active, inner, visited = found
    k, c = tl.arange(0, RANK), tl.arange(0, COLUMNS)
    begin = tl.load(begins + p)
    last = tl.minimum(tl.load(ends + p), begin + LONGEST)
    for first in range(begin, last, CHUNK):
        q = first + tl.arange(0, CHUNK)
        there = q < last
        j = tl.load(indices + q, mask=there, other=0).to(tl.int64)
        b = tl.load(U + j[:, None] * rank + k[None, :], mask=there[:, None] & (k < rank)[None, :], other=0.0)
        # Zero beyond the last entry, where b is.
        x = tl.sum(a[None, :] * b, 1)
        e = x
        if KIND == 0:
            m = tl.load(values + q, mask=there, other=0.0)
            visited += tl.sum(_square(x))
            counts = there
            if AT_LEAST:
                met = there & (x > m)
                free += tl.sum(tl.where(met, _square(x) - _square(m), 0.0))
                counts = there & ~met  # also where x is NaN
            e = tl.where(counts, x - m, 0.0)
            # Not tl.maximum, which may drop NaN.
            d = tl.where(counts, tl.where(x <= 0, 0.0, x) - m, 0.0)
            fit += tl.sum(_square(e))
            error += tl.sum(_square(d))
            inner -= tl.sum(e.to(tl.float64) * x.to(tl.float64))
        elif KIND == 1:
            e = tl.where(x <= 0, 0.0, x)  # NaN stays: it is not positive either
            squares = tl.sum(_square(e))
            positive += squares
            visited += squares
            active += tl.sum((x > 0).to(tl.float64))
            e = e * weight
        else:
            squares = tl.sum(_square(x))
            free += squares
            visited += squares
        if MULTIPLIES and KIND != 2:
            inside = there[:, None] & (c < columns)[None, :]
            # Also if V is U: to keep b until here takes more registers than the caches take time.
            v = tl.load(V + j[:, None] * columns + c[None, :], mask=inside, other=0.0)
            total -= tl.sum(e[:, None] * v, 0)
    return total, fit, error, positive, free, active, inner, visited


@triton.jit
def _sum_entries(  # type: ignore[no-untyped-def]
    U, signs, weights, V, owners,
    support_begins, support_ends, support, zeros_begins, zeros_ends, zeros,
    unknown_begins, unknown_ends, unknown, values, out, sums, rank, columns,
    OWNERS: tl.constexpr, PIECES: tl.constexpr,
    SUPPORT: tl.constexpr, ZEROS: tl.constexpr, UNKNOWN: tl.constexpr,
    AT_LEAST: tl.constexpr, MULTIPLIES: tl.constexpr, RANK: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr, LONGEST: tl.constexpr, DOUBLE: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0).to(tl.int64)
    i = tl.load(owners + p) if OWNERS else p
    if not PIECES:
        p = i
    k, c = tl.arange(0, RANK), tl.arange(0, COLUMNS)
    a = tl.load(U + i * rank + k, mask=k < rank, other=0.0) * tl.load(signs + k, mask=k < rank, other=0.0)
    weight = tl.load(weights)
    total = tl.zeros((COLUMNS,), tl.float64 if DOUBLE else tl.float32)
    zero = tl.zeros((), tl.float64)
    found = total, zero, zero, zero, zero, zero, zero, zero
    # Not a loop over a tuple of these: the compiler would take its elements for numbers of the run.
    if SUPPORT:
        found = _add_range(
            found, a, U, V, weight, support_begins, support_ends, support, values, p, rank, columns,
            0, AT_LEAST, MULTIPLIES, RANK, COLUMNS, CHUNK, LONGEST,
        )  # fmt: skip
    if ZEROS:
        found = _add_range(
            found, a, U, V, weight, zeros_begins, zeros_ends, zeros, values, p, rank, columns,
            1, AT_LEAST, MULTIPLIES, RANK, COLUMNS, CHUNK, LONGEST,
        )  # fmt: skip
    if UNKNOWN:
        found = _add_range(
            found, a, U, V, weight, unknown_begins, unknown_ends, unknown, values, p, rank, columns,
            2, AT_LEAST, MULTIPLIES, RANK, COLUMNS, CHUNK, LONGEST,
        )  # fmt: skip
    if MULTIPLIES:
        tl.store(out + p * columns + c, found[0], mask=c < columns)
    for place in tl.static_range(7):
        tl.store(sums + p * 7 + place, found[1 + place])


@triton.jit
def _add_parts(parts, rows, first, out, columns, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    p = tl.program_id(0)
    c = tl.arange(0, COLUMNS)
    inside = c < columns
    place = out + tl.load(rows + p) * columns + c
    total = tl.load(place, mask=inside, other=0.0)
    for part in range(tl.load(first + p), tl.load(first + p + 1)):
        total += tl.load(parts + part * columns + c, mask=inside, other=0.0)
    tl.store(place, total, mask=inside)
