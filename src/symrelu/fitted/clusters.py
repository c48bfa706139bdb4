"""Clusters of the items of a fitted factor: labels of the items, and memberships of these and of new ones.

There are two methods. ``DirectionClusters`` compares the directions of the rows in the positive columns of the
factor. They are right if the nodes of a cluster have links to the same others, as in a social network.
``LinkageClusters`` merges clusters by the mean of max(0, X). It is right if clusters are chains or sheets of
neighbours, as in a graph of the nearest neighbours of samples, whose ends need not have similar rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from symrelu.fitted.linkage_tree import Tree
from symrelu.kernels.memory import batches

_STARTS = 10  # of k-means, of which the best is kept


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
class DirectionClusters:
    """Clusters of the directions of rows, found by k-means.

    Attributes
    ----------
    labels : ndarray of int of shape (n,)
        Cluster of each item, numbered by first appearance.
    signature : ndarray of shape (rank,)
        Signs of the columns of the factor.
    centers : ndarray of shape (n_clusters, number of positive columns)
        Mean direction of each cluster.
    variance : float
        Mean squared distance of a direction from its centre in each dimension.
    """

    labels: np.ndarray
    signature: np.ndarray
    centers: np.ndarray
    variance: float

    @classmethod
    def of(
        cls, U: np.ndarray, signature: np.ndarray, n_clusters: int, *, seed: int, n_fits: int = 1
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
        n_fits : int, default=1
            Number of fits whose factors are side by side in U. Their columns repeat the same dimensions.

        Returns
        -------
        clusters : DirectionClusters
        """
        rows = unit_rows(U, signature)
        means = KMeans(n_clusters, n_init=_STARTS, random_state=seed)
        # One thread: sums of several threads differ in the last digits from run to run.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that fewer directions differ, which the caller sees
            found = means.fit_predict(rows)
        labels = by_first_appearance(found)
        centers = np.empty((labels.max() + 1, rows.shape[1]))
        centers[labels] = means.cluster_centers_[found]
        dimensions = max(1, rows.shape[1] // n_fits)
        variance = np.mean(np.sum((rows - centers[labels]) ** 2, axis=1)) / dimensions
        return cls(labels, signature, centers, float(variance))

    def memberships(self, U: np.ndarray, items: np.ndarray | None = None) -> np.ndarray:
        """Return the share of each cluster in rows of a factor.

        It is the probability of the cluster if the directions of each one scatter around its centre with the
        same variance, and no cluster is likelier than another.

        Parameters
        ----------
        U : ndarray of shape (m, rank)
            Rows of new items, or of fitted ones.
        items : ndarray of int of shape (m,), optional
            Not used here.

        Returns
        -------
        memberships : ndarray of shape (m, n_clusters)
            Nonnegative, with sum 1 in each row. The largest one is the cluster of the item.
        """
        del items
        rows = unit_rows(U, self.signature)
        # Without |row|^2, which softmax cancels. The floor lets rows that equal their centre have one cluster.
        closeness = rows @ self.centers.T - np.sum(self.centers**2, axis=1) / 2
        return softmax(closeness / max(self.variance, np.finfo(float).eps), axis=1)


@dataclass(frozen=True, eq=False)
class LinkageClusters:
    """Clusters by average linkage under max(0, X).

    Attributes
    ----------
    labels : ndarray of int of shape (n,)
        Cluster of each item, numbered by first appearance.
    tree : Tree
        All merges.
    U : ndarray of shape (n, rank)
        The factor.
    signature : ndarray of shape (rank,)
        Signs of its columns.
    """

    labels: np.ndarray
    tree: Tree
    U: np.ndarray
    signature: np.ndarray

    def memberships(self, U: np.ndarray, items: np.ndarray | None = None) -> np.ndarray:
        """Return the share of each cluster in rows of a factor.

        It is proportional to the mean of max(0, X) over the items of the cluster. If X is positive nowhere, the
        cluster with the largest mean of X has all.

        Parameters
        ----------
        U : ndarray of shape (m, rank)
            Rows of new items, or of fitted ones.
        items : ndarray of int of shape (m,), optional
            Numbers of fitted items, whose X with themselves is left out.

        Returns
        -------
        memberships : ndarray of shape (m, n_clusters)
            Nonnegative, with sum 1 in each row. For a fitted item the largest one need not be its own cluster:
            linkage compares clusters, not items.
        """
        left, right = np.asarray(U * self.signature, np.float64), np.asarray(self.U, np.float64)
        k, n = self.labels.max() + 1, len(self.labels)
        indicator = np.zeros((n, k))
        indicator[np.arange(n), self.labels] = 1
        counts = np.tile(indicator.sum(axis=0), (len(left), 1))
        if items is not None:
            counts[np.arange(len(left)), self.labels[items]] -= 1
        counts = np.maximum(counts, 1)  # the mean over no item is zero
        means = np.empty((len(left), k))
        for rows in batches(len(left), 2 * n * 8):
            X = left[rows] @ right.T
            if items is not None:
                X[np.arange(len(X)), items[rows]] = 0
            means[rows] = np.maximum(X, 0) @ indicator / counts[rows]
            alone = np.flatnonzero(~means[rows].any(axis=1))
            nearest = np.argmax(X[alone] @ indicator / counts[rows][alone], axis=1)
            means[rows][alone, nearest] = 1
        return means / means.sum(axis=1, keepdims=True)


Clusters = DirectionClusters | LinkageClusters


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
    inside = weights[labels[rows] == labels[M.indices]].sum() / total
    return float(inside - np.sum((np.bincount(labels, degrees) / total) ** 2))


def is_collapsed(labels: np.ndarray) -> bool:
    """Whether one cluster holds nearly all items and the others at most two each."""
    sizes = np.sort(np.bincount(labels))[::-1]
    return len(sizes) > 1 and sizes[1] <= 2 and sizes[0] >= max(3, 0.8 * len(labels))


def memberships_of_fitted(clusters: Clusters, U: Any) -> np.ndarray:
    """Return the memberships of all fitted items."""
    return clusters.memberships(np.asarray(U), np.arange(len(U)))
