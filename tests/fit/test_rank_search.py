"""Which ranks a search tries, and what it finds, on curves of scores without any fit."""

import math
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from symrelu.fit.rank_search import RULES, Scores, next_ranks

RANKS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
MODEL = {"n_negative": 0, "alpha": 0.0, "zero_weight": 1.0}


def search(score, rule="one_standard_error", ranks=RANKS, *, lower_is_better=True, slack=0.0):
    """Search with a function of rank and repeat as the score; return the choice and the ranks tried."""
    scores = Scores(3, lower_is_better=lower_is_better, slack=slack)
    tried = []
    while ahead := next_ranks(scores, ranks, rule):
        assert not set(ahead) & set(tried), "no rank twice"
        tried += ahead
        for rank in ahead:
            for repeat in range(3):
                scores.add(MODEL | {"rank": rank}, repeat, score(rank, repeat), True)
    table = scores.table()
    return table[scores.choices(table)[rule != "best"]]["rank"], tried


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("planted", range(1, 15))
def test_small_planted_ranks_are_found_exactly(planted, rule):
    chosen, tried = search(lambda rank, _: 1e-5 if rank >= planted else 1 - rank / 20, rule, slack=1e-4)
    assert chosen == planted or rule == "best"
    assert max(tried) <= 16, "nothing is better than an exact fit"


@given(st.integers(1, 128), st.floats(0.01, 3), st.sampled_from(RULES), st.booleans())
def test_one_minimum_is_found_to_an_eighth(minimum, steepness, rule, lower_is_better):
    def score(rank, repeat):
        error = 0.2 + 0.1 * steepness * abs(math.log2(rank / minimum)) + 0.01 * repeat / steepness
        return error if lower_is_better else 1 - error

    chosen, tried = search(score, rule, lower_is_better=lower_is_better)
    assert len(tried) < 24
    errors = {rank: 0.1 * steepness * abs(math.log2(rank / minimum)) for rank in tried}
    lower = [rank for rank in tried if rank < chosen]
    assert not lower or chosen - max(lower) <= max(1, chosen / 8)
    if rule == "best":
        assert abs(chosen - minimum) <= max(1, minimum / 8)
    else:
        limit = min(errors.values()) + 0.01 / math.sqrt(3) / steepness  # the standard error of the repeats
        assert errors[chosen] <= limit + 1e-12
        assert all(errors[rank] > limit - 1e-12 for rank in lower)


@pytest.mark.parametrize(
    ("best", "tried"),
    [
        (1, [1, 2, 3, 4, 6, 8]),
        (2, [1, 2, 3, 4, 6, 8]),
        (3, [1, 2, 3, 4, 6, 8, 16]),
        (8, [1, 2, 3, 4, 6, 8, 16, 32, 7]),
        (16, [1, 2, 3, 4, 6, 8, 16, 32, 64, 12, 14]),
    ],
)
def test_ranks_far_beyond_the_best_are_not_tried(best, tried):
    assert search(lambda rank, _: 0.5 + abs(rank - best) / 1000)[1] == tried


def test_a_rank_that_just_misses_the_limit_does_not_end_the_search():
    """issue 15.4: of 8, 12 and 16 columns, 12 missed the limit by chance, and 11 were not tried."""
    errors = {11: 0.0051, 12: 0.0057, 13: 0.0059, 14: 0.0052}
    chosen, tried = search(
        lambda rank, repeat: (
            (0.3 - rank / 99 if rank < 11 else errors.get(rank, 0.0051)) + 0.0008 * (repeat - 1)
        )
    )
    assert chosen == 11
    assert {10, 11} <= set(tried)


def test_errors_that_rise_are_not_followed():
    assert max(search(lambda rank, repeat: 1 + rank / 10 + repeat)[1]) == 8


def test_small_but_certain_gains_are_followed():
    """On a large graph the first ranks explain next to nothing, and repeats differ by more than that."""
    chosen, tried = search(lambda rank, repeat: 0.999 - 1e-5 * rank + 0.01 * repeat, "best")
    assert (chosen, max(tried)) == (128, 128)


def test_gains_within_the_noise_are_not_followed():
    noise = np.random.default_rng(0).normal(0, 0.01, (200, 3))
    assert max(search(lambda rank, repeat: 0.5 - 1e-6 * rank + noise[rank, repeat])[1]) <= 32


@pytest.mark.parametrize("ranks", [[5], [12, 16, 24], [1, 2, 3, 4, 6], [1, 2]])
def test_short_lists(ranks):
    chosen, tried = search(lambda rank, _: 1 / rank, ranks=ranks)
    assert chosen == ranks[-1]
    assert min(tried) == ranks[0]
    assert set(tried) <= set(range(ranks[0], ranks[-1] + 1))


def test_a_rank_is_as_good_as_its_best_setting():
    scores = Scores(2, lower_is_better=False, parameters_per_pair=0.5)
    for repeat in (1, 0):
        scores.add(MODEL | {"rank": 2}, repeat, 0.25 + repeat / 4, True)
        scores.add(MODEL | {"rank": 2, "n_negative": 1}, repeat, 0.5 + repeat / 4, False)
    assert_array_equal(scores.curve()[2], [0.5, 0.25])
    table = scores.table()
    assert [row["n_negative"] for row in table] == [0, 1]
    assert [row["converged"] for row in table] == [2, 0]
    assert [row["scores"] for row in table] == [[0.25, 0.5], [0.5, 0.75]]
    assert [row["parameters_per_pair"] for row in table] == [1.0, 1.0]
    assert scores.n_fits == 4


def test_repeats_keep_their_places():
    scores = Scores(3, lower_is_better=True)
    scores.add(MODEL | {"rank": 2}, 2, 0.5, True)
    (row,) = scores.table()
    assert_array_equal(row["scores"], [math.nan, math.nan, 0.5])
    assert math.isnan(row["standard_error"])
    assert row["mean"] == 0.5


@given(st.lists(st.floats(0, 1), min_size=3, max_size=8), st.randoms(use_true_random=False))
@example([0.1, 0.7, 0.2, 0.3, 0.9], random.Random(1))
def test_order_of_arrival_does_not_matter(values, chance):
    """Parallel fits finish in any order, and rounded sums depend on the order of their terms."""

    def table(order):
        scores = Scores(len(values), lower_is_better=True)
        for repeat in order:
            scores.add(MODEL | {"rank": 2}, repeat, values[repeat], True)
        return scores.table()

    repeats = list(range(len(values)))
    assert table(chance.sample(repeats, len(repeats))) == table(repeats)


@pytest.mark.parametrize(
    ("rows", "lower_is_better", "slack", "best", "simplest"),
    [
        ([(5, 1), (3, 1), (2, 1.5), (4, 1)], True, 0, 2, 1),
        ([(5, 1), (3.6, 1), (2, 1.5), (2.1, 9)], True, 0, 2, 2),
        ([(5, 9), (2, 3), (3, 1)], True, 0, 1, 0),  # the bar of the best one counts, not one's own
        ([(6, 9), (2, 3), (3, 1)], True, 0, 1, 1),
        ([(2, 0), (2, 0)], True, 0, 0, 0),  # of equals the simpler
        ([(0.5, 0.1), (0.8, 0.1), (0.9, 0.15)], False, 0, 2, 1),
        ([(0.5, 0.1), (0.8, 0.1), (0.9, 0.05)], False, 0, 2, 2),
        ([(9e-5, 0), (1e-5, 1e-6)], True, 1e-4, 1, 0),
        ([(9e-5, 0), (1e-5, 1e-6)], True, 0, 1, 1),
        ([(5, 1), (2, math.nan), (3, 1)], True, 0, 2, 2),  # a single score is not compared with means
        ([(5, math.nan), (3, math.nan), (2, math.nan)], True, 0, 2, 2),  # unless there is nothing else
    ],
)
def test_one_standard_error(rows, lower_is_better, slack, best, simplest):
    table = [{"mean": mean, "standard_error": bar} for mean, bar in rows]
    assert Scores(2, lower_is_better=lower_is_better, slack=slack).choices(table) == (best, simplest)
