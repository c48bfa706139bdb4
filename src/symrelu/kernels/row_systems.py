"""A small linear system for each row of M.

With the support S of row i and V_S the corresponding rows of V, the system is (V_S^T V_S + ridge) x = b. If the
row has fewer entries than V has columns, Woodbury's identity reduces it to a system of the size of S:

    x = z - T_S^T (I + V_S T_S^T)^-1 V_S z,        T = V ridge^-1,  z = ridge^-1 b.
"""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled

# Rows that are copied next to each other for one matrix product.
_ROWS_OF_A_PRODUCT = 128


@compiled
def solve_rows(first, last, indptr, indices, V, ridge, T, right, out):  # type: ignore[no-untyped-def]
    """Solve the systems of the rows from ``first`` to ``last``.

    T is V times the inverse of the ridge. ``right`` and ``out`` are tuples of arrays of the shape of V: row i
    of each array in ``right`` is a right-hand side of system i, and the same row of ``out``, which holds it
    times that inverse, is overwritten by the solution.
    """
    rank = V.shape[1]
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    side = min(longest, rank)
    system = np.empty((side, side), V.dtype)
    x = np.empty(side, V.dtype)
    V_S = np.empty((min(longest, max(_ROWS_OF_A_PRODUCT, rank)), rank), V.dtype)
    T_S, product = np.empty((side, rank), V.dtype), np.empty((rank, rank), V.dtype)
    for i in range(first, last):
        neighbours = indices[indptr[i] : indptr[i + 1]]
        if neighbours.size < rank:
            for a in range(neighbours.size):  # next to each other, they are read much faster
                copy(V[neighbours[a]], V_S[a])
                copy(T[neighbours[a]], T_S[a])
            form_short_system(neighbours.size, V_S, T_S, system)
            for m in range(len(right)):
                solve_short_row(neighbours.size, V_S, T_S, system, x, out[m][i])
        else:
            form_long_system(neighbours, V, ridge, V_S, product, system)
            for m in range(len(right)):
                solve_long_row(right[m][i], system, x, out[m][i])


@compiled
def form_short_system(k, V_S, T_S, system):  # type: ignore[no-untyped-def]
    """Factorise I + V_S T_S^T, for a row with fewer entries than columns."""
    for a in range(k):
        for b in range(a + 1):
            system[a, b] = inner_product(V_S[a], T_S[b])
        system[a, a] += V_S.dtype.type(1)
    factorise(system, k)


@compiled
def solve_short_row(k, V_S, T_S, system, x, out):  # type: ignore[no-untyped-def]
    """Overwrite z = ridge^-1 b by the solution, by Woodbury's identity."""
    for a in range(k):
        x[a] = inner_product(V_S[a], out)
    substitute(system, x, k)
    for a in range(k):
        subtract_multiple(out, x[a], T_S[a])


@compiled
def form_long_system(neighbours, V, ridge, V_S, product, system):  # type: ignore[no-untyped-def]
    """Factorise V_S^T V_S + ridge, for a row with at least as many entries as columns."""
    rank = V.shape[1]
    for a in range(rank):
        copy(ridge[a], system[a])
    for first in range(0, neighbours.size, len(V_S)):  # BLAS multiplies them several times as fast
        part = neighbours[first : first + len(V_S)]
        for a in range(part.size):
            copy(V[part[a]], V_S[a])
        np.dot(V_S[: part.size].T, V_S[: part.size], product)
        for a in range(rank):
            subtract_multiple(system[a], V.dtype.type(-1), product[a])
    factorise(system, rank)


@compiled
def solve_long_row(right, system, x, out):  # type: ignore[no-untyped-def]
    """Write the solution without a transformation."""
    copy(right, x)
    substitute(system, x, len(right))
    copy(x[: len(right)], out)


@compiled
def factorise(A, n):  # type: ignore[no-untyped-def]
    """Overwrite the lower triangle of the leading n x n part of A by its Cholesky factor.

    In place of the diagonal it has the reciprocals, since divisions are slow. That of a pivot that rounding has
    made nonpositive is zero: that unknown is then zero in every solution.
    """
    # Written out because LAPACK would stop at such a pivot.
    for j in range(n):
        row = A[j]
        for k in range(j):
            row[k] = (row[k] - inner_product(row[:k], A[k, :k])) * A[k, k]
        pivot = row[j] - inner_product(row[:j], row[:j])
        row[j] = 1 / np.sqrt(pivot) if pivot > 0 else 0.0


@compiled
def substitute(L, x, n):  # type: ignore[no-untyped-def]
    """Overwrite x by the solution y of L L^T y = x, for L as :func:`factorise` gives it."""
    for i in range(n):
        x[i] = (x[i] - inner_product(L[i, :i], x[:i])) * L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] *= L[i, i]
        subtract_multiple(x[:i], x[i], L[i, :i])  # by rows: columns of L are not next to each other


# Loops over one-dimensional slices, from zero on, vectorise.


@compiled
def inner_product(a, b):  # type: ignore[no-untyped-def]
    """Return the sum of a * b."""
    total = a.dtype.type(0)
    for c in range(a.size):
        total += a[c] * b[c]
    return total


@compiled
def subtract_multiple(a, weight, b):  # type: ignore[no-untyped-def]
    """Subtract a multiple of b from a."""
    for c in range(a.size):
        a[c] -= weight * b[c]


@compiled
def copy(a, b):  # type: ignore[no-untyped-def]
    """Write a to the beginning of b."""
    for c in range(a.size):
        b[c] = a[c]
