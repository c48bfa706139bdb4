"""Systems of the rows, against NumPy. tests/kernels/test_pair_curvature.py has those of whole operators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from symrelu.kernels.curved_rows import factored_rows, solve_factored
from symrelu.kernels.pair_curvature import CurvedPairs


def test_a_row_without_pairs_has_the_ridge_alone():
    pairs = CurvedPairs(np.array([0, 1, 1]), np.array([1], np.int32), np.array([1.0]), np.array([0.0]))
    V = np.array([[3.0, 0.0], [1.0, 2.0]])
    solved = solve_factored(factored_rows(pairs, V, 0.5), np.array([[1.0, 1.0], [1.0, 3.0]]))
    assert_allclose(solved[0], np.linalg.solve([[2.5, 4.0], [4.0, 8.5]], [1.0, 1.0]))
    assert_allclose(solved[1], [2.0, 6.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("n", "rank", "entries"), [(3, 1, 5), (8, 4, 20), (21, 5, 60), (10, 33, 40), (2, 6, 500)]
)
def test_systems_of_rows_against_numpy(n, rank, entries, dtype):
    """Rows with fewer and with more entries than columns, and more than are multiplied at once."""
    rng = np.random.default_rng(0)
    V, G = rng.standard_normal((2, n, rank)).astype(dtype)
    rows, indices = np.sort(rng.integers(n, size=entries)), rng.integers(n, size=entries).astype(np.int32)
    weights = rng.random(entries).astype(dtype) * (rng.random(entries) < 0.8)
    indptr = np.searchsorted(rows, np.arange(n + 1))
    solved = solve_factored(factored_rows(CurvedPairs(indptr, indices, weights, weights), V, 0.5), G)
    assert solved.dtype == dtype
    for i in range(n):
        neighbours = V[indices[rows == i]].astype(float)
        doubled = np.where(indices[rows == i] == i, 4, 2) * weights[rows == i].astype(float)
        system = (neighbours.T * doubled) @ neighbours + 0.5 * np.eye(rank)
        assert_allclose(
            solved[i], np.linalg.solve(system, G[i]), rtol=0, atol=1e-3 if dtype == np.float32 else 1e-10
        )
