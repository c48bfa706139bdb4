"""Average linkage against the greedy method in ten lines, against SciPy, and under what must not change it."""

import tracemalloc

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.spatial.distance import squareform

from symrelu.datasets import load_digits_graph
from symrelu.fitted import linkage_tree as ours
from symrelu.fitted.linkage_tree import average_linkage, average_linkage_of_factor


def greedy(S, X=None):
    """Return the similarities of the merges and the partitions they leave, from n clusters down to one."""
    clusters, similarities = [[i] for i in range(len(S))], []
    partitions = [labels_of(clusters)]

    def similarity(a, b):
        joined = S[np.ix_(a, b)].sum() / (len(a) * len(b))
        return joined if joined > 0 or X is None else X[np.ix_(a, b)].mean()

    while len(clusters) > 1:
        pairs = [(i, j) for i in range(len(clusters)) for j in range(i + 1, len(clusters))]
        i, j = max(
            pairs, key=lambda pair: similarity(clusters[pair[0]], clusters[pair[1]])
        )  # the first of equals
        similarities.append(similarity(clusters[i], clusters[j]))
        clusters[i] = clusters[i] + clusters.pop(j)
        partitions.append(labels_of(clusters))
    return np.array(similarities), partitions


def labels_of(clusters):
    """Return labels by first appearance: the clusters stay in the order of their lowest items."""
    return [
        next(k for k, cluster in enumerate(clusters) if i in cluster) for i in range(sum(map(len, clusters)))
    ]


def assert_is_greedy(tree, S, X=None):
    similarities, partitions = greedy(S, X)
    assert_allclose(tree.similarity, similarities, rtol=1e-11, atol=1e-11 * np.abs(S).max(initial=0))
    for made, partition in enumerate(partitions):
        assert_array_equal(tree.cut(tree.n_items - made), partition)


def random_similarity(seed, n, density=1.0):
    rng = np.random.default_rng(seed)
    S = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return S + S.T


def random_factor(seed, n=40, rank=4, n_negative=1, scale=1.0):
    U = scale * np.random.default_rng(seed).standard_normal((n, rank))
    signature = np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)
    X = (U * signature) @ U.T
    return U, signature, (X + X.T) / 2


def scipy_linkage(S):
    distances = S[~np.eye(len(S), dtype=bool)].max() - S
    np.fill_diagonal(distances, 0)
    return linkage(squareform(distances, checks=False), "average")


def star(n):
    """Return a hub whose leaves merge into it one by one: its row is read n times."""
    S = np.zeros((n, n))
    S[n // 2] = S[:, n // 2] = np.random.default_rng(0).random(n) + 1
    return S


def path(n):
    """Return a path of rising similarity: the chain is as long as it is."""
    rising = 1.0 + np.arange(n - 1) ** 1.5
    return np.diag(rising, 1) + np.diag(rising, -1)


FAMILIES = {
    "complete": random_similarity(0, 60),
    "sparse": random_similarity(1, 60, 0.2),
    "very sparse": random_similarity(2, 80, 0.02),
    "star": star(40),
    "path": path(40),
    "ties": np.kron(np.ones((5, 5)), np.ones((4, 4)) - np.eye(4)),
    "ring of equals": 0.5 * (np.eye(30, k=1) + np.eye(30, k=-1) + np.eye(30, k=29) + np.eye(30, k=-29)),
    "wide range": 10.0 ** np.triu(30 * (random_similarity(3, 30) - 0.5), 1),
}
FAMILIES["wide range"] = np.triu(FAMILIES["wide range"], 1) + np.triu(FAMILIES["wide range"], 1).T


class TestGivenSimilarities:
    @pytest.mark.parametrize("name", FAMILIES)
    def test_is_the_greedy_method(self, name):
        assert_is_greedy(average_linkage(sparse.csr_array(FAMILIES[name])), FAMILIES[name])

    @given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**32 - 1))
    @settings(max_examples=60, deadline=None)
    def test_equals_merge_by_index(self, n, largest, seed):
        rng = np.random.default_rng(seed)
        S = np.triu(rng.integers(0, largest + 1, (n, n)))
        S = (S + S.T).astype(float)
        S[0, 0] = 1  # the diagonal does not matter, but one entry must be positive
        assert_is_greedy(average_linkage(S), np.where(np.eye(n, dtype=bool), 0, S))

    @pytest.mark.parametrize("name", ["ties", "ring of equals"])
    def test_equals_stay_equal_where_sums_would_round(self, name):
        expected = average_linkage(FAMILIES[name])
        tree = average_linkage(0.1 * FAMILIES[name])
        assert_array_equal(tree.children, expected.children)

    @pytest.mark.parametrize("n", [2, 3, 50, 300])
    def test_is_what_scipy_gives(self, n):
        S = random_similarity(n, n)
        tree, Z = average_linkage(S), scipy_linkage(S)
        assert is_valid_linkage(tree.to_scipy())
        assert_array_equal(tree.to_scipy()[:, [0, 1, 3]], Z[:, [0, 1, 3]])
        assert_allclose(tree.to_scipy()[:, 2], Z[:, 2], atol=1e-11)

    def test_a_graph_of_digits(self):
        M, _ = load_digits_graph()
        tree, Z = average_linkage(M), scipy_linkage(M.toarray())
        for k in (2, 10, 57, 500, 1796):
            assert_array_equal(tree.cut(k), first_appearance(fcluster(Z, k, "maxclust")))

    @pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, np.float32, list])
    def test_kinds_of_input(self, kind):
        S = np.round(64 * random_similarity(5, 20, 0.4)) / 64  # exact in float32
        assert_array_equal(average_linkage(kind(S)).children, average_linkage(S).children)

    @pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
    def test_scale(self, scale):
        S = random_similarity(6, 30, 0.5)
        tree = average_linkage(S)
        scaled = average_linkage(scale * S)
        assert_array_equal(scaled.children, tree.children)
        assert_allclose(scaled.similarity, scale * tree.similarity, rtol=1e-9)

    def test_input_is_not_changed(self):
        S = sparse.csr_array(random_similarity(7, 20, 0.5))
        before = S.copy()
        average_linkage(S)
        assert_array_equal(S.toarray(), before.toarray())

    def test_items_without_neighbours_come_last(self):
        tree = average_linkage(np.diag([0.0, 1, 0, 0]) + np.eye(4, k=2) + np.eye(4, k=-2))
        assert_array_equal(tree.similarity, [1, 1, 0])
        assert_array_equal(tree.cut(2), [0, 1, 0, 1])

    def test_bad_input(self):
        with pytest.raises(ValueError, match="M must be symmetric"):
            average_linkage(np.triu(np.ones((3, 3))))


def first_appearance(labels):
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


@pytest.fixture(params=[1024, 0.02], ids=["pairs collected", "rows computed"])
def memory(request):
    with sklearn.config_context(working_memory=request.param):
        yield request.param


class TestFactor:
    @pytest.mark.parametrize(("rank", "n_negative"), [(2, 0), (4, 0), (4, 1), (3, 2), (6, 5)])
    def test_is_the_greedy_method(self, memory, rank, n_negative):
        U, signature, X = random_factor(rank, rank=rank, n_negative=n_negative)
        assert_is_greedy(average_linkage_of_factor(U, signature), np.maximum(0, X), X)

    @given(st.integers(1, 14), st.integers(1, 3), st.integers(0, 2**32 - 1), st.sampled_from([1e-4, 1024]))
    @settings(max_examples=60, deadline=None)
    def test_any_signs(self, n, rank, seed, memory):
        U, signature, X = random_factor(seed, n, rank, n_negative=seed % (rank + 1))
        with sklearn.config_context(working_memory=memory):
            tree = average_linkage_of_factor(U, signature)
        assert_is_greedy(tree, np.maximum(0, X), X)
        assert np.all(np.diff(tree.similarity) <= 0)

    def test_both_ways_and_all_block_sizes_agree(self, monkeypatch):
        U, signature, X = random_factor(0, n=150)
        expected = average_linkage(np.maximum(0, X)).children
        for memory in (1024, 0.5, 0.1, 0.05, 0.003):
            with sklearn.config_context(working_memory=memory):
                assert_array_equal(average_linkage_of_factor(U, signature).children, expected)
        monkeypatch.setattr(ours, "_FEWEST_ROWS", 1)
        monkeypatch.setattr(ours, "_BLOCK", 7 * 150)
        assert_array_equal(average_linkage_of_factor(U, signature).children, expected)

    def test_does_not_depend_on_the_order_of_the_items(self, memory):
        U, signature, _ = random_factor(1, n=60)
        order = np.random.default_rng(1).permutation(60)
        tree, permuted = average_linkage_of_factor(U, signature), average_linkage_of_factor(U[order], signature)
        assert_allclose(permuted.similarity, tree.similarity, atol=1e-11)
        for k in range(1, 61):
            assert_array_equal(permuted.cut(k), first_appearance(tree.cut(k)[order]))

    def test_does_not_depend_on_the_factor_of_x(self, memory):
        U, _, _ = random_factor(2, n=50, n_negative=0)
        rotation, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))
        assert_array_equal(
            average_linkage_of_factor(U @ rotation).children, average_linkage_of_factor(U).children
        )

    def test_nothing_is_positive(self, memory):
        U, _, X = random_factor(3, n=30)
        tree = average_linkage_of_factor(np.abs(U), -np.ones(4))
        X = -np.abs(U) @ np.abs(U).T
        assert np.all(tree.similarity < 0)
        assert_is_greedy(tree, np.zeros((30, 30)), X)

    def test_blocks_merge_by_the_mean_of_x(self, memory):
        """Three groups that are apart: the two whose X is less negative merge first."""
        U = np.repeat([[3.0, 0.0], [-1.0, 2.0], [-1.0, -2.5]], 4, axis=0)
        tree = average_linkage_of_factor(U)
        assert_array_equal(tree.cut(3), np.repeat([0, 1, 2], 4))
        assert_array_equal(tree.cut(2), np.repeat([0, 0, 1], 4))  # X: -3 and -3 with the first, -4 among them
        assert_allclose(tree.similarity[-2:], [-3, -3.5])

    def test_zero_rows(self, memory):
        tree = average_linkage_of_factor(np.zeros((5, 2)))
        assert_array_equal(tree.similarity, np.zeros(4))
        assert_array_equal(tree.cut(3), [0, 0, 0, 1, 2])

    def test_rounding_makes_no_similarity(self, memory):
        """Two groups at right angles: X is zero between them, exactly, but the product of means rounds."""
        for seed in range(50):
            c = np.random.default_rng(seed).integers(1, 9, 8)
            direction = c[:2].astype(float)
            U = np.vstack([np.outer(c[2:5], direction), np.outer(c[5:], direction[::-1] * [1, -1])])
            tree = average_linkage_of_factor(U)
            assert tree.similarity[-1] <= 0
            assert_array_equal(tree.cut(2), np.repeat([0, 1], 3))

    def test_float32(self):
        U, signature, _ = random_factor(4)
        tree = average_linkage_of_factor(U.astype(np.float32), signature)
        expected = average_linkage_of_factor(U.astype(np.float32).astype(np.float64), signature)
        assert_array_equal(tree.children, expected.children)
        assert tree.similarity.dtype == np.float64

    @pytest.mark.parametrize(("memory", "capacity"), [(0, 0), (0.004, 4), (1, 1092)])
    def test_rows_are_kept_as_far_as_memory_allows(self, memory, capacity):
        U, signature, _ = random_factor(6, n=60)
        with sklearn.config_context(working_memory=memory):
            rows = ours._FactorRows(U, U * signature)
        kept = []
        keep = rows._keep
        rows._keep = lambda *row: (keep(*row), kept.append(len(rows._kept)))
        ours._nearest_neighbour_chain(rows)
        assert max(kept) <= capacity
        assert max(kept) == capacity or max(kept) > 4  # as many as allowed; where all are, more than before

    @pytest.mark.parametrize("memory", [2, 8, 24])
    def test_memory_is_bounded(self, memory):
        """A dense X of 8 MB, most of it positive: rows are computed; with 24 MiB its pairs are collected."""
        n = 1000
        U, signature, X = random_factor(5, n=n, rank=3, n_negative=0)
        assert X.nbytes == 8e6
        assert np.mean(X > 0) > 0.4
        average_linkage_of_factor(U[:30], signature)  # compile
        with sklearn.config_context(working_memory=memory):
            tracemalloc.start()
            average_linkage_of_factor(U, signature)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < memory * 2**20 + 1000 * n  # a few numbers for each item come on top

    @pytest.mark.parametrize(
        ("U", "signature", "error", "message"),
        [
            (np.ones(3), None, ValueError, r"U must have shape \(n, rank\).*got \(3,\)"),
            (np.ones((0, 2)), None, ValueError, r"n and rank of at least 1, got \(0, 2\)"),
            (np.ones((2, 0)), None, ValueError, r"n and rank of at least 1, got \(2, 0\)"),
            (np.full((2, 2), np.nan), None, ValueError, "U must be finite, got NaN or infinity"),
            (np.ones((2, 2)), [1, 2], ValueError, "signature must be 2 numbers"),
            (np.ones((2, 2)), [1], ValueError, "signature must be 2 numbers"),
            ([["a"]], None, TypeError, "U must be an array of real numbers"),
        ],
    )
    def test_bad_input(self, U, signature, error, message):
        with pytest.raises(error, match=message):
            average_linkage_of_factor(U, signature)


class TestTree:
    tree = average_linkage(random_similarity(8, 25, 0.3))

    def test_labels_are_numbered_by_first_appearance_and_nested(self):
        finer = self.tree.cut(25)
        assert_array_equal(finer, np.arange(25))
        for k in range(24, 0, -1):
            coarser = self.tree.cut(k)
            _, first = np.unique(coarser, return_index=True)
            assert len(first) == k
            assert np.all(np.diff(first) > 0)
            assert (
                len(np.unique(np.column_stack([finer, coarser]), axis=0)) == k + 1
            )  # each finer in one coarser
            finer = coarser

    def test_one_item(self):
        tree = average_linkage([[2.0]])
        assert tree.n_items == 1
        assert_array_equal(tree.cut(1), [0])
        assert tree.to_scipy().shape == (0, 4)
        assert repr(tree) == "Tree(n_items=1)"

    def test_repr_says_how_much(self):
        assert repr(average_linkage([[0, 2.0], [2.0, 0]])) == "Tree(n_items=2, similarity 2 to 2)"

    @pytest.mark.parametrize("k", [0, 26, -1])
    def test_number_of_clusters(self, k):
        with pytest.raises(
            ValueError, match=r"n_clusters must be an integer from 1 to 25 \(the number of items\)"
        ):
            self.tree.cut(k)

    def test_kind_of_number(self):
        with pytest.raises(TypeError, match="n_clusters must be an integer from 1 to 25"):
            self.tree.cut(2.5)


class Circle:
    """Three clusters, each with another one as its nearest: rounding could make such rows."""

    n = 3

    def __init__(self):
        self.alive = [0, 1, 2]

    def nearest(self, cluster):
        others = [other for other in self.alive if other != cluster]
        if not others:
            return -1, 0.0
        return ((cluster + 1) % 3 if len(others) == 2 else others[0]), 1.0

    def merge(self, low, high):
        self.alive.remove(high)


def test_the_chain_does_not_run_in_circles():
    merges = ours._nearest_neighbour_chain(Circle())
    assert len(merges.low) == 2
    assert 0 not in merges.high


def test_neighbours_that_rounding_shows_to_one_side_only():
    """X of orthogonal rows is zero but for rounding, which may differ from both sides of a pair."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 12))
        U = np.linalg.qr(rng.standard_normal((int(rng.integers(n, 100)), n)))[0].T
        with sklearn.config_context(working_memory=1e-9):  # rows are computed when they are asked for
            tree = average_linkage_of_factor(U)
        assert sorted(tree.cut(n)) == list(range(n))
