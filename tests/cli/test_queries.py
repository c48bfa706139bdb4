"""Nodes named on the command line, pairs in files, and tables of answers."""

import gzip
import os
import struct
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symrelu.cli.queries import NodeFinder, asking_by_index, has_entry, preview, read_pairs, records
from symrelu.graphs import GraphFileWarning


def test_nodes_are_found_by_name():
    finder = NodeFinder(np.array(["ann", "Ørsted", "3", 7, ("a", 1)], object), 5)
    assert_array_equal(finder.indices(["Ørsted", "ann", "7", "('a', 1)", "3", "ann"]), [1, 0, 3, 4, 2, 0])
    assert finder.named([1, 3]) == ["Ørsted", 7]
    with pytest.raises(
        ValueError, match=r"'orsted' is not one of the 5 names of nodes. The closest one is 'Ørsted'"
    ):
        finder.indices(["orsted"])


def test_nodes_without_names_are_found_by_number():
    finder = NodeFinder(None, 3)
    assert_array_equal(finder.indices(["2", "0"]), [2, 0])
    assert finder.named([2]) == [2]
    assert finder.indices([]).dtype == np.int64
    with pytest.raises(ValueError, match="'3' is not one of the 3 names of nodes"):
        finder.indices(["3"])


def test_names_that_two_nodes_have_are_refused():
    with pytest.raises(ValueError, match="'7' must belong to one node, but 2 nodes have it"):
        NodeFinder(np.array([7, "7"], object), 2).indices(["7"])


@pytest.mark.parametrize(
    "text",
    [
        "source,target\nann,bob\nbob,ann\nann,ann\n",
        "ann bob\nbob ann\nann ann\n",
        "ann\tbob\nbob\tann\nann\tann\n",
    ],
)
def test_pairs_are_read_in_order(text, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(text)
    assert read_pairs(path) == (["ann", "bob", "ann"], ["bob", "ann", "ann"])


def test_a_third_column_of_pairs_is_ignored(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("ann,bob,x\nbob,cid,y\n")
    with pytest.warns(GraphFileWarning, match="columns 1, 2 were read as the two ends"):
        assert read_pairs(path) == (["ann", "bob"], ["bob", "cid"])
    path.write_text("ann,bob,1\nbob,cid,5\n")
    assert read_pairs(path) == (["ann", "bob"], ["bob", "cid"])


def test_pairs_in_every_kind_of_list(tmp_path):
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(b"ann,bob\nbob,cid\n"))
    assert read_pairs(tmp_path / "p.csv.gz") == (["ann", "bob"], ["bob", "cid"])
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    pandas.DataFrame({"x": ["ann"], "y": ["bob"]}).to_parquet(tmp_path / "p.parquet")
    assert read_pairs(tmp_path / "p.parquet") == (["ann"], ["bob"])


def test_notes_on_pairs_are_printed(tmp_path, capsys):
    path = tmp_path / "p.csv"
    path.write_text("# pairs\none,two\nann,bob\nbob,cid\n")
    with pytest.warns(GraphFileWarning, match="the first line was read as the edge"):
        read_pairs(path)
    assert "were skipped: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv.gz", gzip.compress(b"ann,bob\n" * 99)[:-9], r"p\.csv\.gz is not a readable text file"),
        ("p.csv.gz", b"ann,bob\n", r"p\.csv\.gz is not a readable text file"),
        ("p.npy", b"", r"p\.npy must be a list of edges \(\.csv, .*\), got \.npy"),
        ("p.parquet", b"PAR1", r"p\.parquet is not a readable parquet file"),
    ],
    ids=["cut", "not compressed", "a matrix", "cut parquet"],
)
def test_files_of_pairs_that_are_refused(tmp_path, name, content, message):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_pairs(tmp_path / name)


def test_entries_of_archives(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, model=1)
    assert has_entry(path, "model")
    assert not has_entry(path, "solution")
    path.write_text("not an archive")
    assert not has_entry(path, "model")
    with pytest.raises(FileNotFoundError, match=r"missing\.npz does not exist"):
        has_entry(tmp_path / "missing.npz", "model")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        has_entry(tmp_path, "model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="requires pipes")
def test_a_pipe_is_no_archive(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(OSError, match=r"pipe\.npz is not a regular file"):
        has_entry(tmp_path / "pipe.npz", "model")


@pytest.mark.parametrize("field", ["size", "name"])
def test_a_damaged_directory_of_an_archive(tmp_path, field):
    path = tmp_path / "a.npz"
    np.savez(path, model=1)
    content = bytearray(path.read_bytes())
    end, entry = content.rindex(b"PK\5\6"), content.index(b"PK\1\2")
    place, new = {
        "size": (end + 12, struct.pack("<I", 2**31)),
        "name": (entry + 8, struct.pack("<H", 0x800)),  # names in UTF-8
    }[field]
    content[place : place + len(new)] = new
    if field == "name":
        content[entry + 46] = 0xFF
    path.write_bytes(content)
    assert not has_entry(path, "model")


def test_long_tables_are_cut():
    assert len(preview({"a": list(range(10))})) == 1
    table, more = preview({"a": ["\x1b[31m"] * 25, "b": [0.123456789] * 25})
    assert table.row_count == 10
    assert more == "... and 15 more."
    assert "\x1b" not in str(list(table.columns[0].cells))
    assert str(next(iter(table.columns[1].cells))) == "0.123457"


def test_long_tables_show_some_rows_of_each_node():
    def shown(nodes):
        table, *more = preview({"node": nodes}, by="node")
        return [str(cell) for cell in table.columns[0].cells], more

    assert shown(["a"] * 15 + ["b"] * 2 + ["c"] * 5) == (
        ["a"] * 4 + ["b"] * 2 + ["c"] * 4,
        ["... and 12 more."],
    )
    assert shown(["a"] * 4) == (["a"] * 4, [])
    many = [f"n{k}" for k in range(12) for _ in range(2)]
    assert shown(many) == (many[::2], ["... and 12 more."])


def test_records():
    assert records({"a": [1, 2], "b": ["x", "y"]}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_indices_of_nodes_with_integer_names_are_meant():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with asking_by_index():
            warnings.warn("The names of the nodes are integers, but not 0, 1, 2", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="others"):
            warnings.warn("others", UserWarning, stacklevel=1)
