"""Entries by column instead of by row."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.kernels.transposition import transposed


def entries(n, density, seed):
    rng = np.random.default_rng(seed)
    return sparse.csr_array((rng.random((n, n)) < density).astype(float))


@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize(("n", "density"), [(1, 1.0), (7, 0.5), (60, 0.1), (300, 0.02), (40, 0.0)])
def test_against_scipy(n, density, below):
    M = entries(n, density, seed=n)
    found = transposed(np.arange(n), M.indptr, M.indices, n, below=below)
    expected = sparse.csc_array(sparse.tril(M, -1) if below else sparse.triu(M, 1))
    expected.sort_indices()
    assert_array_equal(found.indptr, expected.indptr)
    assert_array_equal(found.rows, expected.indices)
    rows = np.repeat(np.arange(n), np.diff(M.indptr))
    assert_array_equal(rows[found.places], found.rows)


def test_some_rows():
    n, rows = 50, np.array([3, 4, 20, 49])
    M = entries(n, 0.3, seed=1)[rows]
    found = transposed(rows, M.indptr, M.indices, n, below=True)
    for j in range(n):
        expected = [i for k, i in enumerate(rows) if i > j and M[[k], :].toarray()[0, j]]
        assert_array_equal(found.rows[found.indptr[j] : found.indptr[j + 1]], expected)
