"""Queries of a fitted clustering: clusters and memberships of fitted and of new items."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from symrelu.estimators.clustering import SymReLUClustering
from symrelu.fit.cluster_methods import METHODS
from symrelu.graphs import self_tuning_graph

POINTS, BLOB = make_blobs(n_samples=120, centers=3, n_features=4, random_state=0)
M = self_tuning_graph(POINTS)
OLD, NEW = np.arange(90), np.arange(90, 120)


@pytest.fixture(scope="module", params=METHODS)
def fitted(request):
    """A clustering of the first ninety items."""
    return SymReLUClustering(3, method=request.param, random_state=0).fit(M[OLD][:, OLD])


def test_fitted_items_keep_their_labels(fitted):
    rows = M[OLD][:, OLD]
    for kind in (rows, rows.toarray()):
        assert_array_equal(fitted.predict(kind), fitted.labels_)
        assert_array_equal(fitted.predict_memberships(kind), fitted.memberships_)


def test_new_items_join_the_cluster_of_their_class(fitted):
    """Each new item has links to fitted ones, or its row is zero and any cluster is as good."""
    rows = M[NEW][:, OLD]
    linked = np.flatnonzero(rows.sum(axis=1) > 0)
    classes = {label: np.bincount(BLOB[OLD][fitted.labels_ == label]).argmax() for label in range(3)}
    labels = fitted.predict(rows)
    right = [classes[label] for label in labels[linked]] == BLOB[NEW][linked]
    assert len(linked) > 20
    assert right.mean() > 0.9
    assert np.mean(labels == np.argmax(fitted.predict_memberships(rows), axis=1)) > 0.9


def test_a_new_item_does_not_depend_on_the_others(fitted):
    rows = M[NEW][:, OLD]
    together = fitted.predict_memberships(rows)
    alone = np.concatenate([fitted.predict_memberships(rows[[k]]) for k in range(len(NEW))])
    assert_allclose(together, alone, atol=1e-8)


def test_memberships_are_shares(fitted):
    for shares in (fitted.memberships_, fitted.predict_memberships(M[NEW][:, OLD])):
        assert shares.shape[1] == 3
        assert shares.min() >= 0
        assert_allclose(shares.sum(axis=1), 1)


def test_samples():
    model = SymReLUClustering(3, random_state=0).fit(POINTS[OLD])
    assert_array_equal(model.predict(POINTS[OLD]), model.labels_)
    classes = {label: np.bincount(BLOB[OLD][model.labels_ == label]).argmax() for label in range(3)}
    assert np.mean([classes[label] for label in model.predict(POINTS[NEW])] == BLOB[NEW]) > 0.9


def test_a_mask_of_new_items(fitted):
    """Entries that are unobserved may have any value."""
    rows = M[NEW[:5]][:, OLD].toarray()
    mask = np.random.default_rng(0).random(rows.shape) < 0.2
    wrong = np.where(mask, 7.0, rows)
    right = np.where(mask, 0.0, rows)
    assert_array_equal(
        fitted.predict_memberships(wrong, mask=mask), fitted.predict_memberships(right, mask=mask)
    )


def test_the_tree_is_that_of_linkage(fitted):
    if fitted.method_ == "linkage":
        assert_array_equal(fitted.tree_.cut(3), fitted.labels_)
    else:
        with pytest.raises(AttributeError, match=r"method_ is 'directions'\. Fit with method='linkage'"):
            _ = fitted.tree_
        assert not hasattr(fitted, "tree_")


@pytest.mark.parametrize("query", [lambda model: model.predict(M), lambda model: model.tree_])
def test_before_fit(query):
    with pytest.raises(NotFittedError, match="SymReLUClustering"):
        query(SymReLUClustering())


def test_wrong_shape(fitted):
    with pytest.raises(ValueError, match="120 features, but SymReLUClustering is expecting 90"):
        fitted.predict(sparse.csr_array(M))


def test_clusters_by_name():
    networkx, pandas = pytest.importorskip("networkx"), pytest.importorskip("pandas")
    graph = networkx.karate_club_graph()
    names = {k: f"member {k}" for k in graph}
    model = SymReLUClustering(2, random_state=0).fit(networkx.relabel_nodes(graph, names))
    frame = model.to_frame()
    assert list(frame.columns) == ["node", "cluster", "membership"]
    assert list(frame["node"]) == list(names.values())
    assert_array_equal(frame["cluster"], model.labels_)
    assert_allclose(frame["membership"], model.memberships_[np.arange(34), model.labels_])
    plain = (
        SymReLUClustering(2, random_state=0).fit(networkx.to_scipy_sparse_array(graph, dtype=float)).to_frame()
    )
    pandas.testing.assert_series_equal(plain["node"], pandas.Series(np.arange(34), name="node"))
