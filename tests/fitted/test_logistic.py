"""The logistic model: probabilities, also of large scores, and links by the sign."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.fitted import Logistic


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_of_all_scores(dtype):
    scores = np.array([-1e4, -800, -1, 0, 1, 800, 1e4])
    model = Logistic(np.ones((7, 1), dtype), scores[:, None].astype(dtype))
    probabilities = model.reconstruct([2])
    assert probabilities.dtype == dtype
    with np.errstate(over="ignore"):
        assert_allclose(probabilities[0], 1 / (1 + np.exp(-scores)), rtol=1e-6, atol=1e-300)
    assert_array_equal(probabilities[0] > 0.5, scores > 0)
    assert_allclose(model.score_pairs(2, np.arange(7)), scores)


def test_the_nearest_items_are_the_most_probable_ones():
    U, V = np.random.default_rng(0).standard_normal((2, 20, 3))
    model = Logistic(U, V)
    items, scores = model.top_k([4], 5)
    probabilities = model.reconstruct([4])[0]
    probabilities[4] = -1  # a node is not its own neighbour
    assert_array_equal(items[0], np.argsort(-probabilities)[:5])
    assert_allclose(scores[0], model.score_pairs(4, items[0]))
