"""Two fits that must agree, step by step."""

import numpy as np
from numpy.testing import assert_allclose


def assert_same(solution, other):
    assert_allclose(solution.U, other.U, rtol=0, atol=1e-12)
    assert solution.n_iter == other.n_iter
    assert solution.n_evaluations == other.n_evaluations
    assert solution.status is other.status
    assert_allclose(solution.relative_error, other.relative_error, rtol=1e-9)
    for name, column in solution.history.as_dict().items():
        if name != "seconds":
            assert_allclose(column, other.history.as_dict()[name], rtol=1e-7, atol=1e-12)
    assert (np.diff(other.history.seconds) >= 0).all()
