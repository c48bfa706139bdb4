"""Queries on a cluster of threads in this process."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.fitted import SymmetricReLU, on_cluster
from symrelu.kernels import threads

distributed = pytest.importorskip("distributed", reason="dask is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    quiet = {"processes": False, "dashboard_address": ":0", "n_workers": 2, "threads_per_worker": 3}
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


class Threads:
    """A model whose answers are how many threads a pass may use there, and how many BLAS has."""

    n, rank, dtype = 30, 2, np.dtype(float)

    def transform_checked(self, M_new, mask):
        return np.tile([float(threads.allowed_threads()), max(threads._current_threads())], (M_new.shape[0], 1))

    def top_k(self, nodes, k, exclude=None):
        return tuple(self.transform_checked(nodes, None).T.reshape(2, -1, 1))


def test_a_query_has_the_threads_of_its_worker_and_blas_has_one(client):
    found = on_cluster.transform(Threads(), np.ones((11, 30)), client=client)
    assert_array_equal(found, np.tile([3, 1], (11, 1)))
    allowed, of_blas = on_cluster.top_k(Threads(), np.arange(9), 1, client=client)
    assert_array_equal(allowed, np.full((9, 1), 3))
    assert_array_equal(of_blas, np.full((9, 1), 1))


def test_parts_are_all_rows():
    parts = on_cluster._parts(11, 4)
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(11))
