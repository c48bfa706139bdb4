"""How far rows have moved, and their cosines."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.kernels.row_references import EDGES, movement, new_references, refer, sample_cosines

SIGNS = np.array([1.0, 1.0, -1.0])


def rows(n, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, 3)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_movement_is_relative_to_the_reference(dtype):
    U, V = rows(2000, dtype=dtype), rows(2000, 1, dtype)
    references = new_references(U, SIGNS.astype(dtype))
    expected = np.linalg.norm(V - U, axis=1) / np.linalg.norm(U, axis=1)
    assert_allclose(movement(references, V), expected, rtol=1e-5)  # references are in float32
    assert movement(references, U).max() <= 4 * np.finfo(np.float32).eps
    refer(references, np.array([5, 7]), V)
    moved = movement(references, V)
    assert max(moved[[5, 7]]) <= 4 * np.finfo(np.float32).eps < moved[6]


def test_a_row_of_zeros_may_stay_zero_but_not_move():
    U = rows(4)
    U[[1, 2]] = 0
    references = new_references(U, SIGNS)
    U[2, 0] = 1e-300
    moved = movement(references, U)
    assert_array_equal(moved[1:3], [0, np.inf])
    assert moved[[0, 3]].max() <= 4 * np.finfo(np.float32).eps


@pytest.mark.parametrize("n", [1, 20, 3000])
def test_cosines_are_counted_at_zeros_of_the_matrix_only(n):
    U = rows(n, seed=n)
    U[0] = 0  # has no cosines
    known = sparse.csr_array((np.random.default_rng(1).random((n, n)) < 0.1).astype(float))
    sampled = np.unique(np.linspace(0, n - 1, 32).astype(int))
    lengths = np.linalg.norm(U, axis=1)
    lengths[0] = np.inf
    cosines = (U[sampled] * SIGNS) @ U.T / np.outer(lengths[sampled], lengths)
    counted = (known[sampled].toarray() == 0) & (lengths < np.inf) & (lengths[sampled] < np.inf)[:, None]
    expected = np.histogram(cosines[counted], EDGES)[0]
    # A row of zeros among the sampled ones has only cosines of zero, which count as the lowest positive ones.
    zero = np.searchsorted(EDGES, 0.0)
    found = sample_cosines(U, SIGNS, known)
    assert found.sum() >= expected.sum()
    assert np.abs(np.delete(found - expected, [zero, zero - 1])).max(initial=0) <= 1
