"""One pass over tiles: the sums become the quantities of the model, for tiles of any size."""

import math

import numpy as np
import pytest
from helpers import PROBLEMS, dense, evaluate, factor, problems, reference, sparse_
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.tiles import Sums
from symrelu.operators.tiled import evaluation_of

TILED = {"dense": dense, "sparse": sparse_}
QUANTITIES = ("latent_loss", "loss", "latent_norm_squared", "active_zeros", "alignment")


@pytest.mark.parametrize("name", TILED)
@given(problem=problems(max_n=14), tile=st.integers(1, 16))
def test_the_size_of_the_tiles_does_not_matter(name, problem, tile):
    U, V = factor(problem, 1), factor(problem, 2, columns=3)
    found, expected = (evaluate(op, U, V) for op in (TILED[name](problem, tile=tile), reference(problem)))
    size = np.sum((np.abs(U) @ np.abs(U).T) ** 2) + np.sum(problem.M**2)
    for quantity in QUANTITIES:
        assert_allclose(getattr(found, quantity), getattr(expected, quantity), rtol=1e-12, atol=1e-13 * size)
    assert_allclose(found.product, expected.product, atol=1e-12 * math.sqrt(size) * (np.abs(V).sum() + 1))


def sums_by_definition(problem, U):
    """The sums over all pairs, each from its definition."""
    X = (U * problem.signature) @ U.T
    support = (problem.M > 0) & ~problem.unknown
    zeros = ~support & ~problem.unknown
    above, below = np.maximum(0, X), np.minimum(0, X)
    met = support & (X > problem.M) & problem.at_least
    support &= ~met
    return Sums(
        fit=np.sum((problem.M - X)[support] ** 2),
        error=np.sum((problem.M - above)[support] ** 2),
        positive=np.sum(above[zeros] ** 2),
        negative=np.sum(below[zeros] ** 2),
        free=np.sum(X[problem.unknown | met] ** 2) - np.sum(problem.M[met] ** 2),
        active=np.count_nonzero(X[zeros] > 0),
        inner=np.sum(((problem.M - X) * X)[support]),
    )


@pytest.mark.parametrize("label", PROBLEMS)
def test_an_evaluation_follows_from_the_sums(label):
    problem = PROBLEMS[label]
    op, U = reference(problem), factor(problem)
    found, expected = evaluation_of(op, None, sums_by_definition(problem, U)), op.loss(U)
    assert found.product is None
    for quantity in QUANTITIES:
        assert_allclose(getattr(found, quantity), getattr(expected, quantity), rtol=1e-11)


@pytest.mark.parametrize("free", [math.nan, math.inf])
def test_what_is_not_finite_where_nothing_is_known_still_shows(free):
    sums = Sums(*[1.0] * len(Sums._fields))._replace(free=free)
    evaluation = evaluation_of(reference(PROBLEMS["mask"]), None, sums)
    assert math.isnan(evaluation.loss)
    assert math.isnan(evaluation.latent_loss)


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize("tile", [1, 4, 384])
def test_warming_up_counts_no_pass_and_changes_nothing(name, tile):
    problem = PROBLEMS["everything"]
    op, U = TILED[name](problem, tile=tile), factor(problem)
    before = evaluate(op, U, U)
    op.warm_up()
    assert op.evaluations == 1
    assert_array_equal(evaluate(op, U, U).product, before.product)
