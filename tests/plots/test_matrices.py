"""Pictures of matrices: cells are averages of entries."""

import numpy as np
from numpy.testing import assert_allclose

from symrelu.datasets import make_relu_gram
from symrelu.fit.decompose import decompose
from symrelu.plots import binned, binned_gram


def test_binning_averages_cells():
    M, U = make_relu_gram(90, 3, random_state=0)
    order = np.random.default_rng(0).permutation(90)
    expected = M[np.ix_(order, order)].reshape(30, 3, 30, 3).mean(axis=(1, 3))
    assert_allclose(binned(M, order, 30), expected)
    solution = decompose(M, 3, init=U)
    assert_allclose(binned_gram(solution, order, 30), expected, atol=1e-10)
