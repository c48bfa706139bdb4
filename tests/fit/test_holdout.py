"""Hidden pairs: which are hidden, and how what was hidden is scored."""

import math
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from helpers import problems
from hidden_pairs import M, neighbors_by_hand, observed_pairs, split_of
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import mean_squared_error, roc_auc_score

from symrelu import decompose
from symrelu.datasets import make_relu_gram
from symrelu.fit import holdout
from symrelu.metrics import held_out_error, random_mask, relative_error
from symrelu.problem import Problem

MASK = np.random.default_rng(0).random(M.shape) < 0.1
MASK = MASK | MASK.T


# ---------------------------------------------------------------------------------- what is hidden


@given(problems(max_n=14), st.floats(0.01, 0.9), st.sampled_from([0.3, 1.0, 5.0]), st.integers(0, 99))
def test_hidden_pairs(problem, fraction, zeros_per_positive, seed):
    positive, zeros = observed_pairs(problem.M, problem.unknown)
    assume(len(positive) >= 2)
    split = split_of(problem.M, problem.unknown, fraction, zeros_per_positive, seed)
    hidden = list(zip(split.i.tolist(), split.j.tolist(), strict=True))
    assert len(set(hidden)) == len(hidden), "no pair twice"
    assert_array_equal(split.truth, [problem.M[pair] for pair in hidden])
    hidden_positive = [pair for pair in hidden if pair in positive]
    hidden_zeros = [pair for pair in hidden if pair in zeros]
    assert len(hidden_positive) + len(hidden_zeros) == len(hidden), "observed pairs i < j only"
    assert 1 <= len(hidden_positive) < len(positive), "something to judge by, something to fit"
    assert abs(len(hidden_positive) - fraction * len(positive)) <= 1
    expected = min(zeros_per_positive * len(hidden_positive), fraction * len(zeros))
    assert expected <= len(hidden_zeros) < expected + 1
    stands_for = [
        len(positive) / len(hidden_positive) if pair in positive else len(zeros) / len(hidden_zeros)
        for pair in hidden
    ]
    assert_allclose(split.weight, stands_for)


@given(problems(max_n=14), st.integers(0, 99))
def test_dense_and_sparse_hide_the_same(problem, seed):
    assume(len(observed_pairs(problem.M, problem.unknown)[0]) >= 2)
    dense = split_of(problem.M, problem.unknown, seed=seed)
    for one, other in zip(
        dense, split_of(sparse.csr_array(problem.M), problem.unknown, seed=seed), strict=True
    ):
        assert_array_equal(one, other)


@given(st.sets(st.integers(0, 60)), st.integers(1, 30))
def test_numbers_that_are_missing(numbers, count):
    expected = [k for k in range(200) if k not in numbers][:count]
    array = np.array(sorted(numbers), np.int64)
    assert_array_equal(holdout.kth_missing(array, np.arange(count)), expected)


@pytest.mark.parametrize("n", [2, 3, 50])
def test_numbers_of_pairs(n):
    i, j = np.triu_indices(n, 1)
    assert_array_equal(holdout.pair_indices(np.arange(n * (n - 1) // 2), n), (i, j))


def test_every_pair_is_hidden_equally_often():
    draws = 1500
    times = np.zeros((8, 8))
    N = (make_relu_gram(8, 2, random_state=1)[0] > 0).astype(float)
    for seed in range(draws):
        split = split_of(N, fraction=0.3, seed=seed)
        times[split.i, split.j] += 1
    for pairs in observed_pairs(N, np.zeros((8, 8), bool)):
        counts = np.array([times[pair] for pair in pairs])
        p = counts.mean() / draws
        assert abs(counts / draws - p).max() < 4.5 * math.sqrt(p * (1 - p) / draws)


def test_large_graphs_need_no_square_memory():
    n, edges = 200_000, 400_000
    i, j = np.random.default_rng(0).integers(0, n, (2, edges))
    graph = sparse.csr_array((np.ones(edges), (i, j)), shape=(n, n))
    graph = sparse.csr_array(graph + graph.T)
    tracemalloc.start()
    split = split_of(graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6, "n x n bits would be 5e9 bytes"
    assert len(split.i) > 200_000
    assert (split.i < split.j).all()
    assert_array_equal(np.asarray(graph[split.i, split.j]).ravel(), split.truth)
    assert np.unique(split.i).max() > n - 5000, "up to the last rows"
    assert split.weight[-1] > 9e4, "a hidden zero stands for many"


# ---------------------------------------------------------------------------------- how it is judged


def test_error_by_its_formula():
    split = split_of(M, MASK, fraction=0.3)
    X = np.random.default_rng(1).standard_normal(len(split.i))
    positive, zeros = observed_pairs(M, MASK)
    hidden = dict(zip(zip(split.i.tolist(), split.j.tolist(), strict=True), X, strict=True))
    on_positive = [(M[pair] - max(0, x)) ** 2 for pair, x in hidden.items() if pair in positive]
    on_zeros = [max(0, x) ** 2 for pair, x in hidden.items() if pair in zeros]
    squares = [M[pair] ** 2 for pair in hidden if pair in positive]
    wrong = len(positive) * np.mean(on_positive) + len(zeros) * np.mean(on_zeros)
    assert_allclose(holdout._error(X, split), math.sqrt(wrong / (len(positive) * np.mean(squares))))


def test_error_over_all_pairs_is_the_relative_error():
    U = np.random.default_rng(2).standard_normal((40, 4))
    i, j = np.nonzero(np.triu(~MASK, 1))
    every = holdout.Split(i, j, M[i, j], np.ones(len(i)), 0)
    error = holdout._error((U @ U.T)[i, j], every)
    assert_allclose(error, relative_error(M, U, diagonal="ignore", mask=MASK))
    assert holdout._error(np.zeros(len(i)), every) == holdout.BASELINES["error"]


def test_sums_are_unbiased():
    U = np.random.default_rng(3).standard_normal((40, 3))
    wrong = np.where(MASK, 0, M - np.maximum(0, U @ U.T))
    exact = np.sum(np.triu(wrong, 1) ** 2)
    splits = [split_of(M, MASK, zeros_per_positive=1.0, seed=seed) for seed in range(500)]
    estimates = [holdout._weighted_square_sum(wrong[split.i, split.j], split) for split in splits]
    standard_error = np.std(estimates) / math.sqrt(len(estimates))
    assert standard_error < 0.03 * exact
    assert abs(np.mean(estimates) - exact) < 4 * standard_error


def test_auc_counts_pairs_in_the_right_order():
    split = split_of(M, fraction=0.3)
    X = np.random.default_rng(4).integers(0, 9, len(split.i)).astype(float)
    positive, zeros = X[split.truth > 0], X[split.truth == 0]
    right = [(p > z) + (p == z) / 2 for p in positive for z in zeros]
    assert_allclose(holdout._auc(X, split), np.mean(right))
    assert holdout._auc(0 * X, split) == holdout.BASELINES["auc"]


@given(problems(max_n=14), st.floats(0.1, 0.9), st.integers(0, 99), st.integers(1, 20))
def test_neighbors_are_compared_node_by_node(problem, fraction, seed, values):
    assume(len(observed_pairs(problem.M, problem.unknown)[0]) >= 2)
    split = split_of(problem.M, problem.unknown, fraction, seed=seed)
    X = np.random.default_rng(seed).integers(-values, values, len(split.i)) / 8
    at = [np.concatenate([split.i[kind], split.j[kind]]) for kind in (split.truth > 0, split.truth == 0)]
    if not np.isin(*at).any():
        with pytest.raises(ValueError, match="no node has both a positive pair and a zero"):
            holdout.check_split(split, "neighbors")
        assert holdout.check_split(split, "error") is split
        return
    assert holdout.check_split(split, "neighbors") is split
    expected = neighbors_by_hand(X, split.i, split.j, split.truth)
    assert_allclose(holdout._neighbors(X, split), expected, rtol=1e-12)
    assert holdout._neighbors(0 * X, split) == holdout.BASELINES["neighbors"]
    assert holdout._neighbors(split.truth, split) == 1.0


# ---------------------------------------------------------------------------------- fits without some pairs


def hidden_entries(seed=1):
    hidden = np.triu(np.random.default_rng(seed).random(M.shape) < 0.2, 1)
    return hidden | hidden.T


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_fit_without_some_pairs_is_scored_on_them(kind):
    hidden = hidden_entries()
    fit = partial(decompose, rank=3, n_negative=1, max_iter=10, random_state=0)
    solution, error = holdout.fit_without(Problem.of(kind(M)), kind(hidden), fit)
    assert_array_equal(solution.U, fit(kind(M), mask=hidden).U)
    X = np.maximum(0, (solution.U * solution.signature) @ solution.U.T)
    assert_allclose(error, np.linalg.norm((M - X)[hidden]) / np.linalg.norm(M[hidden]), rtol=1e-12)


def test_a_fit_does_not_see_the_pairs_it_is_scored_on():
    hidden, seen = hidden_entries(), []

    def fit(problem):
        seen.append(problem)
        return decompose(problem, 2, max_iter=1, random_state=0)

    holdout.fit_without(Problem.of(M, MASK), hidden, fit)
    (problem,) = seen
    assert_array_equal(problem.unknown.toarray(), hidden | MASK)
    assert not problem.M[hidden].any()


def test_pairs_that_were_unknown_before_are_not_scored():
    hidden = hidden_entries()
    changed = np.where(MASK, 7.0, M)
    fit = partial(decompose, rank=2, max_iter=3, random_state=0)
    errors = [holdout.fit_without(Problem.of(matrix, MASK), hidden, fit)[1] for matrix in (M, changed)]
    assert errors[0] == errors[1]


def test_a_trial_takes_its_packing_nowhere():
    trial = holdout.Trial(Problem.of(M), split_of(M))
    assert trial.hidden is trial.hidden
    again = pickle.loads(pickle.dumps(trial))
    assert set(vars(again)) == {"problem", "split"}
    assert_array_equal(again.hidden.unknown.toarray(), trial.hidden.unknown.toarray())


@given(problems(max_n=14))
def test_pairs_are_numbered_row_by_row(problem):
    pairs = holdout.observed_pairs(
        Problem.of(problem.M + np.eye(problem.n), problem.unknown & ~np.eye(problem.n, dtype=bool))
    )
    i, j = np.triu_indices(problem.n, 1)
    unknown, values = problem.unknown[i, j], problem.M[i, j]
    positive = np.flatnonzero((values > 0) & ~unknown)
    assert_array_equal(pairs.positive, positive)
    assert_array_equal(pairs.values, values[positive])
    assert_array_equal(pairs.not_zero, np.flatnonzero((values > 0) | unknown))
    assert pairs.n_zeros == np.count_nonzero((values == 0) & ~unknown)


@pytest.mark.parametrize(
    ("A", "scoring", "message"),
    [
        (np.eye(4), "error", "at least two observed positive pairs"),
        (np.diag([0.0, 1.0], 1) + np.diag([0.0, 1.0], -1), "error", "got 1"),
        (np.ones((4, 4)), "auc", "scoring='auc' needs zeros"),
        (np.ones((4, 4)), "neighbors", "scoring='neighbors' needs zeros"),
    ],
)
def test_too_few_pairs_are_refused(A, scoring, message):
    with pytest.raises(ValueError, match=message):
        holdout.check_pairs(holdout.observed_pairs(Problem.of(A)), scoring)


@given(seed=st.integers(0, 2**32 - 1))
def test_scores_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    split = split_of(M, seed=seed % 100)
    X = rng.standard_normal(len(split.i)).round(1)
    assert_allclose(holdout.SCORINGS["auc"](X, split), roc_auc_score(split.truth > 0, X))
    weighted = [
        mean_squared_error(split.truth, prediction, sample_weight=split.weight)
        for prediction in (np.maximum(0, X), np.zeros_like(X))
    ]
    assert_allclose(holdout.SCORINGS["error"](X, split), math.sqrt(weighted[0] / weighted[1]))


def test_at_least_counts_only_what_is_missing():
    split = split_of(M, seed=0)
    X = np.random.default_rng(0).standard_normal(len(split.i))
    # X is no error where it is above a positive entry: as if it were equal to it.
    enough = np.where(split.truth > 0, np.minimum(X, split.truth), X)
    error = holdout.SCORINGS["error"](X, split, "at_least")
    assert_allclose(error, holdout.SCORINGS["error"](enough, split))
    assert error < holdout.SCORINGS["error"](X, split)
    assert holdout.SCORINGS["auc"](X, split, "at_least") == holdout.SCORINGS["auc"](X, split)
    assert holdout.SCORINGS["neighbors"](X, split, "at_least") == holdout.SCORINGS["neighbors"](X, split)


def test_a_fit_with_at_least_is_scored_by_its_own_error():
    hidden = random_mask(len(M), 0.2, random_state=1)
    fit = partial(decompose, rank=2, support="at_least", max_iter=20, random_state=0)
    solution, error = holdout.fit_without(Problem.of(M), hidden, fit)
    assert error == held_out_error(M, solution.U, solution.signature, mask=hidden, support="at_least")
    assert error < held_out_error(M, solution.U, solution.signature, mask=hidden)
