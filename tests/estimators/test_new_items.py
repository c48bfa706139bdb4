"""Items of ``fit`` among new ones are recognised by every estimator that takes new items."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

from symrelu import SymReLU, SymReLUClustering
from symrelu.estimators.new_items import NewItemsMixin
from symrelu.graphs import self_tuning_graph

POINTS, _ = make_blobs(n_samples=40, centers=2, n_features=3, random_state=0)
M = self_tuning_graph(POINTS).toarray()
ESTIMATORS = {
    "SymReLU": SymReLU(4, diagonal="ignore", max_iter=20, random_state=0),
    "clustering": SymReLUClustering(2, max_iter=5, random_state=0),
}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_fitted_items_are_found(estimator):
    assert isinstance(estimator, NewItemsMixin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few steps do not converge
        estimator.fit(M)
    _, _, same = estimator._new_rows(M[:7], None)
    assert_array_equal(same, np.arange(7))
    _, _, same = estimator._new_rows(1.5 * M[:7], None)
    assert_array_equal(same, np.full(7, -1))
