"""New rows: the convex problem of each is solved, and fitted items get their own rows back."""

import numpy as np
import pytest
import sklearn
from helpers import PROBLEMS, factor, problems
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from symrelu import Solution, decompose
from symrelu.baselines import SymHALS, symmetric_nmf, three_block_nmd, truncated_eigen
from symrelu.datasets import load_digits_graph, make_relu_gram
from symrelu.transform import explained_squares, transform_rows


def cost(u, m, unknown, V, alpha, zero_weight):
    """The formula, and its gradient."""
    x = V @ u
    excess = np.where(m > 0, x - m, zero_weight * np.maximum(0, x)) * ~unknown
    value = 0.5 * np.sum(np.where(m > 0, x - m, np.sqrt(zero_weight) * np.maximum(0, x)) ** 2 * ~unknown)
    return value + alpha / 4 * u @ u, V.T @ excess + alpha / 2 * u


def transformed(problem, U, **changes):
    settings = {"alpha": problem.alpha, "zero_weight": problem.zero_weight, **changes}
    return transform_rows(problem.M, U, problem.signature, mask=problem.unknown, **settings)


def assert_optimal(problem, U, U_new):
    """Each row has a vanishing gradient, at the scale of the terms that it is the sum of."""
    V = U * problem.signature
    for m, unknown, u in zip(problem.M, problem.unknown, U_new, strict=True):
        _, gradient = cost(u, m, unknown, V, problem.alpha, problem.zero_weight)
        terms = np.abs(V).T @ (np.abs(V @ u) + m) + problem.alpha * np.abs(u)
        assert (np.abs(gradient) <= 1e-8 * terms.max()).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_optimality_and_another_solver(name):
    problem = PROBLEMS[name]
    U = factor(problem)
    U_new = transformed(problem, U)
    assert_optimal(problem, U, U_new)
    V = U * problem.signature
    for m, unknown, u in zip(problem.M[:5], problem.unknown[:5], U_new[:5], strict=True):
        arguments = (m, unknown, V, problem.alpha, problem.zero_weight)
        other = minimize(cost, np.zeros_like(u), arguments, jac=True, method="BFGS", options={"gtol": 1e-10})
        assert cost(u, *arguments)[0] <= other.fun + 1e-9 * (1 + other.fun)


@given(problems(), st.integers(0, 9))
def test_optimality_of_any_row(problem, seed):
    U = factor(problem, seed)
    assert_optimal(problem, U, transformed(problem, U))


@given(problems(), st.integers(0, 9))
def test_dense_is_sparse_and_rows_are_independent(problem, seed):
    U = factor(problem, seed)
    dense = transformed(problem, U)
    settings = {"alpha": problem.alpha, "zero_weight": problem.zero_weight}
    mask = sparse.csr_array(problem.unknown)
    M = sparse.csr_array(problem.M)
    assert_array_equal(transform_rows(M, U, problem.signature, mask=mask, **settings), dense)
    size = np.abs(dense).max(initial=1e-300)
    for k in range(problem.n):
        alone = transform_rows(M[k : k + 1], U, problem.signature, mask=mask[k : k + 1], **settings)
        assert_allclose(alone[0], dense[k], rtol=0, atol=1e-8 * size)


def test_unknown_is_absent():
    problem = PROBLEMS["everything"]
    U = factor(problem)
    known = ~problem.unknown[0]
    fewer = transform_rows(
        problem.M[:1, known],
        U[known],
        problem.signature,
        alpha=problem.alpha,
        zero_weight=problem.zero_weight,
    )
    assert_allclose(transformed(problem, U)[:1], fewer, atol=1e-10)


@pytest.mark.parametrize("exponent", [-150, -3, 5, 150])
def test_scaling(exponent):
    """M times 4^k and U times 2^k: the rows are times 2^k, exactly."""
    problem = PROBLEMS["signed"]
    U = factor(problem)
    scaled = transform_rows(problem.M * 4.0**exponent, U * 2.0**exponent, problem.signature)
    assert_array_equal(scaled, transform_rows(problem.M, U, problem.signature) * 2.0**exponent)


def test_rows_have_scales_of_their_own():
    U = factor(PROBLEMS["signed"])
    M, s = PROBLEMS["signed"].M, PROBLEMS["signed"].signature
    scales = 4.0 ** np.arange(-200, 100, 10)[:, None]
    assert_allclose(transform_rows(M * scales, U, s) / scales, transform_rows(M, U, s), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-170, 1e170, 1e200])
def test_the_score_has_no_unit(scale):
    M, _ = make_relu_gram(40, 5, random_state=0)
    solution = decompose(M * scale, 3, random_state=0)
    assert_allclose(solution.score(M * scale), decompose(M, 3, random_state=0).score(M), rtol=1e-6)


def test_permutations():
    problem = PROBLEMS["plain"]
    U = factor(problem)
    order = np.random.default_rng(0).permutation(problem.n)
    again = transform_rows(problem.M[:, order], U[order], problem.signature)
    assert_allclose(again, transform_rows(problem.M, U, problem.signature), atol=1e-9)


def test_float32():
    problem = PROBLEMS["plain"]
    U = factor(problem)
    single = transform_rows(problem.M.astype(np.float32), U.astype(np.float32), problem.signature)
    assert single.dtype == np.float32
    assert_allclose(single, transform_rows(problem.M, U, problem.signature), atol=1e-4)


def test_least_norm_where_the_items_do_not_span():
    """One similarity fixes one direction; all others have to stay at zero."""
    U = np.array([[2.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert_allclose(transform_rows(np.array([[3.0, 0, 0]]), U, np.ones(3)), [[1.5, 0, 0]], atol=1e-12)
    # Without the zeros at the others, the shortest u with u.(1, 1) = 2.
    U = np.array([[1.0, 1.0], [1.0, -1.0]])
    hidden = np.array([[False, True]])
    assert_allclose(transform_rows(np.array([[2.0, 0]]), U, np.ones(2), mask=hidden), [[1, 1]], atol=1e-12)
    # A zero is a wall: the shortest u with u.(1, 1) = 2 and u.(1, 0) <= 0 lies on it.
    U = np.array([[1.0, 1.0], [1.0, 0.0]])
    assert_allclose(transform_rows(np.array([[2.0, 0]]), U, np.ones(2)), [[0, 2]], atol=1e-6)


def test_a_row_without_similarities_is_zero():
    U = np.random.default_rng(0).standard_normal((6, 2))
    assert not transform_rows(np.zeros((2, 6)), U, np.ones(2)).any()
    assert not transform_rows(sparse.csr_array((3, 6)), U, np.ones(2)).any()
    # Nor can an item be placed that is only similar to items that have no place.
    U[0] = 0
    assert not transform_rows(np.eye(1, 6), U, np.ones(2)).any()
    assert transform_rows(np.empty((0, 6)), U, np.ones(2)).shape == (0, 2)


def spans(problem_M, U, signature, row, unknown):
    V = U * signature
    active = ((problem_M[row] > 0) | (V @ U[row] > 0)) & ~unknown[row]
    values = np.linalg.eigvalsh(V[active].T @ V[active])
    return values[0] > 1e-6 * values[-1]


@pytest.mark.parametrize(
    ("M", "rank", "fit"),
    [
        (make_relu_gram(80, 6, random_state=0)[0], 5, {}),
        (make_relu_gram(80, 5, shift=0.1, random_state=0)[0], 6, {"n_negative": 1}),
        (make_relu_gram(80, 6, random_state=1)[0], 4, {"zero_weight": 0.3}),
        (make_relu_gram(80, 6, random_state=1)[0], 8, {"alpha": 0.5}),
        (load_digits_graph()[0][:150, :150], 6, {"n_negative": 1, "diagonal": "ignore"}),
        (load_digits_graph()[0][:150, :150], 10, {"n_negative": 1, "diagonal": "ignore", "alpha": 0.02}),
    ],
    ids=["paper", "signed", "weighted", "alpha", "graph", "graph, alpha"],
)
def test_fitted_items_get_their_own_rows(M, rank, fit):
    solution = decompose(M, rank, tol=0, gtol=1e-9, ftol=0, random_state=0, **fit)
    assert solution.converged
    n = M.shape[0]
    dense = M.toarray() if sparse.issparse(M) else M
    unknown = np.eye(n, dtype=bool) & (fit.get("diagonal") == "ignore")
    U_new = solution.transform(M, unknown)
    V, alpha, weight = solution.U * solution.signature, solution.alpha, solution.zero_weight
    determined = 0
    for k in range(n):
        own, _ = cost(solution.U[k], dense[k], unknown[k], V, alpha, weight)
        new, _ = cost(U_new[k], dense[k], unknown[k], V, alpha, weight)
        assert abs(new - own) <= 1e-8 * solution.norm**2
        if alpha > 0 or spans(dense, solution.U, solution.signature, k, unknown):
            determined += 1
            assert_allclose(U_new[k], solution.U[k], rtol=0, atol=1e-4)
    if fit.get("diagonal") != "ignore" or alpha:
        assert determined > 0.85 * n


def test_memory_and_threads_do_not_matter():
    M, _ = make_relu_gram(400, 8, random_state=0)
    solution = decompose(M, 6, max_iter=20, tol=0, random_state=0)
    with threadpool_limits(1, "blas"):
        expected = solution.transform(M)
    with threadpool_limits(2, "blas"):
        assert_array_equal(solution.transform(M), expected)
    with sklearn.config_context(working_memory=1e-6):  # one row at a time
        assert_allclose(solution.transform(M), expected, atol=1e-9)


def test_score_is_the_share_of_the_squares():
    M, _ = make_relu_gram(100, 5, random_state=0)
    solution = decompose(M[:80, :80], 4, random_state=0)
    new = M[80:, :80]
    U_new = solution.transform(new)
    model = np.maximum(0, U_new @ solution.U.T)
    expected = 1 - np.sum((new - model) ** 2) / np.sum(new**2)
    assert_allclose(solution.score(new), expected, rtol=1e-12)
    assert_allclose(solution.score(sparse.csr_array(new)), expected, rtol=1e-12)
    with sklearn.config_context(working_memory=1e-6):
        assert_allclose(solution.score(new), expected, rtol=1e-12)
    mask = np.random.default_rng(0).random(new.shape) < 0.2
    model = np.maximum(0, solution.transform(new, mask) @ solution.U.T)
    expected = 1 - np.sum((new - model)[~mask] ** 2) / np.sum(new[~mask] ** 2)
    assert_allclose(solution.score(new, mask), expected, rtol=1e-12)


def test_score_without_similarities():
    U = np.ones((3, 1))
    assert explained_squares(np.zeros((1, 3)), np.zeros((1, 1)), U) == 1
    assert explained_squares(np.zeros((1, 3)), np.ones((1, 1)), U) == -np.inf


@pytest.mark.parametrize(
    ("M_new", "mask", "error", "message"),
    [
        (np.ones((2, 4)), None, ValueError, r"M_new must have shape \(n_new, 5\), .* got shape \(2, 4\)"),
        (np.ones(5), None, ValueError, r"M_new must have shape \(n_new, 5\), .* got shape \(5,\)"),
        (-np.ones((2, 5)), None, ValueError, r"M_new must be nonnegative: entry \(0, 0\) is -1"),
        (np.full((2, 5), np.nan), None, ValueError, "M_new must not contain NaN"),
        (sparse.csr_array((2, 4)), None, ValueError, r"M_new must have shape \(n_new, 5\)"),
        (np.ones((2, 5)), np.ones((2, 4), bool), ValueError, r"mask must have the shape of M_new, \(2, 5\)"),
        (np.ones((2, 5)), np.ones((2, 5)), TypeError, r"mask must be boolean \(True = unknown\)"),
        (np.ma.ones((2, 5)), None, TypeError, "M_new must be a plain array, got a masked array"),
    ],
)
def test_bad_input(M_new, mask, error, message):
    solution = decompose(np.eye(5) + 1, 2, random_state=0)
    with pytest.raises(error, match=message):
        solution.transform(M_new, mask)


def test_other_models_have_no_rows(tmp_path):
    solution = truncated_eigen(np.eye(5) + 1, 2)
    solution.save(tmp_path / "eigen.npz")
    for baseline in (
        solution,
        Solution.load(tmp_path / "eigen.npz"),
        symmetric_nmf(np.eye(5) + 1, 2, SymHALS(), max_iter=3, random_state=0),
    ):
        with pytest.raises(ValueError, match="transform is of the model max"):
            baseline.transform(np.ones((1, 5)))


def test_a_solution_of_two_factors_has_no_rows():
    solution = three_block_nmd(np.eye(5) + 1, 2, max_iter=2, random_state=0)
    with pytest.raises(ValueError, match="transform needs a symmetric X, but this solution has two factors"):
        solution.transform(np.ones((1, 5)))


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_column_order_of_arrays_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    M = np.maximum(0, rng.standard_normal((7, 7)))  # not symmetric: must not be read as its transpose
    U = rng.standard_normal((7, 2))
    solution = decompose(np.eye(7) + 1, 2, init=U, max_iter=1, tol=0, gtol=0)
    assert_array_equal(solution.transform(np.asfortranarray(M)), solution.transform(M))
