"""The content of a checkpoint as arrays and numbers."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symrelu.fit.snapshots import NUMBERS, Snapshot
from symrelu.fitted.history import History, Record

HISTORY = History.from_records([Record(k, k + 1, 0.5 * k, 0.1, 2.0, 3.0, 4.0) for k in range(3)])
IDENTITY = {"rank": 2, "n_negative": 1}


def snapshot(**changes):
    fields = {
        "state": {"U": np.ones((4, 2)), "damping": np.float64(0.5), "count": 3},
        "best": {"U": np.zeros((4, 2)), "objective": 1.5},
        "signature": np.array([1.0, -1.0]),
        "history": HISTORY,
        "recent_objectives": np.array([3.0, 2.0]),
        "evaluations": 7,
        "seconds": 0.25,
        "next_confirmation": 2,
    }
    return Snapshot(**(fields | changes))


def read_back(one, **changes):
    numbers, arrays = one.entries()
    assert set(numbers) == set(NUMBERS)
    header = json.loads(json.dumps({"identity": IDENTITY, **numbers, **changes}))
    return Snapshot.of_entries(header, {"checkpoint": np.array(""), **arrays})


def test_entries_are_the_snapshot():
    one, other = snapshot(), read_back(snapshot())
    for owner in ("state", "best"):
        before, after = getattr(one, owner), getattr(other, owner)
        assert before.keys() == after.keys()
        for name, value in before.items():
            assert_array_equal(after[name], value)
    assert other.history.records() == one.history.records()
    assert_array_equal(other.signature, one.signature)
    assert_array_equal(other.recent_objectives, one.recent_objectives)
    for name in ("evaluations", "seconds", "next_confirmation"):
        assert getattr(other, name) == getattr(one, name)


@pytest.mark.parametrize(
    ("fields", "numbers", "message"),
    [
        ({"signature": np.array([1.0, 1.0])}, {}, "a different number of negative columns"),
        ({"signature": np.ones(3)}, {}, "not a sign for each column"),
        ({"recent_objectives": np.array([np.inf])}, {}, "not a list of numbers"),
        ({"history": History.from_records([])}, {}, "does not have a row for each step"),
        ({}, {"evaluations": True}, "its evaluations is True, not a count"),
        ({}, {"seconds": 1}, "its seconds are 1"),
        ({}, {"best": []}, r"its best is \[\], not names and numbers"),
    ],
)
def test_wrong_content_is_named(fields, numbers, message):
    with pytest.raises(ValueError, match=message):
        read_back(snapshot(**fields), **numbers)
