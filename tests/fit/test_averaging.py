"""The mean of several fits; what LinkPredictor makes of it is in tests/estimators/test_links.py."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from symrelu import decompose
from symrelu.datasets import make_relu_gram
from symrelu.fit.averaging import mean_solution
from symrelu.metrics import relative_error
from symrelu.problem import Problem


@pytest.mark.parametrize("scale", [1.0, 1e-3, 2.0**40])
def test_the_mean_of_x(scale):
    problem = Problem.of(scale * make_relu_gram(30, 3, shift=0.05, random_state=0)[0], None, "ignore")
    fits = [
        decompose(problem, 3, n_negative=1, diagonal="ignore", max_iter=5, alpha=0.1 * scale, random_state=seed)
        for seed in range(3)
    ]
    mean = mean_solution(fits, problem, "auto")
    X = np.mean([(fit.U * fit.signature) @ fit.U.T for fit in fits], axis=0)
    assert_allclose((mean.U * mean.signature) @ mean.U.T, X, atol=1e-12 * scale)
    assert mean.rank == 9
    assert mean.n_negative == 3
    assert_allclose(mean.relative_error, relative_error(problem, mean.U, mean.signature), rtol=1e-9)
    assert mean.n_iter == max(fit.n_iter for fit in fits)
