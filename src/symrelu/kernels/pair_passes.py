"""One pass over the support of M and a list of its zeros, in place of all pairs.

The list holds at least the zeros with X > 0 (:mod:`symrelu.kernels.pair_lists`). First X is computed for the
listed pairs, and the positive ones are kept, each with both of its items. Then every row sums up its part of
the residual times V: first its support, then its positive zeros, in the order of the columns. What was listed
in addition makes no difference: the result depends on U alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.pair_lists import PairList
from symrelu.kernels.row_references import directions_of, rounding_of_cosines
from symrelu.kernels.threads import run_tasks, shares, workers_for
from symrelu.kernels.tiles import Sums
from symrelu.kernels.transposition import Transposed, transposed
from symrelu.kernels.vectors import concatenated, cross_gram

# A multiplication in a product of two single rows takes as long as this many in a product of matrices.
_SLOWNESS = 24

# Multiple of eps that sums of squares can lose.
_ROUNDING = 100


class PositivePairs(NamedTuple):
    """The pairs i <= j of zeros of M with X > 0 or close to it, at row i, with columns in ascending order."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    values: np.ndarray  # of X
    mirrored: Transposed  # the pairs i < j at row j


class Entries(NamedTuple):
    """Entries of a symmetric matrix by row, with columns in ascending order."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class Visited(NamedTuple):
    """The entries that a pass visits, and what counts there."""

    support: Entries
    unknown: Entries
    positive: PositivePairs
    zero_weight: Any
    at_least: bool


def positive_pairs(
    U: np.ndarray,
    signed: np.ndarray,
    listed: PairList,
    widths: np.ndarray | None = None,
    *,
    mostly_negative: bool = True,
) -> PositivePairs:
    """Return the listed pairs with X > 0, for X = signed U^T, and those that are close to it.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signed : ndarray of shape (n, rank)
        U times the signs of the columns.
    listed : PairList
    widths : ndarray of shape (n,), optional
        Pairs with X > -widths[i] * widths[j] are returned too.
    mostly_negative : bool
        Whether it pays to look for clearly negative pairs in float32 first. No result depends on it.
    """
    n, rank = U.shape
    margins = np.empty(0, U.dtype) if widths is None else widths
    rounded = mostly_negative and widths is None and U.dtype != np.float32
    directions = directions_of(U, np.float32) if rounded else np.empty((0, rank), np.float32)
    least = np.float32(-rounding_of_cosines(rank))
    workers = workers_for(_SLOWNESS * rank * len(listed.indices))
    parts = shares(n, workers)
    found: list[Any] = [None] * len(parts)
    counts = np.zeros(n, np.int64)

    def compare(number: int) -> None:
        part = parts[number]
        found[number] = positive_part(
            part.start, part.stop, signed, U, margins, directions, least, *listed, counts
        )

    run_tasks(compare, range(len(parts)), workers)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    indices = concatenated([part[0] for part in found], np.int32)
    values = concatenated([part[1] for part in found], U.dtype)
    found.clear()  # half of the memory, before more is needed
    return PositivePairs(indptr, indices, values, transposed(np.arange(n), indptr, indices, n, below=False))


@compiled
def positive_part(  # type: ignore[no-untyped-def]
    first, last, A, B, widths, directions, least, indptr, indices, counts
):
    """Return columns and values of the listed entries of A B^T above minus their width, for some rows.

    If there are ``directions``, those of the rows of B, the entries are first computed in float32, which takes
    a fourth of the time, and exactly where these cosines are above ``least``, so not clearly negative.
    """
    size = indptr[last] - indptr[first]
    columns, values = np.empty(size, np.int32), np.empty(size, A.dtype)
    rank, rounded = A.shape[1], len(directions) > 0
    own = np.empty((1, rank), np.float32)
    at = 0
    for i in range(first, last):
        before = at
        if rounded:
            for c in range(rank):  # with the signs of the columns
                own[0, c] = directions[i, c] if A[i, c] == B[i, c] else -directions[i, c]
        for p in range(indptr[i], indptr[i + 1]):
            if rounded and product_of_rows(own, 0, directions, indices[p]) <= least:
                continue
            x = product_of_rows(A, i, B, indices[p])
            if x > 0 or (len(widths) > 0 and x > -widths[i] * widths[indices[p]]):
                columns[at] = indices[p]
                values[at] = x
                at += 1
        counts[i] = at - before
    return columns[:at].copy(), values[:at].copy()


@compiled
def product_of_rows(A, i, B, j):  # type: ignore[no-untyped-def]
    """Return the inner product of two rows."""
    total = A.dtype.type(0)
    for c in range(A.shape[1]):
        total += A[i, c] * B[j, c]
    return total


def pass_over_pairs(
    U: np.ndarray,
    signed: np.ndarray,
    V: np.ndarray | None,
    support: Entries,
    unknown: Entries,
    positive: PositivePairs,
    zero_weight: Any,
    at_least: bool,
) -> tuple[np.ndarray | None, Sums]:
    """Return R V and the sums of squares, where R is the residual at X = signed U^T.

    Parameters
    ----------
    U, signed
        As in :func:`positive_pairs`.
    V : ndarray of shape (n, columns), or None
        Without V only the sums are computed.
    support, unknown : Entries
    positive : PositivePairs
        All zeros of M with X > 0.
    zero_weight : float of the type of U
    at_least : bool
        Whether X >= M suffices on the support.
    """
    n, rank = U.shape
    right = np.empty((n, 0), U.dtype) if V is None else np.ascontiguousarray(V)
    out = np.zeros(right.shape, U.dtype)
    sums = np.zeros((n, len(Sums._fields)))
    squares = np.zeros(n)  # of X, over all entries that are visited
    visited = Visited(support, unknown, positive, zero_weight, at_least)

    def add(part: slice) -> None:
        add_rows(part.start, part.stop, signed, U, right, visited, out, sums, squares)

    zeros = len(positive.indices) + len(positive.mirrored.rows)
    entries = len(support.indices) + len(unknown.indices) + zeros
    workers = workers_for(_SLOWNESS * (rank + right.shape[1]) * entries)
    run_tasks(add, shares(n, workers), workers)
    total = Sums(*(float(column) for column in sums.sum(axis=0)))
    # The other zeros have X <= 0: what is left of ||X||^2 is theirs, unless it is only rounding.
    whole = square_norm_of_gram(U, signed)
    negative = whole - float(squares.sum())
    significant = entries < n * n and negative > _ROUNDING * np.finfo(np.float64).eps * whole
    return (None if V is None else out), total._replace(negative=negative if significant else 0.0)


def square_norm_of_gram(U: np.ndarray, signed: np.ndarray) -> float:
    """Return ||X||^2 for X = signed U^T, in float64 and without forming X."""
    gram = cross_gram(U, signed, np.float64)
    return float(np.sum(gram * gram.T))


@compiled
def add_rows(first, last, A, B, V, visited, out, sums, squares):  # type: ignore[no-untyped-def]
    """Add the residual of some rows times V to ``out``, and what Sums counts of them to ``sums``."""
    support, unknown, positive, zero_weight, at_least = visited
    zero, mirrored = A.dtype.type(0), positive.mirrored
    for i in range(first, last):
        fit = error = above = free = inner = seen = 0.0
        for p in range(support.indptr[i], support.indptr[i + 1]):
            j, m = support.indices[p], support.values[p]
            x = product_of_rows(A, i, B, j)
            seen += np.float64(x) * np.float64(x)
            if at_least and x > m:
                free += np.float64(x) * np.float64(x) - np.float64(m) * np.float64(m)
                continue
            e = x - m
            d = m - (zero if x <= zero else x)
            fit += np.float64(e) * np.float64(e)
            error += np.float64(d) * np.float64(d)
            inner -= np.float64(e) * np.float64(x)
            add_row(out, i, -e, V, j)
        for q in range(mirrored.indptr[i], mirrored.indptr[i + 1]):
            x = positive.values[mirrored.places[q]]
            above += np.float64(x) * np.float64(x)
            add_row(out, i, -zero_weight * x, V, mirrored.rows[q])
        for p in range(positive.indptr[i], positive.indptr[i + 1]):
            x = positive.values[p]
            above += np.float64(x) * np.float64(x)
            add_row(out, i, -zero_weight * x, V, positive.indices[p])
        for p in range(unknown.indptr[i], unknown.indptr[i + 1]):
            x = product_of_rows(A, i, B, unknown.indices[p])
            seen += np.float64(x) * np.float64(x)
            free += np.float64(x) * np.float64(x)
        sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 4], sums[i, 6] = fit, error, above, free, inner
        sums[i, 5] = positive.indptr[i + 1] - positive.indptr[i] + mirrored.indptr[i + 1] - mirrored.indptr[i]
        squares[i] = seen + above


@compiled
def add_row(out, i, weight, V, j):  # type: ignore[no-untyped-def]
    """Add a multiple of row j of V to row i of ``out``."""
    for c in range(V.shape[1]):
        out[i, c] += weight * V[j, c]
