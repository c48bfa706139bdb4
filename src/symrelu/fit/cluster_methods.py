"""How the factor is fitted for each method of clustering, and how clusters are formed from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from symrelu.fit.normalised_graph import NormalisedGraph
from symrelu.fitted.clusters import STARTS, Clusters, DirectionClusters, LinkageClusters
from symrelu.fitted.linkage_tree import average_linkage_of_factor
from symrelu.fitted.models import SymmetricReLU
from symrelu.graphs import Labelled
from symrelu.problem import Problem

MOST_COLUMNS = 100
DEGREE_REGULARIZATION = 1.0  # as in LinkPredictor


def without_diagonal(problem: Problem) -> Problem:
    """Return the problem with its diagonal ignored."""
    if problem.diagonal == "ignore":
        return problem
    return Problem.of(Labelled(problem.M, problem.labels), problem.mask, "ignore")


class Prepared(NamedTuple):
    """What a method fits."""

    problem: Problem
    roots: np.ndarray | None  # of the degrees that M is divided by, in the units of M
    shrinkage: float  # unless the user gives another

    @property
    def linked(self) -> np.ndarray:
        """Whether each item has an observed similarity to another."""
        return np.asarray((self.problem.M != 0).sum(axis=1)).ravel() > 0


@dataclass(frozen=True)
class ClusterMethod:
    """A method of clustering, with the settings of its fits where the user gives none.

    Attributes
    ----------
    name : str
    normalised : bool
        Whether the factor is that of M divided by the roots of the regularised degrees.
    fewest_columns : int
        Number of columns for few clusters.
    shrinkage : float or None
        That of a fit. None takes the one that suits the degrees, as in link prediction.
    zero_weight, init, max_iter
        Settings of a fit.
    n_init : int
        Number of fits, whose mean X is taken.
    """

    name: str
    normalised: bool
    fewest_columns: int
    shrinkage: float | None
    zero_weight: float
    init: str
    max_iter: int
    n_init: int

    def columns(self, n_clusters: int, n: int) -> int:
        """Return the number of columns for some clusters of n items."""
        return min(n, max(self.fewest_columns, min(n_clusters, MOST_COLUMNS)))

    def prepare(self, problem: Problem) -> Prepared:
        """Return the problem to fit, divided by the roots of the degrees if the method does that."""
        if not self.normalised:
            return Prepared(problem, None, self.shrinkage or 0.0)
        graph = NormalisedGraph.of(without_diagonal(problem), DEGREE_REGULARIZATION)
        return Prepared(graph.problem, graph.root_degrees, graph.suggested_shrinkage)

    def cluster(
        self, factor: SymmetricReLU, linked: np.ndarray, *, seed: int, n_starts: int = STARTS
    ) -> Callable[[int], Clusters]:
        """Return the clusters of a factor as a function of their number; k-means has some starts."""
        U, signature = factor.U, factor.signature
        if self.name == "directions":
            # After few steps, the row of an item that nothing is known about is still that of its random start.
            U = np.where(linked[:, None], U, 0)
            return partial(DirectionClusters.of, U, signature, seed=seed, n_starts=n_starts)
        tree = average_linkage_of_factor(U, signature)
        return lambda n_clusters: LinkageClusters(tree.cut(n_clusters), U, signature, tree)


# Linkage comes first and is taken if both are equal. Two moons need more columns than clusters, and more than
# 10 change little. The settings of directions are those of link prediction: few steps, a penalty, a low weight
# of pairs without a link, and the mean of several fits, which depends less on the seed.
METHODS = {
    method.name: method
    for method in (
        ClusterMethod(
            "linkage", False, 10, shrinkage=0.01, zero_weight=1.0, init="spectral", max_iter=120, n_init=1
        ),
        ClusterMethod(
            "directions", True, 16, shrinkage=None, zero_weight=0.1, init="random", max_iter=20, n_init=5
        ),
    )
}
