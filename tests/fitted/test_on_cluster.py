"""Queries on a cluster of threads in this process."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.fitted import SymmetricReLU, on_cluster

distributed = pytest.importorskip("distributed", reason="dask is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    quiet = {"processes": False, "dashboard_address": ":0", "n_workers": 2, "threads_per_worker": 1}
    with distributed.LocalCluster(**quiet) as workers, distributed.Client(workers) as found:
        yield found


def test_each_query_is_that_of_the_model(client):
    rng = np.random.default_rng(0)
    U = rng.standard_normal((30, 3))
    model = SymmetricReLU(U, np.array([1.0, 1.0, -1.0]), 0.0, 1.0, "equal")
    M_new, mask = np.maximum(0, rng.standard_normal((11, 30))), rng.random((11, 30)) < 0.2
    expected = model.transform(M_new, mask)
    assert_allclose(on_cluster.transform(model, M_new, mask, client=client), expected, rtol=1e-9, atol=1e-12)
    exclude = sparse.csr_array(np.eye(30, k=1))
    items, scores = on_cluster.top_k(model, [3, 4, 5, 9, 20, 1, 2, 7, 8], 4, exclude=exclude)
    own_items, own_scores = model.top_k([3, 4, 5, 9, 20, 1, 2, 7, 8], 4, exclude=exclude)
    assert_array_equal(items, own_items)
    assert_allclose(scores, own_scores, rtol=1e-12)
    assert on_cluster.transform(model, np.empty((0, 30))).shape == (0, 3)


def test_parts_are_all_rows():
    parts = on_cluster._parts(11, 4)
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(11))
