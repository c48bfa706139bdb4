"""Eigenpairs that depend on the seed alone, with and without the generator of newer versions of SciPy."""

import numpy as np
import pytest
import scipy.sparse.linalg
from numpy.testing import assert_allclose, assert_array_equal
from repeated_eigenvalues import REPEATED
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence

from symrelu.kernels import seeded_eigsh as module
from symrelu.kernels.seeded_eigsh import TAKES_A_GENERATOR, lanczos, seeded_eigsh

DIAGONALS = {
    "three eigenvalues": np.diag([3.0] * 40 + [2.0] * 100 + [0.0] * 60),
    "both ends": np.diag([-2.0] * 5 + [2.0] * 5 + [0.5] * 40),
    "one": np.diag([0.0] * 29 + [5.0]),
    "zero": np.zeros((40, 40)),
    "small": np.diag([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
}
# Their start spans so small a space that the search needs further random vectors.
EXHAUSTED = {name: REPEATED[name] for name in ("identity", "low rank", "complete graph")} | DIAGONALS


def search(method, A, k, which, tol=0.0, seed=0):
    rng = np.random.default_rng(seed)
    v0 = rng.standard_normal(A.shape[0]).astype(A.dtype)
    return method(A, k, which, v0, tol, rng)


@pytest.mark.parametrize("name", REPEATED)
def test_a_seed_has_one_result(name):
    A = sparse.csr_array(REPEATED[name])
    first = search(seeded_eigsh, A, 4, "LM")
    search(seeded_eigsh, A, 3, "LA", seed=1)  # what came in between has no influence
    for one, other in zip(first, search(seeded_eigsh, A, 4, "LM"), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("which", ["LM", "LA"])
@pytest.mark.parametrize("name", EXHAUSTED)
def test_lanczos_finds_repeated_eigenvalues(name, which, dtype, tolerance):
    A = EXHAUSTED[name].astype(dtype)
    exact = np.linalg.eigvalsh(EXHAUSTED[name])
    for k in (1, 4, 12):
        if 2 * k >= len(A):
            continue
        values, vectors = search(lanczos, A, k, which)
        scale = max(np.abs(exact).max(), 1.0)
        size = np.abs if which == "LM" else np.asarray
        assert_allclose(np.sort(size(values)), np.sort(size(exact))[-k:], atol=tolerance * scale)
        assert_allclose(A @ vectors, vectors * values, atol=tolerance * scale)
        assert_allclose(vectors.T @ vectors, np.eye(k), atol=tolerance)
        assert values.dtype == vectors.dtype == dtype
        assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("which", ["LM", "LA"])
def test_lanczos_finds_what_eigsh_finds(which):
    B = np.random.default_rng(0).standard_normal((150, 150))
    A = B + B.T
    values, vectors = search(lanczos, A, 6, which)
    expected, eigenvectors = search(seeded_eigsh, A, 6, which)
    assert_allclose(values, expected, rtol=1e-12)
    assert_allclose(np.abs(np.sum(vectors * eigenvectors, axis=0)), 1, atol=1e-9)


def test_a_loose_tolerance_takes_fewer_products():
    B = np.random.default_rng(0).standard_normal((150, 150))
    products = []

    def counted(v):
        products[-1] += 1
        return (B + B.T) @ v

    A = scipy.sparse.linalg.LinearOperator((150, 150), matvec=counted, dtype=float)
    for tol in (0.1, 0.0):
        products.append(0)
        search(lanczos, A, 4, "LM", tol)
    assert products[0] < products[1]


def test_lanczos_gives_up_with_what_it_has(monkeypatch):
    monkeypatch.setattr(
        module, "range", lambda *limits: range(*[min(limit, 24) for limit in limits]), raising=False
    )
    B = np.random.default_rng(0).standard_normal((300, 300))
    with pytest.raises(ArpackNoConvergence) as error:
        search(lanczos, B + B.T, 8, "LM", tol=1e-14)
    assert error.value.eigenvectors.shape == (300, len(error.value.eigenvalues))


@pytest.mark.skipif(TAKES_A_GENERATOR, reason="this SciPy takes a generator")
@pytest.mark.parametrize("name", ["identity", "low rank", "cycle"])
def test_only_exhausted_starts_leave_arpack(name, monkeypatch):
    A, called = REPEATED[name], []
    monkeypatch.setattr(module, "lanczos", lambda *arguments: called.append(arguments) or (None, None))
    search(seeded_eigsh, A, 4, "LM")
    assert bool(called) == (name != "cycle")
