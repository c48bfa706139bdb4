"""Clusters of a factor: labels, memberships against their formulas, and clusters that are none."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from symrelu.fitted.clusters import (
    DirectionClusters,
    LinkageClusters,
    by_first_appearance,
    outliers,
    unit_rows,
)
from symrelu.fitted.linkage_tree import average_linkage_of_factor

SIGNS = np.array([1.0, 1.0, 1.0, -1.0])


def factor(seed, n=15):
    return np.random.default_rng(seed).standard_normal((n, 4))


def linkage(U, k):
    tree = average_linkage_of_factor(U, SIGNS)
    return LinkageClusters(tree.cut(k), U, SIGNS, tree)


@pytest.mark.parametrize(
    ("labels", "expected"), [([2, 2, 0, 1], [0, 0, 1, 2]), ([0, 1], [0, 1]), ([5, 3, 5], [0, 1, 0])]
)
def test_labels_in_order_of_appearance(labels, expected):
    assert_array_equal(by_first_appearance(np.array(labels)), expected)


def test_directions_are_those_of_the_positive_columns():
    rows = unit_rows(np.array([[3, 4, 0, 9], [0, 0, 0, 1], [0, 0, 2, 0]], np.float32), SIGNS)
    assert_allclose(rows, [[0.6, 0.8, 0], [0, 0, 0], [0, 0, 1]])
    assert rows.dtype == np.float64


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 5))
def test_clusters_of_directions(seed, k):
    U = factor(seed)
    clusters = DirectionClusters.of(U, SIGNS, k, seed=0)
    rows = unit_rows(U, SIGNS)
    centers = np.array([rows[clusters.labels == label].mean(axis=0) for label in range(k)])
    assert_allclose(clusters.centers, centers, atol=1e-6)
    squares = ((rows[:, None] - centers) ** 2).sum(axis=2)
    assert_array_equal(np.argmin(squares, axis=1), clusters.labels)
    assert_array_equal(clusters.nearest(U), clusters.labels)
    assert_array_equal(by_first_appearance(clusters.labels), clusters.labels)


@pytest.mark.parametrize("form", [partial(DirectionClusters.of, seed=0), lambda U, signs, k: linkage(U, k)])
def test_an_item_without_similarities(form):
    U = np.repeat(np.eye(4)[[0, 1]], [2, 5], axis=0)
    clusters = form(U, SIGNS, 2)
    assert_array_equal(clusters.sizes, [2, 5])
    assert_array_equal(clusters.nearest(np.zeros((1, 4))), [1])
    assert_allclose(clusters.memberships(np.zeros((1, 4))), [[0.5, 0.5]])


def test_items_without_similarities_are_in_the_largest_cluster():
    U = np.concatenate([np.repeat(np.eye(4)[[0, 1]], [2, 5], axis=0), np.zeros((3, 4))])
    clusters = DirectionClusters.of(U, SIGNS, 2, seed=0)
    assert_array_equal(clusters.labels, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    assert_allclose(clusters.memberships(U, np.arange(10))[7:], 0.5)


def test_an_item_between_two_clusters():
    clusters = DirectionClusters.of(np.repeat(np.eye(4)[:2], 3, axis=0), SIGNS, 2, seed=0)
    assert_array_equal(clusters.labels, [0, 0, 0, 1, 1, 1])
    assert_allclose(
        clusters.memberships(np.array([[1.0, 1.0, 0, 0], [3.0, 1.0, 0, 0]])), [[0.5, 0.5], [0.75, 0.25]]
    )


def test_fewer_directions_than_clusters():
    clusters = DirectionClusters.of(np.repeat(np.eye(4)[:2], 3, axis=0), SIGNS, 5, seed=0)
    assert len(clusters.centers) == 2


def brute_force_shares(clusters, U, items):
    k = clusters.labels.max() + 1
    shares = np.zeros((len(U), k))
    for row, u in enumerate(U):
        X = (u * clusters.signature) @ clusters.U.T
        others = np.ones(len(X), bool)
        if items is not None:
            others[items[row]] = False
        for label in range(k):
            members = others & (clusters.labels == label)
            shares[row, label] = np.maximum(X[members], 0).mean() if members.any() else 0
        if not shares[row].any():
            shares[row] = 1
    return shares / shares.sum(axis=1, keepdims=True)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 6), memory=st.sampled_from([1024, 1e-3]))
def test_memberships_of_linkage(seed, k, memory):
    clusters = linkage(factor(seed), k)
    new = factor(seed + 1, 7)
    with config_context(working_memory=memory):
        assert_allclose(clusters.memberships(new), brute_force_shares(clusters, new, None))
        items = np.arange(15)
        assert_allclose(
            clusters.memberships(clusters.U, items), brute_force_shares(clusters, clusters.U, items)
        )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 6))
def test_new_items_of_linkage(seed, k):
    clusters = linkage(factor(seed), k)
    new = factor(seed + 1, 7)
    X = (new * SIGNS) @ clusters.U.T
    means = [[np.mean(np.maximum(x, 0)[clusters.labels == c]) for c in range(k)] for x in X]
    plain = [[np.mean(x[clusters.labels == c]) for c in range(k)] for x in X]
    expected = [np.argmax(m if any(m) else p) for m, p in zip(means, plain, strict=True)]
    assert_array_equal(clusters.nearest(new), expected)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ([991, 1, 1, 7], "2 of 4 clusters hold one item each"),
        (
            [991, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            "One cluster holds 991 of 1000 items, and the others at most 1",
        ),
        ([72, 1, 1, 1, 1, 1], "One cluster holds 72 of 77 items, and the others at most 1"),
        ([90, 10], ""),
        ([98, 2], "One cluster holds 98 of 100 items, and the other at most 2"),
        ([100], ""),
        ([2, 1], ""),
        ([1, 1, 1], ""),
        ([10, 1, 1, 1, 1, 1, 1], ""),
        ([14, 10, 5, 1, 1, 1, 1, 1], "5 of 8 clusters hold one item each"),
        ([14, 10, 5, 3, 3, 1, 1, 1], ""),
    ],
)
def test_outliers(sizes, text):
    assert outliers(np.repeat(np.arange(len(sizes)), sizes)) == text
