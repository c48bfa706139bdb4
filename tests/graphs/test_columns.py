"""Which columns of a table hold the edges."""

import pytest

from symrelu.graphs.columns import (
    ColumnChoice,
    Columns,
    choose_columns,
    declared_direction,
    is_header,
    type_column,
)


@pytest.mark.parametrize(
    ("names", "choice", "expected"),
    [
        (["source", "target"], {}, (0, 1, None)),
        (["Weight", "Target", "Source"], {}, (2, 1, 0)),
        (["id", "from", "to"], {}, (1, 2, None)),
        (["weight", "x", "y"], {}, (1, 2, 0)),
        (["x", "y", "n"], {"weight": "n"}, (0, 1, 2)),
        (["x", "y", "n"], {"weight": 1}, (1, 2, 0)),
        (["x", "y", "n"], {"source": "y", "target": "n"}, (1, 2, None)),
        (["x", "y", "n"], {"source": 3}, (2, 0, None)),
        (["x", "y", "n"], {"source": "3"}, (2, 0, None)),
        (["x", "y", "1"], {"source": "1"}, (2, 0, None)),
        (["source", "target"], {"source": "target"}, (1, 0, None)),
        (["source", "target", "weight"], {"weight": None}, (0, 1, None)),
        (None, {}, (0, 1, 2)),
        (None, {"weight": None}, (0, 1, None)),
        (None, {"source": 2, "target": 3}, (1, 2, None)),
        (None, {"source": 3, "target": 2, "weight": 1}, (2, 1, 0)),
    ],
)
def test_choice(names, choice, expected):
    width = 3 if names is None else len(names)
    assert choose_columns("f.csv", ColumnChoice(**choice), names, width, [False, False, True])[:3] == expected


def test_text_in_the_third_column_is_no_weight():
    columns = choose_columns("f.csv", ColumnChoice(), None, 3, [False] * 3)
    assert columns[:3] == (0, 1, None)
    assert columns.notes == (
        "column 3 was not read, and every edge has weight 1: pass weight= to choose a column",
    )


def test_a_note_on_many_columns_is_short():
    notes = choose_columns("f.csv", ColumnChoice(), None, 60, [True] * 60).notes
    assert notes[1] == "columns 4, 5, 6, 7, 8, ... were not read"


def test_columns_that_may_hold_weights_are_noted():
    columns = choose_columns("f.csv", ColumnChoice(), ["from", "to", "n", "day"], 4, [False] * 4)
    assert columns.notes == (
        "columns 'n', 'day' were not read, and every edge has weight 1: pass weight= to choose a column",
    )
    assert choose_columns("f.csv", ColumnChoice(weight=None), ["from", "to", "n"], 3, [False] * 3).notes == ()


@pytest.mark.parametrize(
    ("names", "choice", "message"),
    [
        (
            ["x"],
            {},
            "f.csv must have a column for each of the two ends of an edge, got 1 column. Pass delimiter=",
        ),
        (
            ["x", "y"],
            {"target": "z"},
            r"must have a column 'z', got the columns \['x', 'y'\]. .* target=\.\.\.",
        ),
        (None, {"weight": "z"}, r"must have a column 'z', got 2 columns without a header"),
        (["x", "y"], {"weight": 3}, "has 2 columns, counted from 1, but weight is 3"),
        (["x", "y"], {"source": 0}, "has 2 columns, counted from 1, but source is 0"),
        (
            ["x", "y", "weight", "Weight"],
            {},
            r"several columns of weights: \['weight', 'Weight'\]. Choose one: we",
        ),
        (["x", "x", "y"], {"source": "x"}, "has several columns 'x'. Pass the number"),
        (["x", "y"], {"source": 1, "target": 1}, "source and target must be different columns, got column 1"),
        (["x", "y", "z"], {"target": 2, "weight": 2}, "the weights must have their own column, got column 2"),
    ],
)
def test_choices_that_are_refused(names, choice, message):
    width = 2 if names is None else len(names)
    with pytest.raises(ValueError, match=message):
        choose_columns("f.csv", ColumnChoice(**choice), names, width, [False] * width)


@pytest.mark.parametrize("column", [True, 1.5, ("a",)])
def test_kinds_of_a_column(column):
    with pytest.raises(
        TypeError, match="source must be the name of a column or its number, counted from 1, got"
    ):
        ColumnChoice(source=column)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["Source", "Target"], True),
        (["id", " FROM", "to "], True),
        (["x", "y", "weight"], True),
        (["#Source", "Target"], True),
        (["source", "to"], False),
        (["ann", "bob"], False),
    ],
)
def test_usual_names(cells, expected):
    assert is_header(cells) == expected


@pytest.mark.parametrize(
    ("names", "columns", "expected"),
    [
        (["Source", "Target", "Type"], (0, 1, None), 2),
        (["Type", "x", "y"], (1, 2, None), 0),
        (["type", "y"], (0, 1, None), None),
        (["x", "y"], (0, 1, None), None),
        (None, (0, 1, 2), None),
    ],
)
def test_the_column_of_types(names, columns, expected):
    assert type_column(names, Columns(*columns, ())) == expected


@pytest.mark.parametrize(
    ("types", "directed", "notes"),
    [
        (set(), False, 0),
        ({"Directed", "directed "}, True, 0),
        ({"Undirected"}, False, 0),
        ({"Directed", "Undirected"}, False, 1),
        ({"friend"}, False, 0),
    ],
)
def test_declared_directions(types, directed, notes):
    found, said = declared_direction(types)
    assert (found, len(said)) == (directed, notes)
