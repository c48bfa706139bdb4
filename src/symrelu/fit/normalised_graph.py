"""A graph divided by its regularised degrees, and what the scores of links need to know about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.problem import Problem
from symrelu.validation import stored

# Denser graphs are less noisy and need less shrinkage. The noise falls with the square root of the degree; its
# fourth root is a compromise, because on some graphs (polblogs) hidden links are predicted worse with less.
_SHRINKAGE, _SPARSE_DEGREE, _POWER = 0.2, 4.0, 0.25


@dataclass(frozen=True, eq=False)
class NormalisedGraph:
    """N = D^(-1/2) B D^(-1/2), where D are the degrees plus a multiple of their mean.

    Attributes
    ----------
    problem : Problem
        N.
    links : csr_array of bool of shape (n, n)
        Where B is positive.
    root_degrees : ndarray of shape (n,)
        The roots of D, in the units of B.
    regularization : float
        The multiple of the mean degree.
    """

    problem: Problem
    links: Any
    root_degrees: np.ndarray
    regularization: float

    @classmethod
    def of(cls, graph: Problem, regularization: float) -> NormalisedGraph:
        """Normalise a graph.

        Parameters
        ----------
        graph : Problem
            B, with its diagonal ignored.
        regularization : float
            Positive multiple of the mean degree that is added to each degree.

        Returns
        -------
        normalised : NormalisedGraph
        """
        B = graph.scaled
        degrees = B.sum(axis=1, dtype=np.float64)
        roots = np.sqrt(degrees + regularization * degrees.mean())
        # A Problem scales B by 4^-exponent, and thus the roots of its degrees by 2^-exponent.
        in_units = np.ldexp(roots, graph.exponent).astype(graph.dtype)
        return cls(graph.divided(roots), sparse.csr_array(B, dtype=bool), in_units, regularization)

    @property
    def root_mean_square(self) -> float:
        """The root mean square of the observed entries of N off the diagonal."""
        problem, entries = self.problem, stored(self.problem.M).astype(np.float64)
        count = np.count_nonzero(entries) + problem.observed_zeros
        # Divided by the largest entry, since squares of very small ones underflow.
        return float(problem.largest * np.sqrt(np.sum((entries / problem.largest) ** 2) / count))

    @property
    def suggested_shrinkage(self) -> float:
        """A shrinkage that depends on the mean number of links of the nodes that have any.

        It is relative to the largest eigenvalue of N, but lowers eigenvalues by the same amount if some nodes
        have many links, which make only that one eigenvalue larger.
        """
        counts = np.diff(self.links.indptr)
        mean = counts.sum() / np.count_nonzero(counts)
        equal_degrees = 1 / (1 + self.regularization)  # the largest eigenvalue of N if all degrees are equal
        largest = self.problem.alpha_of(1.0) / 2
        return float(_SHRINKAGE * min(1.0, _SPARSE_DEGREE / mean) ** _POWER * equal_degrees / largest)


def divided_rows(rows: Any, roots: np.ndarray, regularization: float) -> Any:
    """Divide the weights between new nodes and those of a graph by the roots of their degrees.

    Parameters
    ----------
    rows : sparse matrix or ndarray of shape (n_new, n)
        Nonnegative weights of the links of the new nodes.
    roots : ndarray of shape (n,)
        Those of the graph.
    regularization : float
        As for the graph.

    Returns
    -------
    rows : csr_array of shape (n_new, n)
    """
    rows = sparse.csr_array(rows)
    # D is a degree plus a multiple of the mean degree, so its mean is 1 + the multiple times the mean degree.
    mean_degree = np.mean(roots.astype(np.float64) ** 2) / (1 + regularization)
    own = np.sqrt(rows.sum(axis=1, dtype=np.float64) + regularization * mean_degree)
    data = rows.data / (np.repeat(own, np.diff(rows.indptr)) * roots[rows.indices])
    return sparse.csr_array((data.astype(rows.dtype), rows.indices, rows.indptr), shape=rows.shape)
