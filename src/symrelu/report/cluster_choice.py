"""A number of clusters for a page, without a fit for each number."""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.estimators import SymReLUClustering
from symrelu.fitted.clusters import DirectionClusters, LinkageClusters, modularity_of
from symrelu.problem import Problem

_NUMBERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30)
_STARTS = 3  # of k-means


def best_clusters(clustering: SymReLUClustering, M: Any, seed: int = 0) -> np.ndarray:
    """Return the clusters with the largest modularity that the factor of a clustering gives.

    The numbers from 2 to 30 are compared, by other cuts of the same tree or other centres for the same rows.
    ``SymReLUClustering(n_clusters=None)`` compares them by hidden pairs instead, with a fit for each.

    Parameters
    ----------
    clustering : SymReLUClustering
        Fitted, with any number of clusters.
    M : matrix, graph, table, tensor or Problem
        What it was fitted to.
    seed : int, default=0
        Of k-means.

    Returns
    -------
    labels : ndarray of int of shape (n,)
        Numbered by first appearance; the fewest clusters of those with the same modularity.
    """
    graph = Problem.of(M).scaled
    found = clustering.clusters_
    candidates = [found.labels]
    for number in _NUMBERS:
        if number > len(found.labels) // 3:
            break
        if isinstance(found, LinkageClusters):
            candidates.append(found.tree.cut(number))
        else:
            cut = DirectionClusters.of(found.U, found.signature, number, seed=seed, n_starts=_STARTS)
            candidates.append(cut.labels)
    return max(candidates, key=lambda labels: (modularity_of(graph, labels), -labels.max()))
