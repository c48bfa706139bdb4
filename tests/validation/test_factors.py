"""Factors that users pass as a start."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from symrelu import decompose
from symrelu.validation import check_factor, check_start

GOOD = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["aapb", "eigen", "lbfgs", "palm"])
@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_a_small_start_is_fitted_or_refused(dtype, solver, scale):  # issue 11, found by the fuzzer
    M = (scale * GOOD).astype(dtype)
    U0 = np.sqrt(scale) * np.random.default_rng(0).standard_normal((3, 2))
    assert decompose(M, 2, init=1e-7 * U0, solver=solver).relative_error < 0.5
    with pytest.raises(ValueError, match="init must not be negligible compared with M"):
        decompose(M, 2, init=1e-9 * U0, solver=solver)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind", [np.asfortranarray, np.float32, lambda U: U.astype(int), lambda U: U.tolist(), np.asarray]
)
def test_a_factor_becomes_an_array_of_its_own(kind, dtype):
    U = np.arange(6.0).reshape(3, 2)
    given_factor = kind(U)
    factor = check_factor(given_factor, np.dtype(dtype), "U")
    assert_array_equal(factor, U.astype(dtype), strict=True)
    assert factor.flags.c_contiguous
    assert not np.shares_memory(factor, np.asarray(given_factor))


def test_a_solution_is_not_a_factor():
    solution = decompose(GOOD, 2, max_iter=1, random_state=0)
    with pytest.raises(TypeError, match=r"U must be an array of real numbers, got Solution .* Pass solution.U"):
        check_factor(solution, np.dtype(float), "U")


@given(below=st.booleans(), largest=st.floats(1e-300, 1e300))
def test_a_start_is_refused_below_the_root_of_the_precision(below, largest):
    """Next to M, X of such a start is below the last digit: U^2 < eps M."""
    size = math.sqrt(np.finfo(np.float64).eps) * math.sqrt(largest) * (0.999 if below else 1.001)
    U0 = np.full((3, 2), size)
    if below:
        with pytest.raises(ValueError, match=r"init must not .* compared with M"):
            check_start(U0, 3, 2, np.dtype(float), largest)
    else:
        assert_array_equal(check_start(U0, 3, 2, np.dtype(float), largest), U0)
