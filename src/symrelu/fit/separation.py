"""The threshold on the scores of a factor that best separates the edges of a graph from all other pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.neighbor_counts import Edges, edge_scores, other_scores

# How many thresholds are compared if none is exact: equally spaced, up to this quantile of the edges' scores.
_LEVELS = 2048
_HIGHEST = 0.9


class Separation(NamedTuple):
    """A threshold, and what it gets wrong."""

    threshold: float
    wrong: int  # pairs on the wrong side, each counted once
    low: np.ndarray  # whether the score of an edge is not above it, for each edge in both directions


def separation(
    U: np.ndarray, signature: np.ndarray, edges: Edges, *, count: Callable[..., Any] = other_scores
) -> Separation:
    """Return the best positive threshold.

    It must be positive, because an item without neighbours may have a zero vector. If the scores of the edges
    are all larger than those of the other pairs, it is halfway between; otherwise the one of many equally
    spaced levels with the fewest wrong pairs.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)
    edges : Edges
    count : callable
        Counts the scores of the other pairs, like :func:`symrelu.kernels.neighbor_counts.other_scores`.

    Returns
    -------
    separation : Separation
    """
    V = U * signature
    scores = edge_scores(U, V, edges)
    levels = _levels(scores)
    above, largest = count(U, V, edges, levels)
    lowest, largest = float(scores.min(initial=np.inf)), max(largest, 0.0)
    if lowest > largest:
        threshold = (lowest + largest) / 2 if np.isfinite(lowest) else largest + 1.0
        return Separation(threshold, 0, np.zeros(len(scores), bool))
    wrong = above + np.searchsorted(np.sort(scores), levels, side="right")
    best = int(np.argmin(wrong))
    threshold = float(levels[best])
    return Separation(threshold, int(wrong[best]) // 2, scores <= threshold)


def _levels(scores: np.ndarray) -> np.ndarray:
    """Return the thresholds to compare. A higher one than the last would lose most edges."""
    highest = float(np.quantile(scores, _HIGHEST)) if np.isfinite(scores).all() and len(scores) else 0.0
    # At least a hair above zero, so that the levels stay apart if no edge has a positive score.
    return np.linspace(0.0, max(highest, 1e-3), _LEVELS + 1)[1:]
