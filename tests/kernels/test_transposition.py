"""Entries by column instead of by row."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.kernels.transposition import transposed


def entries(n, density, seed):
    rng = np.random.default_rng(seed)
    return rng, sparse.csr_array((rng.random((n, n)) < density).astype(float))


@pytest.mark.parametrize("spare", [0, 3])
@pytest.mark.parametrize(("n", "density"), [(1, 1.0), (7, 0.5), (60, 0.1), (300, 0.02), (40, 0.0)])
def test_against_scipy(n, density, spare):
    rng, M = entries(n, density, seed=n)
    room, wanted = rng.integers(spare + 1, size=n), rng.random(n) < 0.8
    found = transposed(np.arange(n), M.indptr, M.indices, wanted, room)
    expected = M.toarray() * wanted
    np.fill_diagonal(expected, 0)
    columns = sparse.csc_array(expected)
    columns.sort_indices()
    assert_array_equal(np.diff(found.indptr), np.diff(columns.indptr) + room)
    assert_array_equal(found.ends, found.indptr[1:] - room)
    for j in range(n):
        assert_array_equal(
            found.rows[found.indptr[j] : found.ends[j]],
            columns.indices[columns.indptr[j] : columns.indptr[j + 1]],
        )


def test_some_rows():
    n, rows = 50, np.array([3, 4, 20, 49])
    _, whole = entries(n, 0.3, seed=1)
    M = whole[rows]
    found = transposed(rows, M.indptr, M.indices, np.ones(n, bool), np.zeros(n, int))
    for j in range(n):
        expected = [i for k, i in enumerate(rows) if i != j and M[[k], :].toarray()[0, j]]
        assert_array_equal(found.rows[found.indptr[j] : found.indptr[j + 1]], expected)
