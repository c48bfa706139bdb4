"""Sparse rows of merging clusters, against means over blocks of a dense matrix."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.cluster.hierarchy import linkage

from symrelu.kernels.nearest_clusters import END_OF_CHAIN, NO_CLUSTER, find, nearest, number_nodes

SEEDS = st.integers(0, 2**32 - 1)


def random_similarities(rng, n, density):
    """Small integers, so that means are exact and ties frequent."""
    M = np.triu(rng.integers(1, 4, (n, n)) * (rng.random((n, n)) < density), 1).astype(float)
    return M + M.T


class Rows:
    """The arrays that the kernel keeps, and the clusters as plain sets."""

    def __init__(self, M):
        rows, n = sparse.csr_array(M), len(M)
        self.M, self.members = M, {k: [k] for k in range(n)}
        self.following, self.last, self.parent = np.full(n, END_OF_CHAIN), np.arange(n), np.arange(n)
        self.sizes = np.ones(n)
        self.state = (
            *(rows.data, rows.indices, rows.indptr, np.diff(rows.indptr), self.following, self.last),
            *(self.parent, self.sizes, np.zeros(n), np.empty(n, np.int64)),
        )

    def merge(self, low, high):
        self.members[low] += self.members.pop(high)
        self.parent[high] = low
        self.sizes[low] += self.sizes[high]
        self.following[self.last[low]] = high

    def nearest_by_definition(self, cluster):
        means = {
            other: self.M[np.ix_(self.members[cluster], members)].mean()
            for other, members in self.members.items()
            if other != cluster
        }
        largest = max(means.values(), default=0.0)
        if largest == 0:
            return NO_CLUSTER, 0.0
        return min(other for other, mean in means.items() if mean == largest), largest


@given(seed=SEEDS, n=st.integers(1, 12), density=st.sampled_from([0.0, 0.2, 0.6, 1.0]))
def test_the_nearest_cluster_is_that_of_largest_mean(seed, n, density):
    rng = np.random.default_rng(seed)
    rows = Rows(random_similarities(rng, n, density))
    for _ in range(n - 1):
        pair = sorted(rng.choice(list(rows.members), 2, replace=False).tolist())
        for cluster in (*rng.choice(list(rows.members), 2).tolist(), *pair):
            other, mean = nearest(cluster, *rows.state)
            expected, largest = rows.nearest_by_definition(cluster)
            assert other == expected
            assert abs(mean - largest) <= 1e-12 * largest
        rows.merge(*pair)  # reading a row finds its last segment, so both are read between two merges


@given(seed=SEEDS, n=st.integers(1, 30))
def test_find_leads_to_the_lowest_member(seed, n):
    rng = np.random.default_rng(seed)
    parent, cluster_of = np.arange(n), np.arange(n)
    for _ in range(n // 2):
        low, high = sorted(rng.choice(np.unique(cluster_of), 2, replace=False)) if n > 1 else (0, 0)
        parent[high] = low
        cluster_of[cluster_of == high] = low
        item = rng.integers(n)
        assert find(parent, item) == cluster_of[item]
    assert [find(parent, item) for item in range(n)] == cluster_of.tolist()


@given(seed=SEEDS, n=st.integers(2, 25))
def test_nodes_are_numbered_as_scipy_numbers_them(seed, n):
    points = np.random.default_rng(seed).random((n, 2))
    children = linkage(points, "average")[:, :2].astype(int)
    lowest = list(range(n))
    for a, b in children:
        lowest.append(min(lowest[a], lowest[b]))
    low, high = np.sort([[lowest[a], lowest[b]] for a, b in children], axis=1).T
    assert_array_equal(
        number_nodes(np.ascontiguousarray(low), np.ascontiguousarray(high)), np.sort(children, axis=1)
    )


@given(seed=SEEDS, n=st.integers(2, 25))
def test_any_member_may_name_a_cluster(seed, n):
    rng = np.random.default_rng(seed)
    clusters, pairs, named = [[k] for k in range(n)], [], []
    while len(clusters) > 1:
        one, other = (clusters.pop(rng.integers(len(clusters))) for _ in range(2))
        pairs.append((min(one), min(other)))
        named.append((rng.choice(one), rng.choice(other)))
        clusters.append(one + other)
    expected, found = (number_nodes(*np.array(merges).T.copy()) for merges in (pairs, named))
    assert_array_equal(found, expected)
