"""Questions to a fitted X: single entries, whole rows, the nearest items. Never n x n."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.batches import batches
from symrelu.validation import check_integer, check_well_formed

NOBODY = -1  # stands in place of an item where there are fewer than k


class Queries:
    """What can be asked of X = left right^T."""

    @property
    @abstractmethod
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Left and right, of shape (n, rank)."""

    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        """Return X[i, j]. The model of M is max(0, X); below zero X still ranks pairs.

        Parameters
        ----------
        i, j : array-like of int
            Numbers of items, of one shape or such that they broadcast to one.

        Returns
        -------
        scores : ndarray
        """
        left, right = self._factors
        i, j = np.broadcast_arrays(_check_items("i", i, len(left)), _check_items("j", j, len(left)))
        scores = np.empty(i.size, left.dtype)
        rows, columns = i.ravel(), j.ravel()
        for batch in batches(i.size, 2 * left.shape[1] * left.dtype.itemsize):
            scores[batch] = np.einsum("kr,kr->k", left[rows[batch]], right[columns[batch]])
        return scores.reshape(i.shape)

    def reconstruct(self, rows: Any) -> np.ndarray:
        """Return rows of max(0, X), the model of M.

        Parameters
        ----------
        rows : array-like of int

        Returns
        -------
        reconstruction : ndarray of shape (len(rows), n)
        """
        left, right = self._factors
        block = left[_check_items("rows", rows, len(left))] @ right.T
        return np.maximum(block, 0, out=block)

    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return for each node the k items of largest X, the node itself left out.

        Parameters
        ----------
        nodes : array-like of int
        k : int
        exclude : sparse or dense matrix of shape (n, n), optional
            Pairs with an entry that is not zero are left out. Pass M itself for pairs that are not in it yet.

        Returns
        -------
        items : ndarray of int of shape (len(nodes), k)
            The best first, equal ones by their number; -1 where there are fewer than k.
        scores : ndarray of shape (len(nodes), k)
            X of these pairs; minus infinity where there are fewer than k.
        """
        left, right = self._factors
        n = len(left)
        nodes = _check_items("nodes", nodes, n)
        check_integer("k", k, 1)
        excluded = None if exclude is None else check_exclude(exclude, n)
        items = np.full((len(nodes), k), NOBODY, np.int64)
        scores = np.full((len(nodes), k), -np.inf, left.dtype)
        for batch in batches(len(nodes), n * left.dtype.itemsize):
            block = left[nodes[batch]] @ right.T
            block[np.arange(len(block)), nodes[batch]] = -np.inf
            if excluded is not None:
                block[excluded[nodes[batch]].nonzero()] = -np.inf
            for row, values in enumerate(block, start=batch.start):
                best = largest(values, k)
                items[row, : len(best)], scores[row, : len(best)] = best, values[best]
        return items, scores


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Return where the k largest numbers above minus infinity are, falling, equal ones by place."""
    if k < len(values):
        threshold = np.partition(values, -k)[-k]
        places = np.flatnonzero(values >= threshold)
    else:
        places = np.arange(len(values))
    places = places[values[places] > -np.inf]
    return places[np.argsort(-values[places], kind="stable")][:k]


def _check_items(name: str, items: Any, n: int) -> np.ndarray:
    """Return numbers of items as an array, or raise with the one that does not exist."""
    array = np.atleast_1d(np.asarray(items))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers (items are counted from 0), got {array.dtype} entries.")
    wrong = array[(array < 0) | (array >= n)]
    if wrong.size:
        raise IndexError(f"{name} must be from 0 to {n - 1}, the numbers of the items, got {wrong[0]}.")
    return array.astype(np.int64)


def check_exclude(exclude: Any, n: int) -> Any:
    """Return the pairs to leave out as a csr_array."""
    if sparse.issparse(exclude):
        check_well_formed(exclude, "exclude")
    matrix = sparse.csr_array(exclude)
    if matrix.shape != (n, n):
        raise ValueError(f"exclude must have shape {(n, n)}, as the fitted matrix, got {matrix.shape}.")
    return matrix
