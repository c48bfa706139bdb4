"""The canonical factor: X is kept, and nothing else matters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group

from symrelu import LinkPredictor, decompose
from symrelu.baselines import three_block_nmd
from symrelu.datasets import make_relu_gram
from symrelu.fitted import Linear, SymmetricReLU
from symrelu.fitted.canonical_form import canonical_factor


def lorentz(rng, signature):
    """Return a matrix L with L diag(s) L^T = diag(s): rotations, and boosts between columns of both signs."""
    rank = len(signature)
    L = np.eye(rank)
    for sign in (1, -1):
        columns = np.flatnonzero(signature == sign)
        if len(columns) > 1:
            L[np.ix_(columns, columns)] = ortho_group.rvs(len(columns), random_state=int(rng.integers(1000)))
    for a in np.flatnonzero(signature > 0):
        for b in np.flatnonzero(signature < 0):
            boost, t = np.eye(rank), rng.normal()
            boost[a, a] = boost[b, b] = np.cosh(t)
            boost[a, b] = boost[b, a] = np.sinh(t)
            L = L @ boost
    return L


@given(seed=st.integers(0, 1000), rank=st.integers(1, 6), n_negative=st.integers(0, 3))
def test_it_depends_on_X_alone(seed, rank, n_negative):
    rng = np.random.default_rng(seed)
    signature = np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)
    U = rng.standard_normal((20, rank)) * np.arange(1, rank + 1)
    canonical = canonical_factor(U, signature)
    X = (U * signature) @ U.T
    assert_allclose((canonical * signature) @ canonical.T, X, atol=1e-9 * np.linalg.norm(X))
    assert np.linalg.norm(canonical) <= np.linalg.norm(U) * (1 + 1e-12)
    assert_allclose(canonical_factor(canonical, signature), canonical, atol=1e-7 * np.linalg.norm(U))
    gaps = np.diff(np.sort(np.linalg.eigvalsh(X)))
    if np.sum(gaps > 1e-3 * np.linalg.norm(X)) >= rank:  # else eigenvectors turn
        other = canonical_factor(U @ lorentz(rng, signature), signature)
        assert_allclose(other, canonical, atol=1e-5 * np.linalg.norm(U))


def test_columns_are_in_order_and_signs_are_settled():
    U = np.random.default_rng(0).standard_normal((30, 5))
    signature = np.array([1, 1, 1, -1, -1.0])
    canonical = canonical_factor(U, signature)
    sizes = np.linalg.norm(canonical, axis=0)
    assert (np.diff(sizes[:3]) <= 0).all()
    assert (np.diff(sizes[3:]) <= 0).all()
    assert (canonical[np.abs(canonical).argmax(axis=0), range(5)] > 0).all()
    gram = canonical.T @ canonical
    assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)


def test_two_runs_compare():
    M, _ = make_relu_gram(100, 4, random_state=0)
    runs = [decompose(M, 4, init="random", random_state=seed, tol=1e-9, gtol=0) for seed in (0, 1)]
    assert abs(runs[0].U - runs[1].U).max() > 0.1
    first, second = (run.canonicalize() for run in runs)
    assert_allclose(first.U, second.U, atol=1e-5)
    assert first.relative_error == runs[0].relative_error


@pytest.mark.parametrize("kind", [SymmetricReLU, Linear])
def test_models_have_one(kind):
    U, signature = np.random.default_rng(0).standard_normal((20, 4)), np.array([1, 1, -1, -1.0])
    canonical = kind(U, signature).canonicalize()
    assert type(canonical) is kind
    assert_array_equal(canonical.U, canonical_factor(U, signature))
    assert canonical.signature is signature


def test_the_objective_follows_the_norm():
    M, _ = make_relu_gram(40, 3, shift=0.1, random_state=0)
    solution = decompose(M.astype(np.float32), 4, n_negative=1, alpha=2.0, random_state=0, max_iter=20)
    canonical = solution.canonicalize()
    assert canonical.U.dtype == np.float32
    loss = solution.objective - np.sum(solution.U.astype(float) ** 2)
    assert canonical.objective == pytest.approx(loss + np.sum(canonical.U.astype(float) ** 2), rel=1e-5)


def test_a_vanished_column_stays_zero():
    U = np.random.default_rng(0).standard_normal((10, 3))
    U[:, 2] = 0
    canonical = canonical_factor(U, np.ones(3))
    assert_allclose(canonical @ canonical.T, U @ U.T, atol=1e-12)
    assert_allclose(canonical[:, 2], 0, atol=1e-7)


@pytest.mark.parametrize("exponent", [-530, -400, -3, 200, 511])
def test_the_unit_does_not_matter(exponent):
    """Issue 11.5: U of about 1e154, whose squares leave the range, and of 1e-160."""
    U = np.random.default_rng(0).standard_normal((10, 4)) / 100
    signature = np.array([1, 1, -1, -1.0])
    expected = canonical_factor(U, signature)
    assert_array_equal(canonical_factor(np.ldexp(U, exponent), signature), np.ldexp(expected, exponent))


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e306])
def test_solutions_of_any_unit(scale, alpha):
    """Issue 11.5: the change of the objective was a difference of infinities."""
    M, _ = make_relu_gram(20, 3, random_state=0)
    solution = decompose(M * scale, 3, alpha=alpha * scale, random_state=0, max_iter=20)
    canonical = solution.canonicalize()
    assert np.isfinite(canonical.U).all()
    model = (canonical.U / np.sqrt(scale)) @ (canonical.U / np.sqrt(scale)).T
    before = (solution.U / np.sqrt(scale)) @ (solution.U / np.sqrt(scale)).T
    assert_allclose(model, before, atol=1e-9 * np.linalg.norm(before))
    assert not np.isnan(canonical.objective)
    assert canonical.objective <= solution.objective * (1 + 1e-12)


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(0, 6), st.integers(0, 6))
def test_more_columns_than_rows(seed, n, n_positive, n_negative):
    """Issue 11.8: zeros stand where X has too few eigenvalues of a sign."""
    signature = np.repeat([1.0, -1.0], [n_positive + 1, n_negative])
    U = np.random.default_rng(seed).standard_normal((n, len(signature)))
    canonical = canonical_factor(U, signature)
    X = (U * signature) @ U.T
    assert canonical.shape == U.shape
    assert_allclose((canonical * signature) @ canonical.T, X, atol=1e-12 * np.linalg.norm(U) ** 2)
    assert np.count_nonzero(np.linalg.norm(canonical, axis=0) > 1e-6) <= n
    for sign in (1, -1):
        sizes = np.linalg.norm(canonical[:, signature == sign], axis=0)
        assert (np.diff(sizes) <= 1e-12).all()


def test_the_joined_factor_of_many_restarts():
    """Issue 11.8, as it was reported: restarts times rank exceed n."""
    A = np.zeros((6, 6))
    A[[0, 1, 2, 3, 4, 0, 1], [1, 2, 3, 4, 5, 2, 3]] = 1
    solution = LinkPredictor(random_state=0).fit(A + A.T).solution_
    assert solution.rank > 6
    canonical = solution.canonicalize()
    assert canonical.U.shape == solution.U.shape
    assert_allclose(
        canonical.score_pairs(*np.triu_indices(6, 1)), solution.score_pairs(*np.triu_indices(6, 1)), atol=1e-9
    )


def test_two_factors_have_none():
    M, _ = make_relu_gram(30, 3, random_state=0)
    with pytest.raises(
        AttributeError,
        match=r"The model of this solution is TwoFactor \(M ~ max\(0, U V\^T\)\), .* no canonicalize",
    ):
        three_block_nmd(M, 3, random_state=0, max_iter=3).canonicalize()
