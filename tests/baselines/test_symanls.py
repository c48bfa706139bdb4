"""SymANLS: its nonnegative least squares against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from symrelu.baselines import symanls
from symrelu.baselines.symanls import nonnegative_solve


def nnls_rows(gram, target):
    """Solve each row by scipy: |L^T x - L^-1 t|^2 has the same minimiser."""
    L = np.linalg.cholesky(gram)
    return np.array([nnls(L.T, np.linalg.solve(L, t))[0] for t in target])


@given(
    seed=st.integers(0, 10**6),
    rank=st.integers(1, 15),
    n=st.integers(1, 20),
    ridge=st.sampled_from([1e-4, 0.1, 10.0]),
    free=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_block_pivoting_equals_scipy_nnls(seed, rank, n, ridge, free):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((rank + 3, rank))
    gram = B.T @ B + ridge * np.eye(rank)
    target = rng.standard_normal((n, rank)) * 3
    X = nonnegative_solve(gram, target, rng.random((n, rank)) < free)
    assert (X >= 0).all()
    assert_allclose(X, nnls_rows(gram, target), atol=1e-8 * max(1, np.abs(X).max()))


@pytest.mark.parametrize("batch_bytes", [1, 1000, 64e6])
def test_block_pivoting_in_batches_and_with_ties(batch_bytes, monkeypatch):
    monkeypatch.setattr(symanls, "_BATCH_BYTES", batch_bytes)
    rng = np.random.default_rng(0)
    gram = np.eye(4) + 1.0
    target = rng.integers(-1, 2, (500, 4)).astype(float)  # many exact zeros
    X = nonnegative_solve(gram, target, np.zeros((500, 4), bool))
    assert_allclose(X, nnls_rows(gram, target), atol=1e-12)


@pytest.mark.parametrize("batch_bytes", [1, 1000, 64e6])
def test_passive_systems_of_all_sizes(batch_bytes, monkeypatch):
    monkeypatch.setattr(symanls, "_BATCH_BYTES", batch_bytes)
    rng = np.random.default_rng(0)
    B = rng.standard_normal((12, 9))
    gram, target = B.T @ B, rng.standard_normal((40, 9))
    passive = rng.random((40, 9)) < np.linspace(0, 1, 40)[rng.permutation(40), None]
    assert {0, 9} < set(passive.sum(axis=1))
    X, slope = symanls._solve_passive(gram, target, passive)
    for x, t, free, s in zip(X, target, passive, slope, strict=True):
        expected = np.zeros(9)
        expected[free] = np.linalg.solve(gram[np.ix_(free, free)], t[free])
        assert_allclose(x, expected, atol=1e-10)
        assert_allclose(s, np.where(free, 0, gram @ expected - t), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_block_pivoting_ends_in_both_precisions(dtype):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((40, 30)).astype(dtype)
    gram = B.T @ B + dtype(1e-3) * np.eye(30, dtype=dtype)
    target = rng.standard_normal((100, 30)).astype(dtype)
    X = nonnegative_solve(gram, target, np.ones((100, 30), bool))
    assert X.dtype == dtype
    gradient = X @ gram - target
    slack = 1e-3 if dtype is np.float32 else 1e-10
    assert gradient[X == 0].min() > -slack
    assert np.abs(gradient[X > 0]).max() < slack
