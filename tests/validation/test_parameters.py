"""Single values that users pass."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from symrelu.validation import random_generator
from symrelu.validation.parameters import (
    check_callback,
    check_choice,
    check_integer,
    check_items,
    check_number,
    check_verbose,
)


@pytest.mark.parametrize(("seed", "error"), [("zero", TypeError), (-1, ValueError), (1.5, TypeError)])
def test_bad_random_state(seed, error):
    with pytest.raises(error, match="random_state must be"):
        random_generator(seed)


def drawn(random_state, stream=None):
    return random_generator(random_state, stream).standard_normal(4).tolist()


@given(
    seed=st.integers(0, 2**100),
    streams=st.sets(st.one_of(st.none(), st.integers(0, 99)), min_size=2, max_size=5),
)
def test_one_seed_gives_the_same_numbers_again_and_others_in_each_stream(seed, streams):
    results = [tuple(drawn(seed, stream)) for stream in streams]
    assert results == [tuple(drawn(seed, stream)) for stream in streams]
    assert len(set(results)) == len(streams)


@given(seed=st.integers(0, 2**32))
def test_a_seed_without_a_stream_is_that_of_numpy(seed):
    assert drawn(seed) == drawn(np.int64(seed)) == np.random.default_rng(seed).standard_normal(4).tolist()


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_a_generator_goes_on(kind):
    generator = kind(0)
    assert random_generator(generator) is random_generator(generator, 3) is generator


def test_without_a_seed_numbers_differ():
    assert drawn(None) != drawn(None)


NO_NUMBERS = ["1", None, 1j, [1], True, np.True_, Decimal(1)]


@given(value=st.integers(-20, 20), low=st.integers(-5, 5), high=st.one_of(st.none(), st.integers(5, 10)))
def test_integers_within_their_bounds_pass(value, low, high):
    inside = low <= value and (high is None or value <= high)
    for given_value in (value, np.int64(value), np.int8(value)):
        if inside:
            assert type(check_integer("count", given_value, low, high)) is int
            assert check_integer("count", given_value, low, high) == value
        else:
            with pytest.raises(ValueError, match=rf"count must be an integer .*, got .*{value}"):
                check_integer("count", given_value, low, high)


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1.0, np.float64(1), Fraction(1)], ids=repr)
def test_what_is_no_integer_is_not_made_one(value):
    with pytest.raises(TypeError, match=r"count must be an integer of at least 0 \(so many\), got"):
        check_integer("count", value, 0, note=" (so many)")


@given(
    value=st.floats(),
    low=st.sampled_from([0.0, -1.0, 0.5]),
    high=st.sampled_from([1.0, math.inf]),
    low_included=st.booleans(),
)
def test_numbers_within_their_bounds_pass(value, low, high, low_included):
    above = low <= value if low_included else low < value
    if above and value <= high and math.isfinite(value):
        found = check_number("size", np.float64(value), low, high, low_included=low_included)
        assert type(found) is float
        assert found == value
    else:
        with pytest.raises(ValueError, match="size must be a"):
            check_number("size", value, low, high, low_included=low_included)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_not_made_one(value):
    with pytest.raises(TypeError, match="size must be a finite number >= 0, got"):
        check_number("size", value)


@pytest.mark.parametrize("value", [1, np.float32(1), np.uint8(1), Fraction(1)], ids=repr)
def test_every_kind_of_real_number_is_one(value):
    assert type(check_number("size", value)) is float


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ({}, "a finite number >= 0"),
        ({"low_included": False}, "a finite number > 0"),
        ({"high": 1.0}, r"a number in \[0, 1\]"),
        ({"high": 1.0, "low_included": False}, r"a number in \(0, 1\]"),
        ({"low": -0.5, "high": 2.0}, r"a number in \[-0.5, 2\]"),
    ],
)
def test_bounds_are_named(bounds, text):
    with pytest.raises(ValueError, match=rf"size must be {text}, got -7"):
        check_number("size", -7, **bounds)


def test_choices():
    assert check_choice("kind", "b", ("a", "b")) == "b"
    for wrong in ("c", "", None, 1, ["a"]):
        with pytest.raises(ValueError, match="kind must be one of 'a', 'b' or a number, got"):
            check_choice("kind", wrong, ("a", "b"), "a number")
    with pytest.raises(ValueError, match="kind must be 'a', got 'b'"):
        check_choice("kind", "b", ("a",))


@given(n=st.integers(1, 50), items=st.lists(st.integers(-60, 60), max_size=8))
def test_numbers_of_items(n, items):
    outside = [item for item in items if not 0 <= item < n]
    if outside:
        with pytest.raises(IndexError, match=f"rows must be from 0 to {n - 1}, .* got {outside[0]}"):
            check_items("rows", items, n)
    else:
        assert_array_equal(check_items("rows", items, n), np.array(items, np.int64), strict=True)


def test_one_item_is_a_list_of_one():
    assert_array_equal(check_items("rows", np.uint8(3), 5), [3])
    for wrong in ([0.0], [True], ["0"], [None]):
        with pytest.raises(TypeError, match="rows must be integers"):
            check_items("rows", wrong, 5)


@pytest.mark.parametrize(("verbose", "level"), [(False, 0), (True, 1), (0, 0), (2, 2), (np.int64(3), 3)])
def test_verbose(verbose, level):
    assert check_verbose(verbose) == level
    assert type(check_verbose(verbose)) is int


@pytest.mark.parametrize(("verbose", "error"), [(-1, ValueError), (1.0, TypeError), ("yes", TypeError)])
def test_bad_verbose(verbose, error):
    with pytest.raises(error, match="verbose must be an integer of at least 0"):
        check_verbose(verbose)


def test_callbacks():
    assert check_callback(None) is None
    assert check_callback(print) is print
    with pytest.raises(TypeError, match="callback must be callable or None, got list"):
        check_callback([print])
