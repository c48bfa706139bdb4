"""The truncated eigendecomposition against the dense one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from repeated_eigenvalues import REPEATED, bipartite, random_block
from scipy import sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

from symrelu.baselines import eigenpairs, truncated_eigen
from symrelu.datasets import make_relu_gram
from symrelu.kernels import arpack


def graph(n=60, seed=0):
    return make_relu_gram(n, 4, shift=0.1, random_state=seed)[0]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rank", [1, 5, 29, 30])
def test_truncated_eigen_is_the_best_of_its_rank(kind, rank):
    M = graph(30)
    solution = truncated_eigen(kind(M), rank)
    values = np.linalg.eigvalsh(M)
    dropped = np.sort(np.abs(values))[: 30 - rank]
    best = np.linalg.norm(dropped) / np.linalg.norm(values)
    assert_allclose(solution.relative_error, best, atol=1e-7)
    residual = M - (solution.U * solution.signature) @ solution.U.T
    assert_allclose(np.linalg.norm(residual) / np.linalg.norm(M), best, atol=1e-7)
    assert_allclose(residual @ solution.U, 0, atol=1e-6 * np.linalg.norm(M))
    assert len(solution.history) == 1


def assert_as_good_as_dense(values, positive, solution):
    """The kept eigenvalues and the error are those of all the eigenvalues of M, up to rounding."""
    rank, eps = solution.U.shape[1], np.finfo(solution.U.dtype).eps
    size = np.maximum(values, 0) if positive else np.abs(values)
    leading = np.sort(size)[::-1][:rank]
    found = np.sort(np.linalg.norm(solution.U.astype(np.float64), axis=0) ** 2)[::-1]
    assert_allclose(found, leading, atol=1e3 * eps * leading[0])
    norm = np.linalg.norm(values) ** 2
    squares = (norm - np.sum(leading**2)) / norm  # the square, since rounding of an exact fit is eps in it
    assert_allclose(solution.relative_error**2, squares, rtol=1e-9 if eps < 1e-9 else 1e-4, atol=50 * eps)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("label", REPEATED)
def test_truncated_eigen_finds_every_copy_of_an_eigenvalue(label, dtype, kind, positive):
    M = REPEATED[label].astype(dtype)
    values = np.linalg.eigvalsh(M.astype(np.float64))
    for rank in (1, 5, 20):
        for seed in (0, 1):
            solution = truncated_eigen(kind(M), rank, positive=positive, random_state=seed)
            assert solution.U.dtype == dtype
            assert_as_good_as_dense(values, positive, solution)


@given(
    seed=st.integers(0, 10**6),
    copies=st.integers(1, 12),
    size=st.integers(1, 8),
    two_sided=st.booleans(),
    share=st.floats(0, 0.49),
    positive=st.booleans(),
    single=st.booleans(),
)
def test_truncated_eigen_of_equal_blocks(seed, copies, size, two_sided, share, positive, single):
    """Issue 11.7: blocks that are alike, or bipartite (pairs of eigenvalues of either sign), in any order."""
    rng = np.random.default_rng(seed)
    block = random_block(size, seed) * (rng.random((size, size)) < 0.7)
    block = np.triu(block) + np.triu(block, 1).T + np.eye(size)
    M = np.kron(np.eye(copies), bipartite(block) if two_sided else block)
    order = rng.permutation(len(M))
    M = M[np.ix_(order, order)].astype(np.float32 if single else np.float64)
    rank = max(1, int(share * len(M)))
    solution = truncated_eigen(sparse.csr_array(M), rank, positive=positive, random_state=seed)
    assert_as_good_as_dense(np.linalg.eigvalsh(M.astype(np.float64)), positive, solution)


def test_truncated_eigen_is_the_same_for_the_same_seed():
    M = sparse.csr_array(REPEATED["few blocks"])
    first, second, other = (truncated_eigen(M, 20, random_state=seed) for seed in (1, 1, 2))
    assert_array_equal(first.U, second.U)
    assert_allclose(other.relative_error, first.relative_error, rtol=1e-9)


@pytest.mark.parametrize("error", [ArpackError(3), ArpackNoConvergence("", np.empty(0), np.empty((96, 0)))])
def test_truncated_eigen_where_arpack_gives_up(error, monkeypatch):
    """Issue 11.7: "No shifts could be applied", as for thirty copies of a block of four."""

    def give_up(*args, **settings):
        raise error

    monkeypatch.setattr(arpack, "seeded_eigsh", give_up)
    M = REPEATED["few blocks"]
    assert_as_good_as_dense(np.linalg.eigvalsh(M), False, truncated_eigen(M, 10))


@pytest.mark.parametrize("restarts", [1, 2])
def test_a_search_that_does_not_end_gives_a_pair_that_is_in_the_matrix(restarts, monkeypatch):
    monkeypatch.setattr(eigenpairs, "_MOST_RESTARTS", restarts)
    M = graph(200)
    known = np.linalg.eigh(M)[1][:, -3:]
    values, vectors = eigenpairs._largest_orthogonal_to(M, known, True, 1.0, np.random.default_rng(0))
    assert_allclose(known.T @ vectors, 0, atol=1e-12)
    assert_allclose(np.linalg.norm(vectors, axis=0), 1)
    assert_allclose(vectors[:, 0] @ M @ vectors[:, 0], values[0])


def test_truncated_eigen_costs_little_more_than_one_run_of_arpack(monkeypatch):
    """Issue 11.7: products with M, counted on a graph whose eigenvalues do not repeat."""
    count = 0
    product = sparse.csr_array._matmul_vector

    def counted(matrix, v):
        nonlocal count
        count += 1
        return product(matrix, v)

    M = sparse.csr_array(graph(400))
    monkeypatch.setattr(sparse.csr_array, "_matmul_vector", counted)
    eigsh(M, k=10, v0=np.random.default_rng(0).standard_normal(400))
    by_arpack, count = count, 0
    truncated_eigen(M, 10)
    assert 0 < by_arpack < count <= 2 * by_arpack


def test_zero_eigenvalues_have_a_sign():
    assert set(truncated_eigen(np.ones((4, 4)), 4).signature) <= {1.0, -1.0}


def test_truncated_eigen_checks_its_rank():
    with pytest.raises(ValueError, match="rank must be an integer from 1 to 3"):
        truncated_eigen(np.eye(3), 4)


@pytest.mark.parametrize("n", [6, 30])
def test_positive_eigenvalues_alone_give_the_nearest_semidefinite_matrix(n):
    M, _ = make_relu_gram(n, 3, shift=0.2, random_state=0)
    np.fill_diagonal(M, 0)  # eigenvalues of both signs
    values, vectors = np.linalg.eigh(M)
    for rank in (2, n):
        solution = truncated_eigen(sparse.csr_array(M), rank, positive=True)
        kept = np.where(np.arange(n) >= n - rank, np.maximum(values, 0), 0)
        np.testing.assert_allclose(solution.U @ solution.U.T, (vectors * kept) @ vectors.T, atol=1e-10)
        assert (solution.signature == 1).all()
        assert solution.relative_error >= truncated_eigen(M, rank).relative_error - 1e-12


def test_eigenvectors_of_repeated_eigenvalues_are_the_same_each_time():
    blocks = np.kron(np.eye(8), np.ones((6, 6)))
    assert len({truncated_eigen(blocks, 8, random_state=0).U.tobytes() for _ in range(5)}) == 1
