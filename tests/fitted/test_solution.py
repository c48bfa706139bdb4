"""Solution: what it says and answers."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from solutions import assert_same, with_model

from symrelu import LinkPredictor, Solution, Status, SymReLU, decompose
from symrelu.baselines import SymHALS, symmetric_nmf, three_block_nmd, truncated_eigen
from symrelu.datasets import make_relu_gram
from symrelu.fitted import Linear, SymmetricReLU, TwoFactor
from symrelu.fitted.history import History


def test_properties(solution):
    assert solution.rank == 4
    assert solution.n_negative == 1
    assert solution.half_squared_error == solution.relative_error**2 / 2
    assert solution.status is Status.MAX_ITER
    assert not solution.converged
    assert repr(solution) == (
        f"Solution(n=30, rank=4, n_negative=1, relative_error={solution.relative_error:.4g}, "
        "n_iter=10, status=MAX_ITER)"
    )
    assert (solution.diagonal, solution.zero_weight, solution.support) == ("fit", 1.0, "equal")
    assert solution.solver == "AAPB(step_size=2.0, momentum=1.0, safeguard=False)"


MODELS = ("SymmetricReLU", "Linear", "TwoFactor", "Logistic")
ANSWERS = {  # what only some models have
    "SymmetricReLU": {"canonicalize", "score", "transform"},
    "Linear": {"canonicalize"},
    "TwoFactor": {"V"},
    "Logistic": {"V"},
}


@pytest.mark.parametrize("name", MODELS)
def test_what_every_solution_answers(solution, name):
    solution = with_model(solution, name)
    model = solution.model
    assert solution.U is model.U
    assert solution.signature is model.signature
    assert (solution.rank, solution.n_negative) == (4, 0 if name in ("TwoFactor", "Logistic") else 1)
    assert (solution.alpha, solution.zero_weight) == (0.1 if name == "SymmetricReLU" else 0.0, 1.0)
    assert_array_equal(solution.score_pairs([1, 2], 3), model.score_pairs([1, 2], 3))
    assert_array_equal(solution.reconstruct([1, 2]), model.reconstruct([1, 2]))
    known = np.eye(30)[::-1]
    for one, other in zip(
        solution.top_k([1], 40, exclude=known), model.top_k([1], 40, exclude=known), strict=True
    ):
        assert_array_equal(one, other)


@pytest.mark.parametrize("name", MODELS)
def test_what_only_some_solutions_answer(solution, name):
    solution = with_model(solution, name)
    everything = set.union(*ANSWERS.values())
    assert {answer for answer in everything if hasattr(solution, answer)} == ANSWERS[name]
    assert everything & set(dir(solution)) == ANSWERS[name]
    assert {"U", "top_k", "converged", "model", "rank"} <= set(dir(solution))


def test_the_model_answers(solution):
    rows, mask = np.ones((2, 30)), np.eye(2, 30, dtype=bool)
    assert_array_equal(solution.transform(rows, mask), solution.model.transform(rows, mask))
    assert solution.score(rows, mask=mask) == solution.model.score(rows, mask)
    pair = with_model(solution, "TwoFactor")
    assert pair.V is pair.model.V


def test_what_is_missing_is_said_in_a_sentence(solution):
    linear = with_model(solution, "Linear")
    message = r"The model of this solution is Linear \(M ~ X, without a ReLU\), which has no transform\.$"
    with pytest.raises(AttributeError, match=message):
        linear.transform(np.ones((1, 30)))
    with pytest.raises(AttributeError, match=r"SymmetricReLU \(M ~ max\(0, X\)\), which has no V\.$"):
        _ = solution.V
    with pytest.raises(AttributeError, match="'Solution' object has no attribute '_transformed'"):
        _ = solution._transformed  # private: of the model alone


@pytest.mark.parametrize("name", MODELS)
def test_copies(solution, name):
    solution = with_model(solution, name)
    for same in (copy.copy(solution), copy.deepcopy(solution), pickle.loads(pickle.dumps(solution))):
        assert_same(same, solution)
    empty = Solution.__new__(Solution)
    assert not hasattr(empty, "model")  # rather than asking itself without an end
    assert not hasattr(empty, "transform")


def test_a_solution_of_an_outcome(solution):
    model, history = Linear(solution.U, solution.signature), History.from_records([])
    other = Solution.of(solution, model, history=history, solver="mine", diagonal="ignore")
    assert_same(
        other,
        dataclasses.replace(solution, model=model, history=history, solver="mine", diagonal="ignore"),
    )


@pytest.mark.parametrize(
    ("fit", "kind"),
    [
        (lambda M: decompose(M, 2, random_state=0, max_iter=3), SymmetricReLU),
        (lambda M: SymReLU(2, random_state=0, tol=1).fit(M).solution_, SymmetricReLU),
        (lambda M: LinkPredictor(2, random_state=0).fit(M > 0.5).solution_, SymmetricReLU),
        (lambda M: truncated_eigen(M, 2), Linear),
        (lambda M: symmetric_nmf(M, 2, SymHALS(), random_state=0, max_iter=3), Linear),
        (lambda M: three_block_nmd(M, 2, random_state=0, max_iter=3), TwoFactor),
    ],
)
def test_the_model_of_each_fit(fit, kind):
    M, _ = make_relu_gram(20, 2, random_state=0)
    assert type(fit(M).model) is kind
