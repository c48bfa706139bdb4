"""The second derivative on the pairs that matter, against differences of the gradient and the formulas."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, evaluate, factor
from numpy.linalg import norm
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.curved_rows import factored_rows, solve_factored
from symrelu.kernels.pair_curvature import curvature_product, curved_pairs
from symrelu.kernels.pair_lists import PairList
from symrelu.kernels.pair_passes import Entries

WITH_CURVATURE = [name for name in OPERATORS if not name.startswith(("torch", "cuda"))]


def gradient(op, U):
    return op.alpha * U - 2 * evaluate(op, U, U).product * op.signs


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("name", WITH_CURVATURE)
def test_without_reach_it_is_the_change_of_the_gradient(name, label):
    """Central differences, too short for a pair to change its sign."""
    problem, h = PROBLEMS[label], 1e-7
    op, U, D = OPERATORS[name](problem), factor(problem, 1), factor(problem, 2)
    found = op.to_numpy(op.curvature(op.asarray(U), 0.0).product(op.asarray(D)))
    expected = (gradient(op, U + h * D) - gradient(op, U - h * D)) / (2 * h)
    assert_allclose(found, expected, rtol=0, atol=1e-6 * norm(expected))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("name", [name for name in WITH_CURVATURE if name != "reference"])
def test_equals_the_reference(name, label, dtype):
    problem = PROBLEMS[label].astype(dtype)
    U, D = factor(problem, 1), factor(problem, 2)
    U[3] = 0
    found, expected = (
        (op.to_numpy(curvature.product(op.asarray(D))), op.to_numpy(curvature.row_solver(0.5)(op.asarray(D))))
        for op in (OPERATORS[name](problem), OPERATORS["reference"](problem))
        for curvature in [op.curvature(op.asarray(U), 0.3)]
    )
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        assert norm(ours - theirs) <= tolerance * norm(theirs)


@pytest.mark.parametrize("columns", [3, 9])  # with and without vectors
@pytest.mark.parametrize("name", ["dense", "sparse", "active"])
def test_the_memory_order_of_a_factor_does_not_matter(name, columns):
    rng = np.random.default_rng(0)
    op = OPERATORS[name](replace(PROBLEMS["signed"], signature=rng.choice([-1.0, 1.0], columns)))
    U, D = rng.standard_normal((2, op.n, columns))
    usual, other = (op.curvature(order(U), 0.3) for order in (np.ascontiguousarray, np.asfortranarray))
    assert_array_equal(other.product(np.asfortranarray(D)), usual.product(D))
    assert_array_equal(other.row_solver(0.5)(np.asfortranarray(D)), usual.row_solver(0.5)(D))


@pytest.mark.parametrize("label", ["signed", "zeros weighted", "everything, at least"])
def test_with_reach_the_model_lies_above_what_changes_by_less(label):
    """Of pairs that change by less than the reach, to the first order: <D, H[D]> grows with what it bounds."""
    problem, reach = PROBLEMS[label], 0.3
    op, U, D = OPERATORS["active"](problem), factor(problem, 1), 1e-2 * factor(problem, 2)
    V, lengths = U * problem.signature, norm(U, axis=1)
    X, change = V @ U.T, D @ V.T + V @ D.T
    assert (np.abs(change) < reach * np.outer(lengths, lengths)).all()

    def loss(X):
        on_support = np.minimum(0, X - problem.M) if problem.at_least else X - problem.M
        squares = np.where(problem.M > 0, on_support**2, problem.zero_weight * np.maximum(0, X) ** 2)
        return np.sum(squares[~problem.unknown]) / 2

    residual = problem.residual(U)
    linear, bent = -np.sum(residual * change), np.sum(residual * ((D * problem.signature) @ D.T))
    curved = np.sum(D * op.curvature(U, reach).product(D)) - problem.alpha * np.sum(D * D)
    assert loss(X + change) <= (loss(X) + linear + curved / 2 + bent) * (1 + 1e-12)


def test_zeros_within_reach_have_curvature():
    U = np.array([[1.0, 0.0], [0.0, 2.0], [-0.1, 1.0], [0.0, 0.0]])
    everything = PairList(np.arange(0, 17, 4), np.tile(np.arange(4, dtype=np.int32), 4))
    no_support = Entries(np.zeros(5, np.int64), np.empty(0, np.int32), np.empty(0))

    def near(reach):
        return curved_pairs(U, np.ones(2), no_support, everything, reach, zero_weight=1.0, at_least=False)

    # The cosine of rows 0 and 2 is -0.0995; rows 0 and 1 are orthogonal, and row 3 is zero.
    assert near(0.2).indptr.tolist() == [0, 3, 6, 9, 9]
    assert near(0.2).indices.tolist() == [0, 1, 2] * 3
    assert_allclose(near(0.2).excess, [1, 0, 0, 0, 4, 2, 0, 2, 1.01])
    part = 1 - 0.1 / (0.2 * np.sqrt(1.01))
    assert_allclose(near(0.2).weights, [1, 1, part**2, 1, 1, 1, part**2, 1, 1])
    assert near(0.05).indices.tolist() == [0, 1, 0, 1, 2, 1, 2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rank", [3, 17])  # without and with vectors
def test_rows_of_any_length_are_those_of_the_formulas(rank, dtype):
    """Rows with up to 300 entries of both kinds, of which the kernels compute 64 or 128 at once."""
    rng = np.random.default_rng(rank)
    n, weight, reach, alpha = 400, dtype(0.3), 0.3, 0.7
    U, D = rng.standard_normal((2, n, rank)).astype(dtype)
    signs = rng.choice([-1.0, 1.0], rank).astype(dtype)
    V = U * signs
    support = rng.random((n, n)) < np.linspace(0, 1, n)[:, None] * np.linspace(0, 1, n)
    support, M = support | support.T, rng.random((n, n)).astype(dtype)
    X = V.astype(np.float64) @ U.T
    width = reach * norm(U, axis=1)[:, None] * norm(U, axis=1)
    near = ~support & (X + width > 0)
    assert min(chosen.sum(axis=1).max() for chosen in (support, near)) > 2 * 128
    rows = [np.append(0, np.cumsum(chosen.sum(axis=1))) for chosen in (support, ~support)]
    columns = [np.nonzero(chosen)[1].astype(np.int32) for chosen in (support, ~support)]
    pairs = curved_pairs(
        U,
        signs,
        Entries(rows[0], columns[0], M[support]),
        PairList(rows[1], columns[1]),
        reach,
        zero_weight=weight,
        at_least=False,
    )
    assert_array_equal(np.diff(pairs.indptr), support.sum(axis=1) + near.sum(axis=1))
    E = np.where(support, X - M, weight * np.maximum(0, X))
    A = np.where(support, 1, near * weight * np.where(X > 0, 1, 1 + X / width) ** 2)
    expected = 2 * (E @ (D * signs) + (A * (D @ V.T + V @ D.T)) @ V) + alpha * D
    found = curvature_product(pairs, V, signs, alpha, D)
    tolerance = {np.float64: 1e-12, np.float32: 1e-5}[dtype]
    assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    solved = solve_factored(factored_rows(pairs, V, 0.5), D)
    blocks = 2 * np.einsum("ij,ja,jb->iab", A * (1 + np.eye(n)), V, V, optimize=True) + 0.5 * np.eye(rank)
    expected = np.linalg.solve(blocks, D[:, :, None])[:, :, 0]
    assert_allclose(solved, expected, rtol=0, atol=100 * tolerance * np.abs(expected).max())
