"""A small linear system for each row of M.

With the support S of row i and V_S the corresponding rows of V, the system is (V_S^T V_S + ridge) x = b. If the
row has fewer entries than V has columns, Woodbury's identity reduces it to a system of the size of S:

    x = z - T_S^T (I + V_S T_S^T)^-1 V_S z,        T = V ridge^-1,  z = ridge^-1 b.
"""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled


@compiled
def solve_rows(first, last, indptr, indices, V, ridge, inverse, T, right, out):  # type: ignore[no-untyped-def]
    """Solve the systems of the rows from ``first`` to ``last``.

    ``inverse`` is that of the ridge, and T is V times it. ``right`` and ``out`` are tuples of arrays of the
    shape of V: row i of each array in ``right`` is a right-hand side of system i, and its solution is written
    to the same row of ``out``.
    """
    rank = V.shape[1]
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    side = min(longest, rank)
    system = np.empty((side, side), V.dtype)
    x = np.empty(side, V.dtype)
    for m in range(len(right)):
        np.dot(right[m][first:last], inverse, out[m][first:last])
    for i in range(first, last):
        neighbours = indices[indptr[i] : indptr[i + 1]]
        if neighbours.size < rank:
            form_short_system(neighbours, V, T, system)
            for m in range(len(right)):
                solve_short_row(neighbours, V, T, system, x, out[m][i])
        else:
            form_long_system(neighbours, V, ridge, system)
            for m in range(len(right)):
                solve_long_row(right[m][i], system, x, out[m][i])


@compiled
def form_short_system(neighbours, V, T, system):  # type: ignore[no-untyped-def]
    """Write the Cholesky factor of I + V_S T_S^T, for a row with fewer entries than columns."""
    for a in range(neighbours.size):
        for b in range(a + 1):
            total = V.dtype.type(1 if a == b else 0)
            for c in range(V.shape[1]):
                total += V[neighbours[a], c] * T[neighbours[b], c]
            system[a, b] = total
    factorise(system, neighbours.size)


@compiled
def solve_short_row(neighbours, V, T, system, x, out):  # type: ignore[no-untyped-def]
    """Overwrite z = ridge^-1 b by the solution, by Woodbury's identity."""
    k, rank = neighbours.size, V.shape[1]
    for a in range(k):
        total = V.dtype.type(0)
        for c in range(rank):
            total += V[neighbours[a], c] * out[c]
        x[a] = total
    substitute(system, x, k)
    for a in range(k):
        for c in range(rank):
            out[c] -= T[neighbours[a], c] * x[a]


@compiled
def form_long_system(neighbours, V, ridge, system):  # type: ignore[no-untyped-def]
    """Write the Cholesky factor of V_S^T V_S + ridge, for a row with at least as many entries as columns."""
    rank = V.shape[1]
    for a in range(rank):
        for b in range(a + 1):
            system[a, b] = ridge[a, b]
    for p in range(neighbours.size):
        v = V[neighbours[p]]
        for a in range(rank):
            for b in range(a + 1):
                system[a, b] += v[a] * v[b]
    factorise(system, rank)


@compiled
def solve_long_row(right, system, x, out):  # type: ignore[no-untyped-def]
    """Write the solution without a transformation."""
    for c in range(len(right)):
        x[c] = right[c]
    substitute(system, x, len(right))
    for c in range(len(right)):
        out[c] = x[c]


@compiled
def factorise(A, n):  # type: ignore[no-untyped-def]
    """Overwrite the lower triangle of the leading n x n part of A by its Cholesky factor.

    A pivot that rounding has made nonpositive becomes infinite: that unknown is then zero in every solution.
    """
    # Written out because LAPACK would stop at such a pivot.
    for j in range(n):
        for k in range(j):
            A[j, j] -= A[j, k] * A[j, k]
        A[j, j] = np.sqrt(A[j, j]) if A[j, j] > 0 else np.inf
        for i in range(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / A[j, j]


@compiled
def substitute(L, x, n):  # type: ignore[no-untyped-def]
    """Overwrite x by the solution y of L L^T y = x."""
    for i in range(n):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= L[k, i] * x[k]
        x[i] /= L[i, i]
