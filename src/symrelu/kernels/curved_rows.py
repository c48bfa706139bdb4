"""The second derivative with respect to each row alone, factored: a preconditioner for products with all of it.

For row i it is the sum of 2 a_ij v_j v_j^T over the pairs i, j that have curvature, of weights a_ij, plus a
ridge. The part with the excess is left out, so that the matrices are positive definite. Several rows are
factored and solved side by side (:mod:`symrelu.kernels.lanes`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.kernels.jit import compiled, inlined
from symrelu.kernels.lanes import LANES, UNROLLED
from symrelu.kernels.row_systems import factorised, read_lanes, rounds_of, substitute_lanes, write_lanes
from symrelu.kernels.threads import next_share, run_supply, workers_for

# A multiplication in a system of a row takes as long as this many in a product of matrices.
_SLOWNESS = 6

# Groups of rows of a share.
_GROUPS_OF_A_SHARE = 8

# Entries of a row that are copied next to each other for one matrix product.
_ENTRIES_OF_A_PRODUCT = 128


def factored_rows(pairs: Any, V: np.ndarray, ridge: float) -> np.ndarray:
    """Return the Cholesky factors of the second derivative with respect to each row alone, plus a ridge.

    Parameters
    ----------
    pairs : CurvedPairs
    V : ndarray of shape (n, rank)
        U * s.
    ridge : float

    Returns
    -------
    factors : ndarray of shape (groups, rank * (rank + 1) // 2, LANES)
        The lower triangles, row by row, of the rows of each group of LANES rows.
    """
    n, rank = V.shape
    factors = np.empty((-(-n // LANES), rank * (rank + 1) // 2, LANES), V.dtype)
    added = V.dtype.type(ridge)
    work = _SLOWNESS * rank * rank * (len(pairs.indices) / 2 + n * rank / 6)
    run_supply(
        lambda supply: factor_shares(supply, pairs, V, added, factors),
        len(factors),
        _GROUPS_OF_A_SHARE,
        work,
        workers_for(work),
    )
    return factors


@compiled
def factor_shares(supply, pairs, V, ridge, factors):  # type: ignore[no-untyped-def]
    """Take shares of the groups, and factor their systems."""
    for _ in range(supply.shares):
        first, last = next_share(supply)
        if first >= supply.total:
            return
        factor_groups(first, last, pairs, V, ridge, factors)


@compiled
def factor_groups(first, last, pairs, V, ridge, factors):  # type: ignore[no-untyped-def]
    """Write the factors of some groups of rows."""
    rank = V.shape[1]
    size = UNROLLED * rounds_of(rank)
    system = np.zeros(((size + UNROLLED) * size, LANES), V.dtype)
    square, product = np.empty((rank, rank), V.dtype), np.empty((rank, rank), V.dtype)
    weighted = np.empty((_ENTRIES_OF_A_PRODUCT, rank), V.dtype)
    indptr = pairs.indptr  # by name: see inlined
    for group in range(first, last):
        for lane in range(LANES):
            i = min(group * LANES + lane, len(V) - 1)  # in lanes that are left over, the last row again
            square[:] = 0
            for begin in range(indptr[i], indptr[i + 1], _ENTRIES_OF_A_PRODUCT):
                end = min(begin + _ENTRIES_OF_A_PRODUCT, indptr[i + 1])
                count = write_weighted(i, begin, end, pairs, V, weighted)
                if count > 0:
                    np.dot(weighted[:count].T, weighted[:count], product)
                    square += product
            for a in range(rank):
                for b in range(a + 1):
                    system[a * size + b, lane] = square[a, b]
                system[a * size + a, lane] += ridge
        L, at = factorised(system, rank, size), 0
        for a in range(rank):
            for b in range(a + 1):
                for lane in range(LANES):
                    factors[group, at, lane] = L[a * size + b, lane]
                at += 1


@inlined
def write_weighted(i, first, last, pairs, V, weighted):  # type: ignore[no-untyped-def]
    """Write the rows of V at some entries, times the roots of the weights, and return their number."""
    count = 0
    for p in range(first, last):
        j = pairs.indices[p]
        # X_ii changes by twice <d_i, v_i>.
        root = np.sqrt((4 if i == j else 2) * pairs.weights[p])
        if root > 0:
            for c in range(V.shape[1]):
                weighted[count, c] = root * V[j, c]
            count += 1
    return count


def solve_factored(factors: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the solutions of the systems of all rows, for right-hand sides in the rows of G."""
    out, rank = np.empty_like(G), G.shape[1]
    work = _SLOWNESS * rank * G.size
    run_supply(
        lambda supply: solve_factored_shares(supply, factors, G, out),
        len(factors),
        _GROUPS_OF_A_SHARE,
        work,
        workers_for(work),
    )
    return out


@compiled
def solve_factored_shares(supply, factors, G, out):  # type: ignore[no-untyped-def]
    """Take shares of the groups, and solve their systems."""
    for _ in range(supply.shares):
        first, last = next_share(supply)
        if first >= supply.total:
            return
        solve_groups(first, last, factors, G, out)


@compiled
def solve_groups(first, last, factors, G, out):  # type: ignore[no-untyped-def]
    """Solve the systems of some groups of rows."""
    n, rank = G.shape
    size = UNROLLED * rounds_of(rank)
    if size % 16 == 0:  # or the vectors of a column would share a few places of the caches
        size += UNROLLED
    L, x = np.zeros(((size + UNROLLED) * size, LANES), G.dtype), np.zeros((size, LANES), G.dtype)
    for group in range(first, last):
        at = 0
        for a in range(rank):
            for b in range(a + 1):
                for lane in range(LANES):
                    L[a * size + b, lane] = factors[group, at, lane]
                at += 1
        rows = np.arange(group * LANES, min((group + 1) * LANES, n))
        read_lanes(rows, G, x)
        substitute_lanes(L, x, rank, size)
        write_lanes(rows, x, out)
