"""Leading eigenpairs by ARPACK, against numpy, and where ARPACK gives up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, aslinearoperator

from symrelu.kernels import arpack
from symrelu.kernels.arpack import (
    arpack_applicable,
    largest_eigenpairs,
    largest_eigenvalue,
    search_vectors,
)

KINDS = {"dense": np.asarray, "sparse": sparse.csr_array, "operator": aslinearoperator}


def symmetric(n=60, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A + A.T


def found(A, k=4, seed=0, **options):
    v0, further = search_vectors(A.shape[0], np.random.default_rng(seed))
    return largest_eigenpairs(A, k, v0, further, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_magnitude", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_eigenpairs_are_those_of_numpy(kind, by_magnitude, dtype, tolerance):
    A = symmetric().astype(dtype)
    values, vectors = found(KINDS[kind](A), by_magnitude=by_magnitude)
    exact = np.linalg.eigvalsh(A.astype(np.float64))
    size = np.abs(exact) if by_magnitude else exact
    expected = exact[np.argsort(size)[-4:]]
    scale = np.abs(exact).max()
    assert_allclose(np.sort(values), np.sort(expected), atol=tolerance * scale)
    assert_allclose(A @ vectors, vectors * values, atol=10 * tolerance * scale)
    assert values.dtype == vectors.dtype == dtype


def test_a_loose_tolerance_is_passed_on():
    A = symmetric(150)
    exact = np.linalg.eigvalsh(A)[-4:]
    errors = [
        np.abs(np.sort(found(A, by_magnitude=False, tolerance=t)[0]) - exact).max() / exact[-1]
        for t in (0.1, 0.0)
    ]
    assert errors[1] < 1e-12 < errors[0]


@pytest.mark.parametrize("A", [symmetric(), np.kron(np.eye(6), np.ones((10, 10)))], ids=["simple", "repeated"])
def test_one_seed_gives_the_same_bits(A):
    first, second = (found(A, seed=3, by_magnitude=True) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert_array_equal(one, other)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30))
def test_search_vectors_follow_from_the_seed(seed, n):
    (v0, further), (v1, other) = (search_vectors(n, np.random.default_rng(seed)) for _ in range(2))
    assert_array_equal(v0, np.random.default_rng(seed).standard_normal(n))
    assert_array_equal(v0, v1)
    assert_array_equal(further.standard_normal(5), other.standard_normal(5))
    assert not np.array_equal(further.standard_normal(n), v0)


def test_what_was_found_before_arpack_gave_up_is_kept(monkeypatch):
    values, vectors = np.array([2.0]), np.ones((60, 1))

    def unfinished(*args, **kwargs):
        raise ArpackNoConvergence("no convergence", values, vectors)

    monkeypatch.setattr(arpack, "seeded_eigsh", unfinished)
    kept = found(symmetric(), by_magnitude=True)
    assert kept[0] is values
    assert kept[1] is vectors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_error_of_arpack_gives_no_pairs(monkeypatch, dtype):
    def failing(*args, **kwargs):
        raise ArpackError(-9999)

    monkeypatch.setattr(arpack, "seeded_eigsh", failing)
    values, vectors = found(symmetric().astype(dtype), by_magnitude=False)
    assert values.shape == (0,)
    assert vectors.shape == (60, 0)
    assert values.dtype == vectors.dtype == dtype


@given(n=st.integers(1, 100), k=st.integers(1, 100))
def test_arpack_is_asked_for_less_than_half_of_the_pairs(n, k):
    assert arpack_applicable(k, n) == (k < n / 2)


# The largest eigenvalue of a nonnegative matrix

NONNEGATIVE = {
    "one item": np.full((1, 1), 3.0),
    "a pair": np.array([[0.0, 2.0], [2.0, 0.0]]),
    "three": np.eye(3),
    "equal eigenvalues": np.eye(30),
    "blocks": np.kron(np.eye(6), np.ones((10, 10))),
    "one positive entry": np.diag([0.0] * 29 + [5.0]),
    "bipartite": np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((10, 10))),
    "random": np.abs(symmetric()),
    "sparse": np.maximum(symmetric() - 2, 0),
}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("label", NONNEGATIVE)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-8), (np.float32, 1e-5)])
def test_the_largest_eigenvalue(label, kind, dtype, tolerance, monkeypatch):
    A = KINDS[kind](NONNEGATIVE[label].astype(dtype))
    expected = np.linalg.eigvalsh(NONNEGATIVE[label])[-1]
    value = largest_eigenvalue(A)
    assert_allclose(value, expected, rtol=tolerance)
    assert value == largest_eigenvalue(A)
    monkeypatch.setattr(arpack, "largest_eigenpairs", lambda *_, **__: (np.empty(0), None))
    assert_allclose(largest_eigenvalue(A), expected, rtol=tolerance)
