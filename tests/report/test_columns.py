import numpy as np
import pytest
import report_pages

from symrelu.report.columns import Column, first_colour, given_columns, natural


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        (["b", "a", None, "b"], "category", ["b", "a", None, "b"]),
        ([True, False], "category", ["yes", "no"]),
        ([3, 1, 3], "category", ["3", "1", "3"]),  # few integers are classes
        (list(range(-20, 20)), "integer", list(range(-20, 20))),
        ([None, *range(20)], "integer", [None, *range(20)]),
        ([0.5, float("nan"), 2], "number", [0.5, None, 2.0]),
        ([2.5, 2.0**40], "number", [2.5, 2.0**40]),
        # Numbers of accounts and the like stay exact, as integers or as texts.
        ([2**40 + k for k in range(20)], "integer", [2**40 + k for k in range(20)]),
        ([k - 2**52 for k in range(1, 20)], "integer", [k - 2**52 for k in range(1, 20)]),
        ([2**52 - k for k in range(1, 20)], "integer", [2**52 - k for k in range(1, 20)]),
        ([2**52 + k for k in range(20)], "category", [str(2**52 + k) for k in range(20)]),
        ([10**400, 0.5], "category", [str(10**400), "0.5"]),
        ([16777217.0, float("nan"), 3.0], "integer", [16777217, None, 3]),  # integers of pandas
        ([1e200, 1.0], "number", [float(np.finfo(np.float32).max), 1.0]),
        (np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), "category", ["2020-01-01", None]),
        (np.array([5, "NaT"], dtype="timedelta64[ns]"), "category", ["5 nanoseconds", None]),
        (np.array([0.25, np.inf], dtype=np.float32), "number", [0.25, None]),
        ([f"title {k}" for k in range(300)], "text", [f"title {k}" for k in range(300)]),
        ([("a", 1), ("b", 2)], "category", ["('a', 1)", "('b', 2)"]),
        ([1, "x"], "category", ["1", "x"]),
        (["", None], "category", [None, None]),
        (list(map(np.array, [1, 1.5])), "number", [1.0, 1.5]),  # as tensors are
    ],
)
def test_kinds_and_values(values, kind, read):
    column = Column.of("c", values)
    assert column.kind == kind
    assert report_pages.column({"columns": [column.encoded()]}, "c") == read


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    column = Column.of("c", pandas.Series([pandas.NA, "a", pandas.NaT], dtype=object))
    assert (column.kind, column.values) == ("category", [None, "a", None])
    column = Column.of("c", pandas.Series([None, *range(20)], dtype="Int64"))
    assert (column.kind, column.values) == ("integer", [None, *range(20)])


def test_clusters_are_categories_in_the_order_of_their_numbers():
    column = Column.of("cluster", np.arange(20)[::-1], category=True)
    assert column.encoded()["categories"] == [str(k) for k in range(20)]


def test_order_of_texts():
    assert sorted(["b", "10", "nan", "2", "-1.5"], key=natural) == ["-1.5", "2", "10", "b", "nan"]


def test_numbers_of_categories():
    column = Column.of("cluster", [10, None, 9, float("nan"), "x"], category=True)
    assert column.categories == ["9", "10", "x"]
    assert column.codes().tolist() == [1, -1, 0, -1, 2]


def test_names_that_are_taken_are_changed():
    found = given_columns(2, ["degree"], {"degree": [5, 6], "node": ["a", "b"], 3: [1, 2], "3": [1, 2]})
    assert [column.name for column in found] == ["degree (given)", "node (given)", "3", "3 (given)"]
    assert given_columns(2, [], None) == []


def test_a_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match="one entry for each of the 2 nodes, got 3 in 'size'"):
        given_columns(2, [], {"size": [1, 2, 3]})


def test_free_texts_colour_no_map():
    texts, sizes = Column.of("title", map(str, range(300))), Column.of("size", [0.5] * 300)
    assert texts.kind == "text"
    assert first_colour([texts, sizes]) == "size"
    assert first_colour([texts]) is None
    assert first_colour([Column.of("cluster", [None, None]), sizes]) == "size"
