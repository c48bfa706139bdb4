"""Factors that users pass as a start."""

import numpy as np
import pytest

from symrelu import decompose

GOOD = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["aapb", "eigen", "lbfgs", "palm"])
@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_a_small_start_is_fitted_or_refused(dtype, solver, scale):  # issue 11, found by the fuzzer
    M = (scale * GOOD).astype(dtype)
    U0 = np.sqrt(scale) * np.random.default_rng(0).standard_normal((3, 2))
    assert decompose(M, 2, init=1e-7 * U0, solver=solver).relative_error < 0.5
    with pytest.raises(ValueError, match="init must not vanish next to M"):
        decompose(M, 2, init=1e-9 * U0, solver=solver)
