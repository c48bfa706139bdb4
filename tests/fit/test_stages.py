"""Passes over matrices of several sizes, in units of passes over the largest."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from symrelu.fit.stages import Stage


def test_a_stage_alone_counts_its_passes():
    stage = Stage(7)
    assert (stage.level, stage.evaluations) == (0, 0)
    assert stage.after(5, 7).evaluations == 5
    assert_array_equal(stage.expanded(np.eye(2)), np.eye(2))


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 10**6)), max_size=6))
def test_passes_are_weighted_by_their_pairs_and_rounded_up_once(passes):
    stage = Stage(10**6)
    for count, n in passes:
        stage = stage.after(count, n)
    exact = sum(Fraction(count * n * n, 10**12) for count, n in passes)
    assert 0 <= stage.evaluations - exact < 1


def test_time_is_that_of_the_end():
    stage = Stage(4).after(3, 2, 1.5)
    assert (stage.seconds, stage.after(1, 4).seconds, stage.after(1, 4, 2.0).seconds) == (1.5, 1.5, 2.0)
