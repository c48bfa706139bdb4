import numpy as np
import pytest
from helpers import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics import accuracy_score

from symrelu import metrics
from symrelu.problem import Problem


def errors(M, X, support):
    """M - max(0, X), or what is missing and what is too much."""
    error = M - np.maximum(0, X)
    return np.where((M > 0) & (error < 0) & (support == "at_least"), 0, error)


@pytest.mark.parametrize("support", ["equal", "at_least"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_errors_by_definition(kind, scale, support):
    problem = random_problem(0, masked=0.2)
    rng = np.random.default_rng(0)
    U, s = rng.standard_normal((30, 3)), np.array([1, 1, -1])
    X = (U * s) @ U.T
    for hidden, given_as in (
        (np.zeros((30, 30), bool), {}),
        (np.eye(30, dtype=bool), {"diagonal": "ignore"}),
        (problem.unknown, {"mask": kind(problem.unknown)}),
    ):
        wrong = errors(problem.M, X, support)[~hidden]
        expected = np.linalg.norm(wrong) / np.linalg.norm(problem.M[~hidden])
        given, given_as = (kind(problem.M * scale), U * np.sqrt(scale), s), given_as | {"support": support}
        assert_allclose(metrics.relative_error(*given, **given_as), expected, rtol=1e-10)
        assert_allclose(metrics.half_squared_error(*given, **given_as), expected**2 / 2, rtol=1e-10)


@pytest.mark.parametrize("support", ["equal", "at_least"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_held_out_error_by_definition(kind, scale, support, monkeypatch):
    monkeypatch.setattr(metrics, "_ENTRY_BATCH", 7)
    problem = random_problem(0, masked=0.2)
    U, s = np.random.default_rng(0).standard_normal((30, 3)), np.array([1, 1, -1])
    X = (U * s) @ U.T
    hidden = problem.unknown
    expected = np.linalg.norm(errors(problem.M, X, support)[hidden]) / np.linalg.norm(problem.M[hidden])
    given = kind(problem.M * scale), U * np.sqrt(scale), s
    assert_allclose(metrics.held_out_error(*given, mask=kind(hidden), support=support), expected)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("backend", ["sparse", "dense", "active", "torch", "cuda"])
def test_any_backend_finds_the_same_errors(kind, backend):
    if backend in ("torch", "cuda"):
        torch = pytest.importorskip("torch")
        if backend == "cuda" and not torch.cuda.is_available():
            pytest.skip("torch finds no GPU")
    M, U, s = random_problem(0).M, np.random.default_rng(0).standard_normal((30, 3)), np.array([1, 1, -1])
    for metric in (metrics.relative_error, metrics.half_squared_error):
        assert_allclose(metric(kind(M), U, s, backend=backend), metric(M, U, s), rtol=1e-6)


def test_another_support_is_refused():
    message = "support must be one of 'equal', 'at_least', got 'most'"
    with pytest.raises(ValueError, match=message):
        metrics.relative_error(np.eye(2), np.ones((2, 1)), support="most")
    with pytest.raises(ValueError, match=message):
        metrics.held_out_error(np.eye(2), np.ones((2, 1)), mask=np.eye(2, dtype=bool), support="most")


def test_nothing_observed_or_nothing_hidden_is_an_error():
    with pytest.raises(ValueError, match="mask and diagonal hide them all"):
        metrics.relative_error(np.eye(2), np.ones((2, 1)), diagonal="ignore")
    with pytest.raises(TypeError, match="mask must be a boolean matrix, got None"):
        metrics.held_out_error(np.eye(2), np.ones((2, 1)), mask=None)


def test_held_out_error_where_nothing_is_positive():
    mask = ~np.eye(3, dtype=bool)
    assert metrics.held_out_error(np.eye(3), np.ones((3, 1)), mask=mask) == np.inf


def test_held_out_error_without_hidden_entries():
    with pytest.raises(ValueError, match="mask must hide at least one entry"):
        metrics.held_out_error(np.eye(3), np.ones((3, 1)), mask=np.zeros((3, 3), bool))


def test_parameters_per_pair():
    M = np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 0]])  # three positive pairs, one of them on the diagonal
    assert metrics.parameters_per_pair(M, 2) == 2.0
    assert metrics.parameters_per_pair(sparse.csr_array(M), 2) == 2.0


@pytest.mark.parametrize(
    ("U", "signature", "message"),
    [
        (np.ones((2, 1)), None, r"U must have shape \(n, rank\) with n = 3, got \(2, 1\)"),
        (np.ones(3), None, "U must have shape"),
        (np.ones((3, 1)) * 1j, None, "U must be an array of real numbers"),
        (np.ones((3, 2)), [1, 0], "signature must be 2 numbers"),
        (np.ones((3, 2)), [1], "signature must be 2 numbers"),
    ],
)
def test_bad_factors(U, signature, message):
    with pytest.raises((ValueError, TypeError), match=message):
        metrics.relative_error(np.eye(3), U, signature)


def test_clustering_accuracy():
    truth = np.repeat([0, 1, 2], 10)
    renamed = np.array(["c", "a", "b"])[truth]
    assert metrics.clustering_accuracy(truth, renamed) == 1.0
    renamed[:3] = "a"
    assert metrics.clustering_accuracy(truth, renamed) == 0.9
    assert metrics.clustering_accuracy(truth, np.zeros(30)) == pytest.approx(1 / 3)
    rng = np.random.default_rng(0)
    guess = rng.integers(0, 3, 30)
    assert metrics.clustering_accuracy(truth, guess) >= accuracy_score(truth, guess)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        metrics.clustering_accuracy([0, 1], [0])


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_a_random_mask_is_symmetric_and_of_the_size_asked_for(fraction):
    mask = metrics.random_mask(300, fraction, random_state=0).toarray()
    assert mask.dtype == bool
    assert (mask == mask.T).all()
    assert not mask.diagonal().any()
    assert mask.mean() == pytest.approx(fraction, rel=0.05)
    assert (metrics.random_mask(300, fraction, random_state=1).toarray() != mask).any()


def test_a_random_mask_takes_every_random_state():
    rng = np.random.RandomState(0)
    assert metrics.random_mask(20, 0.3, random_state=rng).shape == (20, 20)
    with pytest.raises(
        TypeError, match="random_state must be None, a nonnegative integer, or a NumPy generator"
    ):
        metrics.random_mask(20, 0.3, random_state="x")


def test_a_random_mask_needs_a_fraction():
    with pytest.raises(ValueError, match=r"fraction must be a number in \(0, 0.99\], got 0"):
        metrics.random_mask(10, 0)


# ---------------------------------------------------------------------------------- modularity


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 5), scale=st.sampled_from([1.0, 1e-150, 1e150]))
def test_modularity_is_that_of_networkx(seed, k, scale):
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((12, 12)) * (rng.random((12, 12)) < 0.4), 1)
    upper[0, 1] = 1.0
    M = upper + upper.T
    labels = rng.integers(0, k, 12)
    groups = [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
    expected = networkx.community.modularity(networkx.from_numpy_array(M), groups)
    for matrix in (scale * M, sparse.csr_array(scale * M), scale * M + np.eye(12)):
        assert_allclose(metrics.modularity(matrix, labels), expected, rtol=1e-9, atol=1e-12)
    mask = np.zeros((12, 12), bool)
    mask[2, 3] = mask[3, 2] = True
    hidden = np.where(mask, 0.0, M)
    for masked in (metrics.modularity(M, labels, mask=mask), metrics.modularity(Problem.of(M, mask), labels)):
        assert_allclose(masked, metrics.modularity(hidden, labels))


def test_modularity_needs_a_label_for_each_item():
    with pytest.raises(ValueError, match="labels must have one entry for each of the 3 items, got 2"):
        metrics.modularity(np.ones((3, 3)), [0, 1])
