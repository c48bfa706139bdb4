"""Pairs, rows and nearest items against the matrix they are parts of."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from symrelu import SymReLU, decompose
from symrelu.baselines import three_block_nmd
from symrelu.datasets import make_relu_gram

M, _ = make_relu_gram(40, 3, shift=0.1, random_state=0)
SETTINGS = {"n_negative": 1, "random_state": 0, "max_iter": 30, "tol": 0.1}
FITTED = {
    "Solution": decompose(M, 4, **SETTINGS),
    "SymReLU": SymReLU(4, **SETTINGS).fit(M),
    "two factors": three_block_nmd(M, 4, random_state=0, max_iter=20),
}


def gram(fitted):
    if isinstance(fitted, SymReLU):
        return (fitted.embedding_ * fitted.signature_) @ fitted.embedding_.T
    return (fitted.U * fitted.signature) @ fitted.U.T if fitted.V is None else fitted.U @ fitted.V.T


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


def test_rows(fitted):
    assert_allclose(fitted.reconstruct([5, 2, 5]), np.maximum(0, gram(fitted))[[5, 2, 5]], atol=1e-12)
    assert fitted.reconstruct(7).shape == (1, 40)


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
        (lambda s: s.score_pairs([0.5], [0]), TypeError, r"i must be integers \(items are counted from 0\)"),
        (lambda s: s.reconstruct(["a"]), TypeError, "rows must be integers"),
        (lambda s: s.top_k([99], 2), IndexError, "nodes must be from 0 to 39"),
        (lambda s: s.top_k([0], 0), ValueError, "k must be an integer of at least 1, got 0"),
        (lambda s: s.top_k([0], 2, exclude=np.eye(3)), ValueError, r"exclude must have shape \(40, 40\)"),
    ],
)
def test_bad_questions(question, error, message):
    with pytest.raises(error, match=message):
        question(FITTED["Solution"])


def test_an_estimator_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        SymReLU().top_k([0], 1)


def test_float32_stays():
    solution = decompose(M.astype(np.float32), 4, **SETTINGS)
    assert solution.score_pairs([1], [2]).dtype == np.float32
    assert solution.reconstruct([1]).dtype == np.float32
    assert solution.top_k([1], 2)[1].dtype == np.float32
