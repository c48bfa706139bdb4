"""The rows of a factor at an earlier time, how far the present ones have moved from them, and their cosines.

The signed cosine of two rows is c_ij = <u_i * s, u_j> / (|u_i| |u_j|), with the signs s of the columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.integer_rows import SCALE, STRIP, packed_zeros, plain_zeros, rounding_of_rows
from symrelu.kernels.jit import compiled, inlined
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

    packed: np.ndarray  # int16: rows of length one, times SCALE and rounded, or of zeros (integer_rows.py)
    nonzero: np.ndarray  # bool; rows of zeros have no positive pairs
    signs: np.ndarray  # int16, of the columns


def full_slack(slack: float, columns: int) -> float:
    """Return the slack that remains if references are rounded: as if all rows had moved that far already."""
    return (1 + slack) * (1 + rounding_of_rows(columns)) ** 2 - 1


def rounding_of_products(columns: int, dtype: Any) -> float:
    """Return more than the rounding error of an inner product of two rows, divided by their lengths."""
    return columns * float(np.finfo(dtype).eps)


def new_references(U: np.ndarray, signs: np.ndarray) -> References:
    """Return references that are the present rows of U."""
    references = References(packed_zeros(*U.shape), np.empty(len(U), np.bool_), signs.astype(np.int16))
    refer(references, np.arange(len(U)), U)
    return references


def refer(references: References, rows: np.ndarray, U: np.ndarray) -> None:
    """Make the present rows of U, those with the given numbers, the references."""
    workers = workers_for(_WORK_OF_MOVING * len(rows) * U.shape[1])
    run_tasks(
        lambda part: refer_rows(rows[part], U, references.packed, references.nonzero),
        shares(len(rows), workers),
        workers,
    )


@compiled
def refer_rows(rows, U, packed, nonzero):  # type: ignore[no-untyped-def]
    """Write the integers of some rows of U, and whether these are not zero."""
    direction = np.empty(U.shape[1])
    for i in rows:
        nonzero[i] = unit_row(U, i, direction) > 0
        strip, place = i // STRIP, i % STRIP
        for c in range(direction.size):
            packed[strip, c // 2, place, c % 2] = np.int16(np.rint(SCALE * direction[c]))


@inlined
def unit_row(U, i, direction):  # type: ignore[no-untyped-def]
    """Write row i of U, scaled to length one unless it is zero, and return its length."""
    largest = 0.0
    for c in range(U.shape[1]):
        largest = max(largest, abs(np.float64(U[i, c])))
    # Multiplied by powers of two, which is exact, to be about one: squares of tiny numbers would be zero.
    # Two of them, since the reciprocal of the smallest numbers overflows.
    lift = 1.0 if largest > 2.0**-1000 else 2.0**600
    scale = 2.0 ** -np.floor(np.log2(largest * lift)) if largest > 0 else 0.0
    total = 0.0
    for c in range(U.shape[1]):
        part = U[i, c] * lift * scale
        total += part * part
    root = np.sqrt(total)
    reciprocal = 1 / root if largest > 0 else 0.0
    for c in range(U.shape[1]):
        direction[c] = U[i, c] * lift * scale * reciprocal
    return root / scale / lift if largest > 0 else 0.0


def directions_of(U: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the rows of U, scaled to length one unless they are zero, rounded to the given type."""
    directions = np.empty(U.shape, dtype)
    workers = workers_for(_WORK_OF_MOVING * U.size)
    run_tasks(lambda part: unit_rows(U[part], directions[part]), shares(len(U), workers), workers)
    return directions


@compiled
def unit_rows(U, directions):  # type: ignore[no-untyped-def]
    """Write the rows of U, scaled to length one unless they are zero."""
    direction = np.empty(U.shape[1])
    for i in range(len(U)):
        unit_row(U, i, direction)
        for c in range(direction.size):
            directions[i, c] = direction[c]


def integer_directions(U: np.ndarray) -> np.ndarray:
    """Return the rows of U, scaled to length one unless they are zero, as plain rows of integers."""
    rows = plain_zeros(*U.shape)
    workers = workers_for(_WORK_OF_MOVING * U.size)
    run_tasks(lambda part: round_rows(U[part], rows[part]), shares(len(U), workers), workers)
    return rows


@compiled
def round_rows(U, rows):  # type: ignore[no-untyped-def]
    """Write the integers of the rows of U."""
    direction = np.empty(U.shape[1])
    for i in range(len(U)):
        unit_row(U, i, direction)
        for c in range(direction.size):
            rows[i, c] = np.int16(np.rint(SCALE * direction[c]))


def movement(references: References, U: np.ndarray) -> np.ndarray:
    """Return how far each reference, of length one, is from the line through the present row of U.

    The length of a row does not matter: no pair becomes positive because a row becomes longer.

    Parameters
    ----------
    references : References
    U : ndarray of shape (n, rank)

    Returns
    -------
    moved : ndarray of shape (n,)
        Infinite for a row that has turned by more than a right angle, and for one that was zero and is not.
    """
    moved = np.empty(len(U))
    workers = workers_for(_WORK_OF_MOVING * U.size)
    run_tasks(
        lambda part: movement_of_rows(part.start, part.stop, U, references.packed, references.nonzero, moved),
        shares(len(U), workers),
        workers,
    )
    return moved


@compiled
def movement_of_rows(first, last, U, packed, nonzero, moved):  # type: ignore[no-untyped-def]
    """Write the movement of the rows from ``first`` to ``last``."""
    direction, reference = np.empty(U.shape[1]), np.empty(U.shape[1])
    for i in range(first, last):
        strip, place = i // STRIP, i % STRIP
        length, along = unit_row(U, i, direction), 0.0
        for c in range(direction.size):
            reference[c] = packed[strip, c // 2, place, c % 2] / SCALE
            along += reference[c] * direction[c]
        total = 0.0
        for c in range(direction.size):
            d = along * direction[c] - reference[c]
            total += d * d
        if length == 0:  # it has no positive pairs, whatever its reference
            moved[i] = 0.0
        else:
            moved[i] = np.sqrt(total) if nonzero[i] and along > 0 else np.inf


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
    A = directions_of(np.ascontiguousarray(U[rows]), U.dtype) * signs
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
    per_bin = 1 / (edges[1] - edges[0])
    for j in range(len(B)):
        total = 0.0
        for c in range(B.shape[1]):
            total += np.float64(B[j, c]) * np.float64(B[j, c])
        if total == 0:
            continue
        scale = 1 / np.sqrt(total)
        for i in range(len(A)):
            cosine = min(products[i, j] * scale, 1.0)  # a product of huge rows in float32 can be infinite
            if cosine > first:
                counts[min(int((cosine - first) * per_bin), bins - 1)] += 1
