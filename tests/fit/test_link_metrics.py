"""The metrics of links: by brute force, by scikit-learn, and with ties."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, roc_auc_score

from symrelu.fit.link_metrics import auc, average_precision, hits_at, mean_reciprocal_rank

FEW = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(np.array)
MANY = st.lists(st.integers(-5, 5), min_size=1, max_size=40).map(np.array)


def ranks_in_all_orders(link, negatives):
    """Yield the rank of a link among the negatives for every order of the pairs, which equal scores keep."""
    for order in itertools.permutations(range(len(negatives) + 1)):
        scores = np.append(negatives, link)[list(order)]
        by_score = np.array(order)[np.argsort(-scores, kind="stable")]
        yield 1 + list(by_score).index(len(negatives))


@given(links=FEW, negatives=FEW, k=st.integers(1, 4))
def test_ranks_are_the_mean_over_all_orders_of_ties(links, negatives, k):
    ranks = [list(ranks_in_all_orders(link, negatives)) for link in links]
    assert_allclose(mean_reciprocal_rank(links, negatives), np.mean([1 / np.array(r) for r in ranks]))
    share = np.mean([np.array(r) <= k for r in ranks]) if k <= len(negatives) else math.nan
    assert_allclose(hits_at(links, negatives, k), share)


@given(links=MANY, negatives=MANY)
def test_areas_are_those_of_scikit_learn(links, negatives):
    truth, scores = np.repeat([1, 0], [len(links), len(negatives)]), np.append(links, negatives)
    assert_allclose(auc(links, negatives), roc_auc_score(truth, scores))
    assert_allclose(average_precision(links, negatives), average_precision_score(truth, scores))
    pairs = links[:, None] - negatives
    assert_allclose(auc(links, negatives), np.mean(pairs > 0) + np.mean(pairs == 0) / 2)


@pytest.mark.parametrize("metric", [auc, average_precision, hits_at, mean_reciprocal_rank])
def test_the_order_alone_counts(metric):
    rng = np.random.default_rng(0)
    links, negatives = rng.standard_normal(80) + 1, rng.standard_normal(100)
    expected = metric(links, negatives)
    assert 0 < expected < 1
    assert_allclose(metric(1e200 * links, 1e200 * negatives), expected)
    assert_allclose(metric(np.exp(links)[::-1], np.exp(negatives)), expected)


def test_perfect_and_worst_scores():
    low, high = np.zeros(60), np.ones(60)
    assert (auc(high, low), hits_at(high, low), mean_reciprocal_rank(high, low)) == (1, 1, 1)
    assert (auc(low, high), hits_at(low, high)) == (0, 0)
    assert_allclose(mean_reciprocal_rank(low, high), 1 / 61)
    assert_allclose(hits_at(low, low), 50 / 61)


def test_fewer_negatives_than_k_say_nothing():
    assert math.isnan(hits_at(np.ones(5), np.zeros(49)))
    assert hits_at(np.ones(5), np.zeros(50)) == 1
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got 0"):
        hits_at(np.ones(5), np.zeros(50), 0)
