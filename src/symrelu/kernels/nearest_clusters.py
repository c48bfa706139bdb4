"""Rows of similarities between clusters, kept sparse while the clusters merge.

The row of an item is a *segment* of a CSR matrix. The row of a cluster is a chain of the segments of its
members; their column indices refer to the clusters that existed when they were written. Reading a row updates
it and writes it back into its own segments, so no further memory is needed.
"""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled

NO_CLUSTER = -1  # in place of the nearest cluster, if no other is similar
END_OF_CHAIN = -1  # in place of the following segment, after the last one


@compiled
def find(parent, item):  # type: ignore[no-untyped-def]
    """Return the cluster of an item, and shorten the path to it (union-find with path halving)."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@compiled
def nearest(  # type: ignore[no-untyped-def]
    cluster, data, indices, indptr, used, following, last, parent, sizes, sums, others
):
    """Return the cluster with the largest mean similarity, and that mean; ties go to the lower index.

    The entries of ``data`` are positive. For each segment, ``used`` is the number of entries in use and
    ``following`` the next segment of the same cluster, up to ``last``. ``sums`` (all zero) and ``others`` are
    workspace for a row.
    """
    count = 0
    segment = cluster
    while segment != END_OF_CHAIN:
        for place in range(indptr[segment], indptr[segment] + used[segment]):
            other = find(parent, indices[place])
            if other != cluster:
                if sums[other] == 0:
                    others[count] = other
                    count += 1
                sums[other] += data[place]
        segment = following[segment]

    # The merged row is never longer than its segments together: entries only coincide or vanish.
    best, largest = NO_CLUSTER, 0.0
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
            sums[other] = 0  # the caller reuses it for the next row
        used[segment] = fitting
        written += fitting
        if written == count:
            following[segment] = END_OF_CHAIN
            last[cluster] = segment
            return best, largest
        segment = following[segment]


@compiled
def number_nodes(low, high):  # type: ignore[no-untyped-def]
    """Return the two nodes of each merge: items are 0 to n - 1, and merge t creates the node n + t.

    Each merge is given by one member of each of its two clusters.
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
