"""Systems of rows and supports, as operators offer them to solvers."""

import numpy as np
import pytest
from helpers import COMPILED, OPERATORS, PROBLEMS, Problem, factor, solved
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

pytestmark = pytest.mark.blas_threads


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solve_rows(label, name, dtype):
    problem = PROBLEMS[label].astype(dtype)
    op, V = OPERATORS[name](problem), factor(problem, 4)
    right = np.random.default_rng(0).standard_normal((problem.n, problem.rank, 2)).astype(dtype)
    ridge = 0.1 * V.T @ V
    solution = solved(op, V, ridge, right)
    assert solution.dtype == dtype
    support = (problem.M > 0) & ~problem.unknown
    for i in range(problem.n):
        system = V[support[i]].T @ V[support[i]] + ridge
        residual = system @ solution[i] - right[i]
        assert np.abs(residual).max() <= (1e-10 if dtype == np.float64 else 1e-2)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_solve_rows_on_any_number_of_threads(threads):
    problem = PROBLEMS["mask"]
    op, V = OPERATORS["sparse"](problem), factor(problem, 4)
    right = np.random.default_rng(0).standard_normal((problem.n, problem.rank, 1))
    with threadpool_limits(1, user_api="blas"):
        alone = solved(op, V, V.T @ V, right)
    with threadpool_limits(threads, user_api="blas"):
        assert_array_equal(solved(op, V, V.T @ V, right), alone)


@pytest.mark.parametrize("name", OPERATORS)
def test_solve_rows_of_every_length(name):
    """Rows without an entry, with fewer than rank, and with all."""
    M = np.where(np.add.outer(np.arange(12), np.arange(12)) < 11, 1.0, 0.0)
    problem = Problem(M, np.zeros((12, 12), bool), np.ones(5))
    assert {0, 1, 4, 5, 11} <= set(M.sum(axis=1).astype(int))
    op, V = OPERATORS[name](problem), factor(problem, 1)
    right = np.random.default_rng(0).standard_normal((12, 5, 2))
    ridge = 0.01 * V.T @ V
    solution = solved(op, V, ridge, right)
    for i in range(12):
        system = V[M[i] > 0].T @ V[M[i] > 0] + ridge
        assert_allclose(solution[i], np.linalg.solve(system, right[i]), rtol=1e-9)


@pytest.mark.parametrize("name", COMPILED)
def test_support(name):
    problem = PROBLEMS["everything"]
    indptr, indices = OPERATORS[name](problem).support
    support = np.zeros(problem.M.shape, bool)
    support[np.repeat(np.arange(problem.n), np.diff(indptr)), indices] = True
    assert (support == ((problem.M > 0) & ~problem.unknown)).all()
