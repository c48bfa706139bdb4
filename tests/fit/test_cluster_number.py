"""The number of clusters: the likelihood against its formula, and the search for the best number."""

import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu.fit import cluster_number, narration
from symrelu.fit.cluster_number import ClusterSelection, Score, hidden_likelihood, select_n_clusters
from symrelu.fit.holdout import Split
from symrelu.fitted.history import Status
from symrelu.problem import Problem


def brute_force(left, labels, split):
    """The formula, pair by pair."""
    degrees = left.sum(axis=1)
    unit = left[left > 0].mean()
    degrees = degrees + 0.1 * degrees.mean()
    total = degrees.sum()

    def rate(i, j):
        a, b = labels == labels[i], labels == labels[j]
        found, expected = left[np.ix_(a, b)].sum(), degrees[a].sum() * degrees[b].sum() / total
        return degrees[i] * degrees[j] * (found + unit) / (expected + unit)

    rates = np.array([rate(i, j) for i, j in zip(split.i, split.j, strict=True)])
    shares = rates / np.sum(split.weight * rates)
    links = split.weight * split.truth
    return sum(w * math.log(p) for w, p in zip(links, shares, strict=True) if w > 0) / links.sum()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 4), scale=st.sampled_from([1.0, 1e-6, 1e6]))
def test_likelihood(seed, k, scale):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((12, 12)) * (rng.random((12, 12)) < 0.4), 1)
    upper[0, 1] = 1.0
    left = upper + upper.T
    labels = np.concatenate([np.arange(k), rng.integers(0, k, 12 - k)])
    i, j = np.triu_indices(12, 1)
    chosen = rng.permutation(len(i))[:20]
    truth = np.where(np.arange(20) < 7, rng.random(20) + 0.1, 0.0)
    split = Split(i[chosen], j[chosen], truth, rng.uniform(1, 5, 20), 0)
    found = hidden_likelihood(sparse.csr_array(scale * left), labels, split._replace(truth=scale * truth))
    assert_allclose(found, brute_force(left, labels, split), rtol=1e-9)


class Peak:
    """Clusters whose score is highest for one number."""

    def __init__(self, number, tried):
        self.number, self.tried = number, tried
        self.statuses = [Status.MAX_TIME, Status.MAX_ITER]

    def labels(self, n_clusters):
        self.tried.append(n_clusters)
        return -abs(n_clusters - self.number)


@pytest.mark.parametrize("most", [1, 2, 5, 17, 33, 35, 40, 66, 71, 200])
@pytest.mark.parametrize("peak", [1, 2, 7, 8, 9, 16, 17, 19, 23, 33, 61, 64, 100, 129])
def test_the_search_finds_a_peak(monkeypatch, most, peak):
    monkeypatch.setattr(cluster_number, "hidden_likelihood", lambda left, labels, split: labels)
    problem = Problem.of(np.ones((5, 5)) - np.eye(5), None, "ignore")
    tried = []
    selection = select_n_clusters(
        problem, lambda left, repeat: Peak(peak, tried), most=most, rng=np.random.default_rng(0)
    )
    assert selection.n_clusters == min(peak, most)
    assert selection.at_limit == (most > 2 and 2 * min(peak, most) > most)
    assert max(tried) <= most
    assert selection.n_out_of_time == cluster_number.REPEATS
    assert len(tried) == cluster_number.REPEATS * len(set(tried)) <= cluster_number.REPEATS * (16 + 4 * 8 + 8)
    assert [row["n_clusters"] for row in selection.records()] == sorted(set(tried))


def test_the_smallest_number_that_is_not_clearly_worse():
    scores = (Score(2, (1.0, 1.0, 1.0)), Score(3, (1.9, 2.2, 2.0)), Score(7, (2.0, 2.0, 2.3)))
    selection = ClusterSelection(scores, 20)
    assert selection.n_clusters == 3
    assert repr(selection) == "ClusterSelection(n_clusters=3, 3 numbers tried)"
    assert ClusterSelection(scores[1:], 20).n_clusters == 3
    assert ClusterSelection((scores[0], scores[2]), 20).n_clusters == 7


def test_equal_scores_go_to_fewer_clusters():
    scores = tuple(Score(k, (1.0, 2.0)) for k in (2, 3, 4))
    assert ClusterSelection(scores, 10).n_clusters == 2


def test_a_table():
    pytest.importorskip("pandas")
    frame = ClusterSelection((Score(2, (1.0, 2.0)),), 10).to_frame()
    assert frame.to_dict("records") == [{"n_clusters": 2, "mean": 1.5, "score_0": 1.0, "score_1": 2.0}]


def test_lines_of_the_log(caplog, monkeypatch):
    monkeypatch.setattr(narration, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(cluster_number, "hidden_likelihood", lambda left, labels, split: labels)
    problem = Problem.of(np.ones((5, 5)) - np.eye(5), None, "ignore")
    with caplog.at_level(logging.INFO, logger="symrelu"):
        select_n_clusters(problem, lambda left, k: Peak(2, []), most=3, rng=np.random.default_rng(0), verbose=1)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"{k} clusters: score of hidden pairs {-abs(k - 2):.4f}" for k in (1, 2, 3)]


def test_too_few_pairs_are_refused():
    problem = Problem.of(np.array([[0.0, 1.0], [1.0, 0.0]]), None, "ignore")
    with pytest.raises(ValueError, match=r"at least two observed positive pairs .* got 1\. Pass the number"):
        select_n_clusters(problem, lambda left, k: Peak(1, []), most=2, rng=np.random.default_rng(0))
