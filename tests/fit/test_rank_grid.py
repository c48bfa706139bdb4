"""The settings that are compared, and the ranks tried by default."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symrelu.fit import rank_grid
from symrelu.problem import Problem


@pytest.mark.parametrize(
    ("matrix", "ranks"),
    [
        (np.ones((8, 8)), [1, 2]),  # n / 4
        (np.ones((32, 32)), [1, 2, 3, 4, 6, 8]),
        (np.eye(64) + np.eye(64, k=1) + np.eye(64, k=-1), [1, 2, 3, 4, 6, 8, 12]),  # 127 positive pairs
        (np.ones((600, 600)), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]),
        (np.ones((1, 1)), [1]),
    ],
)
def test_default_ranks(matrix, ranks):
    assert rank_grid.default_ranks(Problem.of(matrix)) == ranks


values = st.lists(st.integers(1, 9), min_size=1, unique=True)
negatives = st.lists(st.sampled_from([0, 1, 2, "auto"]), min_size=1, unique=True)
weights = st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=1, unique=True)


@given(values, negatives, weights, weights)
def test_every_combination_with_a_positive_column_is_tried_once(ranks, n_negative, alpha, zero_weight):
    grid = rank_grid.grid_of(ranks, n_negative, alpha, zero_weight)
    models = [(r, k) for r in ranks for k in n_negative if k == "auto" or k < r]
    assert len(grid) == len(models) * len(alpha) * len(zero_weight)
    assert {(setting["rank"], setting["n_negative"]) for setting in grid} == set(models)
    assert grid == sorted(grid, key=rank_grid.complexity)
    assert [setting["rank"] for setting in grid] == sorted(setting["rank"] for setting in grid)


def test_values_are_distinct_and_validated():
    axes = rank_grid.check_axes(9, np.array([3, 2, 3]), (1, "auto", 1), 0.5, [1, 1.0])
    assert axes == ([3, 2], [1, "auto"], [0.5], [1.0])
    with pytest.raises(ValueError, match=r"ranks must have one larger than n_negative, got ranks \[2\] and"):
        rank_grid.check_axes(9, 2, 2, 0.0, 1.0)
