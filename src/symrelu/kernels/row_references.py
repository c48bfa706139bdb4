"""The rows of a factor at an earlier time, how far the present ones have moved from them, and their cosines.

The signed cosine of two rows is c_ij = <u_i * s, u_j> / (|u_i| |u_j|), with the signs s of the columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.threads import run_tasks, shares, slices, workers_for

# Rows that a thread counts at once.
_ROWS_AT_ONCE = 1024

# Cost of a number that is compared with its reference, and of a cosine that is counted, in multiplications of a
# matrix product.
_WORK_OF_MOVING = 100
_WORK_OF_COUNTING = 120

# Rows of X that are sampled, and the edges of the bins in which their cosines are counted.
SAMPLED_ROWS = 32
EDGES = np.linspace(-0.25, 1, 251)


class References(NamedTuple):
    """The rows of a factor at the time of their last scan."""

    directions: np.ndarray  # rows of length one, or of zeros
    lengths: np.ndarray  # float64; zero for rows of zeros, which have no positive pairs
    signs: np.ndarray  # of the columns, in the type of the directions


# Of directions. A scan decides which pairs are compared, not what X is, so the faster type serves all factors.
_DTYPE = np.float32


def rounding_of_cosines(rank: int) -> float:
    """Return more than the rounding error of a cosine of two directions."""
    return 4 * rank * float(np.finfo(_DTYPE).eps)


def new_references(U: np.ndarray, signs: np.ndarray) -> References:
    """Return references that are the present rows of U, with directions rounded to float32."""
    references = References(np.empty(U.shape, _DTYPE), np.empty(len(U)), signs.astype(_DTYPE))
    refer(references, np.arange(len(U)), U)
    return references


def refer(references: References, rows: np.ndarray, U: np.ndarray) -> None:
    """Make the present rows of U, those with the given numbers, the references."""
    workers = workers_for(_WORK_OF_MOVING * len(rows) * U.shape[1])
    run_tasks(
        lambda part: refer_rows(rows[part], U, references.directions, references.lengths),
        shares(len(rows), workers),
        workers,
    )


@compiled
def refer_rows(rows, U, directions, lengths):  # type: ignore[no-untyped-def]
    """Write the directions and lengths of some rows of U."""
    for i in rows:
        largest = 0.0
        u, direction = U[i], directions[i]
        for c in range(u.size):
            largest = max(largest, abs(np.float64(u[c])))
        # Multiplied by powers of two, which is exact, to be about one: squares of tiny numbers would be zero.
        # Two of them, since the reciprocal of the smallest numbers overflows.
        lift = 1.0 if largest > 2.0**-1000 else 2.0**600
        scale = 2.0 ** -np.floor(np.log2(largest * lift)) if largest > 0 else 0.0
        total = 0.0
        for c in range(u.size):
            part = u[c] * lift * scale
            total += part * part
        root = np.sqrt(total)
        lengths[i] = root / scale / lift if largest > 0 else 0.0
        reciprocal = 1 / root if largest > 0 else 0.0
        for c in range(u.size):
            direction[c] = u[c] * lift * scale * reciprocal


def movement(references: References, U: np.ndarray) -> np.ndarray:
    """Return how far each row of U is from its reference, as a fraction of the length of that.

    Parameters
    ----------
    references : References
    U : ndarray of shape (n, rank)
    """
    moved = np.empty(len(U))
    workers = workers_for(_WORK_OF_MOVING * U.size)
    run_tasks(
        lambda part: movement_of_rows(
            part.start, part.stop, U, references.directions, references.lengths, moved
        ),
        shares(len(U), workers),
        workers,
    )
    return moved


@compiled
def movement_of_rows(first, last, U, directions, lengths, moved):  # type: ignore[no-untyped-def]
    """Write the relative movement of the rows from ``first`` to ``last``."""
    for i in range(first, last):
        total = 0.0
        for c in range(U.shape[1]):
            if lengths[i] > 0:
                d = np.float64(U[i, c]) / lengths[i] - np.float64(directions[i, c])
                total += d * d
            elif U[i, c] != 0:  # a row of zeros is a valid reference as long as the row is zero
                total = np.inf
        moved[i] = np.sqrt(total)


def sample_cosines(U: np.ndarray, signs: np.ndarray, known: Any) -> np.ndarray:
    """Return how many cosines of some rows with all rows fall between the ``EDGES``, at zeros of M only.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signs : ndarray of shape (rank,)
    known : csr_array
        Its stored entries are not zeros of M.

    Returns
    -------
    counts : ndarray of int of shape (len(EDGES) - 1,)
    """
    n = len(U)
    rows = np.unique(np.linspace(0, n - 1, SAMPLED_ROWS).astype(np.int64))
    references = References(np.zeros_like(U[: len(rows)]), np.zeros(len(rows)), signs)
    refer(references, np.arange(len(rows)), np.ascontiguousarray(U[rows]))
    A = references.directions * signs
    parts = slices(n, _ROWS_AT_ONCE)
    counts = np.zeros((len(parts), len(EDGES) - 1), np.int64)
    run_tasks(
        lambda k: count_cosines(A, U[parts[k]], EDGES, counts[k]),
        range(len(parts)),
        workers_for(len(rows) * n * (U.shape[1] + _WORK_OF_COUNTING)),
    )
    total = counts.sum(axis=0)
    others = known[rows].tocoo()
    ends = U[others.coords[1]]
    lengths = np.maximum(np.linalg.norm(ends.astype(np.float64), axis=1), np.finfo(np.float64).tiny)
    cosines = np.sum(A[others.coords[0]] * ends, axis=1) / lengths
    return np.maximum(total - np.histogram(cosines, EDGES)[0], 0)


@compiled
def count_cosines(A, B, edges, counts):  # type: ignore[no-untyped-def]
    """Count the cosines of the rows of B with those of A, which have length one, between equidistant edges."""
    products = np.dot(A, B.T)
    first, bins = edges[0], len(counts)
    width = edges[1] - edges[0]
    for j in range(len(B)):
        total = 0.0
        for c in range(B.shape[1]):
            total += np.float64(B[j, c]) * np.float64(B[j, c])
        if total == 0:
            continue
        scale = 1 / np.sqrt(total)
        for i in range(len(A)):
            cosine = products[i, j] * scale
            if cosine > first:
                counts[min(int((cosine - first) / width), bins - 1)] += 1
