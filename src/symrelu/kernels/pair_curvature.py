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

from symrelu.kernels.jit import compiled
from symrelu.kernels.pair_lists import PairList, scan_all
from symrelu.kernels.pair_passes import Entries, PositivePairs, positive_pairs, product_of_rows
from symrelu.kernels.row_references import new_references
from symrelu.kernels.row_systems import factorise, substitute
from symrelu.kernels.threads import run_tasks, shares, workers_for

# A multiplication in a product of two single rows takes as long as this many in a product of matrices.
_SLOWNESS = 12


class CurvedPairs(NamedTuple):
    """The pairs that have curvature, by row: both i, j and j, i."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    weights: np.ndarray  # of A
    excess: np.ndarray  # of E


def near_pairs(U: np.ndarray, signs: np.ndarray, listed: PairList, reach: float) -> PositivePairs:
    """Return the listed pairs with X > -reach |u_i| |u_j|.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signs : ndarray of shape (rank,)
        Of the columns, in the type of U.
    listed : PairList
    reach : float
    """
    return positive_pairs(U, U * signs, listed, _widths(U, reach))


def _widths(U: np.ndarray, reach: float) -> np.ndarray:
    """Return numbers whose products are reach |u_i| |u_j|."""
    return np.sqrt(U.dtype.type(reach) * np.sum(U * U, axis=1))


def curved_pairs(
    U: np.ndarray,
    signs: np.ndarray,
    support: Entries,
    near: PositivePairs,
    zero_weight: Any,
    at_least: bool,
    reach: float,
) -> CurvedPairs:
    """Return the pairs that have curvature at U, or within reach of it.

    Parameters
    ----------
    U, signs, support, zero_weight, at_least
        As in :func:`~symrelu.kernels.pair_passes.pass_over_pairs`.
    near : PositivePairs
        All zeros of M that :func:`near_pairs` returns with this reach.
    reach : float
    """
    n, rank = U.shape
    signed, widths = U * signs, _widths(U, reach)
    lengths = np.diff(support.indptr) + np.diff(near.indptr) + np.diff(near.mirrored.indptr)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    size = indptr[-1]
    pairs = CurvedPairs(indptr, np.empty(size, np.int32), np.empty(size, U.dtype), np.empty(size, U.dtype))
    workers = workers_for(_SLOWNESS * rank * len(support.indices))
    run_tasks(
        lambda part: fill_rows(
            part.start, part.stop, signed, U, widths, support, near, zero_weight, at_least, pairs
        ),
        shares(n, workers),
        workers,
    )
    return pairs


@compiled
def fill_rows(first, last, A, B, widths, support, near, zero_weight, at_least, pairs):  # type: ignore[no-untyped-def]
    """Write the pairs of some rows: first the support, then the near zeros in the order of the columns."""
    one, mirrored = A.dtype.type(1), near.mirrored
    for i in range(first, last):
        at = pairs.indptr[i]
        for p in range(support.indptr[i], support.indptr[i + 1]):
            j, m = support.indices[p], support.values[p]
            e = product_of_rows(A, i, B, j) - m
            free = e if at_least and e > 0 else 0 * e
            write_pair(pairs, at, j, one, free, widths[i] * widths[j], 0 * e if free > 0 else e)
            at += 1
        for q in range(mirrored.indptr[i], mirrored.indptr[i + 1]):
            j, x = mirrored.rows[q], near.values[mirrored.places[q]]
            write_pair(pairs, at, j, zero_weight, -x, widths[i] * widths[j], zero_weight * max(x, 0 * x))
            at += 1
        for p in range(near.indptr[i], near.indptr[i + 1]):
            j, x = near.indices[p], near.values[p]
            write_pair(pairs, at, j, zero_weight, -x, widths[i] * widths[j], zero_weight * max(x, 0 * x))
            at += 1


@compiled
def write_pair(pairs, at, j, weight, distance, width, excess):  # type: ignore[no-untyped-def]
    """Write a pair whose X is at a distance from where it would have an excess."""
    if distance > 0:
        part = 1 - distance / width if distance < width else 0 * width
        weight = weight * part * part
    pairs.indices[at] = j
    pairs.weights[at] = weight
    pairs.excess[at] = excess


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
    D = np.ascontiguousarray(D)
    out = np.empty((n, rank), V.dtype)
    weight = V.dtype.type(alpha)
    workers = workers_for(2 * _SLOWNESS * rank * len(pairs.indices))
    run_tasks(
        lambda part: multiply_rows(part.start, part.stop, pairs, V, signs, D, weight, out),
        shares(n, workers),
        workers,
    )
    return out


@compiled
def multiply_rows(first, last, pairs, V, signs, D, alpha, out):  # type: ignore[no-untyped-def]
    """Write some rows of the product."""
    rank = V.shape[1]
    along_V, along_D = np.empty(rank, V.dtype), np.empty(rank, V.dtype)
    for i in range(first, last):
        along_V[:] = 0
        along_D[:] = 0
        for p in range(pairs.indptr[i], pairs.indptr[i + 1]):
            j, e = pairs.indices[p], pairs.excess[p]
            change = V.dtype.type(0)
            for c in range(rank):
                change += D[i, c] * V[j, c] + V[i, c] * D[j, c]
            change *= pairs.weights[p]
            for c in range(rank):
                along_V[c] += change * V[j, c]
            if e != 0:  # not so for pairs that are only near
                for c in range(rank):
                    along_D[c] += e * D[j, c]
        for c in range(rank):
            out[i, c] = 2 * (along_V[c] + signs[c] * along_D[c]) + alpha * D[i, c]


def factored_rows(pairs: CurvedPairs, V: np.ndarray, ridge: float) -> np.ndarray:
    """Return the Cholesky factors of the second derivative with respect to each row alone, plus a ridge.

    The part with the excess is left out, so that the matrices are positive definite.

    Parameters
    ----------
    pairs : CurvedPairs
    V : ndarray of shape (n, rank)
        U * s.
    ridge : float

    Returns
    -------
    factors : ndarray of shape (n, rank, rank)
        In the lower triangles.
    """
    n, rank = V.shape
    factors = np.empty((n, rank, rank), V.dtype)
    added = V.dtype.type(ridge)
    workers = workers_for(_SLOWNESS * rank * rank * (len(pairs.indices) / 2 + n * rank / 6))
    run_tasks(
        lambda part: factor_rows(part.start, part.stop, pairs, V, added, factors),
        shares(n, workers),
        workers,
    )
    return factors


@compiled
def factor_rows(first, last, pairs, V, ridge, factors):  # type: ignore[no-untyped-def]
    """Write the factors of some rows."""
    rank, longest = V.shape[1], 0
    for i in range(first, last):
        longest = max(longest, pairs.indptr[i + 1] - pairs.indptr[i])
    rows = np.empty((longest, rank), V.dtype)
    for i in range(first, last):
        size = 0
        for p in range(pairs.indptr[i], pairs.indptr[i + 1]):
            j = pairs.indices[p]
            # X_ii changes by twice <d_i, v_i>.
            root = np.sqrt((4 if i == j else 2) * pairs.weights[p])
            if root > 0:
                for c in range(rank):
                    rows[size, c] = root * V[j, c]
                size += 1
        block = factors[i]
        if size > 0:
            np.dot(rows[:size].T, rows[:size], block)
        else:
            block[:] = 0
        for c in range(rank):
            block[c, c] += ridge
        factorise(block, rank)


def solve_factored(factors: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the solutions of the systems of all rows, for right-hand sides in the rows of G."""
    n, rank = G.shape
    out = np.empty_like(G)
    workers = workers_for(_SLOWNESS * rank * G.size)
    run_tasks(
        lambda part: solve_part(part.start, part.stop, factors, G, out),
        shares(n, workers),
        workers,
    )
    return out


@compiled
def solve_part(first, last, factors, G, out):  # type: ignore[no-untyped-def]
    """Solve the systems of some rows."""
    for i in range(first, last):
        out[i] = G[i]
        substitute(factors[i], out[i], len(out[i]))


@lru_cache
def compile_curvature(dtype: np.dtype[Any]) -> None:
    """Call every function that a second derivative needs, also the scan for its pairs, on almost nothing."""
    U, one = np.ones((2, 1), dtype), np.ones(1, dtype)
    support = Entries(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.ones(2, dtype))
    known = csr_array((support.values, support.indices, support.indptr), shape=(2, 2))
    listed = scan_all(new_references(U, one), 0.1, known, 3)
    near = near_pairs(U, one, listed, 0.1)
    pairs = curved_pairs(U, one, support, near, dtype.type(1), False, 0.1)
    solve_factored(factored_rows(pairs, U, 1.0), curvature_product(pairs, U, one, 0.0, U))
