"""What cells look like."""

import pytest

from symrelu.graphs.cells import Facts, facts_of, is_date, is_number, looks_like_a_number, number_with_comma


@pytest.mark.parametrize(
    ("cells", "options", "numeric", "decimal"),
    [
        (["1", "0.5", "", "1e-3"], {}, True, "."),
        (["1", "x"], {}, False, "."),
        ([], {}, False, "."),
        (["", " "], {}, False, "."),
        (["1_0"], {}, False, "."),
        (["0,75", "1"], {"delimiter": ";"}, True, ","),
        (["0,750", "1,250"], {"delimiter": ";"}, True, ","),
        (["1,5e3", "-,5"], {"delimiter": ";"}, True, ","),
        (["1,234", "12,345"], {"delimiter": ";"}, True, "?"),
        (["1,234,567", "1"], {"delimiter": ";"}, False, "."),
        (["0,75"], {"delimiter": ","}, True, "?"),
        (["1,234"], {"delimiter": ",", "decimal": ","}, True, ","),
        (["1", "2"], {"decimal": ","}, True, ","),
        (["0.5"], {"decimal": ","}, False, "."),
        (["0,5"], {"decimal": "."}, False, "."),
        (["0.5", "0,5"], {}, False, "."),
    ],
)
def test_numbers(cells, options, numeric, decimal):
    assert facts_of(cells, **options)[:2] == (numeric, decimal)


@pytest.mark.parametrize(
    ("cells", "counts", "distinct", "times"),
    [
        (["0", "1", "2"], True, True, False),
        (["1", "2", "3"], True, True, False),
        (["1", "2"], False, True, False),
        (["2", "3", "4"], False, True, False),
        (["1", "2", "2"], False, False, False),
        (["1.0", "2.0", "3.0"], False, False, False),
        (["1082040961", "1082155839"], False, True, True),
        (["1082040961", "5"], False, True, False),
        (["a", "b", "c"], False, False, False),
    ],
)
def test_integers(cells, counts, distinct, times):
    facts = facts_of(cells)
    assert (facts.counts, facts.distinct, facts.times) == (counts, distinct, times)


def test_nothing_is_known_of_no_cells():
    assert facts_of([""]) == Facts()
    assert not Facts().distinct


@pytest.mark.parametrize("cell", ["1.234,5", "5 %", "1_000", "1'000", "\u22125", "€ 7", "3", "1e5", "nan"])
def test_what_people_take_for_numbers(cell):
    assert looks_like_a_number(cell)


@pytest.mark.parametrize("cell", ["x1", "a", "", "1a", "e5", "-"])
def test_what_nobody_takes_for_a_number(cell):
    assert not looks_like_a_number(cell)
    assert not is_number(cell)


def test_a_point_may_separate_thousands():
    assert number_with_comma("-1,5") == -1.5
    for cell in ("1.500", "1.500,5", "x"):
        with pytest.raises(ValueError, match=r"^$|could not convert"):
            number_with_comma(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "2024-05-01",
        "2024-05",
        "1.5.2024",
        "01/05/24",
        "2024-05-01T10:20:30.5+02:00",
        "5/1/2024 9:05 pm",
        "23:59",
    ],
)
def test_dates(cell):
    assert is_date(cell)
    assert facts_of([cell, "", cell]).dates


@pytest.mark.parametrize(
    "cell", ["", "2024", "20240501", "10.0.0.1", "1.2.3", "555-1234", "a-2024-05-01", "1.5"]
)
def test_no_dates(cell):
    assert not is_date(cell)
    assert not facts_of(["2024-05-01", cell or "x"]).dates
