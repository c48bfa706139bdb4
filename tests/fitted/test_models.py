"""Fitted models: what each can do, and pairs, rows and nearest items against the matrix they are parts of."""

import dataclasses
import inspect

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import Solution, SymReLU, decompose
from symrelu.baselines import three_block_nmd, truncated_eigen
from symrelu.datasets import make_relu_gram
from symrelu.fitted import FittedModel, Linear, Logistic, SymmetricReLU, TwoFactor

M, _ = make_relu_gram(40, 3, shift=0.1, random_state=0)
SETTINGS = {"n_negative": 1, "random_state": 0, "max_iter": 30, "tol": 0.1}
U, V = np.random.default_rng(0).standard_normal((2, 40, 4))
SIGNATURE = np.array([1, 1, 1, -1.0])
MODELS = {
    "SymmetricReLU": SymmetricReLU(U, SIGNATURE, alpha=0.1, zero_weight=0.5),
    "Linear": Linear(U, SIGNATURE),
    "TwoFactor": TwoFactor(U, V),
    "Logistic": Logistic(U, V),
}
FITTED = {
    "Solution": decompose(M, 4, **SETTINGS),
    "SymReLU": SymReLU(4, **SETTINGS).fit(M),
    "two factors": three_block_nmd(M, 4, random_state=0, max_iter=20),
    "linear": truncated_eigen(M, 4),
    **MODELS,
}
ABILITIES = {
    "SymmetricReLU": {"canonicalize", "transform", "score"},
    "Linear": {"canonicalize"},
    "TwoFactor": {"V"},
    "Logistic": {"V"},
}


def gram(fitted):
    if isinstance(fitted, SymReLU):
        return (fitted.embedding_ * fitted.signature_) @ fitted.embedding_.T
    return fitted.U @ fitted.V.T if hasattr(fitted, "V") else (fitted.U * fitted.signature) @ fitted.U.T


@pytest.fixture(params=FITTED)
def fitted(request):
    return FITTED[request.param]


@pytest.fixture(params=[0.001, 1024])  # MiB: a few rows at a time, and all at once
def memory(request):
    with sklearn.config_context(working_memory=request.param):
        yield


def test_pairs(fitted, memory):
    i, j = np.random.default_rng(0).integers(0, 40, (2, 7, 5))
    assert_allclose(fitted.score_pairs(i, j), gram(fitted)[i, j], atol=1e-12)
    assert_allclose(fitted.score_pairs(3, np.arange(40)), gram(fitted)[3], atol=1e-12)
    assert fitted.score_pairs([], []).shape == (0,)


def reconstruction(fitted):
    if fitted is FITTED["Logistic"]:
        return 1 / (1 + np.exp(-gram(fitted)))
    return gram(fitted) if fitted in (FITTED["linear"], FITTED["Linear"]) else np.maximum(0, gram(fitted))


def test_rows(fitted):
    model = reconstruction(fitted)
    assert_allclose(fitted.reconstruct([5, 2, 5]), model[[5, 2, 5]], atol=1e-12)
    assert fitted.reconstruct(7).shape == (1, 40)


def test_rows_are_those_of_the_relative_error():
    """Those of a model without a ReLU were rows of max(0, X)."""
    for name in ("Solution", "two factors", "linear"):
        error = np.linalg.norm(M - FITTED[name].reconstruct(range(40))) / np.linalg.norm(M)
        assert_allclose(error, FITTED[name].relative_error, rtol=1e-10)


@pytest.mark.parametrize("known", [None, sparse.csr_array(M), M])
def test_nearest_items(fitted, memory, known):
    nodes, k = [3, 39, 0], 6
    items, scores = fitted.top_k(nodes, k, exclude=known)
    X = gram(fitted)
    for node, best, values in zip(nodes, items, scores, strict=True):
        allowed = [j for j in range(40) if j != node and (known is None or M[node, j] == 0)]
        expected = sorted(allowed, key=lambda j: -X[node, j])[:k]
        assert_array_equal(best, expected)
        assert_allclose(values, X[node, expected], atol=1e-12)


def test_fewer_items_than_asked_for():
    solution = decompose(np.ones((3, 3)), 1, random_state=0)
    items, scores = solution.top_k([1], 5)
    assert_array_equal(items, [[0, 2, -1, -1, -1]])
    assert_array_equal(scores[0, 2:], -np.inf)
    items, _ = solution.top_k([0, 2], 2, exclude=np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    assert_array_equal(items, [[-1, -1], [1, -1]])


def test_equal_scores_come_by_number():
    solution = decompose(np.ones((9, 9)), 1, init=np.ones((9, 1)))
    items, _ = solution.top_k([4], 5)
    assert_array_equal(items, [[0, 1, 2, 3, 5]])


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        (
            lambda s: s.score_pairs([0], [40]),
            IndexError,
            "j must be from 0 to 39, .* got 40",
        ),
        (lambda s: s.score_pairs([-1], [0]), IndexError, "i must be from 0 to 39"),
        (lambda s: s.score_pairs([0.5], [0]), TypeError, r"i must be integers \(indices of items, from 0\)"),
        (lambda s: s.reconstruct(["a"]), TypeError, "rows must be integers"),
        (lambda s: s.top_k([99], 2), IndexError, "nodes must be from 0 to 39"),
        (lambda s: s.top_k([0], 0), ValueError, "k must be an integer of at least 1, got 0"),
        (lambda s: s.top_k([0], 2, exclude=np.eye(3)), ValueError, r"exclude must have shape \(40, 40\)"),
    ],
)
def test_bad_questions(question, error, message):
    with pytest.raises(error, match=message):
        question(FITTED["Solution"])


@pytest.mark.parametrize("question", ["score_pairs", "reconstruct", "top_k"])
@pytest.mark.parametrize("asked", [Solution, SymReLU])
def test_questions_are_asked_in_one_way(question, asked):
    asked, model = (inspect.signature(getattr(one, question)) for one in (asked, FittedModel))
    assert asked.parameters == model.parameters


def test_float32_stays():
    solution = decompose(M.astype(np.float32), 4, **SETTINGS)
    assert solution.score_pairs([1], [2]).dtype == np.float32
    assert solution.reconstruct([1]).dtype == np.float32
    assert solution.top_k([1], 2)[1].dtype == np.float32


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_what_it_can_do_and_nothing_else(name):
    everything = set.union(*ABILITIES.values())
    assert {ability for ability in everything if hasattr(MODELS[name], ability)} == ABILITIES[name]


@pytest.mark.parametrize("name", MODELS)
def test_sizes(name):
    model = MODELS[name]
    n_negative = 0 if name in ("TwoFactor", "Logistic") else 1
    assert (model.n, model.rank, model.n_negative, model.dtype) == (40, 4, n_negative, np.float64)
    assert repr(model) == f"{name}(n=40, rank=4, n_negative={n_negative})"
    assert_array_equal(model.left @ model.right.T, gram(model))
    assert model.relu == (name in ("SymmetricReLU", "TwoFactor"))


@pytest.mark.parametrize("name", MODELS)
def test_models_are_values(name):
    model = MODELS[name]
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.U = U
    halved = dataclasses.replace(model, U=U.astype(np.float32) / 2)
    assert type(halved) is type(model)
    assert_allclose(halved.score_pairs([1, 2], [3, 4]), gram(halved)[[1, 2], [3, 4]], rtol=1e-5)
    assert halved.top_k([1], 2)[1].dtype == np.float32


@pytest.mark.parametrize("kind", [TwoFactor, Logistic])
def test_two_factors_have_no_signs(kind):
    model = kind(U.astype(np.float32), V)
    assert_array_equal(model.signature, np.ones(4, np.float32), strict=True)
    with pytest.raises(TypeError, match="signature"):
        kind(U, V, signature=SIGNATURE)


def test_new_rows_take_the_weights_of_the_fit():
    fit = decompose(M, 3, alpha=0.3, zero_weight=0.2, random_state=0, max_iter=500, tol=0, gtol=1e-10, ftol=0)
    assert_allclose(SymmetricReLU(fit.U, fit.signature, 0.3, 0.2).transform(M), fit.U, atol=1e-6)
    assert np.abs(SymmetricReLU(fit.U, fit.signature).transform(M) - fit.U).max() > 1e-3


def test_new_rows_take_the_support_of_the_fit():
    """A rotation of the factor does not change them."""
    model = SymmetricReLU(U[:, :3], np.ones(3), support="at_least")
    rows = model.transform(M[:5])
    assert model.canonicalize().support == "at_least"
    assert_allclose(model.canonicalize().score(M[:5]), model.score(M[:5]), rtol=1e-9)
    assert model.score(M[:5]) > SymmetricReLU(U[:, :3], np.ones(3)).score(M[:5])
    assert np.abs(SymmetricReLU(U[:, :3], np.ones(3)).transform(M[:5]) - rows).max() > 1e-3


def test_the_base_is_no_model():
    with pytest.raises(TypeError, match="abstract"):
        FittedModel(U, SIGNATURE)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda: Linear(U.tolist(), SIGNATURE), TypeError, "U must be an array of floats, got list"),
        (lambda: Linear(U.astype(int), SIGNATURE), TypeError, "U must be an array of floats, got int64"),
        (lambda: Linear(U[0], SIGNATURE), ValueError, r"U must be a matrix, got shape \(4,\)"),
        (lambda: Linear(U[:0], SIGNATURE), ValueError, r"U must be a matrix, got shape \(0, 4\)"),
        (
            lambda: Linear(U, SIGNATURE[:3]),
            ValueError,
            r"\(40, 4\) does not match a signature of shape \(3,\)",
        ),
        (
            lambda: Linear(U, 2 * SIGNATURE),
            ValueError,
            r"signature must be \+1 or -1 for each column, got \[2.0",
        ),
        (lambda: Linear(U, [1, 1, 1, 1]), TypeError, "signature must be an array of floats, got list"),
        (lambda: SymmetricReLU(U, 0 * SIGNATURE), ValueError, r"signature must be \+1 or -1"),
        (lambda: SymmetricReLU(U, SIGNATURE, -1.0), ValueError, "alpha must be a finite number >= 0, got -1.0"),
        (
            lambda: SymmetricReLU(U, SIGNATURE, 0.0, 0.0),
            ValueError,
            r"zero_weight must be a number in \(0, 1\]",
        ),
        (
            lambda: SymmetricReLU(U, SIGNATURE, support="most"),
            ValueError,
            "support must be one of 'equal', 'at_least', got 'most'",
        ),
        (
            lambda: TwoFactor(U, V[1:]),
            ValueError,
            r"V of shape \(39, 4\) does not match U of shape \(40, 4\)",
        ),
        (lambda: TwoFactor(U, V.tolist()), TypeError, "V must be an array of floats, got list"),
    ],
)
def test_what_is_no_model(model, error, message):
    with pytest.raises(error, match=message):
        model()
