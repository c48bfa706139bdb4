"""The threshold on the scores of a factor that best separates the edges of a graph from all other pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symrelu.kernels.neighbor_counts import Edges, edge_scores, other_scores

# Thresholds that are compared if none is exact, in units of the entries of M.
_LEVELS = np.linspace(0.0, 4.0, 2049)[1:]


class Separation(NamedTuple):
    """A threshold, and what it gets wrong."""

    threshold: float
    wrong: int  # pairs on the wrong side, each counted once
    low: np.ndarray  # whether the score of an edge is not above it, for each edge in both directions


def separation(U: np.ndarray, signature: np.ndarray, edges: Edges) -> Separation:
    """Return the best positive threshold.

    It must be positive, because an item without neighbours may have a zero vector. If the scores of the edges
    are all larger than those of the other pairs, it is halfway between; otherwise the one of many equally
    spaced levels with the fewest wrong pairs.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)
    edges : Edges

    Returns
    -------
    separation : Separation
    """
    V = U * signature
    scores = edge_scores(U, V, edges)
    above, largest = other_scores(U, V, edges, _LEVELS)
    lowest, largest = float(scores.min(initial=np.inf)), max(largest, 0.0)
    if lowest > largest:
        threshold = (lowest + largest) / 2 if np.isfinite(lowest) else largest + 1.0
        return Separation(threshold, 0, np.zeros(len(scores), bool))
    wrong = above + np.searchsorted(np.sort(scores), _LEVELS, side="right")
    best = int(np.argmin(wrong))
    threshold = float(_LEVELS[best])
    return Separation(threshold, int(wrong[best]) // 2, scores <= threshold)
