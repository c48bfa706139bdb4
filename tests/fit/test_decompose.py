"""decompose as users call it."""

import tracemalloc

import numpy as np
import pytest
from helpers import PAPER_EXAMPLE, PAPER_FACTOR, random_problem
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

from symrelu import AAPB, Status, decompose, metrics
from symrelu.datasets import make_relu_gram
from symrelu.kernels.threads import _blas_libraries

pytestmark = pytest.mark.blas_threads


def test_paper_example_is_what_the_paper_says():
    assert np.linalg.matrix_rank(PAPER_EXAMPLE) == 5
    assert_array_equal(PAPER_EXAMPLE, np.maximum(0, PAPER_FACTOR @ PAPER_FACTOR.T))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", range(10))
def test_paper_example_has_rank_two(kind, seed):
    solution = decompose(kind(PAPER_EXAMPLE), 2, random_state=seed)
    assert solution.status is Status.TOLERANCE
    assert solution.relative_error <= 1e-4
    gram = solution.U @ solution.U.T
    assert_allclose(np.maximum(0, gram), PAPER_EXAMPLE, atol=2e-3)


@pytest.mark.parametrize("backend", ["dense", "sparse", "reference"])
def test_backends_agree(backend):
    M, _ = make_relu_gram(60, 4, shift=0.02, random_state=0)
    expected = decompose(M, 5, random_state=0, max_iter=15, alpha=0.1, diagonal="ignore")
    actual = decompose(M, 5, random_state=0, max_iter=15, alpha=0.1, diagonal="ignore", backend=backend)
    assert_allclose(actual.U, expected.U, rtol=1e-8, atol=1e-8)
    sparse_input = decompose(
        sparse.csr_array(M), 5, random_state=0, max_iter=15, alpha=0.1, diagonal="ignore", backend=backend
    )
    assert_allclose(sparse_input.U, expected.U, rtol=1e-8, atol=1e-8)


def test_sparse_input_never_becomes_dense():
    """At n = 3000 the n x n matrix is 72 MB; a fit allocates a small part of that."""
    n = 3000
    M = sparse.random_array((n, n), density=2 / n, random_state=0)
    M = sparse.csr_array(M + M.T)
    settings = {"max_iter": 2, "random_state": 0, "diagonal": "ignore", "n_negative": 1}
    decompose(M, 3, **settings)
    tracemalloc.start()
    try:
        decompose(M, 3, **settings)
        decompose(M, 3, init="spectral", **settings)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.15 * n * n * 8


def test_blas_is_held_at_one_thread_during_a_fit_and_restored():
    before = [library.num_threads for library in _blas_libraries()]
    seen = []
    M, _ = make_relu_gram(20, 2, random_state=0)
    decompose(
        M,
        2,
        random_state=0,
        max_iter=1,
        callback=lambda progress: seen.extend(library.num_threads for library in _blas_libraries()),
    )
    assert set(seen) <= {1}
    assert [library.num_threads for library in _blas_libraries()] == before


@pytest.mark.parametrize("support", ["equal", "at_least"])
def test_reported_errors_are_true(support):
    problem = random_problem(0, n=40, masked=0.2)
    model = {"mask": problem.unknown, "diagonal": "ignore"}
    settings = {"n_negative": 1, "support": support, "random_state": 0, "max_iter": 50}
    solution = decompose(problem.M, 4, **model, **settings)
    observed = ~problem.unknown & ~np.eye(40, dtype=bool)
    X = (solution.U * solution.signature) @ solution.U.T
    wrong = problem.M - np.maximum(0, X)
    if support == "at_least":
        wrong[(problem.M > 0) & (wrong < 0)] = 0
    error = np.linalg.norm(wrong[observed])
    assert_allclose(solution.relative_error, error / np.linalg.norm(problem.M[observed]))
    assert_allclose(solution.norm, np.linalg.norm(problem.M[observed]))
    assert solution.signature.tolist() == [1, 1, 1, -1]
    again = metrics.relative_error(problem.M, solution.U, solution.signature, support=support, **model)
    assert_allclose(again, solution.relative_error)
    assert solution.support == support


def test_unknown_entries_do_not_matter_and_zeros_do():
    problem = random_problem(1, n=30, masked=0.3)
    other = np.where(problem.unknown, 7.0, problem.M)
    fits = [decompose(M, 3, mask=problem.unknown, random_state=0, max_iter=12) for M in (problem.M, other)]
    assert_allclose(fits[0].U, fits[1].U, rtol=1e-9, atol=1e-9)
    assert abs(decompose(problem.M, 3, random_state=0, max_iter=12).U - fits[0].U).max() > 1e-3


def test_sparse_mask_equals_dense_mask():
    problem = random_problem(2, n=30, masked=0.3)
    dense = decompose(problem.M, 3, mask=problem.unknown, random_state=0, max_iter=12)
    other = decompose(
        sparse.csr_array(problem.M), 3, mask=sparse.coo_array(problem.unknown), random_state=0, max_iter=12
    )
    assert_allclose(other.U, dense.U, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("support", ["equal", "at_least"])
def test_same_seed_same_bits(support):
    M, _ = make_relu_gram(50, 3, random_state=0)
    first, second = (decompose(M, 3, support=support, random_state=5, max_iter=30) for _ in range(2))
    assert_array_equal(first.U, second.U)
    assert abs(decompose(M, 3, random_state=6, max_iter=30).U - first.U).max() > 1e-3


@pytest.mark.parametrize(
    ("init", "support"),
    [
        ("random", "equal"),
        ("uniform", "equal"),
        ("spectral", "equal"),
        ("imputed", "equal"),
        ("imputed", "at_least"),
    ],
)
def test_same_bits_on_one_and_two_threads(init, support):
    M, _ = make_relu_gram(2000, 3, shift=0.05, random_state=0)
    fits = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            fits.append(decompose(M, 3, support=support, random_state=0, max_iter=10, init=init))
    assert_array_equal(fits[0].U, fits[1].U)


def test_permutation_of_items_with_the_start():
    M, _ = make_relu_gram(40, 3, shift=0.05, random_state=0)
    U0 = np.random.default_rng(0).standard_normal((40, 3))
    order = np.random.default_rng(1).permutation(40)
    plain = decompose(M, 3, init=U0, max_iter=15)
    other = decompose(M[np.ix_(order, order)], 3, init=U0[order], max_iter=15)
    assert_allclose(other.U, plain.U[order], rtol=1e-8, atol=1e-8)


def test_continues_from_an_array():
    M, _ = make_relu_gram(60, 4, random_state=0)
    first = decompose(M, 4, random_state=0, max_iter=50)
    second = decompose(M, 4, init=first.U, max_iter=50)
    assert_allclose(second.history.objective[0], first.objective, rtol=1e-12)
    assert second.objective <= first.objective


def test_start_array_is_in_the_units_of_the_matrix():
    M, U = make_relu_gram(30, 3, random_state=0)
    for exponent in (0, 60):
        solution = decompose(np.ldexp(M, 2 * exponent), 3, init=np.ldexp(U, exponent))
        assert solution.n_iter == 0
        assert solution.status is Status.TOLERANCE


def test_callback_is_in_the_units_of_the_matrix():
    M, _ = make_relu_gram(30, 3, random_state=0)
    seen = []
    solution = decompose(
        np.ldexp(M, 120), 3, random_state=0, max_iter=3, callback=lambda progress: seen.append(progress)
    )
    assert_array_equal(seen[-1].U, solution.U)
    assert seen[-1].record.objective == solution.history.objective[-1]
    assert seen[-1].limits.max_iter == 3


def test_rank_larger_than_needed_does_not_diverge():
    M, _ = make_relu_gram(40, 3, random_state=0)
    for rank in (5, 40):
        solution = decompose(M, rank, random_state=0, max_iter=300)
        assert solution.relative_error < 0.05


def test_isolated_nodes_get_zero_rows():
    M, _ = make_relu_gram(30, 3, random_state=0)
    M[7] = M[:, 7] = 0
    solution = decompose(sparse.csr_array(M), 4, random_state=0, max_iter=2000)
    assert np.linalg.norm(solution.U[7]) < 5e-2 * np.linalg.norm(solution.U, axis=1).mean()


def test_negative_columns_lower_the_error_of_a_shifted_matrix():
    M, _ = make_relu_gram(100, 3, shift=0.1, random_state=0)
    plain = decompose(M, 4, init="spectral", random_state=0, max_iter=500, solver=AAPB(step_size=5))
    signed = decompose(
        M, 4, init="spectral", n_negative=1, random_state=0, max_iter=500, solver=AAPB(step_size=5)
    )
    assert signed.relative_error < 0.5 * plain.relative_error


def test_zero_weight_trades_zeros_for_the_support():
    M, _ = make_relu_gram(60, 4, shift=0.1, random_state=0)
    errors = []
    for weight in (1.0, 0.05):
        solution = decompose(M, 3, zero_weight=weight, random_state=0, max_iter=300)
        errors.append(np.linalg.norm((M - np.maximum(0, solution.U @ solution.U.T))[M > 0]))
    assert errors[1] < errors[0]


def neighbours(n=100, threshold=2.0):
    """A graph of which only the links matter."""
    M = (make_relu_gram(n, 6, random_state=0)[0] > threshold).astype(float)
    np.fill_diagonal(M, 0)
    return M


@pytest.mark.parametrize("backend", ["dense", "sparse", "reference", "torch"])
def test_at_least_finds_all_neighbours_where_equal_cannot(backend):
    """The fit stops by tol, although X is far from M on the support."""
    M = neighbours()
    settings = {"n_negative": 1, "diagonal": "ignore", "random_state": 0, "max_iter": 100, "backend": backend}
    solution = decompose(M, 8, support="at_least", **settings)
    assert solution.status is Status.TOLERANCE
    assert solution.relative_error <= 1e-4
    X = (solution.U * solution.signature) @ solution.U.T
    off = ~np.eye(len(M), dtype=bool)
    assert_array_equal((X > 0.5)[off], (M > 0)[off])
    assert np.abs(X - M)[M > 0].max() > 1
    assert decompose(M, 8, **settings).relative_error > 0.2


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e-200, 1e200])
def test_at_least_has_no_unit(scale):
    M = neighbours(60)
    settings = {"n_negative": 1, "diagonal": "ignore", "random_state": 0, "max_iter": 15, "support": "at_least"}
    plain, scaled = decompose(M, 6, **settings), decompose(M * scale, 6, **settings)
    assert_allclose(scaled.relative_error, plain.relative_error, rtol=1e-6)
    assert_allclose(scaled.U / np.sqrt(scale), plain.U, rtol=0, atol=1e-6 * np.abs(plain.U).max())


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_at_least_is_monotone_and_float32_is_near(kind):
    M = kind(neighbours(60))
    settings = {"n_negative": 1, "diagonal": "ignore", "random_state": 0, "max_iter": 10, "support": "at_least"}
    double, single = decompose(M, 5, **settings), decompose(M.astype(np.float32), 5, **settings)
    assert (np.diff(double.history.objective) <= 0).all()
    assert single.U.dtype == np.float32
    assert_allclose(single.history.objective, double.history.objective, rtol=1e-2)


def test_alpha_shrinks_the_factor():
    M, _ = make_relu_gram(40, 3, random_state=0)
    norms = [np.linalg.norm(decompose(M, 3, alpha=alpha, random_state=0).U) for alpha in (0.0, 10.0, 1e4)]
    assert norms[0] > norms[1] > norms[2]
    assert norms[2] < 1e-3 * norms[0]
