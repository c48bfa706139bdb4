"""Clusters of the items of a fitted factor: labels of the items, and memberships of these and of new ones.

There are two methods. ``DirectionClusters`` compares the directions of the rows in the positive columns of the
factor. They are right if the nodes of a cluster have links to the same others, as in a social network.
``LinkageClusters`` merges clusters by the mean of max(0, X). It is right if clusters are chains or sheets of
neighbours, as in a graph of the nearest neighbours of samples, whose ends need not have similar rows.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from symrelu.fitted.linkage_tree import Tree
from symrelu.kernels.memory import batches

STARTS = 10  # of k-means, of which the best is kept


def by_first_appearance(labels: np.ndarray) -> np.ndarray:
    """Return labels numbered 0, 1, 2, ... in the order in which they appear."""
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]


def unit_rows(U: np.ndarray, signature: np.ndarray) -> np.ndarray:
    """Return the directions of the rows in the positive columns; zero if a row is zero there."""
    rows = np.asarray(U[:, signature > 0], np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True, eq=False)
class Clusters(ABC):
    """Clusters of the items of a factor.

    Attributes
    ----------
    labels : ndarray of int of shape (n,)
        Cluster of each item, numbered by first appearance.
    U : ndarray of shape (n, rank)
        The factor, with zeros for items without similarities.
    signature : ndarray of shape (rank,)
        Signs of its columns.
    """

    labels: np.ndarray
    U: np.ndarray
    signature: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of items in each cluster."""
        return np.bincount(self.labels)

    @abstractmethod
    def nearest(self, U: np.ndarray) -> np.ndarray:
        """Return the cluster of new items.

        Parameters
        ----------
        U : ndarray of shape (m, rank)
            Their rows of the factor. A row of zeros, of an item without similarities, gets the largest cluster.

        Returns
        -------
        labels : ndarray of int of shape (m,)
        """

    def memberships(self, U: np.ndarray, items: np.ndarray | None = None) -> np.ndarray:
        """Return the share of each cluster in rows of a factor.

        It is proportional to the mean of max(0, X) over the items of the cluster. If X is positive nowhere, all
        clusters have the same share.

        Parameters
        ----------
        U : ndarray of shape (m, rank)
            Rows of new items, or of fitted ones.
        items : ndarray of int of shape (m,), optional
            Numbers of fitted items, whose X with themselves is left out.

        Returns
        -------
        memberships : ndarray of shape (m, n_clusters)
            Nonnegative, with sum 1 in each row.
        """
        means = self._means(U, items, lambda X: np.maximum(X, 0))
        means[~means.any(axis=1)] = 1
        return means / means.sum(axis=1, keepdims=True)

    def _means(
        self, U: np.ndarray, items: np.ndarray | None, function: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return the mean of a function of X over the items of each cluster."""
        left, right = np.asarray(U * self.signature, np.float64), np.asarray(self.U, np.float64)
        m, n = len(left), len(right)
        counts = np.tile(self.sizes, (m, 1))
        if items is not None:
            counts[np.arange(m), self.labels[items]] -= 1
        indicator = sparse.csr_array((np.ones(n), (np.arange(n), self.labels)), shape=(n, counts.shape[1]))
        sums = np.empty(counts.shape)
        for rows in batches(m, 2 * n * 8):
            values = function(left[rows] @ right.T)
            if items is not None:
                values[np.arange(len(values)), items[rows]] = 0
            sums[rows] = values @ indicator
        return sums / np.maximum(counts, 1)  # the mean over no item is zero


@dataclass(frozen=True, eq=False)
class DirectionClusters(Clusters):
    """Clusters of the directions of rows, found by k-means.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, number of positive columns)
        Mean direction of each cluster.
    """

    centers: np.ndarray

    @classmethod
    def of(
        cls, U: np.ndarray, signature: np.ndarray, n_clusters: int, *, seed: int, n_starts: int = STARTS
    ) -> DirectionClusters:
        """Cluster the items.

        Parameters
        ----------
        U : ndarray of shape (n, rank)
        signature : ndarray of shape (rank,)
        n_clusters : int
            Fewer are found if fewer directions differ.
        seed : int
            Of k-means.
        n_starts : int
            Number of starts of k-means, of which the best is kept.

        Returns
        -------
        clusters : DirectionClusters
        """
        rows = unit_rows(U, signature)
        means = KMeans(n_clusters, n_init=n_starts, random_state=seed)
        # One thread: sums of several threads differ in the last digits from run to run.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that fewer directions differ, which the caller sees
            found = means.fit_predict(rows)
        known = rows.any(axis=1)
        if known.any():
            found[~known] = np.argmax(np.bincount(found[known]))
        labels = by_first_appearance(found)
        centers = np.empty((labels.max() + 1, rows.shape[1]))
        centers[labels] = means.cluster_centers_[found]
        return cls(labels, U, signature, centers)

    def nearest(self, U: np.ndarray) -> np.ndarray:
        """Return the cluster with the nearest centre: see :meth:`Clusters.nearest`."""
        rows = unit_rows(U, self.signature)
        # The squared distance without |row|^2, which is the same for all centres.
        labels = np.argmin(np.sum(self.centers**2, axis=1) / 2 - rows @ self.centers.T, axis=1)
        return np.where(rows.any(axis=1), labels, np.argmax(self.sizes))


@dataclass(frozen=True, eq=False)
class LinkageClusters(Clusters):
    """Clusters by average linkage under max(0, X).

    Attributes
    ----------
    tree : Tree
        All merges.
    """

    tree: Tree

    def nearest(self, U: np.ndarray) -> np.ndarray:
        """Return the cluster with the largest mean of max(0, X), or of X if that is zero."""
        means = self._means(U, None, lambda X: np.maximum(X, 0))
        negative = ~means.any(axis=1)
        means[negative] = self._means(U[negative], None, lambda X: X)
        return np.where(means.any(axis=1), np.argmax(means, axis=1), np.argmax(self.sizes))


def modularity_of(M: Any, labels: np.ndarray) -> float:
    """Return the modularity of clusters numbered from 0 on: see :func:`symrelu.metrics.modularity`.

    Parameters
    ----------
    M : sparse matrix or ndarray of shape (n, n)
        Symmetric and nonnegative. The diagonal is ignored.
    labels : ndarray of int of shape (n,)

    Returns
    -------
    modularity : float
    """
    M = sparse.csr_array(M)
    rows = np.repeat(np.arange(len(labels)), np.diff(M.indptr))
    weights = np.where(rows == M.indices, 0.0, M.data)  # in float64, without the diagonal
    degrees = np.bincount(rows, weights, len(labels))
    total = degrees.sum()
    if total == 0:
        return 0.0  # no pairs, so no more of them inside clusters than by chance
    inside = weights[labels[rows] == labels[M.indices]].sum() / total
    return float(inside - np.sum((np.bincount(labels, degrees) / total) ** 2))


def outliers(labels: np.ndarray) -> str:
    """Return a text on clusters that are outliers rather than clusters, or nothing."""
    sizes = np.sort(np.bincount(labels))[::-1]
    alone = int(np.count_nonzero(sizes == 1))
    if len(sizes) > 1 and sizes[1] <= 2 and sizes[0] >= max(3, 0.8 * len(labels)):
        others = f"the other{'s' * (len(sizes) > 2)} at most {sizes[1]}"
        return f"One cluster holds {sizes[0]} of {len(labels)} items, and {others}"
    # With few items for each cluster, single items are to be expected.
    if alone > 1 and 2 * alone >= len(sizes) and len(labels) >= 4 * len(sizes):
        return f"{alone} of {len(sizes)} clusters hold one item each"
    return ""
