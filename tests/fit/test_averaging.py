"""The mean of several fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu import decompose, metrics
from symrelu.fit.averaging import mean_solution
from symrelu.problem import Problem

RNG = np.random.default_rng(0)
UPPER = np.triu(RNG.random((20, 20)) * (RNG.random((20, 20)) < 0.4), 1)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1.0, 1e40])
def test_x_is_the_mean_and_its_numbers_are_those_of_the_mean(kind, scale):
    problem = Problem.of(kind(scale * (UPPER + UPPER.T)), None, "ignore")
    settings = {"n_negative": 1, "diagonal": "ignore", "alpha": 0.1 * scale, "zero_weight": 0.3, "max_iter": 5}
    fits = [decompose(problem, 4, random_state=seed, **settings) for seed in range(3)]
    mean = mean_solution(fits, problem, "auto")
    X = np.mean([(fit.U * fit.signature) @ fit.U.T for fit in fits], axis=0)
    assert_allclose((mean.U * mean.signature) @ mean.U.T, X, rtol=1e-9, atol=1e-9 * scale)
    assert np.all(np.diff(mean.signature) <= 0)
    assert_allclose(
        mean.relative_error,
        metrics.relative_error(problem, mean.U, mean.signature),
        rtol=1e-9,
    )
    M = scale * (UPPER + UPPER.T)
    gap = np.where(M > 0, M - X, np.sqrt(0.3) * np.maximum(X, 0))
    np.fill_diagonal(gap, 0)
    objective = np.sum(gap**2) / 2 + 0.1 * scale / 2 * np.sum(mean.U**2)
    assert_allclose(mean.objective, objective, rtol=1e-9)
    assert mean.n_iter == 5
    assert mean.n_evaluations == sum(fit.n_evaluations for fit in fits) + 3
