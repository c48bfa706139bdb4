"""Counts over all pairs on a torch device, compared with those of the host."""

import numpy as np
import pytest
from example_graphs import random_graph
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from symrelu.fitted.certificate import rounding_of_sums
from symrelu.kernels import neighbor_counts
from symrelu.kernels.neighbor_counts import edges_of

pytest.importorskip("torch")

from small_blocks import DEVICES, small_blocks

from symrelu.fitted.counts_on_device import certain_counts, other_scores

pytestmark = pytest.mark.parametrize("device", DEVICES)

GRAPHS = {
    "n": st.integers(2, 40),
    "share": st.floats(0, 1),
    "seed": st.integers(0, 2**16),
    "numbers": st.sampled_from([1, 100, 2**19]),
}


def quarters(n, rank, seed, dtype):
    """Return factors whose scores have no rounding errors, and are often equal or exactly at a level."""
    rng = np.random.default_rng(seed)
    items = (rng.integers(-6, 7, (n, rank)) / 4).astype(dtype)
    return items * rng.choice([-1.0, 1.0], rank).astype(dtype), items


@given(dtype=st.sampled_from(["float32", "float64"]), first=st.sampled_from([-1.0, 0.0, 0.1, 50.0]), **GRAPHS)
def test_scores_of_other_pairs(device, n, share, seed, numbers, dtype, first):
    left, right = quarters(n, 3, seed, dtype)
    edges, levels = edges_of(random_graph(n, share, seed)), np.linspace(first, first + 2, 9)
    expected, highest = neighbor_counts.other_scores(left, right, edges, levels)
    with small_blocks(numbers):
        counts, largest = other_scores(left, right, edges, levels, device=device)
    assert_array_equal(counts, expected)
    assert counts.dtype == expected.dtype
    assert largest == highest


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite(device, value):
    left, right = quarters(6, 2, 0, "float32")
    left[2, 0], right[3] = value, 0
    edges, levels = edges_of(random_graph(6, 0.3, 0)), np.linspace(0, 1, 5)
    expected = neighbor_counts.other_scores(left, right, edges, levels)
    counts, largest = other_scores(left, right, edges, levels, device=device)
    assert_array_equal(counts, expected[0])
    assert_array_equal(largest, expected[1])


def test_a_level_between_two_scores_of_float32(device):
    left, right = np.ones((2, 1), np.float32), np.full((2, 1), 0.1, np.float32)
    edges = edges_of(random_graph(2, 0.0, 0))
    for first in (0.1, float(np.float32(0.1))):  # the score is above the first, and equal to the second
        levels = np.array([first, first + 1])
        expected = neighbor_counts.other_scores(left, right, edges, levels)[0]
        assert_array_equal(other_scores(left, right, edges, levels, device=device)[0], expected)
        assert expected[0] == (2 if first == 0.1 else 0)


@given(threshold=st.sampled_from([0.0, 0.25, 1.0, -0.5, 0.1]), **GRAPHS)
def test_comparison_with_a_threshold(device, n, share, seed, numbers, threshold):
    left, right = quarters(n, 3, seed, "float64")
    task = edges_of(random_graph(n, share, seed)), threshold, rounding_of_sums(3)
    expected = neighbor_counts.certain_counts(left, right, *task)
    with small_blocks(numbers):
        found = certain_counts(left, right, *task, device=device)
    assert found[:2] == expected[:2]
    assert found.margin == pytest.approx(expected.margin, rel=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_scores_that_are_not_finite_or_too_large_are_wrong(device, value, share):
    left, right = quarters(7, 2, 1, "float64")
    left[3, 1] = right[3, 1] = value
    task = edges_of(random_graph(7, share, 0)), 0.5, rounding_of_sums(2)
    expected = neighbor_counts.certain_counts(left, right, *task)
    found = certain_counts(left, right, *task, device=device)
    assert found[:2] == expected[:2]
    assert found.margin == pytest.approx(expected.margin, rel=1e-12)
    assert expected.missing + expected.extra >= 6 or value == 1e30
