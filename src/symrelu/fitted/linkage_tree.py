"""Average linkage of the items under the similarity max(0, X), without an n x n array in memory.

The tree is that of the greedy method: merge the two clusters with the largest mean similarity until one is
left; ties go to the lower index. (The index of a cluster is that of its lowest item, and pairs are compared by
the lower cluster first.) It is found by the nearest-neighbour chain algorithm: average linkage is reducible,
that is, no merge brings other clusters nearer than they were. So two clusters that are nearest to each other
stay so until they merge, and such pairs may be merged in any order. Sorting the merges restores the greedy
order.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from symrelu.kernels import nearest_clusters
from symrelu.kernels.memory import working_memory
from symrelu.kernels.nearest_clusters import END_OF_CHAIN, NO_CLUSTER, number_nodes
from symrelu.kernels.threads import slices
from symrelu.validation import check_factor, check_integer, check_similarity

_BYTES_PER_PAIR = 64  # peak memory of a positive pair: lists of pairs, and two csr matrices of them
_ARRAYS_PER_BLOCK = 4  # peak number of arrays of the size of a block of X
_BLOCK = 2**19  # entries; larger blocks of X do not fit into the cache
_FEWEST_ROWS = 32  # with fewer rows, a product of factors is slow
_EXACT_BITS = 53  # integers of up to 53 bits have exact sums and correctly rounded quotients in float64


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The sequence of merges of n items into one cluster.

    Attributes
    ----------
    children : ndarray of int of shape (n - 1, 2)
        The two nodes of each merge. Items are the nodes 0 to n - 1, and merge t creates the node n + t.
    similarity : ndarray of shape (n - 1,)
        Mean similarity of the two clusters of each merge, in descending order.
    """

    children: np.ndarray
    similarity: np.ndarray

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.children) + 1

    def __repr__(self) -> str:
        if not len(self.children):
            return "Tree(n_items=1)"
        return f"Tree(n_items={self.n_items}, similarity {self.similarity[0]:.3g} to {self.similarity[-1]:.3g})"

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return the clusters that exist before the last ``n_clusters - 1`` merges.

        Parameters
        ----------
        n_clusters : int
            From 1 to the number of items.

        Returns
        -------
        labels : ndarray of int of shape (n_items,)
            From 0 to n_clusters - 1, numbered by first appearance.
        """
        n = self.n_items
        check_integer("n_clusters", n_clusters, 1, n, note=" (the number of items)")
        made = n - n_clusters
        parents = np.repeat(np.arange(n, n + made), 2)
        return _components(self.children[:made].ravel(), parents, n + made)[:n]

    def to_scipy(self) -> np.ndarray:
        """Return the tree as a linkage matrix of ``scipy.cluster.hierarchy``.

        Returns
        -------
        Z : ndarray of shape (n - 1, 4)
            The height of a merge is the similarity of the first merge minus its own: the result of
            ``linkage(distances, "average")`` with the distances max(M) - M.
        """
        sizes = [1.0] * self.n_items
        for a, b in self.children:
            sizes.append(sizes[a] + sizes[b])
        heights = self.similarity[:1] - self.similarity
        return np.column_stack([self.children, heights, sizes[self.n_items :]])


def average_linkage(M: Any) -> Tree:
    """Merge items by average linkage under given similarities.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Nonnegative and symmetric. The diagonal is ignored. Sparse input is never made dense.

    Returns
    -------
    tree : Tree
        Clusters without any similarity to others merge last, in the order of their indices.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.fitted import average_linkage
    >>> M = np.array([[0, 3, 1, 0], [3, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    >>> tree = average_linkage(M)
    >>> tree.similarity
    array([3., 1., 0.])
    >>> tree.cut(2)
    array([0, 0, 0, 1])
    """
    M = sparse.csr_array(check_similarity(M, "M"))
    joined = _nearest_neighbour_chain(_SparseRows(sparse.triu(M, 1, format="csr").astype(np.float64)))
    others = _lowest_items(_components(joined.low, joined.high, M.shape[0]))[1:]
    apart = _Merges(np.zeros_like(others), others, np.zeros(len(others)))
    return _greedy_tree(joined, apart)


def average_linkage_of_factor(U: Any, signature: Any | None = None) -> Tree:
    """Merge items by average linkage under max(0, X), X = (U * signature) U^T.

    Parameters
    ----------
    U : array-like of shape (n, rank)
    signature : array-like of shape (rank,), optional
        Signs of the columns; +1 by default.

    Returns
    -------
    tree : Tree
        Clusters that max(0, X) does not join merge last, by the mean of X itself. It is negative or zero
        there, as is the ``similarity`` of these merges.

    Notes
    -----
    The positive pairs are collected in a sparse matrix. If they need more than scikit-learn's
    ``working_memory``, rows of max(0, X) are computed when needed and cached within that limit.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.fitted import average_linkage_of_factor
    >>> U = np.array([[2, 0], [2, 0.5], [-1, 2], [-1, 3]])
    >>> tree = average_linkage_of_factor(U)
    >>> tree.cut(2)
    array([0, 0, 1, 1])
    >>> tree.similarity
    array([ 7.   ,  4.   , -1.375])
    """
    left, right = _check_factors(U, signature)
    pairs = _positive_pairs(left, right)
    joined = _nearest_neighbour_chain(_FactorRows(left, right) if pairs is None else _SparseRows(pairs))
    labels = _components(joined.low, joined.high, len(left))
    lowest = _lowest_items(labels)
    apart = _nearest_neighbour_chain(_MeanRows(left, right, labels))
    not_positive = np.minimum(apart.similarity, 0)  # rounding could make them positive
    return _greedy_tree(joined, _Merges(lowest[apart.low], lowest[apart.high], not_positive))


def _check_factors(U: Any, signature: Any | None) -> tuple[np.ndarray, np.ndarray]:
    """Return left and right with X = left right^T, in float64."""
    U = check_factor(U, np.dtype(np.float64), "U")
    if U.ndim != 2 or 0 in U.shape:
        raise ValueError(f"U must have shape (n, rank) with n and rank of at least 1, got {U.shape}.")
    if not np.isfinite(U).all():
        raise ValueError("U must be finite, got NaN or infinity.")
    signs = np.ones(U.shape[1]) if signature is None else np.asarray(signature, np.float64)
    if signs.shape != (U.shape[1],) or not np.isin(signs, (-1, 1)).all():
        raise ValueError(f"signature must be {U.shape[1]} numbers +1 or -1, got {signature!r}.")
    return U, U * signs


class _Merges(NamedTuple):
    """Pairs of merged clusters, the lower index first, and their mean similarity."""

    low: np.ndarray
    high: np.ndarray
    similarity: np.ndarray


def _components(i: np.ndarray, j: np.ndarray, n: int) -> np.ndarray:
    """Return the connected component of each of n nodes with the edges (i, j), numbered by first appearance."""
    graph = sparse.coo_array((np.ones(len(i), bool), (i, j)), shape=(n, n))
    _, labels = connected_components(graph, directed=False)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]  # the rank of each first appearance


def _lowest_items(labels: np.ndarray) -> np.ndarray:
    """Return the lowest item of each cluster."""
    return np.unique(labels, return_index=True)[1]


def _greedy_tree(*stages: _Merges) -> Tree:
    """Return the tree of these merges, sorted into the greedy order."""
    low, high, similarity = (np.concatenate(columns) for columns in zip(*stages, strict=True))
    order = np.lexsort((high, low, -similarity))
    return Tree(number_nodes(low[order], high[order]), similarity[order])


class _Rows(Protocol):
    """Similarities of clusters, one row at a time. The index of a cluster is that of its lowest item."""

    n: int

    def nearest(self, cluster: int) -> tuple[int, float]:
        """Return the nearest other cluster (ties go to the lower index) or NO_CLUSTER, and its similarity."""

    def merge(self, low: int, high: int) -> None:
        """Merge cluster ``high`` into cluster ``low``."""


def _nearest_neighbour_chain(rows: _Rows) -> _Merges:
    """Merge clusters until none has a neighbour, by the nearest-neighbour chain algorithm.

    The chain goes from a cluster to its nearest, and on to that one's nearest. Similarities increase along it,
    so it ends at two clusters that are nearest to each other. They merge, and the rest is still a chain.
    """
    merges = []
    gone, in_chain = np.zeros(rows.n, bool), np.zeros(rows.n, bool)
    for start in range(rows.n):
        chain = [] if gone[start] else [start]
        while chain:
            cluster = chain[-1]
            in_chain[cluster] = True
            other, similarity = rows.nearest(cluster)
            if other == NO_CLUSTER:
                in_chain[chain] = False  # by rounding, a neighbour may not see them as neighbours
                break
            if not in_chain[other]:
                chain.append(other)
                continue
            # It is the previous one. With rounding it may be an earlier one; the chain must not cycle then.
            pair = chain.pop(), chain.pop()
            low, high = min(pair), max(pair)
            rows.merge(low, high)
            merges.append((low, high, similarity))
            in_chain[[low, high]] = False
            gone[high] = True
            if not chain and not gone[start]:
                chain = [start]
    table = np.array(merges).reshape(-1, 3)
    return _Merges(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


class _SparseRows:
    """Similarities in the rows of a csr matrix.

    They are rounded to few enough bits that all sums are exact. A mean is then the same from both sides and for
    every order of merges, so that ties are recognised.

    Parameters
    ----------
    pairs : csr_array of shape (n, n)
        Upper triangle of the similarities, positive, in float64. It is overwritten.
    """

    def __init__(self, pairs: Any) -> None:
        self.n = n = pairs.shape[0]
        self._exponent = _unit_exponent(pairs.data)
        np.ldexp(pairs.data, -self._exponent, out=pairs.data)
        # At least 1, so that no positive similarity is rounded to zero.
        np.maximum(np.rint(pairs.data, out=pairs.data), 1, out=pairs.data)
        rows = sparse.csr_array(pairs + pairs.T)
        self._sizes = np.ones(n)
        self._parent, self._last, self._following = np.arange(n), np.arange(n), np.full(n, END_OF_CHAIN)
        self._state = (
            *(rows.data, rows.indices, rows.indptr, np.diff(rows.indptr)),
            *(self._following, self._last, self._parent, self._sizes),
            *(np.zeros(n), np.empty(n, np.int64)),
        )

    def nearest(self, cluster: int) -> tuple[int, float]:
        other, mean = nearest_clusters.nearest(cluster, *self._state)
        return other, math.ldexp(mean, self._exponent)

    def merge(self, low: int, high: int) -> None:
        self._parent[high] = low
        self._sizes[low] += self._sizes[high]
        self._following[self._last[low]] = high  # a linked list of rows, which nearest() joins


def _unit_exponent(data: np.ndarray) -> int:
    """Return e such that the sum of data / 2^e has at most as many bits as float64 adds exactly."""
    largest = math.frexp(float(data.max(initial=0)))[1]
    total = float(np.sum(np.ldexp(data, -largest)))
    return largest + math.frexp(total)[1] - _EXACT_BITS


def _positive_pairs(left: np.ndarray, right: np.ndarray) -> Any | None:
    """Return the upper triangle of max(0, X) as a csr_array, or None if it exceeds the working memory."""
    n = len(left)
    limit = working_memory() / _BYTES_PER_PAIR
    parts, count = [], 0
    for batch in slices(n, _rows_at_once(n)):
        block = left[batch] @ right[batch.start :].T
        block[np.tril_indices(len(block))] = 0  # each pair once: (i, j) and (j, i) may round differently
        i, j = np.nonzero(block > 0)
        count += len(i)
        if count > limit:
            return None
        parts.append((block[i, j], (i + batch.start).astype(np.int32), (j + batch.start).astype(np.int32)))
    data, i, j = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return sparse.csr_array((data, (i, j)), shape=(n, n))


def _rows_at_once(n: int) -> int:
    """Return how many rows of X to compute at once: a few MB, within scikit-learn's working memory."""
    allowed = working_memory() // (8 * n * _ARRAYS_PER_BLOCK)
    return max(1, min(int(allowed), max(_FEWEST_ROWS, _BLOCK // n)))


class _FactorRows:
    """Rows of max(0, X), computed when needed.

    The row of a cluster is the sum of the rows of its items. Rows are cached within the working memory, those
    of large clusters first, since the others are cheaper to compute again.
    """

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        self.n = n = len(left)
        self._left, self._right = left, right
        self._labels, self._sizes = np.arange(n), np.ones(n)
        self._kept: dict[int, np.ndarray] = {}
        # A heap. Outdated sizes stay in it, and _keep skips them.
        self._by_size: list[tuple[float, int]] = []
        self._capacity = int(working_memory() // (2 * 8 * n))  # rows in half of the working memory

    def nearest(self, cluster: int) -> tuple[int, float]:
        row = self._kept.get(cluster)
        if row is None:
            row = self._row(cluster)
            self._keep(cluster, row)
        means = np.bincount(self._labels, weights=row, minlength=self.n) / (self._sizes * self._sizes[cluster])
        means[cluster] = 0
        other = int(means.argmax())
        return (other if means[other] > 0 else NO_CLUSTER), float(means[other])

    def merge(self, low: int, high: int) -> None:
        self._labels[self._labels == high] = low
        self._sizes[low] += self._sizes[high]
        first, second = self._kept.pop(low, None), self._kept.pop(high, None)
        if first is not None and second is not None:
            first += second
            self._keep(low, first)

    def _row(self, cluster: int) -> np.ndarray:
        members = np.flatnonzero(self._labels == cluster)
        row = np.zeros(self.n)
        for batch in slices(len(members), _rows_at_once(self.n)):
            block = self._left[members[batch]] @ self._right.T
            row += np.maximum(block, 0, out=block).sum(axis=0)
        return row

    def _keep(self, cluster: int, row: np.ndarray) -> None:
        self._kept[cluster] = row
        heapq.heappush(self._by_size, (self._sizes[cluster], cluster))
        while len(self._kept) > self._capacity:
            size, smallest = heapq.heappop(self._by_size)
            if size == self._sizes[smallest]:  # else the cluster has grown since, and has a newer entry
                self._kept.pop(smallest, None)


class _MeanRows:
    """Means of X between clusters, which are products of the means of their factor rows."""

    def __init__(self, left: np.ndarray, right: np.ndarray, labels: np.ndarray) -> None:
        self._sizes = np.bincount(labels).astype(np.float64)
        self.n = len(self._sizes)
        members = sparse.csr_array((1 / self._sizes[labels], (labels, np.arange(len(left)))))
        self._left, self._right = members @ left, members @ right
        self._absent = np.zeros(self.n)  # minus infinity for clusters that were merged into others

    def nearest(self, cluster: int) -> tuple[int, float]:
        means = self._left @ self._right[cluster] + self._absent
        means[cluster] = -np.inf
        other = int(means.argmax())
        return (other if means[other] > -np.inf else NO_CLUSTER), float(means[other])

    def merge(self, low: int, high: int) -> None:
        size = self._sizes[low] + self._sizes[high]
        for factor in (self._left, self._right):
            factor[low] += (factor[high] - factor[low]) * (self._sizes[high] / size)
        self._sizes[low] = size
        self._absent[high] = -np.inf
