"""Which columns of a table hold the edges."""

import pytest

from symrelu.graphs.cells import Facts, facts_of
from symrelu.graphs.columns import (
    ColumnChoice,
    Columns,
    choose_columns,
    declared_direction,
    is_header,
    type_column,
)
from symrelu.graphs.remarks import Doubt

TEXT, NUMBERS = facts_of(["x", "y"]), facts_of(["5", "0.5"])
FACTS = [TEXT, TEXT, NUMBERS]


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
    assert choose_columns("f.csv", ColumnChoice(**choice), names, FACTS[: len(names or FACTS)])[:3] == expected


def test_text_in_the_third_column_is_no_weight():
    columns = choose_columns("f.csv", ColumnChoice(), None, [TEXT] * 3)
    assert columns[:3] == (0, 1, None)
    assert isinstance(columns.notes[0], Doubt)


def test_a_remark_on_many_columns_is_short():
    (remark,) = choose_columns("f.csv", ColumnChoice(), None, [NUMBERS] * 60).notes
    assert "columns 1, 2 were read as the two ends, column 3 as the weights" in remark
    assert "and columns 4, 5, 6, 7, 8, ... not at all." in remark
    assert isinstance(remark, Doubt)


def test_columns_that_may_hold_weights_are_a_doubt():
    names = ["from", "to", "n", "day"]
    (remark,) = choose_columns("f.csv", ColumnChoice(), names, [TEXT, TEXT, NUMBERS, NUMBERS]).notes
    assert remark == (
        "columns 'from', 'to' were read as the two ends, every edge has weight 1, and columns 'n', 'day' not "
        "at all. Pass source= and target= for other ends, weight= for other weights, or weight=None for none"
    )
    assert isinstance(remark, Doubt)
    assert choose_columns("f.csv", ColumnChoice(weight=None), names[:3], [TEXT, TEXT, NUMBERS]).notes == ()
    (note,) = choose_columns("f.csv", ColumnChoice(), names, [TEXT] * 4).notes
    assert note == "columns 'n', 'day' were not read, and every edge has weight 1"
    assert not isinstance(note, Doubt)


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
        choose_columns("f.csv", ColumnChoice(**choice), names, [TEXT] * width)


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
        (["x", "y", "Gewicht"], True),
        (["x", "weight", "y"], False),
        (["#Source", "Target"], True),
        (["Quelle", "Ziel"], True),
        (["source", "to"], False),
        (["ann", "bob"], False),
        (["a", "b"], False),
        (["node1", "node2"], False),  # they are nodes of other lines too
    ],
)
def test_usual_names(cells, expected):
    assert is_header(cells, FACTS[: len(cells)], {"node1", "node2"}) == expected


def test_a_header_with_nothing_after_it():
    assert is_header(["x", "y", "weight"], [Facts()] * 3, set())
    assert not is_header(["x", "y", "score"], [Facts()] * 3, set())


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
    ("types", "directed", "doubts"),
    [
        (set(), False, 0),
        ({"Directed", "directed "}, True, 0),
        ({"Undirected"}, False, 0),
        ({"Directed", "Undirected"}, False, 1),
        ({"friend"}, False, 0),
    ],
)
def test_declared_directions(types, directed, doubts):
    found, said = declared_direction(types)
    assert (found, len(said)) == (directed, doubts)
    assert all(isinstance(one, Doubt) for one in said)


DATES = facts_of(["2024-05-01", "2.5.2024"])


@pytest.mark.parametrize(
    ("names", "facts", "expected"),
    [
        (
            ["Datum", "Kunde von", "Kunde nach", "Gewicht", "Notiz"],
            [DATES, TEXT, TEXT, NUMBERS, TEXT],
            (1, 2, 3),
        ),
        (["Datum", "Kunde", "Haendler", "Gewicht"], [DATES, TEXT, TEXT, NUMBERS], (1, 2, 3)),
        (["who", "whom", "from", "to"], [TEXT, TEXT, DATES, DATES], (0, 1, None)),
        (None, [DATES, TEXT, TEXT, NUMBERS], (1, 2, 3)),
        (None, [TEXT, TEXT, DATES, NUMBERS], (0, 1, 3)),
        (None, [TEXT, TEXT, NUMBERS, DATES], (0, 1, 2)),
    ],
)
def test_dates_are_no_ends(names, facts, expected):
    columns = choose_columns("f.csv", ColumnChoice(), names, facts)
    assert columns[:3] == expected
    assert not any(isinstance(note, Doubt) for note in columns.notes)


def test_dates_are_ends_if_they_are_chosen():
    with pytest.raises(
        ValueError, match=r"column 2 holds dates\. If dates are nodes, pass source= and target="
    ):
        choose_columns("f.csv", ColumnChoice(), None, [TEXT, DATES])
    assert choose_columns("f.csv", ColumnChoice(source=1, target=2), None, [TEXT, DATES])[:2] == (0, 1)


def test_words_of_a_header():
    assert is_header(["Kunde von", "Kunde nach"], [TEXT, TEXT], {"ann", "bob"})
    assert not is_header(["letter from Ann", "to Bob"], [TEXT, TEXT], {"ann", "bob"})


def test_a_misspelt_column():
    with pytest.raises(ValueError, match="Pass the right one: weight='Gewicht', perhaps"):
        choose_columns("f.csv", ColumnChoice(weight="gewicht"), ["von", "nach", "Gewicht"], FACTS)
    with pytest.raises(ValueError, match=r"Pass the right one: weight=\.\.\.$"):
        choose_columns("f.csv", ColumnChoice(weight="xyz"), ["von", "nach", "Gewicht"], FACTS)
