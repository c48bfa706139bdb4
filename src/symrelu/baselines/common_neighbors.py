"""Scores of links from the degrees and the common neighbours of two nodes: what a prediction should exceed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

PairScores = Callable[[np.ndarray, np.ndarray], np.ndarray]
_PAIRS_AT_ONCE = 2**14  # their rows are copied


def degree_product(graph: Any) -> PairScores:
    """Score a pair by the product of the numbers of links of its nodes (preferential attachment).

    Parameters
    ----------
    graph : csr_array or ndarray of shape (n, n)
        Positive entries are links.

    Returns
    -------
    score_pairs : function
        Of two arrays of node indices; returns an array of scores.
    """
    degrees = np.diff(_links(graph).indptr).astype(np.float64)
    return lambda i, j: degrees[i] * degrees[j]


def resource_allocation(graph: Any) -> PairScores:
    """Score a pair by the sum over its common neighbours of 1 / their number of links.

    Parameters
    ----------
    graph : csr_array or ndarray of shape (n, n)
        Positive entries are links.

    Returns
    -------
    score_pairs : function
        Of two arrays of node indices; returns an array of scores.

    References
    ----------
    T. Zhou, L. Lü, Y.-C. Zhang, "Predicting missing links via local information", Eur. Phys. J. B 71, 2009.
    """
    links = _links(graph)
    degrees = np.diff(links.indptr)
    # A node without links is never a common neighbour; the floor only avoids a division by zero.
    shares = 1.0 / np.maximum(degrees, 1)

    def score_pairs(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        i, j = np.atleast_1d(i), np.atleast_1d(j)
        scores = np.empty(len(i))
        for first in range(0, len(i), _PAIRS_AT_ONCE):
            some = slice(first, first + _PAIRS_AT_ONCE)
            scores[some] = links[i[some]].multiply(links[j[some]]) @ shares
        return scores

    return score_pairs


def _links(graph: Any) -> Any:
    """Return the links of a graph as ones, without loops."""
    links = sparse.csr_array(sparse.csr_array(graph) > 0, dtype=np.float64)
    links.setdiag(0)
    links.eliminate_zeros()
    return links
