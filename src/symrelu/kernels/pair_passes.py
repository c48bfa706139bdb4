"""One pass over the support of M and a list of its zeros, in place of all pairs.

The list holds at least the zeros with X > 0 (:mod:`symrelu.kernels.pair_lists`), and both items of a pair have
it. So every row computes its own part of X, and sums up its part of the residual times V: first its support,
then its positive zeros, in the order of the columns. What was listed in addition makes no difference: the
result depends on U alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.bits import trailing_zeros
from symrelu.kernels.integer_rows import SCALE, compare_chosen
from symrelu.kernels.jit import compiled, inlined
from symrelu.kernels.pair_lists import PairList
from symrelu.kernels.row_products import (
    TOGETHER,
    add_multiples,
    four_of,
    inner_products,
    lay_out,
    padded_row,
    write_sum,
)
from symrelu.kernels.row_references import full_slack, integer_directions, rounding_of_products
from symrelu.kernels.threads import next_share, run_supply, workers_for
from symrelu.kernels.tiles import ACTIVE, ERROR, FIT, FREE, INNER, POSITIVE, Sums
from symrelu.kernels.vectors import cross_gram

# A multiplication of single rows takes as long as this many in a product of matrices.
SLOWNESS = 4

# Multiple of eps that sums of squares can lose.
_ROUNDING = 100

# Entries of a row of X that are computed at once, at most 64: their rows of U stay in the cache until they are
# summed up.
ENTRIES_AT_ONCE = 64

# Rows of a share: so few that the last ones to be taken do not keep the other threads waiting.
ROWS_OF_A_SHARE = 64


class Entries(NamedTuple):
    """Entries of a symmetric matrix by row, with columns in ascending order."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class Visited(NamedTuple):
    """The entries that a pass visits, and what counts there.

    Attributes
    ----------
    support, unknown : Entries
    listed : PairList
        At least all zeros of M with X > 0.
    zero_weight : float of the type of U
    at_least : bool
        Whether X >= M suffices on the support.
    """

    support: Entries
    unknown: Entries
    listed: PairList
    zero_weight: Any
    at_least: bool


class Directions(NamedTuple):
    """The rows of U, scaled to length one and rounded, to find entries of X that are clearly negative."""

    rows: np.ndarray  # plain rows of integers (integer_rows.py); none: nothing is looked for
    signs: np.ndarray  # int16, of the columns
    least: Any  # int32; where a product is at most this number, X is not positive, also as it is computed


class RowDesk(NamedTuple):
    """What a thread needs for a few entries of a row of X."""

    own: np.ndarray  # the row of U, with the signs, and laid out
    own_direction: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class RowSums(NamedTuple):
    """What a pass finds in each row."""

    product: np.ndarray  # of the residual and V
    sums: np.ndarray  # what Sums counts
    squares: np.ndarray  # of X, summed over the entries that are visited and not negative zeros


def directions(U: np.ndarray, signs: np.ndarray, *, wanted: bool) -> Directions:
    """Return the directions of the rows of U, or none."""
    rows = integer_directions(U if wanted else U[:0])
    columns = U.shape[1]
    least = -(full_slack(0.0, columns) + rounding_of_products(columns, U.dtype)) * SCALE**2
    return Directions(rows, signs.astype(np.int16), np.int32(max(np.floor(least), np.iinfo(np.int32).min)))


@compiled
def new_desk(U, directions):  # type: ignore[no-untyped-def]
    """Return a desk for rows of X = U * s U^T."""
    return RowDesk(
        padded_row(U),
        np.zeros(directions.rows.shape[1], np.int16),
        np.empty(ENTRIES_AT_ONCE, np.int32),
        np.empty(ENTRIES_AT_ONCE + TOGETHER - 1, U.dtype),
    )


@inlined
def begin_row(i, U, signs, directions, desk):  # type: ignore[no-untyped-def]
    """Lay out row i of U."""
    lay_out(U, i, signs, desk.own)
    if len(directions.rows) > 0:
        for c in range(directions.signs.size):
            desk.own_direction[c] = directions.signs[c] * directions.rows[i, c]


@inlined
def compute_entries(columns, first, size, U, directions, desk):  # type: ignore[no-untyped-def]
    """Write those of some columns whose entries are not clearly negative, with the entries, to a desk.

    ``size``, at most ENTRIES_AT_ONCE, are given, from the place ``first`` on, and it is returned how many are
    written.
    """
    count = 0
    if len(directions.rows) > 0:
        word, last = np.int64(0), first + size - 1
        for p in range(0, size, TOGETHER):
            a, b, c, d = four_of(columns, first + p, last)
            bits = compare_chosen(desk.own_direction, directions.rows, a, b, c, d, directions.least)
            word |= bits << np.int64(p)
        while word != 0:
            place = first + trailing_zeros(word)
            if place <= last:  # the last column may have been compared several times
                desk.columns[count] = columns[place]
                count += 1
            word &= word - 1
    else:
        for p in range(size):
            desk.columns[p] = columns[first + p]
        count = size
    inner_products(desk.own, U, desk.columns, 0, count, desk.values)
    return count


def pass_over_pairs(
    U: np.ndarray,
    signs: np.ndarray,
    V: np.ndarray | None,
    visited: Visited,
    *,
    mostly_negative: bool = False,
) -> tuple[np.ndarray | None, Sums]:
    """Return R V and the sums of squares, where R is the residual at X = U * s U^T.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signs : ndarray of shape (rank,)
        Of the columns, in the type of U.
    V : ndarray of shape (n, columns), or None
        Without V only the sums are computed.
    visited : Visited
    mostly_negative : bool
        Whether it pays to look for clearly negative entries with integers first. No result depends on it.
    """
    n, rank = U.shape
    U = np.ascontiguousarray(U)
    right = np.empty((n, 0), U.dtype) if V is None else np.ascontiguousarray(V)
    found = RowSums(np.empty(right.shape, U.dtype), np.zeros((n, len(Sums._fields))), np.empty(n))
    rounded = directions(U, signs, wanted=mostly_negative)
    supported, unknown = len(visited.support.indices), len(visited.unknown.indices)
    work = SLOWNESS * (rank + right.shape[1]) * (supported + unknown + len(visited.listed.indices))
    run_supply(
        lambda supply: add_shares(supply, U, signs, right, visited, rounded, found),
        n,
        ROWS_OF_A_SHARE,
        work,
        workers_for(work),
    )
    total = Sums(*(float(column) for column in found.sums.sum(axis=0)))
    # The other zeros have X <= 0: what is left of ||X||^2 is theirs, unless it is only rounding.
    whole = square_norm_of_gram(U, signs)
    negative = whole - float(found.squares.sum())
    others = n * n - supported - unknown - total.active
    significant = others > 0 and negative > _ROUNDING * np.finfo(np.float64).eps * whole
    return (None if V is None else found.product), total._replace(negative=negative if significant else 0.0)


def square_norm_of_gram(U: np.ndarray, signs: np.ndarray) -> float:
    """Return ||X||^2 for X = U * s U^T, in float64 and without forming X."""
    gram = cross_gram(U, U, np.float64) * signs.astype(np.float64)
    return float(np.sum(gram * gram.T))


@compiled
def add_shares(supply, U, signs, V, visited, directions, found):  # type: ignore[no-untyped-def]
    """Take shares of the rows, and write what is found in them."""
    for _ in range(supply.shares):
        first, last = next_share(supply)
        if first >= supply.total:
            return
        add_rows(first, last, U, signs, V, visited, directions, found)


@compiled
def add_rows(first, last, U, signs, V, visited, directions, found):  # type: ignore[no-untyped-def]
    """Write what is found in some rows."""
    # By name, since to take an array from a tuple counts as a reference too: see inlined.
    support, unknown, at_least = visited.support, visited.unknown, visited.at_least
    out, sums, squares = found.product, found.sums, found.squares
    desk, product = new_desk(U, directions), padded_row(V)
    for i in range(first, last):
        begin_row(i, U, signs, directions, desk)
        product[:] = 0
        seen = add_support(i, U, V, support, at_least, desk, product, sums)
        seen += add_zeros(i, U, V, visited, directions, desk, product, sums)
        for begin in range(unknown.indptr[i], unknown.indptr[i + 1], ENTRIES_AT_ONCE):
            size = min(ENTRIES_AT_ONCE, unknown.indptr[i + 1] - begin)
            inner_products(desk.own, U, unknown.indices, begin, size, desk.values)
            for p in range(size):
                square = np.float64(desk.values[p]) * np.float64(desk.values[p])
                seen += square
                sums[i, FREE] += square
        squares[i] = seen
        write_sum(product, out, i)


@inlined
def add_support(i, U, V, support, at_least, desk, product, sums):  # type: ignore[no-untyped-def]
    """Add the part of the support to a row of the product and to its sums, and return the squares of X."""
    fit = error = free = inner = seen = 0.0
    for begin in range(support.indptr[i], support.indptr[i + 1], ENTRIES_AT_ONCE):
        end = min(begin + ENTRIES_AT_ONCE, support.indptr[i + 1])
        inner_products(desk.own, U, support.indices, begin, end - begin, desk.values)
        count = 0
        for p in range(begin, end):
            x, m = desk.values[p - begin], support.values[p]
            seen += np.float64(x) * np.float64(x)
            if at_least and x > m:
                free += np.float64(x) * np.float64(x) - np.float64(m) * np.float64(m)
                continue
            e = x - m
            d = m - (0 * x if x <= 0 else x)
            fit += np.float64(e) * np.float64(e)
            error += np.float64(d) * np.float64(d)
            inner -= np.float64(e) * np.float64(x)
            desk.columns[count], desk.values[count] = support.indices[p], -e
            count += 1
        add_multiples(V, desk.columns, desk.values, count, product)
    sums[i, FIT], sums[i, ERROR], sums[i, FREE], sums[i, INNER] = fit, error, free, inner
    return seen


@inlined
def add_zeros(i, U, V, visited, directions, desk, product, sums):  # type: ignore[no-untyped-def]
    """Add the part of the positive zeros to a row of the product and to its sums, and return their squares."""
    listed, above, active = visited.listed, 0.0, 0
    for begin in range(listed.indptr[i], listed.indptr[i + 1], ENTRIES_AT_ONCE):
        size = min(ENTRIES_AT_ONCE, listed.indptr[i + 1] - begin)
        computed, count = compute_entries(listed.indices, begin, size, U, directions, desk), 0
        for p in range(computed):
            x = desk.values[p]
            if x > 0:
                above += np.float64(x) * np.float64(x)
                desk.columns[count], desk.values[count] = desk.columns[p], -visited.zero_weight * x
                count += 1
        add_multiples(V, desk.columns, desk.values, count, product)
        active += count
    sums[i, POSITIVE], sums[i, ACTIVE] = above, active
    return above
