"""Entries of X = left right^T, which is never formed: those of given pairs, and the largest of each row.

With ``scales``, scales_i scales_j (X_ij + sqrt(X_ij^2 + 1)) / 2 takes the place of X_ij: a smooth version of
scales_i scales_j max(0, X_ij) that is positive everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.memory import rows_per_worker
from symrelu.kernels.threads import run_tasks, slices, workers_for

NO_ITEM = -1  # in place of an item if there are fewer than k

_PAIRS_AT_ONCE = 65536
_ROWS_AT_ONCE = 32  # as many rows of X as a worker forms at once; BLAS is hardly faster with more
_BLOCKS_AT_ONCE = 4  # in one call of compiled code

# A gathered row costs a cache miss, about as much as this many multiplications in a matrix product.
_WORK_OF_A_PAIR = 200


def pair_scores(
    left: np.ndarray, right: np.ndarray, i: np.ndarray, j: np.ndarray, scales: np.ndarray | None = None
) -> np.ndarray:
    """Return X[i[k], j[k]] for each k.

    Parameters
    ----------
    left, right : ndarray of shape (n, rank)
    i, j : ndarray of int of shape (count,)
    scales : ndarray of shape (n,), optional

    Returns
    -------
    scores : ndarray of shape (count,)
    """
    dtype = left.dtype
    left, right = _readable(left, right)
    scores = np.empty(len(i), left.dtype)

    def score(part: slice) -> None:
        score_pairs(left, right, i[part], j[part], scores[part])
        if scales is not None:
            smooth_pairs(scores[part], scales[i[part]], scales[j[part]])

    work = len(i) * (left.shape[1] + _WORK_OF_A_PAIR)
    run_tasks(score, slices(len(i), _PAIRS_AT_ONCE), workers_for(work))
    return scores.astype(dtype, copy=False)


def largest_of_rows(
    left: np.ndarray,
    right: np.ndarray,
    rows: np.ndarray,
    k: int,
    excluded: Any | None = None,
    scales: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and values of the k largest entries of rows of X, without those on the diagonal.

    Parameters
    ----------
    left, right : ndarray of shape (n, rank)
    rows : ndarray of int of shape (count,)
    k : int
    excluded : csr_array of shape (n, n), optional
        Stored entries, other than zeros, are left out.
    scales : ndarray of shape (n,), optional

    Returns
    -------
    items : ndarray of int64 of shape (count, k)
        In descending order of X; ties go to the lower index. ``NO_ITEM`` if there are fewer than k.
    scores : ndarray of shape (count, k)
        Minus infinity where there is no item.
    """
    dtype = left.dtype
    left, right = _readable(left, right)
    n = len(right)
    scales = np.empty(0, left.dtype) if scales is None else scales.astype(left.dtype, copy=False)
    items = np.full((len(rows), k), NO_ITEM, np.int64)
    scores = np.full((len(rows), k), -np.inf, left.dtype)

    def search(part: slice) -> None:
        block = np.empty((min(at_once, part.stop - part.start), n), left.dtype)
        without = _entries(excluded, rows[part])
        search_rows(left, right, scales, rows[part], *without, block, items[part], scores[part])

    at_once, workers = rows_per_worker(n * left.dtype.itemsize, _ROWS_AT_ONCE)
    workers = min(workers, workers_for(len(rows) * n * left.shape[1]))
    run_tasks(search, slices(len(rows), at_once * _BLOCKS_AT_ONCE), workers)
    return items, scores.astype(dtype, copy=False)


def _readable(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return factors that compiled code can read: C-contiguous, and both in float32 or both in float64."""
    dtype = np.float32 if left.dtype == np.float32 else np.float64
    return np.ascontiguousarray(left, dtype), np.ascontiguousarray(right, dtype)


def _entries(matrix: Any | None, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``indptr`` and ``indices`` of rows of a csr_array without stored zeros; empty without a matrix."""
    if matrix is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    part = matrix[rows]
    part.eliminate_zeros()
    return part.indptr.astype(np.int64, copy=False), part.indices.astype(np.int64, copy=False)


@compiled
def score_pairs(left, right, i, j, scores):  # type: ignore[no-untyped-def]
    """Write X[i[k], j[k]] to ``scores``."""
    for k in range(len(scores)):
        total = left.dtype.type(0)
        for c in range(left.shape[1]):
            total += left[i[k], c] * right[j[k], c]
        scores[k] = total


@compiled
def smooth_value(x):  # type: ignore[no-untyped-def]
    """Return (x + sqrt(x^2 + 1)) / 2."""
    root = np.sqrt(x * x + 1) + abs(x)
    # Below zero the formula would subtract nearly equal numbers. The product of the values at x and -x is 1/4.
    # np.divide, since numba's division checks for zero, and with that check loops do not vectorise.
    inverse = np.divide(0.5, root)
    return root / 2 if x >= 0 else inverse


@compiled
def smooth_pairs(scores, left_scales, right_scales):  # type: ignore[no-untyped-def]
    """Replace entries of X by their smooth version, times the scales of their pairs."""
    for k in range(len(scores)):
        scores[k] = left_scales[k] * right_scales[k] * smooth_value(scores[k])


@compiled
def smooth_block(block, row_scales, column_scales):  # type: ignore[no-untyped-def]
    """Replace a block of X by its smooth version, times the scales of its rows and columns."""
    for row in range(block.shape[0]):
        for column in range(block.shape[1]):
            scale = row_scales[row] * column_scales[column]
            block[row, column] = scale * smooth_value(block[row, column])


@compiled
def search_rows(left, right, scales, rows, indptr, indices, block, items, scores):  # type: ignore[no-untyped-def]
    """Write the largest entries of rows of X, of which ``block`` holds as many as are formed at once.

    ``indptr`` and ``indices`` say which columns of these rows are left out. Empty ``scales`` leave X as it is.
    """
    at_once, rank = len(block), left.shape[1]
    gathered = np.empty((at_once, rank), left.dtype)
    for first in range(0, len(rows), at_once):
        last = min(first + at_once, len(rows))
        count = last - first
        for k in range(count):
            for c in range(rank):
                gathered[k, c] = left[rows[first + k], c]
        np.dot(gathered[:count], right.T, block[:count])
        if len(scales) > 0:
            smooth_block(block[:count], scales[rows[first:last]], scales)
        for k in range(count):
            block[k, rows[first + k]] = -np.inf  # a node is not its own neighbour
            if len(indptr) > 0:
                for p in range(indptr[first + k], indptr[first + k + 1]):
                    block[k, indices[p]] = -np.inf
        select_largest(block[:count], items[first:last], scores[first:last])


@compiled
def select_largest(block, items, scores):  # type: ignore[no-untyped-def]
    """Write the columns and values of the largest entries of each row, in descending order.

    ``items`` and ``scores`` are filled with ``NO_ITEM`` and minus infinity. Entries of a row visited so far are
    kept in a heap, the worst of them first: most entries are then rejected by one comparison.
    """
    k = items.shape[1]
    for row in range(len(block)):
        heap, keys = items[row], scores[row]
        for item in range(block.shape[1]):
            # An equal score loses the tie, because its index is higher.
            if block[row, item] > keys[0]:
                sink(heap, keys, k, item, block[row, item])
        # Take the worst of the heap again and again, and write it behind what is left.
        for size in range(k - 1, 0, -1):
            item, key = heap[size], keys[size]
            heap[size], keys[size] = heap[0], keys[0]
            sink(heap, keys, size, item, key)


@compiled
def sink(heap, keys, size, item, key):  # type: ignore[no-untyped-def]
    """Replace the first entry of a heap of this size, and restore the order.

    An entry is worse than another if its key is lower or, for equal keys, its item is higher.
    """
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and is_worse(keys[other], heap[other], keys[child], heap[child]):
            child = other
        if not is_worse(keys[child], heap[child], key, item):
            break
        heap[place], keys[place] = heap[child], keys[child]
        place = child
    heap[place], keys[place] = item, key


@compiled
def is_worse(key, item, other_key, other_item):  # type: ignore[no-untyped-def]
    """Return whether an entry comes after another one."""
    return key < other_key or (key == other_key and item > other_item)
