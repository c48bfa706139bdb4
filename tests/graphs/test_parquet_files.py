"""Lists of edges in parquet files."""

import sys

import numpy as np
import pytest
from graph_sources import pd
from numpy.testing import assert_array_equal

from symrelu.graphs import GraphFileWarning, read_graph, read_graph_file, read_new_items


@pytest.fixture
def write(tmp_path):
    """A function that writes a table, with each column of the type that pandas gives it."""
    pytest.importorskip("pyarrow")

    def write(**columns):
        pd.DataFrame(columns).to_parquet(tmp_path / "a.parquet")
        return tmp_path / "a.parquet"

    return write


@pytest.mark.parametrize(
    "names",
    [
        lambda names: names,
        lambda names: pd.Series(names, dtype="category"),
        lambda names: pd.Series(names, dtype="string"),
    ],
)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, bool])
def test_types_of_columns(write, names, kind):
    weights = np.array([1, 1], dtype=kind)
    matrix, labels = read_graph(
        write(weight=weights, source=names(["ann", "007"]), target=names(["007", "NA"]))
    )
    assert labels.tolist() == ["ann", "007", "NA"]
    assert_array_equal(matrix.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_numbers_are_names(write):
    matrix, labels = read_graph(write(source=[1, 2], target=[2, 30], weight=[0.5, 2.0]))
    assert labels.tolist() == ["1", "2", "30"]
    assert_array_equal(matrix.toarray(), [[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]])


def test_columns_of_other_names(write):
    path = write(n=[3, 4], a=["x", "y"], b=["y", "z"])
    assert read_graph(path, source="a", target="b", weight="n").matrix.max() == 4
    assert read_graph(path, source=2, target=3, weight=1).matrix.max() == 4
    with pytest.warns(GraphFileWarning, match="every edge has weight 1, and column 'n' not at all"):
        assert read_graph_file(path, source="a", target="b").notes == ()
    assert read_graph(write(Von=["x"], Nach=["y"], Gewicht=[3])).matrix.max() == 3


def test_a_column_that_numbers_the_rows(write):
    path = write(id=[5, 6, 7], person=["x", "y", "z"], friend=["y", "z", "x"])
    with pytest.warns(
        GraphFileWarning, match=r"columns 'person', 'friend' .* \(column 'id' numbers the lines\)"
    ):
        assert read_graph(path).labels.tolist() == ["x", "y", "z"]


def test_directed_tables_and_matrices_are_refused(write):
    path = write(Source=["a", "b"], Target=["b", "c"], Type=["Directed"] * 2)
    with pytest.raises(
        ValueError, match=r"a\.parquet must be an undirected graph, but it declares itself directed"
    ):
        read_graph(path)
    assert read_graph(path, directed="max").matrix.nnz == 4
    matrix = write(k=[1, 2, 3, 4], l=[2, 1, 5, 6], m=[3, 5, 1, 7], n=[4, 6, 7, 1])
    with pytest.raises(ValueError, match=r"a\.parquet must be a list of edges, but it looks like a matrix"):
        read_graph(matrix)


def test_names_that_differ_in_blanks(write):
    with pytest.warns(GraphFileWarning, match="different nodes, such as ' a' and 'a': 1"):
        read_graph(write(source=[" a"], target=["a"]))


def test_new_items(write):
    matrix, labels = read_new_items(write(new=["x"], known=["b"], weight=[2]), ["a", "b"])
    assert labels.tolist() == ["x"]
    assert_array_equal(matrix.toarray(), [[0, 2]])


def test_rows_of_several_batches(write, monkeypatch):
    monkeypatch.setattr("symrelu.graphs.parquet_files._BATCH", 3)
    source = [f"n{k}" for k in range(10)]
    matrix, labels = read_graph(write(source=source, target=[*source[1:], "end"], weight=np.arange(1, 11)))
    assert labels.tolist() == [*source, "end"]
    assert_array_equal(matrix.diagonal(1), np.arange(1, 11))
    with pytest.raises(ValueError, match=r"a\.parquet: row 8 has no value in column 'target'"):
        read_graph(write(source=source, target=[*source[1:8], None, "x", "y"]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": [], "target": []}, "must have at least one edge, but it has none|must hold names"),
        ({"source": ["a"]}, "must have a column for each of the two ends"),
        ({"source": ["a", "b"], "target": ["b", None]}, "row 2 has no value in column 'target'. Fill the cell"),
        ({"source": ["a", " "], "target": ["b", "c"]}, "row 2 has an empty name"),
        ({"source": ["a", "c"], "target": ["b", ""]}, "row 2 has an empty name"),
        (
            {"source": [1.5], "target": ["b"]},
            "column 'source' must hold names or whole numbers, got the type double",
        ),
        (
            {"source": ["a"], "target": ["b"], "weight": ["x"]},
            "the weights 'weight' must be numbers, got the type",
        ),
        (
            {"source": ["a"], "target": ["b"], "weight": [None]},
            "the weights 'weight' must be numbers, got the type",
        ),
        (
            {"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, np.nan]},
            "row 2 has no value in column 'weight'",
        ),
        ({"source": ["a"], "target": ["b"], "weight": [-1]}, "finite and nonnegative"),
    ],
)
def test_tables_that_are_refused(write, columns, message):
    with pytest.raises(ValueError, match=message):
        read_graph(write(**columns))


def test_more_edges_than_memory(write, monkeypatch):
    path = write(source=["a"] * 1000, target=["b"] * 1000)
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 99_000)
    with pytest.raises(MemoryError, match=r"a\.parquet must fit into memory, but its 1000 edges need 100\."):
        read_graph(path, duplicates="max")
    path = write(source=["a" * 10**5], target=["b"])
    with pytest.raises(MemoryError, match=r"a\.parquet must fit into memory, but its columns need 100\.1 kB"):
        read_graph(path, duplicates="max")


def test_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"Reading a \.parquet file needs pyarrow.* 'symrelu\[tables\]'"):
        read_graph(tmp_path / "a.parquet")
