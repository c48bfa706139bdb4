"""Queries that an object forwards to its model."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from symrelu import LinkPredictor, SymReLU
from symrelu.datasets import make_relu_gram
from symrelu.fitted import FittedModel, Solution, SymmetricReLU
from symrelu.fitted.queries import ModelQueriesMixin

QUESTIONS = {
    "score_pairs": lambda asked: asked.score_pairs([0, 3], [1, 2]),
    "reconstruct": lambda asked: asked.reconstruct([0, 4]),
    "top_k": lambda asked: asked.top_k([0, 1], 3),
}


@pytest.mark.parametrize(
    "question", [lambda s: s.score_pairs([0], [1]), lambda s: s.reconstruct([0]), lambda s: s.top_k([0], 1)]
)
def test_an_estimator_must_be_fitted_first(question):
    with pytest.raises(NotFittedError):
        question(SymReLU())


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_estimator_answers_as_the_model_of_its_factor(name):
    M, _ = make_relu_gram(30, 3, shift=0.05, random_state=0)
    estimator = SymReLU(4, n_negative=1, max_iter=5, tol=1.0, random_state=0).fit(M)
    model = SymmetricReLU(estimator.embedding_, estimator.signature_)
    for found, expected in zip(QUESTIONS[name](estimator), QUESTIONS[name](model), strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("name", QUESTIONS)
def test_any_class_that_holds_a_model_can_be_asked(name):
    class Holder(ModelQueriesMixin):
        _model = SymmetricReLU(np.random.default_rng(0).standard_normal((6, 2)), np.ones(2))

    for found, expected in zip(QUESTIONS[name](Holder()), QUESTIONS[name](Holder._model), strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("asked", [ModelQueriesMixin, Solution])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_are_described_as_those_of_the_model(asked, name):
    described = inspect.getdoc(getattr(asked, name))
    assert described
    assert described == inspect.getdoc(getattr(FittedModel, name))


@pytest.mark.parametrize("asked", [SymReLU, LinkPredictor])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_to_estimators_may_be_about_names(asked, name):
    described = " ".join(inspect.getdoc(getattr(asked, name)).split())
    assert "array-like of int, or names" in described
    assert "Numbers always mean indices; see :meth:`index_of`" in described
