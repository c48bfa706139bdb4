"""Rows of similarities between clusters, kept sparse while the clusters merge.

The row of an item is a *segment* of a csr matrix. The row of a cluster is a chain of the segments of its
members; their entries name the clusters that there were when they were written. Reading a row brings it up to
date and writes it back into its own segments, so that no further memory is needed.
"""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled

NOBODY = -1


@compiled
def find(parent, item):  # type: ignore[no-untyped-def]
    """Return the cluster of an item, and shorten the way to it."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@compiled
def nearest(  # type: ignore[no-untyped-def]
    cluster, data, indices, indptr, used, following, last, parent, sizes, sums, others
):
    """Return the cluster of largest mean similarity, the lowest one of equals, and that mean.

    The entries of ``data`` are positive. Of each segment, ``used`` entries are in use and ``following`` is the
    next one of the same cluster, up to ``last``. ``sums`` (all zero) and ``others`` are room for a row.
    """
    count = 0
    segment = cluster
    while segment != NOBODY:
        for place in range(indptr[segment], indptr[segment] + used[segment]):
            other = find(parent, indices[place])
            if other != cluster:
                if sums[other] == 0:
                    others[count] = other
                    count += 1
                sums[other] += data[place]
        segment = following[segment]

    best, largest = NOBODY, 0.0
    segment, written = cluster, 0
    while True:
        begin = indptr[segment]
        fitting = min(indptr[segment + 1] - begin, count - written)
        for k in range(fitting):
            other = others[written + k]
            mean = sums[other] / (sizes[cluster] * sizes[other])
            if mean > largest or (mean == largest and other < best):
                best, largest = other, mean
            indices[begin + k] = other
            data[begin + k] = sums[other]
            sums[other] = 0
        used[segment] = fitting
        written += fitting
        if written == count:
            following[segment] = NOBODY
            last[cluster] = segment
            return best, largest
        segment = following[segment]


@compiled
def number_nodes(low, high):  # type: ignore[no-untyped-def]
    """Return the two nodes of each merge: items are 0 to n - 1, and merge t makes the node n + t.

    A merge is given by a member of each of its two clusters.
    """
    merges = low.size
    n = merges + 1
    parent = np.arange(n)
    node = np.arange(n)
    children = np.empty((merges, 2), np.int64)
    for t in range(merges):
        a, b = find(parent, low[t]), find(parent, high[t])
        children[t, 0] = min(node[a], node[b])
        children[t, 1] = max(node[a], node[b])
        parent[b] = a
        node[a] = n + t
    return children
