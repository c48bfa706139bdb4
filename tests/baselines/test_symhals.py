"""SymHALS: its columns against scipy."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from symrelu.baselines import SymHALS


def nnls_rows(gram, target):
    """Solve each row by scipy: |L^T x - L^-1 t|^2 has the same minimiser."""
    L = np.linalg.cholesky(gram)
    return np.array([nnls(L.T, np.linalg.solve(L, t))[0] for t in target])


def test_hals_column_is_the_exact_minimiser_of_its_column():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((8, 3))
    gram, target, factor = B.T @ B + np.eye(3), rng.standard_normal((10, 3)), rng.random((10, 3))
    X = SymHALS()._update(gram, target, factor)
    # The last column was updated last: given the others, no other nonnegative column is better.
    others = X[:, :2] @ gram[:2, 2]
    assert_allclose(X[:, 2], np.maximum(0, (target[:, 2] - others) / gram[2, 2]))
    converged = X
    for _ in range(500):
        converged = SymHALS()._update(gram, target, converged)
    assert_allclose(converged, nnls_rows(gram, target), atol=1e-10)
