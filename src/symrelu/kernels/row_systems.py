"""A small linear system for each row of M.

With the support S of row i and V_S the corresponding rows of V, the system is (V_S^T V_S + ridge) x = b. If the
row has fewer entries than V has columns, Woodbury's identity reduces it to a system of the size of S:

    x = z - T_S^T (I + V_S T_S^T)^-1 V_S z,        T = V ridge^-1,  z = ridge^-1 b.
"""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled


@compiled
def solve_rows(indptr, indices, V, ridge, T, Z, right, out):  # type: ignore[no-untyped-def]
    """Solve the systems of the first rows of ``indptr``, as many as ``right`` has.

    T is V ridge^-1. Each row of ``right[i]`` is one right-hand side of system i, and Z is ``right`` times
    ridge^-1. The solutions are written to ``out``.
    """
    rank = V.shape[1]
    longest = 0
    for i in range(len(right)):
        longest = max(longest, indptr[i + 1] - indptr[i])
    side = min(longest, rank)
    system = np.empty((side, side), V.dtype)
    x = np.empty(side, V.dtype)
    for i in range(len(right)):
        neighbours = indices[indptr[i] : indptr[i + 1]]
        if neighbours.size < rank:
            solve_short_row(neighbours, V, T, Z[i], out[i], system, x)
        else:
            solve_long_row(neighbours, V, ridge, right[i], out[i], system, x)


@compiled
def solve_short_row(neighbours, V, T, Z, out, system, x):  # type: ignore[no-untyped-def]
    """Solve the system of a row with fewer entries than columns, by Woodbury's identity."""
    k, rank = neighbours.size, V.shape[1]
    for a in range(k):
        for b in range(a + 1):
            total = V.dtype.type(1 if a == b else 0)
            for c in range(rank):
                total += V[neighbours[a], c] * T[neighbours[b], c]
            system[a, b] = total
    factorise(system, k)
    for m in range(len(Z)):
        for a in range(k):
            total = V.dtype.type(0)
            for c in range(rank):
                total += V[neighbours[a], c] * Z[m, c]
            x[a] = total
        substitute(system, x, k)
        for c in range(rank):
            out[m, c] = Z[m, c]
        for a in range(k):
            for c in range(rank):
                out[m, c] -= T[neighbours[a], c] * x[a]


@compiled
def solve_long_row(neighbours, V, ridge, right, out, system, x):  # type: ignore[no-untyped-def]
    """Solve the system of a row with at least as many entries as columns, without a transformation."""
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
    for m in range(len(right)):
        x[:rank] = right[m]
        substitute(system, x, rank)
        out[m] = x[:rank]


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
