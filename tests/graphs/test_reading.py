"""One graph in every format, and the similarities of new items."""

import gzip
import inspect

import numpy as np
import pytest
from graph_sources import EDGES, NAMES, A, anndata_graph, networkx, networkx_graph, table_of
from matrix_files import WRITERS
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu.graphs import (
    GraphFileWarning,
    Labelled,
    from_edges,
    read_graph,
    read_graph_file,
    read_new_items,
    read_new_items_file,
)
from symrelu.graphs.reading import read_pairs

CONNECTED = [name for name in NAMES if name != "alone"]  # a list of edges has no node without one


def write_text(path, delimiter, header="source{0}target{0}weight\n"):
    lines = (f"{i}{delimiter}{j}{delimiter}{w}\n" for i, j, w in EDGES)
    path.write_text(header.format(delimiter) + "".join(lines))


def write_compressed(path, extension):
    plain = path.with_name(f"plain.{extension}")
    FORMATS[extension][0](plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))


def write_parquet(path):
    pytest.importorskip("pyarrow")
    table_of(EDGES).to_parquet(path)


# Extension -> (a function that writes the graph, whether the file has names, whether it has isolated nodes)
FORMATS = {
    "csv": (lambda path: write_text(path, ","), True, False),
    "tsv": (lambda path: write_text(path, "\t"), True, False),
    "txt": (lambda path: write_text(path, " ", ""), True, False),
    "edges": (lambda path: write_text(path, ";"), True, False),
    "csv.gz": (lambda path: write_compressed(path, "csv"), True, False),
    "parquet": (lambda path: write_parquet(path), True, False),
    "graphml": (lambda path: networkx.write_graphml(networkx_graph(), path), True, True),
    "graphml.gz": (lambda path: networkx.write_graphml(networkx_graph(), path), True, True),
    "gml": (lambda path: networkx.write_gml(networkx_graph(), path), True, True),
    "gml.gz": (lambda path: write_compressed(path, "gml"), True, True),
    "h5ad": (lambda path: anndata_graph().write_h5ad(path), True, True),
    "mat": (lambda path: io.savemat(path, {"A": sparse.csc_array(A), "x": 1}), False, True),
    "mtx.gz": (lambda path: write_compressed(path, "mtx"), False, True),
    "mtx": (lambda path: io.mmwrite(path, sparse.coo_array(A)), False, True),
    "npz": (lambda path: sparse.save_npz(path, sparse.csr_array(A)), False, True),
    "npy": (lambda path: np.save(path, A), False, True),
}


def by_name(labelled):
    matrix = labelled.matrix
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    names = NAMES if labelled.labels is None else labelled.labels.tolist()
    return {(names[i], names[j]): dense[i, j] for i, j in np.argwhere(dense)}


@pytest.mark.parametrize("extension", FORMATS)
def test_one_graph_in_every_format(tmp_path, extension):
    write, named, isolated = FORMATS[extension]
    path = tmp_path / f"graph.{extension}"
    write(path)
    file = read_graph_file(path)
    assert isinstance(file.labelled, Labelled)
    assert (file.labelled.labels is not None) == named
    assert by_name(file.labelled) == by_name(Labelled(A, None))
    assert file.labelled.matrix.shape[0] == len(NAMES if isolated else CONNECTED)
    assert file.notes[-1:] == ("1 self loop is on the diagonal",)
    assert len(file.notes) == 1 + (extension == "txt")  # without a header, the weights are a guess
    assert by_name(read_graph(str(path))) == by_name(file.labelled)
    dropped = read_graph(path, self_loops="drop")
    assert by_name(dropped) == {pair: w for pair, w in by_name(file.labelled).items() if pair[0] != pair[1]}


@pytest.mark.parametrize("extension", ["csv", "graphml", "gml", "h5ad", "mat", "mtx", "npy", "parquet"])
def test_weights_can_be_ignored(tmp_path, extension):
    path = tmp_path / f"graph.{extension}"
    FORMATS[extension][0](path)
    assert by_name(read_graph(path, weight=None)) == by_name(Labelled((A > 0).astype(float), None))


@pytest.mark.parametrize("extension", FORMATS)
def test_files_cut_short(tmp_path, extension):
    """No part of a file is read as a graph with another error than one that names it."""
    whole, path = tmp_path / f"whole.{extension}", tmp_path / f"cut.{extension}"
    FORMATS[extension][0](whole)
    content = whole.read_bytes()
    for length in (0, 1, 10, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:length])
        try:
            read_graph(path)
        except (ValueError, MemoryError) as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert extension in ("csv", "tsv", "txt", "edges", "mtx"), length  # a text may end anywhere


@pytest.mark.parametrize("extension", FORMATS)
def test_random_bytes(tmp_path, extension):
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    rng, path = np.random.default_rng(0), tmp_path / f"random.{extension}"
    for _ in range(5):
        path.write_bytes(rng.integers(0, 256, 3000, dtype=np.uint8).tobytes())
        with pytest.raises(ValueError, match=r"random\."):
            read_graph(path)


@pytest.mark.parametrize(
    ("extension", "option"),
    [
        ("npy", {"source": "a"}),
        ("graphml", {"target": 2}),
        ("parquet", {"delimiter": ","}),
        ("mtx", {"header": True}),
        ("mat", {"weight": "w"}),
        ("csv", {"key": "A"}),
    ],
)
def test_options_without_a_meaning(tmp_path, extension, option):
    path = tmp_path / f"graph.{extension}"
    path.write_bytes(b"x")
    (name,) = option
    with pytest.raises(
        ValueError, match=rf"graph.{extension}: {name}= has no meaning for a .{extension} file, only"
    ):
        read_graph(path, **option)


@pytest.mark.parametrize("extension", FORMATS)
def test_extensions_in_capitals(tmp_path, extension):
    path = tmp_path / f"graph.{extension}"
    FORMATS[extension][0](path)
    path = path.rename(tmp_path / f"GRAPH.{extension.upper()}")
    assert by_name(read_graph(path)) == by_name(Labelled(A, None))


def test_lists_are_read_as_from_edges_reads_them(tmp_path):
    write_text(tmp_path / "graph.csv", ",")
    matrix, labels = from_edges(EDGES)
    read = read_graph(tmp_path / "graph.csv")
    assert read.labels.tolist() == labels.tolist()
    assert_array_equal(read.matrix.toarray(), matrix.toarray())


@pytest.mark.parametrize("name", WRITERS)
def test_files_of_matrices(tmp_path, name):
    WRITERS[name](tmp_path / name)
    matrix, labels = read_graph(tmp_path / name)
    assert labels is None
    assert matrix.shape == (3, 3)


def test_options_are_the_same_everywhere(tmp_path):
    """read_graph_file takes the options of read_graph, with its defaults."""
    write_text(tmp_path / "graph.csv", ",")
    options = {p.name: p.default for p in inspect.signature(read_graph).parameters.values() if p.name != "path"}
    assert by_name(read_graph_file(tmp_path / "graph.csv", **options).labelled) == by_name(Labelled(A, None))
    with pytest.raises(TypeError, match="unexpected keyword argument 'sources'"):
        read_graph_file(tmp_path / "graph.csv", sources=1)
    with pytest.raises(ValueError, match="directed must be one of 'error', 'max', 'sum', 'mean', got None"):
        read_graph(tmp_path / "graph.csv", directed=None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.xlsx", r"a\.xlsx must be one of \.csv, .* Got the extension '\.xlsx'"),
        ("a", "Got the extension ''"),
        ("a.gz", r"Got the extension '\.gz'"),
        ("a.npz.gz", r"Got the extension '\.npz\.gz'"),
    ],
)
def test_extensions_that_are_refused(tmp_path, name, message):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=message):
        read_graph(tmp_path / name)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"The file .*a\.csv does not exist"):
        read_graph(tmp_path / "a.csv")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"b\.csv is a folder, not a file"):
        read_graph(tmp_path / "b.csv")


def test_an_asymmetric_matrix_names_its_file(tmp_path):
    np.save(tmp_path / "a.npy", np.triu(np.ones((2, 2))))
    with pytest.raises(ValueError, match=r"a\.npy: The matrix must be symmetric, but entry \(0, 1\)"):
        read_graph(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"a\.npy: The matrix of a graph must be square"):
        read_graph(tmp_path / "a.npy")


KNOWN = ["ann", "bob", "cid"]


def new_items(tmp_path, text, labels=KNOWN, **options):
    path = tmp_path / "new.csv"
    path.write_text(text)
    return read_new_items(path, labels, **options)


def test_new_items_from_a_list(tmp_path):
    matrix, labels = new_items(tmp_path, "new,known,weight\nzoe,cid,2\nyan,ann,0.5\nzoe,ann,1\n")
    assert labels.tolist() == ["zoe", "yan"]
    assert_array_equal(matrix.toarray(), [[1, 0, 2], [0.5, 0, 0]])


def test_notes_on_new_items(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("new,known,n\nzoe,cid,2\nzoe,cid,1\n")
    for read in (read_new_items_file, read_new_items):
        with pytest.warns(GraphFileWarning) as given:
            file = read(path, KNOWN, duplicates="max")
        assert [one.filename for one in given] == [__file__] * 2
        assert "new.csv: columns 'new', 'known' were read as the two ends" in str(given[0].message)
        assert "new.csv: the first line was read as a header" in str(given[1].message)
    assert file.labels.tolist() == ["zoe"]
    file = read_new_items_file(path, KNOWN, duplicates="max", weight=None, header=True)
    assert file.notes == ("1 repeated edge was combined to the largest weight",)
    sparse.save_npz(tmp_path / "new.npz", sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3)))
    file = read_new_items_file(tmp_path / "new.npz", KNOWN, duplicates="sum")
    assert file.notes == ("1 repeated edge was added",)


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_weights_that_are_ignored_are_checked(tmp_path, value):
    path = tmp_path / "m.npy"
    np.save(path, np.array([[0.0, value], [value, 0.0]]))
    for read in (lambda: read_graph(path, weight=None), lambda: read_new_items(path, "ab", weight=None)):
        with pytest.raises(ValueError, match=r"m\.npy: The matrix must hold finite, nonnegative numbers"):
            read()


def test_new_items_of_numbered_nodes(tmp_path):
    matrix, labels = new_items(tmp_path, "x,2\nx,0\ny,1\n", range(3))
    assert labels.tolist() == ["x", "y"]
    assert_array_equal(matrix.toarray(), [[1, 0, 1], [0, 1, 0]])


def test_pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("one,two\na,b\nb,c\n")
    with pytest.warns(GraphFileWarning, match=r"pairs\.csv: the first line was read as the edge"):
        assert read_pairs(path) == (["one", "a", "b"], ["two", "b", "c"], ())
    path.write_text("from,to\na,b\nb,c\n")
    assert read_pairs(path) == (["a", "b"], ["b", "c"], ())


def test_options_of_new_items(tmp_path):
    text = "known;new;n\nann;x;1\nann;x;2\nann;ann;4\n"
    options = {"source": "new", "target": "known", "weight": "n", "duplicates": "sum"}
    matrix, labels = new_items(tmp_path, text, **options, self_loops="drop", directed="max")
    assert labels.tolist() == ["x", "ann"]
    assert_array_equal(matrix.toarray(), [[3, 0, 0], [4, 0, 0]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_new_items_from_a_matrix(tmp_path, kind):
    rows = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    path = tmp_path / ("new.npy" if kind is np.asarray else "new.npz")
    (np.save if kind is np.asarray else sparse.save_npz)(path, kind(rows))
    matrix, labels = read_new_items(path, KNOWN)
    assert labels is None
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, rows)
    with pytest.raises(ValueError, match=r"a column for each of the 2 known items, got shape \(2, 3\)"):
        read_new_items(path, ["ann", "bob"])


def test_new_items_from_a_mat_file(tmp_path):
    rows = np.array([[1.0, 0.0, 2.0]])
    io.savemat(tmp_path / "new.mat", {"rows": rows, "other": np.eye(3)})
    assert_array_equal(read_new_items(tmp_path / "new.mat", KNOWN, key="rows").matrix, rows)


def test_new_items_are_no_graph(tmp_path):
    networkx.write_graphml(networkx_graph(), tmp_path / "new.graphml")
    with pytest.raises(ValueError, match=r"must be a list of edges \(.csv, .* or a matrix \(.mtx, .*, to hold"):
        read_new_items(tmp_path / "new.graphml", KNOWN)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,dan\nx,ann\n", {}, "must name known items as targets, but 1 of them is not known: 'dan'. Remove"),
        (
            "".join(f"x,n{k}\n" for k in range(7)),
            {},
            "but 7 of them are not known: 'n0', 'n1', 'n2', 'n3', 'n4', .... Remove their lines, or pass",
        ),
        ("ann,x\nbob,y\n", {}, "The sources are known: pass source= and target= the other way round"),
        ("x,ann\nx,ann\n", {}, r"new\.csv: Edge \('x', 'ann'\) is given 2 times"),
        ("x,bob,-1\n", {}, r"new\.csv: Weights must be finite and nonnegative: edge \('x', 'bob'\) has -1"),
    ],
)
def test_new_items_that_are_refused(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        new_items(tmp_path, text, **options)
