"""New rows: the convex problem of each is solved, and fitted items get their own rows back."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from helpers import PROBLEMS, factor, problems
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.linalg import norm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import lsq_linear, minimize, nnls
from threadpoolctl import threadpool_limits

from symrelu import Solution, decompose
from symrelu.baselines import SymHALS, symmetric_nmf, three_block_nmd, truncated_eigen
from symrelu.datasets import load_digits_graph, make_relu_gram
from symrelu.fitted.new_rows import explained_squares, transform_rows

pytestmark = pytest.mark.blas_threads


def cost(u, m, unknown, V, alpha, zero_weight, at_least=False):
    """The formula, and its gradient."""
    x = V @ u
    gap = np.minimum(0, x - m) if at_least else x - m
    excess = np.where(m > 0, gap, zero_weight * np.maximum(0, x)) * ~unknown
    value = 0.5 * np.sum(np.where(m > 0, gap, np.sqrt(zero_weight) * np.maximum(0, x)) ** 2 * ~unknown)
    return value + alpha / 4 * u @ u, V.T @ excess + alpha / 2 * u


def settings_of(problem):
    return {"alpha": problem.alpha, "zero_weight": problem.zero_weight, "at_least": problem.at_least}


def transformed(problem, U, **changes):
    settings = settings_of(problem) | changes
    return transform_rows(problem.M, U, problem.signature, mask=problem.unknown, **settings)


def assert_optimal(problem, U, U_new):
    """Each row has a vanishing gradient, at the scale of the terms that it is the sum of."""
    V = U * problem.signature
    for m, unknown, u in zip(problem.M, problem.unknown, U_new, strict=True):
        _, gradient = cost(u, m, unknown, V, **settings_of(problem))
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
        arguments = (m, unknown, V, *settings_of(problem).values())
        other = minimize(cost, np.zeros_like(u), arguments, jac=True, method="BFGS", options={"gtol": 1e-10})
        assert cost(u, *arguments)[0] <= other.fun + 1e-9 * (1 + other.fun)


@given(problems(), st.integers(0, 9))
def test_optimality_of_any_row(problem, seed):
    U = factor(problem, seed)
    assert_optimal(problem, U, transformed(problem, U))


def lowest_cost(m, unknown, V, alpha, zero_weight, at_least=False):
    """The lowest cost by bounded least squares.

    Any s >= 0 may be added to the product x of a zero and, if x >= m suffices, subtracted from the others.
    """
    m, V = m[~unknown], V[~unknown]
    if not len(m):
        return 0.0
    weights = np.where(m > 0, 1, np.sqrt(zero_weight))
    A = np.vstack([V * weights[:, None], np.sqrt(alpha / 2) * np.eye(V.shape[1])])
    sizes = np.linalg.norm(A, axis=0)
    # A basis of what the columns span: of dependent columns only rounding would be left to go along.
    basis, values, _ = np.linalg.svd(A / np.where(sizes > 0, sizes, 1), full_matrices=False)
    A = basis[:, values > 1e-13 * values.max(initial=0.0)]
    slack = (np.eye(len(A), len(m)) * np.where(m > 0, -1, 1))[:, (m == 0) | at_least]
    # So would it be where they depend on each other but for a zero of M, hence the bound.
    free = np.full(A.shape[1], 1e5 * max(m.max(initial=0.0), 1e-300))
    lower = np.append(-free, np.zeros(slack.shape[1]))
    upper = np.append(free, np.full(slack.shape[1], np.inf))
    target = np.append(m, np.zeros(V.shape[1]))
    return lsq_linear(
        np.hstack([A, slack]), target, (lower, upper), method="bvls", tol=1e-15, max_iter=1000
    ).cost


@st.composite
def uneven_factors(draw, problem, ratio=6):
    """Draw a factor whose columns (and rows) differ in size by many orders, and may be dependent."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    U = rng.standard_normal((problem.n, problem.rank))
    if problem.rank > 1 and draw(st.booleans()):
        U[:, 0] = U[:, 1:] @ rng.standard_normal(problem.rank - 1)
    if draw(st.booleans()):
        U *= rng.random(U.shape) < 0.5
    U *= 10.0 ** rng.uniform(-draw(st.sampled_from([0, ratio / 2])), 0, (problem.n, 1))
    return U * 10.0 ** rng.uniform(-ratio, 0, problem.rank)


@settings(max_examples=120)
@given(problems(), st.data())
def test_the_minimum_whatever_the_sizes_of_columns_and_rows(problem, data):
    """Issue 11.2: a ridge next to the mean curvature swallowed the small columns."""
    U = data.draw(uneven_factors(problem))
    V = U * problem.signature
    settings = (V, *settings_of(problem).values())
    U_new = transformed(problem, U)
    for k, (m, unknown) in enumerate(zip(problem.M, problem.unknown, strict=True)):
        square = np.sum(m[~unknown] ** 2)
        value, gradient = cost(U_new[k], m, unknown, *settings)
        assert value <= lowest_cost(m, unknown, *settings) + 1e-8 * square
        # By each column in its own unit, the root of the curvature along it.
        units = np.sqrt(np.sum(V**2, axis=0) + problem.alpha / 2)
        # Columns that differ by a factor of 1e5 have cost two digits: 2e-8 was seen.
        assert (np.abs(gradient) <= 5e-8 * units * np.sqrt(square)).all()
        mask = problem.unknown[k : k + 1]
        alone = transform_rows(problem.M[k : k + 1], U, problem.signature, mask=mask, **settings_of(problem))
        assert_allclose(alone[0], U_new[k], rtol=0, atol=1e-6 * np.abs(U_new[k]).max())


def assert_shortest(m, unknown, V, u, at_least):
    """u is a sum of multiples of the items that hold it, less multiples of the walls it presses against."""
    x, eps = V @ u, np.finfo(float).eps
    near = 1e-7 * np.abs(x[(m > 0) & ~unknown]).max(initial=0.0) + 100 * eps * np.abs(V) @ np.abs(u)
    distance = np.where(m > 0, m - x, x)  # above zero: the product is on the wrong side
    one_sided = (m == 0) | at_least
    held = V[(~one_sided | (distance > near)) & ~unknown]
    walls = one_sided & (np.abs(distance) <= near) & ~unknown
    parts = np.vstack([held, -held, (V * np.where(m > 0, 1, -1)[:, None])[walls]])
    parts = parts[parts.any(axis=1)].T
    parts = parts / norm(parts, axis=0)
    multipliers = nnls(parts, u)[0] if parts.size else np.zeros(0)
    # Rounding changes each part by eps, and the sum by as much times its multiplier. If parts nearly cancel,
    # the multipliers are up to 1e10 times as large as u. 13 times that was seen, and 3e-7 otherwise.
    assert norm(parts @ multipliers - u) <= 1e-6 * norm(u) + 100 * eps * multipliers.sum()


@given(problems(), st.data())
def test_the_shortest_minimum_whatever_the_sizes_of_columns(problem, data):
    U = data.draw(uneven_factors(problem))
    U_new = transformed(problem, U, alpha=0.0)
    for m, unknown, u in zip(problem.M, problem.unknown, U_new, strict=True):
        assert_shortest(m, unknown, U * problem.signature, u, problem.at_least)


FAR_FROM_SHORTEST = {
    # The Hessian of the small item had kept rounding errors of large ones, and did not look flat.
    "a small similar item": (
        [0, 0, 0.0089, 0, 0, 0],
        [
            [-2.5e-2, 0, 0],
            [0, 0, 4.3e-3],
            [5.1e-5, 0, -3.6e-6],
            [6.8e-5, 0, 1.7e-5],
            [3.1e-5, 2.9e-6, 0],
            [0, -2.7e-5, 6.6e-4],
        ],
        [True, True, False, False, False, False],
    ),
    # Rounding errors of the large item, as large as u times it, counted as a violated wall.
    "a large item": (
        [0, 0, 0, 0, 0.084, 0],
        [
            [0, 0, -1.3e-5, -5.9e-5, -3.3e-6],
            [0, 0, 0, 3.9e-5, 7.1e-6],
            [0, 0, 0, 2.7e-5, 3.5e-6],
            [1.9, -2.2e-6, 0, 0, 0],
            [0, 0, 0, 0, 2.1e-7],
            [0, 0, 0, 4.1e-5, 0],
        ],
        [False] * 6,
    ),
    # The direction without products was known to 1e-11 of it; the smallest column has the largest coordinate.
    "dependent columns": (
        [0.0088, 0.012, 0.0056],
        [[-1.1e-8, 0, 0, 0], [1.2e-6, 0, 0, 9.5e-10], [1.3e-5, 3.9e-2, 4.4e-2, 0]],
        [False] * 3,
    ),
}


@pytest.mark.parametrize("at_least", [False, True])
@pytest.mark.parametrize("last", [1.0, -1.0])  # the first iterate depends on the signature
@pytest.mark.parametrize("name", FAR_FROM_SHORTEST)
def test_rows_that_were_far_from_the_shortest(name, last, at_least):
    m, V, unknown = map(np.array, FAR_FROM_SHORTEST[name])
    signature = np.append(np.ones(V.shape[1] - 1), last)
    settings = {"mask": unknown[None], "zero_weight": 0.5, "at_least": at_least}
    assert_shortest(m, unknown, V, transform_rows(m[None], V * signature, signature, **settings)[0], at_least)


def test_a_small_column_is_not_swallowed():
    """Issue 11.2, as it was reported."""
    solution = decompose(np.diag([1, 1e-10]), 2, init=np.diag([1, 1e-5]))
    assert solution.score(np.ones((1, 2))) == pytest.approx(1, abs=1e-12)
    assert_allclose(solution.transform(np.ones((1, 2))), [[1, 1e5]], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-10, 1e-100, 1e-250])
def test_a_small_item_among_hidden_large_ones(size):
    """One similarity fixes each column, one of a small item; the large one of its direction is hidden."""
    U = np.array([[1.0, 0.0], [0.0, size]])
    assert_allclose(transform_rows(np.array([[2.0, 3.0]]), U, np.ones(2)), [[2, 3 / size]], rtol=1e-12)
    if size >= 1e-6:
        U = np.vstack([U, [0.0, 1.0]])
        hidden = np.array([[False, False, True]])
        rows = transform_rows(np.array([[2.0, 3.0, 0]]), U, np.ones(2), mask=hidden)
        assert_allclose(rows, [[2, 3 / size]], rtol=1e-6)


@given(problems(), st.integers(0, 9))
def test_dense_is_sparse_and_rows_are_independent(problem, seed):
    U = factor(problem, seed)
    dense = transformed(problem, U)
    settings = settings_of(problem)
    mask = sparse.csr_array(problem.unknown)
    M = sparse.csr_array(problem.M)
    assert_array_equal(transform_rows(M, U, problem.signature, mask=mask, **settings), dense)
    size = np.abs(dense).max(initial=1e-300)
    for k in range(problem.n):
        alone = transform_rows(M[k : k + 1], U, problem.signature, mask=mask[k : k + 1], **settings)
        assert_allclose(alone[0], dense[k], rtol=0, atol=1e-8 * size)


@pytest.mark.parametrize("label", ["everything", "everything, at least"])
def test_unknown_is_absent(label):
    problem = PROBLEMS[label]
    U = factor(problem)
    known = ~problem.unknown[0]
    fewer = transform_rows(problem.M[:1, known], U[known], problem.signature, **settings_of(problem))
    assert_allclose(transformed(problem, U)[:1], fewer, atol=1e-10)


@pytest.mark.parametrize("at_least", [False, True])
@pytest.mark.parametrize("exponent", [-150, -3, 5, 150])
def test_scaling(exponent, at_least):
    """M times 4^k and U times 2^k: the rows are times 2^k, exactly."""
    problem = PROBLEMS["signed"]
    U, s = factor(problem), problem.signature
    scaled = transform_rows(problem.M * 4.0**exponent, U * 2.0**exponent, s, at_least=at_least)
    assert_array_equal(scaled, transform_rows(problem.M, U, s, at_least=at_least) * 2.0**exponent)


@pytest.mark.parametrize("at_least", [False, True])
def test_rows_have_scales_of_their_own(at_least):
    U = factor(PROBLEMS["signed"])
    M, s = PROBLEMS["signed"].M, PROBLEMS["signed"].signature
    scales = 4.0 ** np.arange(-200, 100, 10)[:, None]
    scaled, plain = (transform_rows(A, U, s, at_least=at_least) for A in (M * scales, M))
    assert_allclose(scaled / scales, plain, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
def test_subnormal_similarities(masked):
    """Issue 11.5: the code of an unknown similarity left the range when its row was brought to order one."""
    M = np.array([[3.0, 0, 1, 7], [0, 2, 0, 5]])
    U = factor(PROBLEMS["signed"])[:4]
    mask = np.array([[False, False, False, True], [True, False, False, False]]) if masked else None
    signature = PROBLEMS["signed"].signature
    expected = transform_rows(M, U, signature, mask=mask)
    tiny, small = M * 2.0**-1074, U * 2.0**-537
    assert_array_equal(tiny * 2.0**1000 * 2.0**74, M)
    assert_array_equal(transform_rows(tiny, small, signature, mask=mask), expected * 2.0**-537)
    share = explained_squares(M, expected, U * signature, mask)
    assert explained_squares(tiny, expected * 2.0**-537, small * signature, mask) == pytest.approx(
        share, rel=1e-12
    )
    # Against a factor of order one the rows themselves are subnormal: they can only be near.
    rows = transform_rows(tiny, U, signature, mask=mask)
    assert_allclose(rows, expected * 2.0**-1074, rtol=0, atol=2.0**-1074)
    assert -1 < explained_squares(tiny, rows, U * signature, mask) <= 1


def test_a_hidden_similarity_has_no_size():
    """The score took its unit from what the mask hides."""
    U, mask = np.eye(3), np.array([[False, False, True]])
    M = np.array([[1e-200, 2e-200, 1e300]])
    assert_allclose(transform_rows(M, U, np.ones(3), mask=mask), [[1e-200, 2e-200, 0]], rtol=1e-12)
    assert explained_squares(M, np.array([[1e-200, 0, 0]]), U, mask) == pytest.approx(0.2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_beyond_the_range_are_refused(dtype):
    U = np.full((3, 1), np.finfo(dtype).tiny, dtype)
    M = np.array([[0, 0, 1e-30], [0, 1e10, 0]], dtype)
    message = f"must be within the range of {np.dtype(dtype)}, but row 1 is not: its similarities are too large"
    with pytest.raises(ValueError, match=message):
        transform_rows(M, U, np.ones(1))
    assert np.isfinite(transform_rows(M[:1], U, np.ones(1))).all()


@pytest.mark.parametrize("at_least", [False, True])
@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e-10, 1.0])
def test_a_penalty_far_above_the_factor(size, at_least):
    """Where alpha is all that matters, u = 2 / alpha times the sum of m_j v_j; 1e-200 used to overflow."""
    U = np.random.default_rng(0).standard_normal((6, 3)) * size
    m = np.array([[1.0, 0, 2, 0, 3, 0]])
    signature = np.array([1.0, 1, -1])
    expected = 2 / 1e30 * m @ (U * signature)
    assert_allclose(transform_rows(m, U, signature, alpha=1e30, at_least=at_least), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-170, 1e170, 1e200])
def test_the_score_has_no_unit(scale):
    M, _ = make_relu_gram(40, 5, random_state=0)
    solution = decompose(M * scale, 3, random_state=0)
    assert_allclose(solution.score(M * scale), decompose(M, 3, random_state=0).score(M), rtol=1e-6)


@pytest.mark.parametrize("label", ["plain", "at least"])
def test_permutations(label):
    problem = PROBLEMS[label]
    U = factor(problem)
    order = np.random.default_rng(0).permutation(problem.n)
    permuted = replace(problem, M=problem.M[:, order], unknown=problem.unknown[:, order])
    assert_allclose(transformed(permuted, U[order]), transformed(problem, U), atol=1e-9)


@pytest.mark.parametrize("label", ["plain", "at least"])
def test_float32(label):
    problem = PROBLEMS[label]
    U = factor(problem)
    single = transformed(problem.astype(np.float32), U.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, transformed(problem, U), atol=1e-4)


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


def test_the_shortest_row_that_reaches_all_similarities():
    """If X >= M suffices, it is the shortest vector of a polyhedron."""
    U, s = np.array([[1.0, 0], [0, 1], [1, 1]]), np.ones(2)
    # u.(1, 1) >= 4 and the others follow.
    assert_allclose(transform_rows(np.array([[1.0, 1, 4]]), U, s, at_least=True), [[2, 2]], atol=1e-11)
    # Only u.(1, 0) >= 3 matters: u.(1, 1) = 3 > 2 costs nothing.
    assert_allclose(transform_rows(np.array([[3.0, 0, 2]]), U, s, at_least=True), [[3, 0]], atol=1e-11)
    # Both are equalities here: u = (1, 0) would be shorter, but u.(-1, 2) must be at least 1.
    U = np.array([[1.0, 0], [-1, 2]])
    assert_allclose(transform_rows(np.array([[1.0, 1]]), U, s, at_least=True), [[1, 1]], atol=1e-11)
    # No row reaches both: the errors are equal, as in an ordinary least-squares problem.
    U = np.array([[1.0], [-1]])
    assert_allclose(transform_rows(np.array([[2.0, 1]]), U, s[:1], at_least=True), [[0.5]], atol=1e-11)


def shortest_by_least_squares(m, V):
    """Return the shortest u with V u >= m where m > 0 and V u <= 0 elsewhere, or None (Lawson and Hanson)."""
    sides = np.where(m > 0, 1.0, -1.0)
    dual = np.vstack([(sides[:, None] * V).T, m])
    target = np.append(np.zeros(V.shape[1]), 1.0)
    residual = dual @ nnls(dual, target, maxiter=1000)[0] - target
    return None if np.linalg.norm(residual) < 1e-6 else -residual[:-1] / residual[-1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 6))
def test_reachable_rows_are_the_shortest_by_another_solver(seed, n, rank):
    rng = np.random.default_rng(seed)
    V, u = rng.standard_normal((n, rank)), rng.standard_normal(rank)
    m = np.maximum(0, V @ u) * rng.choice([0.5, 1, 1], n)  # u itself is feasible, and seldom the shortest
    expected = shortest_by_least_squares(m, V)
    assume(expected is not None)
    found = transform_rows(m[None], V, np.ones(rank), at_least=True)[0]
    assert_allclose(found, expected, rtol=0, atol=1e-6 * (1 + np.linalg.norm(expected)))
    assert np.linalg.norm(found) <= np.linalg.norm(u) * (1 + 1e-9)


@pytest.mark.parametrize("at_least", [False, True])
def test_a_row_without_similarities_is_zero(at_least):
    U, settings = np.random.default_rng(0).standard_normal((6, 2)), {"at_least": at_least}
    assert not transform_rows(np.zeros((2, 6)), U, np.ones(2), **settings).any()
    assert not transform_rows(sparse.csr_array((3, 6)), U, np.ones(2), **settings).any()
    # Nor can an item be placed that is only similar to items that have no place.
    U[0] = 0
    assert not transform_rows(np.eye(1, 6), U, np.ones(2), **settings).any()
    assert transform_rows(np.empty((0, 6)), U, np.ones(2), **settings).shape == (0, 2)
    # Nor one whose similarities are all unobserved.
    hidden = np.ones((1, 6), bool)
    assert not transform_rows(np.ones((1, 6)), U, np.ones(2), mask=hidden, **settings).any()


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


@pytest.mark.parametrize(
    ("M", "rank", "fit"),
    [
        (make_relu_gram(60, 6, random_state=0)[0], 5, {}),
        (make_relu_gram(60, 6, random_state=1)[0], 4, {"zero_weight": 0.3, "n_negative": 1}),
        (make_relu_gram(60, 6, random_state=1)[0], 6, {"alpha": 0.5}),
        (load_digits_graph()[0][:150, :150], 8, {"n_negative": 1, "diagonal": "ignore"}),
    ],
    ids=["paper", "weighted and signed", "alpha", "graph"],
)
def test_fitted_items_get_rows_that_are_as_good(M, rank, fit):
    """If X >= M suffices: the cost is not higher, and a row of the same cost is not longer."""
    solution = decompose(M, rank, support="at_least", tol=0, random_state=0, max_iter=100, **fit)
    dense = M.toarray() if sparse.issparse(M) else M
    unknown = np.eye(len(dense), dtype=bool) & (fit.get("diagonal") == "ignore")
    U_new, V = solution.transform(M, unknown), solution.U * solution.signature
    shorter = 0
    for k, (own, new) in enumerate(zip(solution.U, U_new, strict=True)):
        settings = dense[k], unknown[k], V, solution.alpha, solution.zero_weight, True
        before, after = cost(own, *settings)[0], cost(new, *settings)[0]
        assert after <= before + 1e-12 * solution.norm**2
        if before == 0:
            shorter += 1
            assert norm(new) <= norm(own) * (1 + 1e-9)
    assert shorter or not sparse.issparse(M)


@pytest.mark.parametrize("support", ["equal", "at_least"])
def test_memory_and_threads_do_not_matter(support):
    M, _ = make_relu_gram(400, 8, random_state=0)
    solution = decompose(M, 6, support=support, max_iter=20, tol=0, random_state=0)
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


def test_score_counts_only_what_is_missing():
    """The squares of max(0, M - max(0, X)) where M > 0, and of max(0, X) where M = 0."""
    M, _ = make_relu_gram(100, 5, random_state=0)
    solution = decompose(M[:80, :80], 3, support="at_least", random_state=0)
    new, mask = M[80:, :80], np.random.default_rng(0).random((20, 80)) < 0.2
    for hidden in (np.zeros_like(mask), mask):
        model = np.maximum(0, solution.transform(new, hidden) @ solution.U.T)
        missing = np.where(new > 0, np.maximum(0, new - model), model)[~hidden]
        expected = 1 - np.sum(missing**2) / np.sum(new[~hidden] ** 2)
        assert 0 < expected < 1
        assert_allclose(solution.score(new, hidden), expected, rtol=1e-12)
        assert_allclose(solution.score(sparse.csr_array(new), hidden), expected, rtol=1e-12)


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
        (np.ones((2, 5)), np.ones((2, 5)), TypeError, r"mask must be boolean \(True = unobserved\)"),
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
        with pytest.raises(
            AttributeError,
            match=r"The model of this solution is Linear \(M ~ X, without a ReLU\), .* no transform",
        ):
            baseline.transform(np.ones((1, 5)))


def test_a_solution_of_two_factors_has_no_rows():
    solution = three_block_nmd(np.eye(5) + 1, 2, max_iter=2, random_state=0)
    with pytest.raises(AttributeError, match=r"solution is TwoFactor .* has no transform"):
        solution.transform(np.ones((1, 5)))


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_column_order_of_arrays_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    M = np.maximum(0, rng.standard_normal((7, 7)))  # not symmetric: must not be read as its transpose
    U = rng.standard_normal((7, 2))
    solution = decompose(np.eye(7) + 1, 2, init=U, max_iter=1, tol=0, gtol=0)
    assert_array_equal(solution.transform(np.asfortranarray(M)), solution.transform(M))
