"""The links of a graph as a page holds them: the strongest of each node, in few bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symrelu.problem import Problem
from symrelu.report.encoding import base64_text, levels, varints

MOST_NEIGHBORS = 10  # of a node, the strongest; further links stay if they are among those of the other end


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs i < j with M_ij > 0, in the order of i and then of j.

    Attributes
    ----------
    n : int
        Number of nodes.
    i, j : ndarray of int
    weights : ndarray
    """

    n: int
    i: np.ndarray
    j: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> Links:
        """Return all links of a graph.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        links : Links
        """
        i, j, weights = problem.positive_pairs()
        order = np.lexsort((j, i))
        return cls(problem.n, i[order], j[order], weights[order])

    @property
    def are_weighted(self) -> bool:
        """Whether the weights differ."""
        return len(self.weights) > 0 and bool(np.ptp(self.weights) > 0)

    def degrees(self) -> np.ndarray:
        """Return the number of neighbours of each node.

        Returns
        -------
        degrees : ndarray of int of shape (n,)
        """
        return np.bincount(self.i, minlength=self.n) + np.bincount(self.j, minlength=self.n)

    def strengths(self) -> np.ndarray:
        """Return the sum of the weights of each node.

        Returns
        -------
        strengths : ndarray of shape (n,)
        """
        return np.bincount(self.i, self.weights, self.n) + np.bincount(self.j, self.weights, self.n)

    def strongest(self, most: int) -> Links:
        """Return the links that are among the strongest of one of their ends.

        Parameters
        ----------
        most : int
            How many links of a node count; ties go to the neighbour with the lower number.

        Returns
        -------
        links : Links
        """
        ends, others = np.concatenate([self.i, self.j]), np.concatenate([self.j, self.i])
        order = np.lexsort((others, -np.tile(self.weights, 2), ends))
        first = np.searchsorted(ends[order], np.arange(self.n))
        place = np.empty(len(ends), dtype=np.int64)
        place[order] = np.arange(len(ends)) - first[ends[order]]
        keep = (place < most).reshape(2, -1).any(axis=0)
        return Links(self.n, self.i[keep], self.j[keep], self.weights[keep])

    def encoded(self) -> dict[str, str | None]:
        """Return the links for JSON.

        Returns
        -------
        coded : dict
            "pairs" has varints: for each node the number of its links to later nodes, and for each of these the
            difference to the node before. "weights" has a byte for each pair, its level on a logarithmic scale,
            or is None if all weights are equal.
        """
        first = np.diff(self.i, prepend=-1) > 0
        steps = self.j - np.where(first, self.i, np.concatenate([[0], self.j[:-1]]))
        counts = np.bincount(self.i, minlength=self.n)
        # The count of a node comes right before its first link.
        numbers = np.insert(steps, np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        weights = base64_text(levels(self.weights)) if self.are_weighted else None
        return {"pairs": base64_text(varints(numbers)), "weights": weights}
