"""How well a threshold on scores separates the edges of a graph from all other pairs, counted over all pairs.

The score of items i and j is the entry of X = left right^T. A few rows of X are formed at a time. Nothing is
sampled. Pairs of an item with itself are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.memory import rows_per_worker
from symrelu.kernels.scores import pair_scores
from symrelu.kernels.threads import run_tasks, slices, workers_for

_ROWS_AT_ONCE = 32  # rows of X that a worker forms at once; BLAS is hardly faster with more
_MOST_PARTS = 256  # of the rows; each has its own counts, so that no two threads write to the same place


class PairCounts(NamedTuple):
    """Pairs of different items that may be on the wrong side of a threshold."""

    missing: int  # edges whose score is not certain to be above it
    extra: int  # other pairs whose score is not certain to be below it
    margin: float  # smallest distance from the threshold on the right side, less the uncertainty


class Uncertainty(NamedTuple):
    """How far a computed score of items i and j may be from the exact one."""

    relative: float  # times the norms of the two rows
    absolute: float  # in addition
    largest: float  # nothing is certain if the product of the norms is not below this


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
            found = count_scores(block, start, edges, first, spacing, counts[part])
            largest[part] = np.maximum(largest[part], found)

    run_tasks(count, range(len(parts)), workers)
    # A score in bin k is above the levels 0 to k.
    return counts.sum(axis=0)[::-1].cumsum()[::-1], float(largest.max(initial=-np.inf))


def certain_counts(
    left: np.ndarray, right: np.ndarray, edges: Edges, threshold: float, uncertainty: Uncertainty
) -> PairCounts:
    """Compare the scores of all pairs with a threshold, each pair once.

    Parameters
    ----------
    left, right : ndarray of float64 of shape (n, rank)
        X must be symmetric up to rounding.
    edges : Edges
        With the items of each row in ascending order.
    threshold : float
    uncertainty : Uncertainty
        A pair counts as right only if its score is on the right side of the threshold by more than this.

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
            block = left[start:stop] @ right[start:].T
            counts = compare_scores(block, start, *norms, edges, threshold, uncertainty)
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
def count_scores(block, start, edges, first, spacing, counts):  # type: ignore[no-untyped-def]
    """Count the scores of rows from ``start`` on in bins of equal width, the last without end.

    Return the largest. The block of X is overwritten.
    """
    largest = -np.inf
    for i in range(start, start + len(block)):
        row = block[i - start]
        row[i] = -np.inf  # a node is not its own neighbour
        for p in range(edges.indptr[i], edges.indptr[i + 1]):
            row[edges.indices[p]] = -np.inf
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
    block, start, left_norms, right_norms, edges, threshold, uncertainty
):
    """Return how many edges and other pairs of rows from ``start`` on are not on their side, and the margin.

    The columns of the block begin at ``start`` too; pairs (i, j) with j > i are compared.
    """
    missing, extra, margin = 0, 0, np.inf
    for i in range(start, start + len(block)):
        row, bounds = block[i - start], (left_norms[i], threshold, uncertainty)
        first = i + 1  # of the pairs that are not compared yet
        for p in range(edges.indptr[i], edges.indptr[i + 1]):
            j = edges.indices[p]
            if j > i:
                wrong, least = compare_span(row, right_norms, start, first, j, -1.0, *bounds)
                extra, margin = extra + wrong, min(margin, least)
                wrong, least = compare_span(row, right_norms, start, j, j + 1, 1.0, *bounds)
                missing, margin = missing + wrong, min(margin, least)
                first = j + 1
        wrong, least = compare_span(row, right_norms, start, first, len(right_norms), -1.0, *bounds)
        extra, margin = extra + wrong, min(margin, least)
    return missing, extra, margin


@compiled
def compare_span(  # type: ignore[no-untyped-def]
    row, norms, start, first, last, side, norm, threshold, uncertainty
):
    """Return how many of the items ``first`` to ``last - 1`` are not on their side, and the margin."""
    wrong, margin = 0, np.inf
    for j in range(first, last):
        size = norm * norms[j]
        beyond = side * (row[j - start] - threshold) - uncertainty.relative * size - uncertainty.absolute
        if not size < uncertainty.largest or beyond != beyond:
            beyond = -np.inf  # the score may overflow, or is NaN
        if not beyond > 0:
            wrong += 1
        margin = min(margin, beyond)
    return wrong, margin
