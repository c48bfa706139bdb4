"""Notes and doubts."""

import pytest

from symrelu.graphs import GraphFileWarning
from symrelu.graphs.remarks import Doubt, warn_of


def test_doubts_are_warnings_and_notes_are_returned():
    with pytest.warns(GraphFileWarning) as given:
        assert warn_of("a.csv", ["one", Doubt("two: pass weight="), "three"]) == ("one", "three")
    assert [str(one.message) for one in given] == ["a.csv: two: pass weight=."]
    assert given[0].filename == __file__


def test_without_doubts():
    assert warn_of("a.csv", iter(["one"])) == ("one",)
    assert issubclass(GraphFileWarning, UserWarning)
