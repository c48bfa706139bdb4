"""Clusters of a factor: labels, memberships against their formulas, and clusters that are none."""

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
    is_collapsed,
    memberships_of_fitted,
    unit_rows,
)
from symrelu.fitted.linkage_tree import average_linkage_of_factor

SIGNS = np.array([1.0, 1.0, 1.0, -1.0])


def factor(seed, n=15):
    return np.random.default_rng(seed).standard_normal((n, 4))


def linkage(U, k):
    tree = average_linkage_of_factor(U, SIGNS)
    return LinkageClusters(tree.cut(k), tree, U, SIGNS)


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
@given(seed=st.integers(0, 2**31), k=st.integers(1, 5), n_fits=st.integers(1, 3))
def test_memberships_of_directions(seed, k, n_fits):
    U = factor(seed)
    clusters = DirectionClusters.of(U, SIGNS, k, seed=0, n_fits=n_fits)
    rows = unit_rows(U, SIGNS)
    centers = np.array([rows[clusters.labels == label].mean(axis=0) for label in range(k)])
    assert_allclose(clusters.centers, centers, atol=1e-6)
    squares = ((rows[:, None] - centers) ** 2).sum(axis=2)
    variance = squares.min(axis=1).mean() / max(1, 3 // n_fits)
    weights = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / (2 * variance))
    shares = memberships_of_fitted(clusters, U)
    assert_allclose(shares, weights / weights.sum(axis=1, keepdims=True), atol=1e-4)
    assert_array_equal(np.argmax(shares, axis=1), clusters.labels)
    assert_array_equal(by_first_appearance(clusters.labels), clusters.labels)


def test_equal_rows_have_one_cluster_each():
    clusters = DirectionClusters.of(np.repeat(np.eye(4)[:2], 3, axis=0), SIGNS, 2, seed=0)
    assert_array_equal(clusters.labels, [0, 0, 0, 1, 1, 1])
    assert_allclose(memberships_of_fitted(clusters, np.eye(4)[:2]), np.eye(2))


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
            means = [
                X[others & (clusters.labels == c)].mean() if (others & (clusters.labels == c)).any() else 0
                for c in range(k)
            ]
            shares[row, np.argmax(means)] = 1
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
            memberships_of_fitted(clusters, clusters.U), brute_force_shares(clusters, clusters.U, items)
        )


@pytest.mark.parametrize(
    ("sizes", "collapsed"),
    [
        ([991, 1, 1, 7], False),
        ([991, 1, 1, 1, 1, 1, 1, 1, 1, 1], True),
        ([72, 1, 1, 1, 1, 1], True),
        ([90, 10], False),
        ([98, 2], True),
        ([100], False),
        ([2, 1], False),
        ([1, 1, 1], False),
        ([10, 1, 1, 1, 1, 1, 1], False),
    ],
)
def test_one_cluster_and_outliers(sizes, collapsed):
    assert is_collapsed(np.repeat(np.arange(len(sizes)), sizes)) == collapsed
