"""The operator of the linear model, by definition."""

import numpy as np
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu.baselines.linear import LinearModelOperator
from symrelu.datasets import make_relu_gram


def graph(n=60, seed=0):
    return make_relu_gram(n, 4, shift=0.1, random_state=seed)[0]


def test_linear_model_operator_by_definition():
    M, rng = graph(20), np.random.default_rng(0)
    U, V, s = rng.standard_normal((20, 3)), rng.standard_normal((20, 4)), np.array([1, -1, 1.0])
    evaluation = LinearModelOperator(sparse.csr_array(M), s).residual_product(U, V)
    X = (U * s) @ U.T
    assert_allclose(evaluation.product, (M - X) @ V)
    assert_allclose(evaluation.loss, np.linalg.norm(M - X) ** 2 / 2)
