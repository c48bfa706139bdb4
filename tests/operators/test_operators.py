"""Every operator against the formulas, on every primitive."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import HAS_TORCH, OPERATORS, PROBLEMS, Problem, evaluate, factor, problems, random_problem
from hypothesis import given
from hypothesis import strategies as st
from numpy.linalg import norm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.operators import DenseOperator, ReferenceOperator, SparseOperator, as_operator

OTHERS = [name for name in OPERATORS if name != "reference"]

# float64 to 1e-12 and float32 to 1e-5, relative to the size of the quantity's terms.
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}


def quantities(op, U, V):
    evaluation, only_loss = evaluate(op, U, V), evaluate(op, U)
    frozen = op.frozen(op.asarray(U))
    X = np.abs(U) @ np.abs(U).T
    terms = op.norm**2 + float(np.sum(X.astype(float) ** 2))  # what the sums of squares are made of
    product_terms = max(float(np.abs((X + op.norm) @ np.abs(V)).max()), 1e-300)
    return {
        "matmul": (op.to_numpy(op.matmul(op.asarray(V))), max(op.norm * float(np.abs(V).max()), 1e-300)),
        "product": (evaluation.product, product_terms),
        "frozen product": (op.to_numpy(frozen(op.asarray(V))), product_terms),
        "latent_loss": (evaluation.latent_loss, terms),
        "loss": (evaluation.loss, terms),
        "latent_norm_squared": (evaluation.latent_norm_squared, terms),
        "loss alone": (only_loss.loss, terms),
        "latent_loss alone": (only_loss.latent_loss, terms),
        "latent_norm_squared alone": (only_loss.latent_norm_squared, terms),
        "alignment": (evaluation.alignment, terms),
        "active_zeros": (float(evaluation.active_zeros), max(1.0, 1e-9 * len(U) ** 2)),
        "norm": (op.norm, max(op.norm, 1e-300)),
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", OTHERS)
@given(problem=problems(), columns=st.integers(1, 9), seed=st.integers(0, 100))
def test_equals_reference(name, dtype, problem, columns, seed):
    problem = problem.astype(dtype)
    U, V = factor(problem, seed), factor(problem, seed + 1, columns)
    expected = quantities(OPERATORS["reference"](problem), U, V)
    actual = quantities(OPERATORS[name](problem), U, V)
    for quantity, (value, scale) in actual.items():
        assert_allclose(
            np.asarray(value, float) / scale,
            np.asarray(expected[quantity][0], float) / scale,
            rtol=0,
            atol=TOLERANCE[dtype],
            err_msg=quantity,
        )
        assert np.asarray(value).dtype in (np.dtype(dtype), np.dtype(float))


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_quantity_by_its_formula(name, label):
    problem = PROBLEMS[label]
    U, V = factor(problem, 1), factor(problem, 2, 5)
    X, R, M, observed = (U * problem.signature) @ U.T, problem.residual(U), problem.M, ~problem.unknown
    assert_allclose(problem.latent(U), X + R, rtol=0, atol=1e-12 * np.abs(X).max())
    support, zeros = (M > 0) & observed, (M == 0) & observed
    missing = np.maximum(0, M - np.maximum(0, X)) if problem.at_least else M - np.maximum(0, X)
    squares = np.where(support, R**2, problem.zero_weight * np.maximum(0, X) ** 2)
    expected = {
        "product": R @ V,
        "latent_loss": squares[observed].sum() / 2,
        "loss": (np.sum(missing[support] ** 2) + np.sum(np.maximum(0, X[zeros]) ** 2)) / 2,
        "latent_norm_squared": np.sum(problem.latent(U) ** 2),
        "active_zeros": np.count_nonzero(X[zeros] > 0),
        "alignment": np.sum(R * X),
    }
    found = evaluate(OPERATORS[name](problem), U, V)
    for quantity, value in expected.items():
        assert_allclose(getattr(found, quantity), value, rtol=1e-11, atol=1e-11 * norm(M), err_msg=quantity)


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("name", OPERATORS)
def test_the_latent_matrix_is_feasible(name, label):
    """W = X + R equals M on the support, or is at least M, and W <= 0 on the zeros if they have full weight."""
    problem = replace(PROBLEMS[label], zero_weight=1.0)
    U, M, observed = factor(problem, 1), problem.M, ~problem.unknown
    W = (U * problem.signature) @ U.T + evaluate(OPERATORS[name](problem), U, np.eye(problem.n)).product
    support, tolerance = (M > 0) & observed, 1e-12 * norm(W)
    assert (W[support] >= M[support] - tolerance).all()
    assert problem.at_least or (W[support] <= M[support] + tolerance).all()
    assert (W[(M == 0) & observed] <= tolerance).all()


@pytest.mark.parametrize("name", OPERATORS)
def test_at_least_counts_only_what_is_missing(name):
    """X = U U^T = [[1, 2], [2, 4]]: one entry above M, one below it, and two equal."""
    M, U = np.array([[0.5, 2.0], [2.0, 5.0]]), np.array([[1.0], [2.0]])
    problem = Problem(M, np.zeros((2, 2), bool), np.ones(1), at_least=True)
    evaluation = evaluate(OPERATORS[name](problem), U, np.eye(2))
    assert_allclose(evaluation.product, [[0, 0], [0, 1]])
    assert evaluation.loss == evaluation.latent_loss == 0.5
    assert evaluation.latent_norm_squared == pytest.approx(1 + 4 + 4 + 25, rel=1e-14)
    assert evaluation.alignment == 4


@pytest.mark.parametrize("name", OPERATORS)
def test_loss_and_latent_loss_differ_where_the_support_is_negative(name):
    problem = Problem(np.array([[1.0]]), np.zeros((1, 1), bool), -np.ones(1))
    evaluation = evaluate(OPERATORS[name](problem), np.array([[2.0]]))  # X = -4
    assert evaluation.loss == 0.5
    assert evaluation.latent_loss == 12.5


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("label", PROBLEMS)
def test_gradient_is_that_of_the_objective(name, label):
    problem = PROBLEMS[label]
    op, U = OPERATORS[name](problem), factor(problem, 3)
    s = problem.signature
    direction = factor(problem, 4)
    gradient = -2 * evaluate(op, U, U).product * s + op.alpha * U

    def objective(t):
        Y = U + t * direction
        return evaluate(op, Y).latent_loss + op.alpha / 2 * np.sum(Y * Y)

    h = 1e-5
    slope = (objective(h) - objective(-h)) / (2 * h)
    assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6, atol=1e-6 * op.norm**2)


@pytest.mark.parametrize("name", OPERATORS)
def test_exact_fit_in_float32_has_a_small_nonnegative_loss(name):
    rng = np.random.default_rng(0)
    U = rng.standard_normal((60, 3)).astype(np.float32)
    X = U.astype(float) @ U.T.astype(float)
    problem = Problem(np.maximum(0, X).astype(np.float32), np.zeros((60, 60), bool), np.ones(3))
    op = OPERATORS[name](problem)
    evaluation = evaluate(op, U, U)
    assert 0 <= evaluation.loss < 1e-12 * op.norm**2
    assert 0 <= evaluation.latent_loss < 1e-12 * op.norm**2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_non_finite_factor_shows_in_the_loss(name, label, bad):
    problem = PROBLEMS[label]
    U = factor(problem)
    U[problem.n - 1, 0] = bad
    evaluation = evaluate(OPERATORS[name](problem), U, U)
    assert not np.isfinite(evaluation.loss)
    assert not np.isfinite(evaluation.latent_loss)


@pytest.mark.parametrize("name", OPERATORS)
def test_non_finite_row_shows_even_if_all_its_entries_are_unknown(name):
    problem = random_problem(0)
    problem.unknown[2] = problem.unknown[:, 2] = True
    U = factor(problem)
    U[2] = np.nan
    assert not np.isfinite(evaluate(OPERATORS[name](problem), U).loss)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_an_infinite_entry_shows_even_if_it_is_above_m(name):
    problem = Problem(np.ones((3, 3)), np.zeros((3, 3), bool), np.ones(1), at_least=True)
    evaluation = evaluate(OPERATORS[name](problem), np.array([[1.0], [2.0], [np.inf]]))
    assert not np.isfinite(evaluation.loss)
    assert not np.isfinite(evaluation.latent_loss)


@pytest.mark.parametrize("name", OPERATORS)
def test_counts_evaluations_by_columns(name):
    problem = PROBLEMS["plain"]
    op = OPERATORS[name](problem)
    U = op.asarray(factor(problem))
    op.residual_product(U, U)
    op.loss(U)
    op.frozen(U)(U)
    assert op.evaluations == 3
    op.residual_product(U, op.xp.concat([U, U], axis=1))
    assert op.evaluations == 5
    op.matmul(U)
    op.warm_up()
    assert op.evaluations == 5


@pytest.mark.parametrize("label", ["mask", "everything, at least"])
@pytest.mark.parametrize("name", OPERATORS)
def test_with_signature_shares_data_and_changes_signs(name, label):
    problem = PROBLEMS[label]
    op, U = OPERATORS[name](problem), factor(problem)
    s = np.array([1, -1, 1, -1.0])
    other = op.with_signature(s)
    signed = replace(problem, signature=s)
    assert_allclose(evaluate(other, U).loss, evaluate(OPERATORS["reference"](signed), U).loss)
    assert op.evaluations == 0
    assert_array_equal(op.signs, problem.signature)
    assert_allclose(other.to_numpy(other.signature), s)
    # All but the model and the count is the same object, whatever an operator calls its data.
    model = {"signs", "signature", "alpha", "zero_weight", "at_least", "evaluations"}
    data = vars(op).keys() - model - {"visits", "_candidates"}
    assert data - {"n", "dtype", "norm", "tile"}
    assert all(getattr(op, name) is getattr(other, name) for name in data)


def test_as_operator_keeps_the_representation():
    M = np.eye(3)
    assert isinstance(as_operator(M, [1.0]), DenseOperator)
    assert isinstance(as_operator(sparse.csr_array(M), [1.0]), SparseOperator)
    assert isinstance(as_operator(M, [1.0], backend="sparse"), SparseOperator)
    assert isinstance(as_operator(M, [1.0], backend="reference"), ReferenceOperator)
    if HAS_TORCH:
        assert type(as_operator(M, [1.0], backend="torch")).__name__ == "TorchOperator"


@pytest.mark.parametrize("backend", ["dense", "sparse", "reference", "torch"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_as_operator_joins_mask_and_diagonal(backend, kind):
    M = np.ones((4, 4))
    mask = np.zeros((4, 4), bool)
    mask[0, 1] = mask[1, 0] = True
    op = as_operator(M, [1.0], diagonal="ignore", mask=kind(mask), backend=backend)
    assert_allclose(op.norm**2, 16 - 4 - 2)
    assert_allclose(op.to_numpy(op.matmul(op.asarray(np.eye(4)))), M - np.eye(4) - mask)


@pytest.mark.parametrize("rows", [-20, 5])
@pytest.mark.parametrize("name", OPERATORS)
def test_factors_of_another_length_are_refused(name, rows):
    """Compiled code would read and write beyond their end."""
    problem = PROBLEMS["signed"]
    op, n = OPERATORS[name](problem), problem.n
    rows = max(1, n + rows)
    right, wrong = (op.asarray(np.ones((count, problem.rank))) for count in (n, rows))
    for call in (
        lambda: op.residual_product(right, wrong),
        lambda: op.residual_product(wrong, right),
        lambda: op.loss(wrong),
    ):
        with pytest.raises(ValueError, match=rf"The factors must have {n} rows, like M, got .*\({rows}, "):
            call()
    assert op.evaluations == 0
