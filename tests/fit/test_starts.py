"""Starting factors."""

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, random_problem
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence

from symrelu import LBFGS, Status, decompose
from symrelu.datasets import make_relu_gram
from symrelu.fit.starts import STARTS, count_negative, start
from symrelu.kernels import arpack
from symrelu.metrics import random_mask
from symrelu.operators import as_operator


def operator(n=40, rank=5, n_negative=0, **settings):
    M, _ = make_relu_gram(n, 4, random_state=0)
    signature = np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)
    return as_operator(sparse.csr_array(M), signature, **settings)


@pytest.mark.parametrize("init", ["random", "uniform", "spectral", "imputed"])
def test_same_seed_same_start(init):
    op = operator()
    first = start(op, init, 3)
    assert_array_equal(first, start(op, init, 3))
    assert (first != start(op, init, 4)).any()
    assert first.shape == (40, 5)
    assert first.flags.c_contiguous


@pytest.mark.parametrize("init", ["random", "uniform", "spectral", "imputed"])
def test_dtype_is_that_of_the_matrix(init):
    M, _ = make_relu_gram(40, 4, random_state=0)
    op = as_operator(M.astype(np.float32), np.ones(5))
    assert start(op, init, 0).dtype == np.float32


def test_random_start_is_scaled_to_the_matrix():
    op = operator()
    U = start(op, "random", 0)
    assert_allclose(np.linalg.norm(U @ U.T), op.norm)


def test_data_made_from_the_same_seed_are_not_their_own_start():
    M, U = make_relu_gram(40, 5, random_state=7)
    U0 = start(as_operator(M, np.ones(5)), "random", 7)
    cosine = np.sum(U * U0) / np.linalg.norm(U) / np.linalg.norm(U0)
    assert abs(cosine) < 0.5


def test_spectral_start_holds_the_leading_eigenvectors():
    op = operator()
    U = start(op, "spectral", 0)
    values, vectors = np.linalg.eigh(op.matmul(np.eye(40)))
    best = (vectors[:, -5:] * values[-5:]) @ vectors[:, -5:].T
    assert np.linalg.norm(U @ U.T - best) < 0.02 * np.linalg.norm(best)


@pytest.mark.parametrize("rank", [1, 19, 20, 21, 39, 40])
def test_spectral_start_at_any_rank(rank):
    """M has only so many positive eigenvalues; the other columns must be able to grow."""
    op = operator(rank=rank)
    U = start(op, "spectral", 0)
    assert np.isfinite(U).all()
    assert (np.linalg.norm(U, axis=0) > 0).all()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("init", ["random", "uniform", "spectral", "imputed"])
def test_tiny_matrices(n, init):
    op = as_operator(np.eye(n), np.ones(1))
    assert np.isfinite(start(op, init, 0)).all()


@pytest.mark.parametrize("n_negative", [1, 2, 4])
def test_negative_columns_start_different_from_each_other(n_negative):
    op = operator(n_negative=n_negative)
    U = start(op, "spectral", 0)
    mean = op.matmul(np.ones((40, 1))).mean() / 40
    assert_allclose(U[:, 5 - n_negative], np.sqrt(mean / 2))
    assert np.linalg.matrix_rank(U) == 5


def failing_eigsh(error):
    def eigsh(*args, **kwargs):
        raise error

    return eigsh


@pytest.mark.parametrize(
    "error",
    [
        ArpackError(-9999),
        ArpackNoConvergence("no convergence", np.array([2.0]), np.eye(40)[:, :1]),
        ArpackNoConvergence("no convergence", np.empty(0), np.empty((40, 0))),
    ],
)
def test_spectral_start_survives_arpack(monkeypatch, error):
    monkeypatch.setattr(arpack, "seeded_eigsh", failing_eigsh(error))
    U = start(operator(), "spectral", 0)
    assert np.isfinite(U).all()
    assert (np.linalg.norm(U, axis=0) > 0).all()


def test_spectral_start_of_blocks_is_no_saddle():
    """The eigenvectors of the paper's example are stationary: a fit from them alone never moves."""
    from helpers import PAPER_EXAMPLE

    op = as_operator(PAPER_EXAMPLE, np.ones(2))
    U = start(op, "spectral", 0)
    assert np.linalg.norm(op.residual_product(U, U).product) > 1e-4 * op.norm * np.linalg.norm(U)


def test_array_start_is_copied():
    op = operator()
    given = np.ones((40, 5))
    U = start(op, given)
    assert_array_equal(U, given)
    assert not np.shares_memory(U, given)


@pytest.mark.parametrize("seed", [None, 0, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)])
def test_any_random_state(seed):
    assert start(operator(), "random", seed).shape == (40, 5)


def test_uniform_start_is_nonnegative_and_scaled():
    op = operator()
    U = start(op, "uniform", 0)
    assert (U >= 0).all()
    assert U.max() / np.median(U) < 2.5  # uniform, not half-normal
    assert np.linalg.norm(U @ U.T) == pytest.approx(op.norm)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("label", PROBLEMS)
def test_imputed_matmul(name, label):
    problem = PROBLEMS[label]
    V = np.random.default_rng(0).standard_normal((problem.n, 3))
    known = np.where(problem.unknown, 0, problem.M)
    imputed = np.where((known == 0) & ~problem.unknown, -0.3, known)
    diagonal = np.where(np.diag(problem.unknown), known.max(axis=1), np.diag(imputed))
    np.fill_diagonal(imputed, diagonal)
    op = OPERATORS[name](problem)
    assert_allclose(op.to_numpy(op.imputed_matmul(op.asarray(V), -0.3)), imputed @ V, atol=1e-10)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("init", STARTS)
def test_same_start_on_every_operator(init, label, name):
    op, expected = OPERATORS[name](PROBLEMS[label]), OPERATORS["reference"](PROBLEMS[label])
    U0 = op.to_numpy(start(op, init, 0))
    assert_allclose(U0, start(expected, init, 0), rtol=0, atol=1e-9 * np.linalg.norm(U0))
    assert count_negative(op, 0) == count_negative(expected, 0)


@pytest.mark.parametrize("rank", [3, 20])  # by ARPACK, and by all eigenvalues
def test_imputed_start_has_the_eigenvectors_of_the_imputed_matrix(rank):
    problem = random_problem(8, n=30, rank=rank, n_negative=1)
    op = OPERATORS["sparse"](problem)
    U = start(op, "imputed", 0)
    A = np.where(problem.M > 0, problem.M, -problem.M[problem.M > 0].mean())
    values, vectors = np.linalg.eigh(A)
    assert_close_up_to_sign(U[:, 0], vectors[:, -1] * np.sqrt(values[-1]), 0.02)
    assert_close_up_to_sign(U[:, -1], vectors[:, 0] * np.sqrt(-values[0]), 1e-4)


@pytest.mark.parametrize(("shift", "rank", "expected"), [(0.0, 6, 0), (0.1, 7, 1), (0.1, 1, 0), (0.1, 60, 24)])
def test_negative_columns_are_counted_by_the_eigenvalues(shift, rank, expected):
    M, _ = make_relu_gram(120, 6, shift=shift, random_state=0)
    op = as_operator(M, np.ones(rank))
    values = np.linalg.eigvalsh(np.where(M > 0, M, -M[M > 0].mean()))
    leading = values[np.argsort(-np.abs(values))[:rank]]
    assert count_negative(op, 0) == min(int(np.sum(leading < 0)), rank - 1) == expected


@pytest.mark.parametrize("seed", range(3))
def test_the_data_choose_the_signature(seed):
    M, _ = make_relu_gram(300, 6, shift=0.1, random_state=seed)
    solution = decompose(M, 7, n_negative="auto", random_state=seed)
    assert solution.n_negative == 1
    assert solution.signature.tolist() == [1] * 6 + [-1]
    assert solution.status is Status.TOLERANCE
    same = decompose(M, 7, n_negative=1, random_state=seed)
    assert_array_equal(solution.U, same.U)


def test_counting_survives_arpack(monkeypatch):
    M, _ = make_relu_gram(100, 4, shift=0.1, random_state=0)
    op = as_operator(M, np.ones(5))
    assert count_negative(op, 0) == 1
    monkeypatch.setattr(arpack, "seeded_eigsh", failing_eigsh(ArpackError(-9999)))
    assert count_negative(op, 0) == 0


def test_repeated_eigenvalues_give_the_same_start():
    """ARPACK goes on with vectors of its own there, other ones each time."""
    for blocks in (
        np.kron(np.eye(8), np.ones((6, 6))),
        np.kron(np.eye(30), np.ones((10, 10))),
        np.ones((30, 30)),
    ):
        op = as_operator(blocks, np.ones(8))
        for init in ("imputed", "spectral"):
            assert len({start(op, init, 0).tobytes() for _ in range(5)}) == 1
        assert len({count_negative(op, 0) for _ in range(5)}) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "rank"), [(200, 10), (10, 3)])
def test_rounding_is_no_negative_eigenvalue(n, rank, dtype):
    G = np.abs(np.random.default_rng(1).standard_normal((n, 2))).astype(dtype)
    assert count_negative(as_operator(G @ G.T, np.ones(rank)), 0) == 0


@pytest.mark.parametrize("seed", range(4))
def test_an_unknown_diagonal_asks_for_no_negative_column(seed):
    """Taken as negative, like a zero, it shifted all eigenvalues down."""
    M = np.maximum(np.corrcoef(np.random.default_rng(seed).standard_normal((40, 8))), 0)
    assert count_negative(as_operator(M, np.ones(8), diagonal="ignore"), 0) == 0


@pytest.mark.parametrize("fraction", [0.3, 0.6, 0.9])
@pytest.mark.parametrize(("shift", "expected"), [(0.0, 0), (0.1, 1)])
def test_hidden_pairs_do_not_change_the_signature(fraction, shift, expected):
    M, _ = make_relu_gram(300, 6, shift=shift, random_state=0)
    mask = random_mask(300, fraction, random_state=0)
    assert count_negative(as_operator(M, np.ones(6 + expected), mask=mask), 0) == expected


def assert_close_up_to_sign(actual, expected, tolerance):
    sign = np.sign(actual @ expected)
    assert np.linalg.norm(sign * actual - expected) <= tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("seed", range(3))
def test_imputed_start_is_near_the_solution(seed):
    M, _ = make_relu_gram(300, 6, random_state=seed)
    evaluations = {
        init: decompose(M, 6, solver=LBFGS(), init=init, random_state=seed).n_evaluations
        for init in ("random", "spectral", "imputed")
    }
    assert evaluations["imputed"] <= 0.7 * min(evaluations["random"], evaluations["spectral"])
