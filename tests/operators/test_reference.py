"""The reference operator by hand."""

import numpy as np
import pytest
from helpers import OPERATORS, Problem, evaluate
from numpy.testing import assert_allclose


@pytest.mark.parametrize("name", OPERATORS)
def test_reference_formulas_by_hand(name):
    # M = [[1, 0], [0, 2]], U = [[1], [-1]]: X = [[1, -1], [-1, 1]].
    problem = Problem(np.array([[1.0, 0], [0, 2.0]]), np.zeros((2, 2), bool), np.ones(1))
    evaluation = evaluate(OPERATORS[name](problem), np.array([[1.0], [-1.0]]), np.eye(2))
    assert_allclose(evaluation.product, [[0, 0], [0, 1]])
    assert evaluation.latent_loss == evaluation.loss == 0.5
    assert evaluation.latent_norm_squared == pytest.approx(1 + 4 + 1 + 1)  # W = [[1, -1], [-1, 2]]
