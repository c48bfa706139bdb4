"""Whatever has a factor can be drawn."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from symrelu import LinkPredictor, NeighborEmbedding, SymReLU, SymReLUClustering, decompose
from symrelu.plots.factors import factor_of

RING = np.eye(12, k=1) + np.eye(12, k=-1) + np.eye(12, k=11) + np.eye(12, k=-11)


@pytest.mark.parametrize(
    "model",
    [
        SymReLU(4, n_negative=1, random_state=0),
        SymReLUClustering(3, method="linkage", n_components=4, random_state=0),
        LinkPredictor(3, n_init=2, random_state=0),
    ],
)
def test_estimators_have_the_factor_of_their_solution(model):
    model.fit(RING)
    U, signature = factor_of(model)
    assert_array_equal(U, model.solution_.U)
    assert_array_equal(signature, model.solution_.signature)
    assert U.dtype == signature.dtype == np.float64


def test_vectors_of_neighbours():
    model = NeighborEmbedding(6, random_state=0, max_iter=300).fit(RING)
    for holder in (model, model.vectors_):
        U, signature = factor_of(holder)
        assert_array_equal(U, model.item_vectors_.astype(np.float64))
        assert_array_equal(signature, model.signature_)


def test_solutions_models_and_arrays():
    solution = decompose(RING, 3, n_negative=1, random_state=0, max_iter=5)
    for source in (
        (solution,),
        (solution.model,),
        (solution.U, solution.signature),
        (solution.U.tolist(), None),
    ):
        U, signature = factor_of(*source)
        assert_array_equal(U, solution.U)
        assert_array_equal(signature, np.ones(3) if source[-1] is None else solution.signature)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((SymReLU(),), NotFittedError, "This SymReLU has nothing to draw yet"),
        ((NeighborEmbedding(),), NotFittedError, "call fit first"),
        (("text",), TypeError, "a Solution, a fitted estimator or an array of numbers .*, got str"),
        ((None,), ValueError, "must be a matrix"),
        ((np.ones(3),), ValueError, r"must be a matrix with rows and columns, got shape \(3,\)"),
        ((np.ones((0, 3)),), ValueError, "rows and columns"),
        (([[np.nan, 1.0]],), ValueError, "must be finite"),
        ((np.ones((4, 2)), [1.0]), ValueError, "for each of the 2 columns"),
        ((np.ones((4, 2)), [1.0, 0.5]), ValueError, r"must be \+1 or -1"),
    ],
)
def test_what_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        factor_of(*arguments)


def test_a_model_has_its_own_signs():
    solution = decompose(RING, 2, random_state=0, max_iter=2)
    with pytest.raises(ValueError, match="Solution has its own signs"):
        factor_of(solution, [1.0, 1.0])
