"""Usual names of columns."""

import pytest

from symrelu.graphs.column_names import clear_ends, is_index, is_no_weight, usual_ends, weight_columns


@pytest.mark.parametrize(
    ("names", "clear", "usual"),
    [
        (["Source", "Target"], (0, 1), (0, 1)),
        (["to", "x", "FROM"], (2, 0), (2, 0)),
        (["id", "Von", "Nach"], (1, 2), (1, 2)),
        (["origine", "destination"], (0, 1), (0, 1)),
        (["Origen", "Destino"], (0, 1), (0, 1)),
        (["From Node", "To-Node"], (0, 1), (0, 1)),
        (["Datum", "Kunde von", "Kunde nach", "Gewicht"], None, (1, 2)),
        (["customer_to", "n", "Customer-From"], None, (2, 0)),
        (["source city", "target airport"], None, (0, 1)),
        (["person_a", "person_b", "price_from", "price_to"], None, (0, 1)),
        (["Kunde von", "Kunde nach", "Ort von", "Ort nach"], None, None),
        (["who", "whom", "date from", "date to"], None, None),
        (["first name", "second name"], None, None),
        (["from here to there", "x"], None, None),
        (["fromage", "today"], None, None),
        (["b", "a"], None, (1, 0)),
        (["i", "j", "w"], None, (0, 1)),
        (["u", "v"], None, (0, 1)),
        (["protein1", "protein2", "score"], None, (0, 1)),
        (["x", "city_a", "city_b"], None, (1, 2)),
        (["name1", "name2", "age1", "age2"], None, None),
        (["1", "2"], None, None),
        (["a1", "b2"], None, None),
        (["ann", "bob"], None, None),
    ],
)
def test_ends(names, clear, usual):
    assert clear_ends(names) == clear
    assert usual_ends(names) == usual


@pytest.mark.parametrize(
    ("names", "numeric", "expected"),
    [
        (["a", "b", "Score"], [False, False, True], [2]),
        (["a", "b", "Score"], [False, False, False], []),
        (["a", "b", "weight", "score"], [False, False, False, True], [2]),
        (["a", "b", "value", "Count"], [False, False, True, True], [2, 3]),
        (["a", "b", "year"], [False, False, True], []),
    ],
)
def test_weights(names, numeric, expected):
    assert weight_columns(names, numeric) == expected


def test_columns_that_hold_something_else():
    assert all(map(is_index, ["", "id", "Index", "Unnamed: 0", " # ", "Edge ID", "__index_level_0__"]))
    assert not any(map(is_index, ["source", "a", "weight"]))
    assert all(map(is_no_weight, ["Year", "timestamp", "Id", "Type"]))
    assert not any(map(is_no_weight, ["km", "n", "weight", "number"]))
