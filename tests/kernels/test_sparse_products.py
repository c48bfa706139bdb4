"""Products of sparse matrices, against SciPy: the same bits for any number of threads."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.kernels import threads
from symrelu.kernels.sparse_products import sparse_product

pytestmark = pytest.mark.blas_threads


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 20)),
    columns=st.integers(1, 4),
    workers=st.integers(1, 16),
)
def test_the_product_of_scipy(dtype, seed, shape, columns, workers):
    rng = np.random.default_rng(seed)
    M = sparse.csr_array((rng.random(shape) * (rng.random(shape) < 0.3)).astype(dtype))
    V = rng.standard_normal((shape[1], columns)).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "allowed_threads", lambda: workers)
        product = sparse_product(M, V)
    assert product.dtype == dtype
    assert_array_equal(product, M @ V)


def test_small_products_start_no_thread(monkeypatch):
    def refuse(*_):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(threads, "MIN_WORK_OF_A_THREAD", 2e7)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    M = sparse.csr_array(np.eye(50))
    assert_array_equal(sparse_product(M, np.ones((50, 2))), np.ones((50, 2)))
