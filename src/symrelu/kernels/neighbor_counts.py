"""How well scores above a threshold tell the edges of a graph from all other pairs, counted over all pairs.

The score of a pair is X = left right^T, of which a few rows are formed at a time. Nothing is sampled. Pairs of
an item with itself are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.memory import rows_per_worker
from symrelu.kernels.scores import pair_scores
from symrelu.kernels.threads import run_tasks, slices, workers_for

_ROWS_AT_ONCE = 32  # as many rows of X as a worker forms at once
_MOST_PARTS = 256  # of the rows; each has its own counts


class PairCounts(NamedTuple):
    """Ordered pairs (i, j), i != j, by what their score says at a threshold."""

    missing: int  # edges that are not certain to have a score above it
    extra: int  # other pairs that are not certain to have a score of at most the threshold
    margin: float  # the least distance from the threshold on the right side, beyond the uncertainty


class Edges(NamedTuple):
    """The edges of a graph in both directions, by rows (CSR)."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int64

    @property
    def rows(self) -> np.ndarray:
        """The first item of each edge."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


def edges_of(graph: Any) -> Edges:
    """Return the stored entries of a csr_array as edges."""
    return Edges(graph.indptr.astype(np.int64), graph.indices.astype(np.int64))


def edge_scores(left: np.ndarray, right: np.ndarray, edges: Edges) -> np.ndarray:
    """Return X of each edge.

    Parameters
    ----------
    left, right : ndarray of shape (n, rank)
    edges : Edges

    Returns
    -------
    scores : ndarray of shape (n_edges,)
    """
    return pair_scores(left, right, edges.rows, edges.indices)


def other_scores(
    left: np.ndarray, right: np.ndarray, edges: Edges, levels: np.ndarray
) -> tuple[np.ndarray, float]:
    """Count the scores of the pairs without an edge.

    Parameters
    ----------
    left, right : ndarray of shape (n, rank)
        Both float32 or both float64.
    edges : Edges
    levels : ndarray of shape (n_levels,)
        Equally spaced and ascending.

    Returns
    -------
    counts : ndarray of int64 of shape (n_levels,)
        The number of ordered pairs with a score above each level.
    largest : float
        The largest score.
    """
    first, spacing = float(levels[0]), float(levels[1] - levels[0])
    parts, at_once, workers = _parts(left)
    counts = np.zeros((len(parts), len(levels)), np.int64)
    largest = np.full(len(parts), -np.inf)

    def count(part: int) -> None:
        for start in range(parts[part].start, parts[part].stop, at_once):
            stop = min(start + at_once, parts[part].stop)
            block = left[start:stop] @ right.T
            found = count_scores(block, start, edges.indptr, edges.indices, first, spacing, counts[part])
            largest[part] = np.maximum(largest[part], found)

    run_tasks(count, range(len(parts)), workers)
    # A score in bin k is above the levels 0 to k.
    return counts.sum(axis=0)[::-1].cumsum()[::-1], float(largest.max(initial=-np.inf))


def certain_counts(
    left: np.ndarray, right: np.ndarray, edges: Edges, threshold: float, uncertainty: float
) -> PairCounts:
    """Compare all scores with a threshold, where each is uncertain by a multiple of |left_i| |right_j|.

    Parameters
    ----------
    left, right : ndarray of float64 of shape (n, rank)
    edges : Edges
    threshold : float
    uncertainty : float
        A pair counts as right only if its score is on the right side of the threshold by more than this times
        the norms of its two rows.

    Returns
    -------
    counts : PairCounts
    """
    norms = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
    parts, at_once, workers = _parts(left)
    missing, extra = np.zeros((2, len(parts)), np.int64)
    margins = np.full(len(parts), np.inf)

    def compare(part: int) -> None:
        for start in range(parts[part].start, parts[part].stop, at_once):
            stop = min(start + at_once, parts[part].stop)
            block = left[start:stop] @ right.T
            counts = compare_scores(block, start, *norms, edges.indptr, edges.indices, threshold, uncertainty)
            missing[part] += counts[0]
            extra[part] += counts[1]
            margins[part] = np.minimum(margins[part], counts[2])

    run_tasks(compare, range(len(parts)), workers)
    return PairCounts(int(missing.sum()), int(extra.sum()), float(margins.min(initial=np.inf)))


def _parts(left: np.ndarray) -> tuple[list[slice], int, int]:
    """Return parts of the rows, how many rows of X are formed at once, and the number of workers."""
    n = len(left)
    at_once, workers = rows_per_worker(n * left.dtype.itemsize, _ROWS_AT_ONCE)
    parts = slices(n, max(at_once, -(-n // _MOST_PARTS)))
    return parts, at_once, min(workers, workers_for(n**2 * left.shape[1]))


@compiled
def count_scores(block, start, indptr, indices, first, spacing, counts):  # type: ignore[no-untyped-def]
    """Count the scores of rows from ``start`` on in bins of equal width, the last without end.

    Return the largest. The block of X is overwritten.
    """
    largest = -np.inf
    for i in range(start, start + len(block)):
        row = block[i - start]
        row[i] = -np.inf  # a node is not its own neighbour
        for p in range(indptr[i], indptr[i + 1]):
            row[indices[p]] = -np.inf
        for j in range(len(row)):
            # Not x <= first, so that NaN counts as above every level.
            if not row[j] <= first:
                place = (row[j] - first) / spacing
                # A score on a level is not above it.
                k = int(np.ceil(place)) - 1 if place < len(counts) else len(counts) - 1
                counts[max(k, 0)] += 1
            if row[j] > largest or row[j] != row[j]:
                largest = row[j]
    return largest


@compiled
def compare_scores(  # type: ignore[no-untyped-def]
    block, start, left_norms, right_norms, indptr, indices, threshold, uncertainty
):
    """Return how many edges and other pairs of rows from ``start`` on are not on their side, and the margin.

    The block of X is overwritten.
    """
    missing, extra, margin = 0, 0, np.inf
    for i in range(start, start + len(block)):
        row, doubt = block[i - start], uncertainty * left_norms[i]
        row[i] = -np.inf
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            beyond = row[j] - threshold - doubt * right_norms[j]
            if not beyond > 0:  # also if it is NaN
                missing += 1
            margin = min(margin, beyond)
            row[j] = -np.inf
        for j in range(len(row)):
            if row[j] == -np.inf:
                continue
            beyond = threshold - row[j] - doubt * right_norms[j]
            if not beyond > 0:
                extra += 1
            margin = min(margin, beyond)
    return missing, extra, margin
