"""Delimiters and comments."""

import pytest

from symrelu.files.text import Lines
from symrelu.graphs.records import detect, is_comment, records_of
from symrelu.graphs.remarks import Doubt


@pytest.mark.parametrize(
    ("name", "text", "delimiter", "doubt"),
    [
        ("f.csv", "a,b\nc,d\n", ",", False),
        ("f.csv", "a;b;0,5\nc;d;1,5\n", ";", False),
        ("f.txt", "a;b;0,5\nc;d;1,5\n", ";", False),
        ("f.txt", "a b 0,5\nc d 1,5\n", " ", True),
        ("f.csv", "x;y,1\nz;y,2\n", ",", True),
        ("f.csv", "x;1,5\nz;2,3\n", ",", True),
        ("f.tsv", "a,b\tc,d\n", "\t", False),
        ("f.csv", "a b,c d\ne f,g h\n", ",", False),
        ("f.csv", "a;b;1.000,5\nc;d;2,0\n", ";", False),
    ],
)
def test_delimiters(tmp_path, name, text, delimiter, doubt):
    (tmp_path / name).write_text(text)
    found, rows, remarks = detect(tmp_path / name, None)
    assert found == delimiter
    assert rows[0] == text.split("\n")[0].split(delimiter)
    assert [isinstance(one, Doubt) for one in remarks] == [True] * doubt


def test_a_delimiter_that_was_chosen(tmp_path):
    (tmp_path / "f.csv").write_text("a;b,c\n")
    assert detect(tmp_path / "f.csv", "semicolon") == (";", [["a", "b,c"]], ())


@pytest.mark.parametrize(
    ("line", "expected"),
    [("# a,b", True), ("#a,b", False), ("#a,b,c", True), ("#", True), ("%\n", True), ("#,b", False)],
)
def test_comments(line, expected):
    assert is_comment(",", 2, line) == expected


def test_records(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text('a,"b\n#c"\n\n  \n# x\nd,e\n')
    with open(path, newline="") as file:
        assert list(records_of(Lines(path, file), ",")) == [["a", "b\n#c"], ["d", "e"]]
