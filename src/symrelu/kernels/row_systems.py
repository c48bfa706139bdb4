"""A small linear system for each row of M.

With the support S of row i and V_S the corresponding rows of V, the system is (V_S^T V_S + ridge) x = b. With a
matrix C such that C C^T = ridge^-1, W = V C, x = C y and z = C^T b, it becomes

    (W_S^T W_S + I) y = z.

If the row has fewer entries than V has columns, Woodbury's identity reduces it to a system of the size of S:

    y = z - W_S^T (I + W_S W_S^T)^-1 W_S z.

Such systems are too small for the vectors of a processor, so several are solved side by side, one in each lane
(:mod:`symrelu.kernels.lanes`): rows of similar length, filled up with entries of zero. These change no bit of a
solution, which therefore does not depend on the rows that are solved with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symrelu.kernels.jit import compiled, inlined
from symrelu.kernels.lanes import LANES, UNROLLED, subtract_products
from symrelu.kernels.threads import next_share, run_supply, workers_for

# Systems with more columns are solved one by one: those of all lanes would not stay in a cache.
_WIDEST_IN_LANES = 128

# Entries of a row that are copied next to each other for one matrix product.
_ENTRIES_OF_A_PRODUCT = 128

# Rows of a share: among so many, most have others of similar length.
_ROWS_OF_A_SHARE = 256

# A multiplication in a small system takes as long as this many in a matrix product.
_SLOWNESS = 10


def whitening(ridge: np.ndarray) -> np.ndarray:
    """Return an upper triangular C with C C^T = ridge^-1, for a positive definite ridge.

    A column of U that is zero then stays zero. If rounding makes a pivot nonpositive, that column of C is zero.
    """
    L = ridge.astype(np.float64)
    factorise(L, len(L))
    return np.ascontiguousarray(inverse_of_factor(L).T, ridge.dtype)


def solve_systems(
    indptr: np.ndarray, indices: np.ndarray, W: np.ndarray, C: np.ndarray, right: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """Return the solutions x of the systems of some rows, in threads; their number changes no bit.

    Parameters
    ----------
    indptr, indices : ndarray of int
        The support of each row: entries indptr[i]:indptr[i + 1] have its rows of W.
    W : ndarray of shape (n, rank)
        V C.
    C : ndarray of shape (rank, rank)
        As :func:`whitening` returns it.
    right : sequence of ndarray of shape (rows, rank)
        The right-hand sides b, a row for each row of the support.
    """
    sides = tuple(np.require(side, requirements=("C", "W")) for side in right)  # of one type for the compiler
    found, transposed = tuple(map(np.empty_like, sides)), np.ascontiguousarray(C.T)
    rows, rank = sides[0].shape
    side = min(len(indices) / max(rows, 1), rank)  # of an average system
    work = rank * (_SLOWNESS * len(indices) * side + 2 * len(sides) * rows * rank)
    run_supply(
        lambda supply: solve_shares(supply, indptr, indices, W, C, transposed, sides, found),
        rows,
        _ROWS_OF_A_SHARE,
        work,
        workers_for(work),
    )
    return found


@compiled
def solve_shares(supply, indptr, indices, W, C, transposed, right, found):  # type: ignore[no-untyped-def]
    """Take shares of the systems, and solve them."""
    for _ in range(supply.shares):
        first, last = next_share(supply)
        if first >= supply.total:
            return
        for k in range(len(right)):
            np.dot(right[k][first:last], C, found[k][first:last])
        solve_rows(first, last, indptr, indices, W, found)
        for k in range(len(right)):
            np.dot(found[k][first:last].copy(), transposed, found[k][first:last])


@compiled
def inverse_of_factor(L):  # type: ignore[no-untyped-def]
    """Return the inverse of a Cholesky factor as :func:`factorise` gives it."""
    n = len(L)
    inverse = np.zeros((n, n))
    for i in range(n):
        row = inverse[i]
        row[i] = 1
        for m in range(i):
            subtract_multiple(row[: m + 1], L[i, m], inverse[m, : m + 1])
        for k in range(i + 1):
            row[k] *= L[i, i]
    return inverse


@compiled
def solve_rows(first, last, indptr, indices, W, sides):  # type: ignore[no-untyped-def]
    """Solve the systems of the rows from ``first`` to ``last``.

    ``sides`` is a tuple of arrays of the shape of W, whose rows z are overwritten by the solutions y.
    """
    if W.shape[1] > _WIDEST_IN_LANES:
        solve_wide_rows(first, last, indptr, indices, W, sides)
        return
    rows, empty, short = sorted_by_length(first, last, indptr, W.shape[1])
    for begin in range(empty, short, LANES):  # where a row is empty, y = z
        solve_short_rows(rows[begin : min(begin + LANES, short)], indptr, indices, W, sides)
    for begin in range(short, len(rows), LANES):
        solve_long_rows(rows[begin : begin + LANES], indptr, indices, W, sides)


@compiled
def sorted_by_length(first, last, indptr, rank):  # type: ignore[no-untyped-def]
    """Return some rows by their numbers of entries, how many have none, and how many fewer than columns."""
    ends = np.zeros(rank + 2, np.int64)  # of the rows with k - 1 entries; all long rows count as alike
    for i in range(first, last):
        ends[min(indptr[i + 1] - indptr[i], rank) + 1] += 1
    for k in range(rank + 1):
        ends[k + 1] += ends[k]
    empty, short = ends[1], ends[rank]
    rows = np.empty(last - first, np.int64)
    for i in range(first, last):
        k = min(indptr[i + 1] - indptr[i], rank)
        rows[ends[k]] = i
        ends[k] += 1
    return rows, empty, short


@compiled
def rounds_of(products):  # type: ignore[no-untyped-def]
    """Return the number of rounds of a sum of so many products."""
    return (products + UNROLLED - 1) // UNROLLED


@compiled
def solve_short_rows(rows, indptr, indices, W, sides):  # type: ignore[no-untyped-def]
    """Solve the systems of rows with fewer entries than columns."""
    k = indptr[rows[-1] + 1] - indptr[rows[-1]]  # the longest is the last one
    size, rank = UNROLLED * rounds_of(k), UNROLLED * rounds_of(W.shape[1])
    W_S = np.zeros((size * rank, LANES), W.dtype)
    gather(rows, indptr, indices, W, rank, W_S)
    system = np.zeros(((size + UNROLLED) * size, LANES), W.dtype)
    for a in range(k):
        for b in range(a + 1):
            subtract_products(system, a * size + b, W_S, a * rank, 1, W_S, b * rank, 1, rank // UNROLLED)
            for lane in range(LANES):
                system[a * size + b, lane] = (a == b) - system[a * size + b, lane]
    L = factorised(system, k, size)
    for side in sides:
        z = np.zeros((rank, LANES), W.dtype)
        read_lanes(rows, side, z)
        x = np.zeros((size, LANES), W.dtype)
        for a in range(k):
            subtract_products(x, a, W_S, a * rank, 1, z, 0, 1, rank // UNROLLED)
        for lane in range(LANES * k):
            x[lane // LANES, lane % LANES] *= -1
        substitute_lanes(L, x, k, size)
        for c in range(W.shape[1]):
            subtract_products(z, c, W_S, c, rank, x, 0, 1, size // UNROLLED)
        write_lanes(rows, z, side)


@compiled
def solve_long_rows(rows, indptr, indices, W, sides):  # type: ignore[no-untyped-def]
    """Solve the systems of rows with at least as many entries as columns."""
    rank = W.shape[1]
    size = UNROLLED * rounds_of(rank)
    system, square = np.zeros(((size + UNROLLED) * size, LANES), W.dtype), np.empty((rank, rank), W.dtype)
    for lane in range(LANES):
        square[:] = 0
        if lane < len(rows):
            add_square(indices, indptr[rows[lane]], indptr[rows[lane] + 1], W, square)
        for a in range(rank):
            for b in range(a + 1):
                system[a * size + b, lane] = (a == b) + square[a, b]
    L = factorised(system, rank, size)
    for side in sides:
        x = np.zeros((size, LANES), W.dtype)
        read_lanes(rows, side, x)
        substitute_lanes(L, x, rank, size)
        write_lanes(rows, x, side)


@compiled
def add_square(indices, first, last, W, square):  # type: ignore[no-untyped-def]
    """Add W_S^T W_S to a matrix, for the entries from ``first`` to ``last``."""
    rank = W.shape[1]
    W_S, product = np.empty((_ENTRIES_OF_A_PRODUCT, rank), W.dtype), np.empty((rank, rank), W.dtype)
    for begin in range(first, last, _ENTRIES_OF_A_PRODUCT):
        count = min(_ENTRIES_OF_A_PRODUCT, last - begin)
        for a in range(count):
            j = indices[begin + a]
            for c in range(rank):
                W_S[a, c] = W[j, c]
        np.dot(W_S[:count].T, W_S[:count], product)  # BLAS is several times as fast as a loop
        for a in range(rank):
            subtract_multiple(square[a], W.dtype.type(-1), product[a])


@compiled
def solve_wide_rows(first, last, indptr, indices, W, sides):  # type: ignore[no-untyped-def]
    """Solve the systems of the rows from ``first`` to ``last``, one by one."""
    rank = W.shape[1]
    system = np.empty((rank, rank), W.dtype)
    for i in range(first, last):
        neighbours = indices[indptr[i] : indptr[i + 1]]
        if neighbours.size >= rank:
            system[:] = 0
            add_square(indices, indptr[i], indptr[i + 1], W, system)
            for a in range(rank):
                system[a, a] += W.dtype.type(1)
            factorise(system, rank)
            for side in sides:
                substitute(system, side[i], rank)
        elif neighbours.size > 0:
            W_S = W[neighbours]
            square = np.dot(W_S, W_S.T)
            for a in range(len(W_S)):
                square[a, a] += W.dtype.type(1)
            factorise(square, len(W_S))
            for side in sides:
                x = np.dot(W_S, side[i])
                substitute(square, x, len(W_S))
                for a in range(len(W_S)):
                    subtract_multiple(side[i], x[a], W_S[a])


@inlined
def gather(rows, indptr, indices, V, rank, out):  # type: ignore[no-untyped-def]
    """Write the rows of V at the entries of each row: vector a * rank + c has column c of entry a of each."""
    for lane in range(len(rows)):
        first = indptr[rows[lane]]
        for a in range(indptr[rows[lane] + 1] - first):
            j = indices[first + a]
            for c in range(V.shape[1]):
                out[a * rank + c, lane] = V[j, c]


@inlined
def read_lanes(rows, array, out):  # type: ignore[no-untyped-def]
    """Write some rows of an array, each to its lane."""
    for lane in range(len(rows)):
        for c in range(array.shape[1]):
            out[c, lane] = array[rows[lane], c]


@inlined
def write_lanes(rows, vectors, array):  # type: ignore[no-untyped-def]
    """Write each lane to its row of an array."""
    for lane in range(len(rows)):
        for c in range(array.shape[1]):
            array[rows[lane], c] = vectors[c, lane]


@compiled
def factorised(system, n, size):  # type: ignore[no-untyped-def]
    """Return the Cholesky factors of n x n systems, given by their lower triangles: see :func:`factorise`."""
    L = np.zeros_like(system)  # what is not yet computed must be zero: sums have some products too many
    for j in range(n):
        for i in range(j, n):
            place = i * size + j
            if j > 0:
                subtract_products(system, place, L, i * size, 1, L, j * size, 1, rounds_of(j))
            for lane in range(LANES):
                entry = system[place, lane]
                if i > j:
                    L[place, lane] = entry * L[j * size + j, lane]
                else:
                    L[place, lane] = 0.0 if entry <= 0 else 1 / np.sqrt(entry)  # NaN stays NaN
    return L


@compiled
def substitute_lanes(L, x, n, size):  # type: ignore[no-untyped-def]
    """Overwrite x by the solutions y of L L^T y = x, for L as :func:`factorised` gives it."""
    z, y = np.zeros((size, LANES), x.dtype), np.zeros((size + UNROLLED, LANES), x.dtype)
    for i in range(n):
        if i > 0:
            subtract_products(x, i, L, i * size, 1, z, 0, 1, rounds_of(i))
        for lane in range(LANES):
            z[i, lane] = x[i, lane] * L[i * size + i, lane]
    for i in range(n - 1, -1, -1):
        below = n - 1 - i
        if below > 0:
            subtract_products(z, i, L, (i + 1) * size + i, size, y, i + 1, 1, rounds_of(below))
        for lane in range(LANES):
            y[i, lane] = z[i, lane] * L[i * size + i, lane]
    for i in range(n):
        for lane in range(LANES):
            x[i, lane] = y[i, lane]


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
        row[j] = 0.0 if pivot <= 0 else 1 / np.sqrt(pivot)  # NaN stays NaN


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
