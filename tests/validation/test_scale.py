"""Scaling by powers of four: tiny and huge entries fit as well as entries of one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import decompose
from symrelu.validation import scale_exponent, scaled


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_one_by_one(kind):
    solution = decompose(kind(np.array([[4.0]])), 1, random_state=0)
    assert_allclose(solution.U**2, [[4.0]], rtol=1e-3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-30, 1e30, 1e200, 1e300])
def test_tiny_and_huge_entries_fit_as_well_as_entries_of_one(kind, size):
    factor = np.random.default_rng(0).standard_normal((15, 3))
    M = np.maximum(0, factor @ factor.T)
    exponent = round(np.log2(size) / 2)
    plain = decompose(kind(M), 3, random_state=0, max_iter=100)
    other = decompose(kind(np.ldexp(M, 2 * exponent)), 3, random_state=0, max_iter=100)
    assert other.n_iter == plain.n_iter
    assert_allclose(other.relative_error, plain.relative_error, rtol=1e-10)
    assert_allclose(np.ldexp(other.U, -exponent), plain.U, rtol=1e-10)


def test_float32_at_the_ends_of_its_range():
    factor = np.random.default_rng(0).standard_normal((15, 3))
    M = np.maximum(0, factor @ factor.T).astype(np.float32)
    plain = decompose(M, 3, random_state=0, max_iter=100)
    for exponent in (-60, 60):
        other = decompose(np.ldexp(M, 2 * exponent), 3, random_state=0, max_iter=100)
        assert other.U.dtype == np.float32
        assert_allclose(other.relative_error, plain.relative_error, rtol=1e-3)


@given(k=st.integers(-300, 300), alpha=st.sampled_from([0.0, 0.5]))
def test_scaling_by_a_power_of_four_scales_x_exactly(k, alpha):
    factor = np.random.default_rng(0).standard_normal((10, 2))
    M = np.maximum(0, factor @ factor.T)
    plain = decompose(M, 2, alpha=alpha, random_state=0, max_iter=15)
    other = decompose(np.ldexp(M, 2 * k), 2, alpha=np.ldexp(alpha, 2 * k), random_state=0, max_iter=15)
    assert_array_equal(other.U, np.ldexp(plain.U, k))
    assert other.relative_error == plain.relative_error
    assert other.alpha == np.ldexp(alpha, 2 * k)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_scaling_loses_no_support_entry(kind):
    M = kind(np.array([[1e200, 1e-200], [1e-200, 0.0]]))
    k = scale_exponent(M)
    smaller = scaled(M, k)
    smaller = smaller.toarray() if sparse.issparse(smaller) else smaller
    assert (smaller > 0).tolist() == [[True, True], [True, False]]
    assert 1 <= smaller.max() < 4
