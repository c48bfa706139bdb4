"""Average linkage of the items under the similarity max(0, X), without n x n numbers in memory.

The tree is that of the greedy method: merge the two clusters with the largest mean similarity, the lowest
ones of equals, until one is left. (A cluster is as low as its lowest item, and pairs are ordered by the lower
cluster first.) Under average linkage no merge brings other clusters nearer than they were. So two clusters that
are nearest to each other stay so until they merge, and such pairs may be merged in any order. Sorting the
merges gives the greedy order back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import sklearn
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils import gen_batches

from symrelu.kernels import linkage as kernels
from symrelu.kernels.linkage import NOBODY
from symrelu.validation import check_factor, check_integer, check_similarity

_BYTES_PER_PAIR = 64  # of a positive pair, at the worst moment: lists of pairs, and two csr matrices of them
_ARRAYS_PER_BLOCK = 4  # of the size of a block of X, at the worst moment
_BLOCK = 2**19  # entries: larger blocks of X leave the cache
_FEWEST_ROWS = 32  # with fewer, a product of factors is slow
_EXACT_BITS = 53  # integers of so many bits have exact sums and correctly rounded quotients in float64


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The order in which n items merged into one cluster.

    Attributes
    ----------
    children : ndarray of int of shape (n - 1, 2)
        The two nodes of each merge. Items are the nodes 0 to n - 1, merge t makes the node n + t.
    similarity : ndarray of shape (n - 1,)
        Mean similarity of the two clusters of each merge, falling.
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
        """Return the clusters there were before the last ``n_clusters - 1`` merges.

        Parameters
        ----------
        n_clusters : int
            From 1 to the number of items.

        Returns
        -------
        labels : ndarray of int of shape (n_items,)
            From 0 to n_clusters - 1, by first appearance.
        """
        n = self.n_items
        check_integer("n_clusters", n_clusters, 1, n, note=" (the number of items)")
        made = n - n_clusters
        parents = np.repeat(np.arange(n, n + made), 2)
        return _components(self.children[:made].ravel(), parents, n + made)[:n]

    def to_scipy(self) -> np.ndarray:
        """Return the tree as ``scipy.cluster.hierarchy`` takes it.

        Returns
        -------
        Z : ndarray of shape (n - 1, 4)
            The height of a merge is how much lower its similarity is than that of the first merge. It is what
            ``linkage(distances, "average")`` gives for the largest similarity minus the similarities.
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
        Nonnegative and symmetric. The diagonal does not matter. A sparse one is never made dense.

    Returns
    -------
    tree : Tree
        Clusters without any similarity merge last, the lowest ones first.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.linkage import average_linkage
    >>> M = np.array([[0, 3, 1, 0], [3, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    >>> tree = average_linkage(M)
    >>> tree.similarity
    array([3., 1., 0.])
    >>> tree.cut(2)
    array([0, 0, 0, 1])
    """
    M = sparse.csr_array(check_similarity(M))
    clusters = _Clusters(np.arange(M.shape[0]))
    joined = _merge_pairs(sparse.triu(M, 1, format="csr"), clusters.sizes)
    clusters = clusters.after(joined)
    others = clusters.lowest[1:]
    apart = _Merges(np.zeros_like(others), others, np.zeros(len(others)))
    return _tree([joined, apart])


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
        Clusters that max(0, X) does not join merge last, by the mean of X itself. It is negative or zero there,
        and so is the ``similarity`` of these merges.

    Notes
    -----
    The positive pairs are collected as a sparse matrix. Where they would need more than scikit-learn's
    ``working_memory``, clusters that are nearest to each other are merged in passes over X, until the
    positive pairs of clusters fit.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.linkage import average_linkage_of_factor
    >>> U = np.array([[2, 0], [2, 0.1], [0, 1], [-1, 1]])
    >>> tree = average_linkage_of_factor(U)
    >>> tree.cut(2)
    array([0, 0, 1, 1])
    >>> np.round(tree.similarity, 2)
    array([ 4.  ,  1.  , -0.95])
    """
    left, right = _check_factors(U, signature)
    clusters = _Clusters(np.arange(len(left)))
    stages = []
    while (pairs := _positive_pairs(left, right, clusters)) is None:
        merges = _reciprocal(*_nearest_of_all(left, right, clusters))
        stages.append(clusters.by_item(merges))
        clusters = clusters.after(merges)
    merges = _merge_pairs(pairs, clusters.sizes)
    stages.append(clusters.by_item(merges))
    clusters = clusters.after(merges)
    stages.append(clusters.by_item(_merge_means(left, right, clusters)))
    return _tree(stages)


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
    """Pairs of clusters that merged, the lower one first, and their mean similarity."""

    low: np.ndarray
    high: np.ndarray
    similarity: np.ndarray


@dataclass(frozen=True)
class _Clusters:
    """A partition; ``labels`` are from 0, by first appearance, so that lower clusters have lower numbers."""

    labels: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.labels).astype(np.float64)

    @property
    def lowest(self) -> np.ndarray:
        """The lowest item of each cluster."""
        return np.unique(self.labels, return_index=True)[1]

    def by_item(self, merges: _Merges) -> _Merges:
        """Return merges of clusters as merges of their lowest items."""
        return _Merges(self.lowest[merges.low], self.lowest[merges.high], merges.similarity)

    def after(self, merges: _Merges) -> _Clusters:
        """Return the clusters that merges leave."""
        return _Clusters(_components(merges.low, merges.high, len(self.lowest))[self.labels])


def _components(i: np.ndarray, j: np.ndarray, n: int) -> np.ndarray:
    """Return the connected component of each of n nodes, numbered by first appearance."""
    graph = sparse.coo_array((np.ones(len(i), bool), (i, j)), shape=(n, n))
    _, labels = connected_components(graph, directed=False)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]


def _tree(stages: list[_Merges]) -> Tree:
    """Return the tree of merges of items in the greedy order."""
    low, high, similarity = (np.concatenate(columns) for columns in zip(*stages, strict=True))
    order = np.lexsort((high, low, -similarity))
    return Tree(kernels.number_nodes(low[order], high[order]), similarity[order])


# Passes over X, a few clusters at a time.


def _sums_between_clusters(
    left: np.ndarray, right: np.ndarray, clusters: _Clusters
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield ``first, sums``: of max(0, X) between clusters ``first + i`` and ``first + j``, zero unless i < j.

    Each pair is computed once, so that its sum is the same for both.
    """
    order = np.argsort(clusters.labels, kind="stable")
    left, right, labels = left[order], right[order], clusters.labels[order]
    n, m = len(left), len(clusters.lowest)
    begins = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    rows = _rows_at_once(n)
    first = 0
    while first < m:
        begin = int(begins[first])
        # As many whole clusters as fit; one that does not fit alone is summed piece by piece.
        last = max(first + 1, int(np.searchsorted(begins, begin + rows, side="right")) - 1)
        sums = np.zeros((last - first, m - first))
        for batch in gen_batches(int(begins[last]) - begin, rows):
            block = left[begin:][batch] @ right[begin:].T
            kernels.add_positive(block, labels[begin:][batch] - first, labels[begin:] - first, sums)
        yield first, sums
        first = last


def _rows_at_once(n: int) -> int:
    """Return how many rows of X are computed at once: a few MB, or what scikit-learn's working memory allows."""
    allowed = _working_memory() // (8 * n * _ARRAYS_PER_BLOCK)
    return max(1, min(int(allowed), max(_FEWEST_ROWS, _BLOCK // n)))


def _positive_pairs(left: np.ndarray, right: np.ndarray, clusters: _Clusters) -> Any | None:
    """Return the sums of max(0, X) between clusters as an upper csr_array, None if there are too many."""
    m = len(clusters.lowest)
    limit = _working_memory() / _BYTES_PER_PAIR
    blocks, count = [], 0
    for first, sums in _sums_between_clusters(left, right, clusters):
        i, j = (index.astype(np.int32) for index in np.nonzero(sums))
        count += len(i)
        if count > limit:
            return None
        blocks.append((sums[i, j], i + np.int32(first), j + np.int32(first)))
    data, i, j = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return sparse.csr_array((data, (i, j)), shape=(m, m))


def _working_memory() -> float:
    return float(sklearn.get_config()["working_memory"] * 2**20)


def _nearest_of_all(left: np.ndarray, right: np.ndarray, clusters: _Clusters) -> tuple[np.ndarray, np.ndarray]:
    """Return for each cluster the nearest other one, the lowest of equals, and the mean similarity."""
    sizes = clusters.sizes
    m = len(sizes)
    partner, similarity = np.full(m, NOBODY), np.zeros(m)

    def improve(some: np.ndarray, others: np.ndarray, means: np.ndarray) -> None:
        better = means > similarity[some]
        partner[some[better]], similarity[some[better]] = others[better], means[better]

    for first, sums in _sums_between_clusters(left, right, clusters):
        rows, columns = np.arange(first, first + len(sums)), np.arange(first, m)
        means = sums / (sizes[rows][:, None] * sizes[columns])
        # Lower partners come before higher ones: equals do not replace what is there.
        improve(columns, first + means.argmax(axis=0), means.max(axis=0))
        improve(rows, first + means.argmax(axis=1), means.max(axis=1))
    return partner, similarity


def _reciprocal(partner: np.ndarray, similarity: np.ndarray) -> _Merges:
    """Return the pairs that are nearest to each other."""
    low = np.flatnonzero(partner > np.arange(len(partner)))
    low = low[partner[partner[low]] == low]
    return _Merges(low, partner[low], similarity[low])


# The nearest-neighbour chain.


class _Rows(Protocol):
    """Similarities of clusters, a row at a time."""

    def nearest(self, cluster: int) -> tuple[int, float]:
        """Return the nearest other cluster, the lowest of equals, and the mean similarity; or NOBODY."""

    def merge(self, low: int, high: int) -> None:
        """Make ``low`` both clusters."""


def _chain(rows: _Rows, m: int) -> _Merges:
    """Merge m clusters until none has a neighbour.

    The chain goes from a cluster to its nearest, and on to that one's nearest. Similarities rise along
    it, so it ends with two that are nearest to each other. They merge, and the rest of the chain is still one.
    """
    merges = []
    gone, in_chain = np.zeros(m, bool), np.zeros(m, bool)
    for start in range(m):
        chain = [] if gone[start] else [start]
        while chain:
            cluster = chain[-1]
            in_chain[cluster] = True
            other, similarity = rows.nearest(cluster)
            if other == NOBODY:
                break
            if not in_chain[other]:
                chain.append(other)
                continue
            # Only the one before can be in the chain, but for rounding.
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
    """Sums of similarities in the rows of a csr matrix.

    They are rounded to so many bits that sums of them are exact. Then a similarity is the same from both
    sides and in any order of merges, and equals are equal.

    Parameters
    ----------
    pairs : csr_array of shape (m, m)
        Upper triangle of the sums of similarities between clusters; positive.
    sizes : ndarray of shape (m,)
    """

    def __init__(self, pairs: Any, sizes: np.ndarray) -> None:
        m = len(sizes)
        matrix = sparse.csr_array(pairs + pairs.T)
        self._exponent = _unit_exponent(matrix.data)
        data = np.maximum(1, np.rint(np.ldexp(matrix.data.astype(np.float64), -self._exponent)))
        self._sizes = sizes.copy()
        self._parent, self._last = np.arange(m), np.arange(m)
        self._following = np.full(m, NOBODY)
        self._state = (
            *(data, matrix.indices, matrix.indptr, np.diff(matrix.indptr)),
            *(self._following, self._last, self._parent, self._sizes),
            *(np.zeros(m), np.empty(m, np.int64)),
        )

    def nearest(self, cluster: int) -> tuple[int, float]:
        other, mean = kernels.nearest(cluster, *self._state)
        return other, math.ldexp(mean, self._exponent)

    def merge(self, low: int, high: int) -> None:
        self._parent[high] = low
        self._sizes[low] += self._sizes[high]
        self._following[self._last[low]] = high
        self._last[low] = self._last[high]


def _unit_exponent(data: np.ndarray) -> int:
    """Return e such that the sum of data / 2^e has as many bits as are exact."""
    largest = math.frexp(float(data.max(initial=0)))[1]
    total = float(np.sum(np.ldexp(data, -largest), dtype=np.float64))
    return largest + math.frexp(total)[1] - _EXACT_BITS


def _merge_pairs(pairs: Any, sizes: np.ndarray) -> _Merges:
    """Merge clusters as long as they have positive similarity."""
    return _chain(_SparseRows(pairs, sizes), len(sizes))


class _MeanRows:
    """Means of X between clusters: products of the means of their factor rows."""

    def __init__(self, left: np.ndarray, right: np.ndarray, clusters: _Clusters) -> None:
        self._sizes = clusters.sizes
        members = sparse.csr_array((1 / self._sizes[clusters.labels], (clusters.labels, np.arange(len(left)))))
        self._left, self._right = members @ left, members @ right
        self._absent = np.zeros(len(self._sizes))  # minus infinity where a cluster is gone

    def nearest(self, cluster: int) -> tuple[int, float]:
        means = self._left @ self._right[cluster] + self._absent
        means[cluster] = -np.inf
        other = int(means.argmax())
        return (other if means[other] > -np.inf else NOBODY), float(means[other])

    def merge(self, low: int, high: int) -> None:
        size = self._sizes[low] + self._sizes[high]
        for factor in (self._left, self._right):
            factor[low] += (factor[high] - factor[low]) * (self._sizes[high] / size)
        self._sizes[low] = size
        self._absent[high] = -np.inf


def _merge_means(left: np.ndarray, right: np.ndarray, clusters: _Clusters) -> _Merges:
    """Merge clusters that max(0, X) does not join, by the mean of X."""
    rows = _MeanRows(left, right, clusters)
    return _chain(rows, len(clusters.lowest))
