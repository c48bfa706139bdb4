"""Smaller problems that resemble a large one: similar items are merged, two by two.

With groups A and B of s_A and s_B items, the entry of the smaller matrix is sqrt(s_A s_B) times the mean of the
observed entries of M between A and B. If everything is observed, that is P^T M P for the matrix P with
orthonormal columns, constant on the groups; so U = P V turns a factor V of the smaller matrix into one of M,
and alpha, the weights and the scale keep their meaning. A pair of groups without any observed entry is
unobserved itself, and an ignored diagonal stays ignored. The smaller matrices are in float32, also those of a
matrix in float64: they only resemble it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.kernels.matching import matched_groups
from symrelu.problem.problem import Problem

# Merging ends if it leaves more than this part of the items, since the levels would be too many.
_MOST_ITEMS = 0.8

# Merged items are similar if they have neighbours in common, so that their entries coincide. Merging ends if it
# leaves more than this part of the entries, as in a random graph, or if more than this part of all pairs would
# then be positive: such a matrix resembles M too little to be of use (measured by benchmarks/starts.py).
_MOST_ENTRIES = 0.82
_MOST_POSITIVE = 1 / 16

_DTYPE = np.float32  # of the smaller matrices


class _Sums(NamedTuple):
    """A symmetric matrix: its entries above the diagonal as a csr_array, and its diagonal."""

    upper: Any
    diagonal: np.ndarray

    @classmethod
    def of(cls, n: int, i: np.ndarray, j: np.ndarray, values: np.ndarray, diagonal: np.ndarray) -> _Sums:
        """Return the sums of entries at pairs i < j, of which some may coincide."""
        upper = sparse.csr_array((values, (i, j)), shape=(n, n), dtype=np.float64)
        return cls(upper, diagonal.astype(np.float64))

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return i, j and the value of each entry above the diagonal."""
        upper = self.upper.tocoo()
        i, j = (index.astype(np.int64) for index in upper.coords)
        return i, j, upper.data

    def at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the entries at pairs i < j."""
        n = len(self.diagonal)
        rows, columns, values = self.entries()
        keys, wanted = rows * n + columns, i * n + j  # keys ascend, since the rows of a csr_array are sorted
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return np.where(keys[place] == wanted, values[place], 0.0) if len(keys) else np.zeros(len(i))

    def merged(self, groups: np.ndarray, n_groups: int) -> _Sums:
        """Return the sums over all pairs of groups."""
        i, j, values = self.entries()
        a, b = groups[i], groups[j]
        # An entry inside a group stands for two, above and below the diagonal.
        diagonal = np.bincount(groups, self.diagonal, n_groups)
        diagonal += 2 * np.bincount(a[a == b], values[a == b], n_groups)
        # Only one triangle is summed: the other one could differ by rounding.
        low, high, between = np.minimum(a, b), np.maximum(a, b), a != b
        return _Sums.of(n_groups, low[between], high[between], values[between], diagonal)


@dataclass(frozen=True, eq=False)
class Level:
    """A problem whose items are groups of the items of a larger one.

    Attributes
    ----------
    problem : Problem
        In the units of ``scaled`` of the first problem, except that the first level is this problem itself.
    sizes : ndarray of float of shape (n,)
        Number of items of the first problem in each group.
    groups : ndarray of int of shape (items of the level before,)
        The group of each item of the level before; in the first level each item is its own.
    """

    problem: Problem
    sizes: np.ndarray
    groups: np.ndarray
    _sums: _Sums
    _hidden: _Sums | None  # how many entries of the first problem are unobserved

    @classmethod
    def first(cls, problem: Problem) -> Level:
        """Return a problem as a level: each item is a group of its own."""
        n = problem.n
        scaled = problem.divided(np.ones(n)) if problem.exponent else problem  # sums must not overflow
        sums = _Sums.of(n, *scaled.positive_pairs(), scaled.M.diagonal())
        hidden = None
        if problem.mask is not None:
            i, j = problem.unknown_pairs()
            hidden = _Sums.of(n, i, j, np.ones(len(i)), problem.mask.diagonal())
        return cls(problem, np.ones(n), np.arange(n), sums, hidden)

    def coarser(self) -> Level | None:
        """Return the level with similar items merged, or None if it would be of no use."""
        n = self.problem.n
        groups, n_groups = matched_groups(n, *self.problem.positive_pairs())
        sums = self._sums.merged(groups, n_groups)
        most = min(_MOST_ENTRIES * self._sums.upper.nnz, _MOST_POSITIVE * n_groups**2 / 2)
        if n_groups > _MOST_ITEMS * n or not 0 < sums.upper.nnz <= most:
            return None
        hidden = None if self._hidden is None else self._hidden.merged(groups, n_groups)
        sizes = np.bincount(groups, self.sizes, n_groups)
        problem = _problem_of(sums, hidden, sizes, self.problem)
        return Level(problem, sizes, groups, sums, hidden) if problem.M.nnz else None


def coarse_levels(problem: Problem, fewest: int) -> list[Level]:
    """Return smaller problems, each with about half of the items of the one before.

    Parameters
    ----------
    problem : Problem
    fewest : int
        A problem with at most so many items is not made smaller.

    Returns
    -------
    levels : list of Level
        The largest first; empty if the problem cannot be made smaller. They depend on the data only, not on a
        seed, and are the same for a dense and a sparse matrix.
    """
    level: Level | None = Level.first(problem) if problem.n > fewest else None
    levels = []
    while level is not None and level.problem.n > fewest:
        level = level.coarser()
        levels += [] if level is None else [level]
    return levels


def _problem_of(sums: _Sums, hidden: _Sums | None, sizes: np.ndarray, like: Problem) -> Problem:
    """Return the problem with these sums of observed entries."""
    n = len(sizes)
    i, j, values = sums.entries()
    pairs, squares = sizes[i] * sizes[j], sizes**2
    upper = values * np.sqrt(pairs) / (pairs if hidden is None else pairs - hidden.at(i, j))
    diagonal = np.zeros(n)
    if like.diagonal == "fit":
        observed = squares if hidden is None else squares - hidden.diagonal
        diagonal = sums.diagonal * sizes / np.where(observed > 0, observed, 1)
    M = _symmetric(n, i, j, upper.astype(_DTYPE), diagonal.astype(_DTYPE))
    mask = None
    if hidden is not None:
        i, j, count = hidden.entries()
        full = count == sizes[i] * sizes[j]
        mask = _symmetric(n, i[full], j[full], np.ones(int(full.sum()), bool), hidden.diagonal == squares)
    return Problem._from_checked(M, mask, like.diagonal, None)


def _symmetric(n: int, i: np.ndarray, j: np.ndarray, upper: np.ndarray, diagonal: np.ndarray) -> Any:
    """Return a symmetric csr_array without stored zeros from its entries with i < j and its diagonal."""
    items = np.arange(n)
    rows, columns = np.concatenate([i, j, items]), np.concatenate([j, i, items])
    matrix = sparse.csr_array((np.concatenate([upper, upper, diagonal]), (rows, columns)), shape=(n, n))
    matrix.eliminate_zeros()  # also numbers that underflowed
    return matrix
