"""Tables as files: what is written is what is read again, and no spreadsheet runs it."""

import csv
import errno
import gzip
import io
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symrelu.cli import tables
from symrelu.cli.tables import check_table_output, embedding_columns, is_table, node_names, write_table
from symrelu.graphs import read_graph

COLUMNS = {
    "node": np.array(["ann", "", 'say "hi"', "two\nlines", "a,b;c\td", "Zoë 日本", "007"], dtype=object),
    "score": np.array([0.1, 1 / 3, 1e-300, np.nan, 2.0, -5.5, 1e22]),
    "cluster": np.arange(7),
}
FLOATS = [0.1, 1 / 3, 1e-300, None, 2.0, -5.5, 1e22]


@pytest.mark.parametrize("extension", ["csv", "tsv", "csv.gz"])
def test_names_that_begin_like_a_comment_are_read_again(tmp_path, extension):
    path = tmp_path / f"links.{extension}"
    names = ["# a", "#b", "%", "% d"]
    write_table(path, {"source": names, "target": names[1:] + names[:1], "weight": [1.0, 2.0, 3.0, 4.0]})
    assert read_graph(path).labels.tolist() == names


def read_separated(text, separator):
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


@pytest.mark.parametrize(
    ("name", "separator"), [("t.csv", ","), ("t.tsv", "\t"), ("t.csv.gz", ","), ("T.CSV", ",")]
)
def test_separated_values_are_read_again(tmp_path, name, separator):
    write_table(tmp_path / name, COLUMNS)
    content = (tmp_path / name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    table = read_separated(text, separator)
    assert list(table["node"]) == COLUMNS["node"].tolist()
    assert [float(cell) if cell else None for cell in table["score"]] == FLOATS
    assert [int(cell) for cell in table["cluster"]] == list(range(7))


@pytest.mark.parametrize("name", ["t.csv", "t.json"])
def test_long_tables_are_written_in_parts(tmp_path, monkeypatch, name):
    write_table(tmp_path / name, COLUMNS)
    whole = (tmp_path / name).read_bytes()
    monkeypatch.setattr(tables, "_ROWS_AT_ONCE", 3)
    write_table(tmp_path / name, COLUMNS)
    assert (tmp_path / name).read_bytes() == whole


@pytest.mark.parametrize(("name", "content"), [("t.csv", "a\n"), ("t.json", "[]\n")])
def test_tables_without_rows(tmp_path, name, content):
    write_table(tmp_path / name, {"a": []})
    assert (tmp_path / name).read_text() == content


def test_json_is_a_list_of_rows(tmp_path):
    write_table(tmp_path / "t.json", COLUMNS)
    rows = json.loads((tmp_path / "t.json").read_text())
    assert [row["node"] for row in rows] == COLUMNS["node"].tolist()
    assert [row["score"] for row in rows] == FLOATS
    assert list(rows[0]) == list(COLUMNS)


def test_parquet_is_read_again(tmp_path):
    pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    from pyarrow import parquet

    write_table(tmp_path / "t.parquet", COLUMNS | {"mixed": [1, "a", None, 2, 3, 4, 5]})
    table = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert table["node"] == COLUMNS["node"].tolist()
    assert table["score"] == FLOATS
    assert table["mixed"] == ["1", "a", None, "2", "3", "4", "5"]


def test_parquet_without_pyarrow_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape("pip install 'symrelu[tables]'")):
        check_table_output(tmp_path / "t.parquet")
    check_table_output(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t", "t.npz", "t.xlsx", "csv"])
def test_other_extensions_are_refused(tmp_path, name):
    assert not is_table(tmp_path / name)
    with pytest.raises(ValueError, match=r"must end in \.csv, .* or \.json, or be - for stdout, got"):
        check_table_output(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd", "'+cmd"),
        ("-2+3", "'-2+3"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("-5", "-5"),
        ("+1.5e-3", "+1.5e-3"),
        ("-.5", "-.5"),
        ("-inf", "'-inf"),
        ("a=1", "a=1"),
        ("'=1", "''=1"),
        ("''=1", "'''=1"),
        (" =1", "' =1"),
        ("\u00a0 @x", "'\u00a0 @x"),
        ("\uff1d1", "'\uff1d1"),
        ("\uff0b1+1", "'\uff0b1+1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20x", "'\uff20x"),
        ("'tis", "'tis"),
        (" a=1", " a=1"),
    ],
)
def test_formulas_are_text(tmp_path, text, cell):
    write_table(tmp_path / "t.csv", {text: [text]})
    assert read_separated((tmp_path / "t.csv").read_bytes().decode(), ",") == {cell: (cell,)}
    write_table(tmp_path / "t.json", {text: [text]})
    assert json.loads((tmp_path / "t.json").read_text()) == [{text: text}]


@given(st.lists(st.text("'=+-@ \t1a"), unique=True))
def test_different_names_stay_different(names):
    assert len({tables._separated_cell(name) for name in names}) == len(names)


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1))
def test_no_text_becomes_a_formula_or_another_cell(texts):
    file = io.BytesIO()
    tables._write_separated(",", file, {"name": texts, "number": list(range(len(texts)))})
    table = read_separated(file.getvalue().decode(), ",")
    for text, cell in zip(texts, table["name"], strict=True):
        assert cell in (text, f"'{text}")
        assert not cell.startswith(("\t", "\r", "\n"))
        assert not cell.lstrip().startswith(("=", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
        assert not cell.lstrip().startswith(("+", "-")) or isinstance(float(cell), float)
    assert list(table["number"]) == [str(number) for number in range(len(texts))]


def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch):
    def full(file, columns):
        file.write(b"node")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(tables._WRITERS, ".csv", full)
    with pytest.raises(OSError, match=r"t\.csv could not be written: No space left on device"):
        write_table(tmp_path / "t.csv", COLUMNS)
    assert not list(tmp_path.iterdir())


def test_columns_of_different_lengths_leave_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"must have the same length, got \{'a': 2, 'b': 1\}"):
        write_table(tmp_path / "t.csv", {"a": [1, 2], "b": [1]})
    assert not list(tmp_path.iterdir())


def test_names_of_nodes():
    assert node_names(None, 3) == [0, 1, 2]
    assert node_names(np.array(["a", ("b", 1)], dtype=object), 2) == ["a", "('b', 1)"]
    columns = embedding_columns(None, np.eye(2))
    assert list(columns) == ["node", "x1", "x2"]
