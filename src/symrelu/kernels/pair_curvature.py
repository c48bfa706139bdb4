"""The second derivative of the objective on the pairs that matter, as a product with a direction.

With the excess E = X - W and the weight a_ij of a pair (1 on the support, the weight of the zeros where they
have X > 0, 0 where any X is right), the second derivative of the objective without its penalty, in the
direction D, is

    H[D] = 2 E (D * s) + 2 (A o (D V^T + V D^T)) V,        V = U * s.

E and A are zero at all other pairs, so a product visits the support and the positive zeros only
(:mod:`symrelu.kernels.pair_passes`).

A step along which zeros with X < 0 become positive meets curvature that H does not have. For a pair with
X = -b |u_i| |u_j| that changes by at most reach |u_i| |u_j|, the square of its positive part is at most
(1 - b / reach)^2 times the square of the change. Pairs with b < reach are therefore given that weight, which
makes the quadratic model an upper bound, to the first order in D, of the objective for such steps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from symrelu.kernels.curved_rows import factored_rows, solve_factored
from symrelu.kernels.jit import compiled, inlined
from symrelu.kernels.pair_lists import PairList, scan_all
from symrelu.kernels.pair_passes import ENTRIES_AT_ONCE, ROWS_OF_A_SHARE, SLOWNESS, Entries
from symrelu.kernels.row_products import TOGETHER, add_multiples, inner_products, lay_out, padded_row, write_sum
from symrelu.kernels.row_references import new_references
from symrelu.kernels.threads import next_share, run_supply, run_tasks, shares, workers_for
from symrelu.kernels.vectors import concatenated


class CurvedPairs(NamedTuple):
    """The pairs that have curvature, by row: first those of the support, then zeros; both i, j and j, i."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    weights: np.ndarray  # of A
    excess: np.ndarray  # of E


def curved_pairs(
    U: np.ndarray,
    signs: np.ndarray,
    support: Entries,
    listed: PairList,
    reach: float,
    *,
    zero_weight: Any,
    at_least: bool,
) -> CurvedPairs:
    """Return the pairs that have curvature at U, or within reach of it.

    Parameters
    ----------
    U, signs, support, zero_weight, at_least
        As in :func:`~symrelu.kernels.pair_passes.pass_over_pairs` and what it visits.
    listed : PairList
        At least all zeros of M with X > -reach |u_i| |u_j|.
    reach : float
    """
    n, rank = U.shape
    U = np.ascontiguousarray(U)
    widths = np.sqrt(U.dtype.type(reach) * np.sum(U * U, axis=1))  # their products are reach |u_i| |u_j|
    workers = workers_for(SLOWNESS * rank * (len(support.indices) + len(listed.indices)))
    parts = shares(n, workers)
    found: list[Any] = [None] * len(parts)
    counts = np.empty(n, np.int64)

    def find(number: int) -> None:
        part = parts[number]
        first, last = part.start, part.stop
        found[number] = list(
            curved_part(first, last, U, signs, widths, support, listed, zero_weight, at_least, counts)
        )

    run_tasks(find, range(len(parts)), workers)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    # What is joined is released before the next.
    types = (np.int32, U.dtype, U.dtype)
    return CurvedPairs(indptr, *(concatenated([part.pop(0) for part in found], kind) for kind in types))


@compiled
def curved_part(  # type: ignore[no-untyped-def]
    first, last, U, signs, widths, support, listed, zero_weight, at_least, counts
):
    """Return the columns, weights and excesses of some rows, and write how many each has."""
    most = support.indptr[last] - support.indptr[first] + listed.indptr[last] - listed.indptr[first]
    columns, weights, excesses = np.empty(most, np.int32), np.empty(most, U.dtype), np.empty(most, U.dtype)
    own, values, one, at = padded_row(U), np.empty(ENTRIES_AT_ONCE + TOGETHER - 1, U.dtype), U.dtype.type(1), 0
    # By name, since to take an array from a tuple counts as a reference too: see inlined.
    support_columns, listed_columns = support.indices, listed.indices
    for i in range(first, last):
        before = at
        lay_out(U, i, signs, own)
        for begin in range(support.indptr[i], support.indptr[i + 1], ENTRIES_AT_ONCE):
            end = min(begin + ENTRIES_AT_ONCE, support.indptr[i + 1])
            inner_products(own, U, support_columns, begin, end - begin, values)
            for p in range(begin, end):
                j, e = support_columns[p], values[p - begin] - support.values[p]
                free, width = e if at_least and e > 0 else 0 * e, widths[i] * widths[j]
                excess = 0 * e if free > 0 else e
                write_pair(columns, weights, excesses, at, j, one, free, width, excess)
                at += 1
        for begin in range(listed.indptr[i], listed.indptr[i + 1], ENTRIES_AT_ONCE):
            end = min(begin + ENTRIES_AT_ONCE, listed.indptr[i + 1])
            inner_products(own, U, listed_columns, begin, end - begin, values)
            for p in range(begin, end):
                j, x = listed_columns[p], values[p - begin]
                width = widths[i] * widths[j]
                if x > -width:
                    excess = zero_weight * max(x, 0 * x)
                    write_pair(columns, weights, excesses, at, j, zero_weight, -x, width, excess)
                    at += 1
        counts[i] = at - before
    return columns[:at].copy(), weights[:at].copy(), excesses[:at].copy()


@inlined
def write_pair(  # type: ignore[no-untyped-def]
    columns, weights, excesses, at, j, weight, distance, width, excess
):
    """Write a pair whose X is at a distance from where it would have an excess."""
    if distance > 0:
        part = 1 - distance / width if distance < width else 0 * width
        weight = weight * part * part
    columns[at] = j
    weights[at] = weight
    excesses[at] = excess


def curvature_product(
    pairs: CurvedPairs, V: np.ndarray, signs: np.ndarray, alpha: float, D: np.ndarray
) -> np.ndarray:
    """Return the second derivative of the objective at U in the direction D.

    Parameters
    ----------
    pairs : CurvedPairs
        Those of U.
    V, D : ndarray of shape (n, rank)
        V is U * signs.
    signs : ndarray of shape (rank,)
        Of the columns, in the type of U.
    alpha : float
        Weight of the penalty alpha / 2 ||U||^2.
    """
    n, rank = V.shape
    V, D = np.ascontiguousarray(V), np.ascontiguousarray(D)
    out = np.empty((n, rank), V.dtype)
    weight = V.dtype.type(alpha)
    work = 4 * SLOWNESS * rank * len(pairs.indices)
    run_supply(
        lambda supply: multiply_shares(supply, pairs, V, signs, D, weight, out),
        n,
        ROWS_OF_A_SHARE,
        work,
        workers_for(work),
    )
    return out


@compiled
def multiply_shares(supply, pairs, V, signs, D, alpha, out):  # type: ignore[no-untyped-def]
    """Take shares of the rows of the product, and write them."""
    for _ in range(supply.shares):
        first, last = next_share(supply)
        if first >= supply.total:
            return
        multiply_rows(first, last, pairs, V, signs, D, alpha, out)


@compiled
def multiply_rows(first, last, pairs, V, signs, D, alpha, out):  # type: ignore[no-untyped-def]
    """Write some rows of the product."""
    plus, along = np.ones_like(signs), np.empty((2, V.shape[1]), V.dtype)
    own_V, own_D, sum_of_V, sum_of_D = padded_row(V), padded_row(D), padded_row(V), padded_row(D)
    changes = np.empty(ENTRIES_AT_ONCE + TOGETHER - 1, V.dtype)
    others, columns = np.empty_like(changes), np.empty(ENTRIES_AT_ONCE, np.int32)
    indices = pairs.indices  # by name: see inlined
    for i in range(first, last):
        lay_out(V, i, plus, own_V)
        lay_out(D, i, plus, own_D)
        sum_of_V[:] = 0
        sum_of_D[:] = 0
        for begin in range(pairs.indptr[i], pairs.indptr[i + 1], ENTRIES_AT_ONCE):
            size = min(ENTRIES_AT_ONCE, pairs.indptr[i + 1] - begin)
            inner_products(own_D, V, indices, begin, size, changes)
            inner_products(own_V, D, indices, begin, size, others)
            for p in range(size):
                columns[p] = indices[begin + p]
                changes[p] = pairs.weights[begin + p] * (changes[p] + others[p])
            add_multiples(V, columns, changes, size, sum_of_V)
            count = 0
            for p in range(size):  # pairs that are only near have no excess
                columns[count], others[count] = columns[p], pairs.excess[begin + p]
                count += pairs.excess[begin + p] != 0
            add_multiples(D, columns, others, count, sum_of_D)
        write_sum(sum_of_V, along, 0)
        write_sum(sum_of_D, along, 1)
        for c in range(V.shape[1]):
            out[i, c] = 2 * (along[0, c] + signs[c] * along[1, c]) + alpha * D[i, c]


@lru_cache
def compile_curvature(dtype: np.dtype[Any]) -> None:
    """Call every function that a second derivative needs, also the scan for its pairs, on almost nothing."""
    U, one = np.ones((2, 1), dtype), np.ones(1, dtype)
    support = Entries(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.ones(2, dtype))
    known = csr_array((support.values, support.indices, support.indptr), shape=(2, 2))
    listed = scan_all(new_references(U, one), 0.1, known, 3)
    pairs = curved_pairs(U, one, support, listed, 0.1, zero_weight=dtype.type(1), at_least=False)
    solve_factored(factored_rows(pairs, U, 1.0), curvature_product(pairs, U, one, 0.0, U))
