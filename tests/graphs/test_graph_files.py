"""GraphML, GML and h5ad files."""

import gzip
import sys

import numpy as np
import pytest
from graph_sources import NAMES, A, anndata_graph, networkx
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.graphs import read_graph, read_graph_file

WRITERS = {"graphml": networkx.write_graphml, "gml": networkx.write_gml}
FORMAT = pytest.mark.parametrize("extension", WRITERS)


def graph_of(edges, kind=networkx.Graph, **nodes):
    graph = kind()
    graph.add_nodes_from((node, attributes) for node, attributes in nodes.items())
    graph.add_weighted_edges_from(edges)
    return graph


def read(tmp_path, graph, extension, **options):
    path = tmp_path / f"graph.{extension}"
    WRITERS[extension](graph, path)
    return read_graph_file(path, **options)


@FORMAT
@pytest.mark.parametrize(("directed", "ab"), [("max", 3), ("sum", 4), ("mean", 2)])
def test_directed_graphs(tmp_path, extension, directed, ab):
    graph = graph_of([("a", "b", 1.0), ("b", "a", 3.0), ("b", "c", 1.0)], networkx.DiGraph)
    with pytest.raises(
        ValueError, match=r"must be an undirected graph, but it declares itself directed. Pass dir"
    ):
        read(tmp_path, graph, extension)
    (matrix, labels), _ = read(tmp_path, graph, extension, directed=directed)
    assert labels.tolist() == ["a", "b", "c"]
    assert_array_equal(matrix.toarray(), [[0, ab, 0], [ab, 0, 1], [0, 1, 0]])


@FORMAT
def test_parallel_edges(tmp_path, extension):
    graph = graph_of([("a", "b", 1.0), ("a", "b", 3.0)], networkx.MultiGraph)
    with pytest.raises(ValueError, match=rf"graph\.{extension}: Edge \('a', 'b'\) is given 2 times"):
        read(tmp_path, graph, extension)
    (matrix, _), notes = read(tmp_path, graph, extension, duplicates="sum")
    assert_array_equal(matrix.toarray(), [[0, 4], [4, 0]])
    assert notes == ("1 repeated edge was added",)


def test_repeated_edges_of_a_plain_gml_file(tmp_path):
    """Some published files have them, and networkx refuses these."""
    nodes = "".join(f'  node [ id {k} label "{name}" ]\n' for k, name in enumerate("ab"))
    edges = "  edge [ source 0 target 1 ]\n" * 2
    (tmp_path / "graph.gml").write_text(f'Creator "graph ["\ngraph\n[\n  directed 0\n{nodes}{edges}]\n')
    assert_array_equal(read_graph(tmp_path / "graph.gml", duplicates="sum").matrix.toarray(), [[0, 2], [2, 0]])


@FORMAT
def test_weights(tmp_path, extension):
    graph = networkx.Graph()
    graph.add_edge("a", "b", value=2.0, kind="x")
    graph.add_edge("b", "c", value=3.0, weight=5.0)
    (matrix, _), notes = read(tmp_path, graph, extension)
    assert_array_equal(matrix.toarray(), [[0, 1, 0], [1, 0, 5], [0, 5, 0]])
    assert notes == ("edges without the attribute 'weight' have weight 1: 1 of 2",)
    assert read(tmp_path, graph, extension, weight="value").labelled.matrix.max() == 3
    with pytest.raises(
        ValueError, match=r"must have edges with the attribute 'w', got \['kind', 'value', 'weight'\]"
    ):
        read(tmp_path, graph, extension, weight="w")
    with pytest.raises(ValueError, match=r"Weights must be numbers: edge \('a', 'b'\) has 'x'"):
        read(tmp_path, graph, extension, weight="kind")
    del graph["b"]["c"]["weight"]
    assert read(tmp_path, graph, extension).notes == (
        "edge attributes not read: 'value'. Every edge has weight 1: pass weight= to choose one",
    )
    assert read(tmp_path, graph, extension, weight=None).notes == ()


@pytest.mark.parametrize(
    ("labels", "names", "notes"),
    [
        ({"a": {"label": "Ann"}, "b": {"label": "Åsa"}}, ["Ann", "Åsa"], ()),
        ({"a": {"name": "Ann"}, "b": {"name": "Bob"}}, ["Ann", "Bob"], ()),
        ({"a": {"label": "x", "name": "Ann"}, "b": {"label": "x", "name": "Bob"}}, ["Ann", "Bob"], ()),
        ({"a": {"label": "x"}, "b": {"label": "x"}}, ["a", "b"], ("label",)),
        ({"a": {"name": "x"}, "b": {}}, ["a", "b"], ("name",)),
        ({"a": {}, "b": {}}, ["a", "b"], ()),
    ],
)
def test_names_are_what_people_see(tmp_path, labels, names, notes):
    (_, found), said = read(tmp_path, graph_of([("a", "b", 1.0)], **labels), "graphml")
    assert found.tolist() == names
    assert said == tuple(
        f"nodes are named by their ids: {note!r} is missing or the same for some of them" for note in notes
    )


def test_names_with_half_a_character_are_refused(tmp_path):
    path = tmp_path / "graph.gml"
    path.write_text(
        'graph [ node [ id 1 label "a&#55296;" ] node [ id 2 label "b" ] edge [ source 1 target 2 ] ]'
    )
    with pytest.raises(ValueError, match=r"graph\.gml must have names in Unicode, but 'a\\ud800' has half"):
        read_graph(path)


@pytest.mark.parametrize("count", [1, 3])
def test_a_file_with_several_graphs(tmp_path, count):
    path = tmp_path / "graph.graphml"
    one = (
        '<graph edgedefault="undirected"><node id="{0}"/><node id="b"/><edge source="{0}" target="b"/></graph>'
    )
    graphs = "".join(one.format(f"a{k}") for k in range(count))
    path.write_text(f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{graphs}</graphml>')
    file = read_graph_file(path)
    assert file.labelled.labels.tolist() == ["a0", "b"]
    assert file.notes == (("only the first of 3 graphs in the file was read",) if count == 3 else ())


def test_names_of_a_gml_file(tmp_path):
    path = tmp_path / "graph.gml"
    path.write_text(
        'graph [ node [ id 7 label "Zoë" ] node [ id 8 label 5 ] edge [ source 7 target 8 ] ]', "utf-8"
    )
    assert read_graph(path).labels.tolist() == ["Zoë", "5"]
    path.write_text("graph [ node [ id 7 ] node [ id 8 ] edge [ source 7 target 8 ] ]")
    assert read_graph(path).labels.tolist() == ["7", "8"]


BOMB = '<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
FILE = '<!DOCTYPE foo [<!ENTITY xxe SYSTEM "file:///etc/hostname">]>'
BODY = '<graphml><graph edgedefault="undirected"><node id="n"/></graph></graphml>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("doctype", [BOMB, FILE, "<!DOCTYPE graphml>"])
def test_a_doctype_is_refused(tmp_path, encoding, doctype):
    text = f'<?xml version="1.0" encoding="{encoding}"?>{doctype}{BODY}'
    (tmp_path / "a.graphml").write_bytes(text.encode(encoding))
    with pytest.raises(ValueError, match=r"a\.graphml must be XML without a DOCTYPE"):
        read_graph(tmp_path / "a.graphml")
    (tmp_path / "a.graphml.gz").write_bytes(gzip.compress(text.encode(encoding)))
    with pytest.raises(ValueError, match=r"a\.graphml\.gz must be XML without a DOCTYPE"):
        read_graph(tmp_path / "a.graphml.gz")


@pytest.mark.parametrize(
    ("extension", "text"),
    [
        ("graphml", "<graphml>"),
        ("graphml", "<html></html>"),
        ("graphml", "not xml"),
        (
            "graphml",
            BODY.replace("</node>", "").replace("<node", '<edge source="n" target="m" directed="true"/><node'),
        ),
        ("gml", "graph [ node [ id 1 ] "),
        ("gml", "graph [ node [ id 1 ] edge [ source 1 target 2 ] ]"),
        ("gml", "graph [ node [ id 1 ] node [ id 1 ] ]"),
        ("gml", "graph " + "[ a " * 5000),
        ("gml", "<graphml/>"),
    ],
)
def test_damaged_graphs(tmp_path, extension, text):
    (tmp_path / f"a.{extension}").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.{extension} is not a readable {extension} file"):
        read_graph(tmp_path / f"a.{extension}")


@FORMAT
def test_more_text_than_memory(tmp_path, monkeypatch, extension):
    monkeypatch.setattr("symrelu.files.text.available_memory", lambda: 2**20)
    (tmp_path / f"a.{extension}.gz").write_bytes(gzip.compress(b" " * 10**6))
    with pytest.raises(MemoryError, match=r"must fit into memory, but it has more than 52\.4 kB of text"):
        read_graph(tmp_path / f"a.{extension}.gz")


def write_h5ad(path, **changes):
    adata = anndata_graph(**changes)
    adata.obsp["distances"] = sparse.csr_matrix(np.eye(len(NAMES)))
    adata.write_h5ad(path)
    return path


def test_entries_of_an_h5ad_file(tmp_path):
    path = write_h5ad(tmp_path / "a.h5ad")
    assert_array_equal(read_graph(path, key="distances").matrix.toarray(), np.eye(len(NAMES)))
    path = write_h5ad(tmp_path / "b.h5ad", neighbors={"connectivities_key": "distances"})
    assert_array_equal(read_graph(path).matrix.toarray(), np.eye(len(NAMES)))
    with pytest.raises(
        ValueError, match=r"b\.h5ad: adata\.obsp must hold the graph 'x'; its entries are: 'conn"
    ):
        read_graph(path, key="x")


@pytest.mark.filterwarnings("ignore:Observation names are not unique")
def test_names_that_occur_twice(tmp_path):
    adata = anndata_graph()
    adata.obs_names = [*NAMES[:-1], NAMES[0]]
    adata.write_h5ad(tmp_path / "a.h5ad")
    with pytest.raises(
        ValueError, match=r"a\.h5ad must have a different name .* but 'd' occurs twice. Call adata"
    ):
        read_graph(tmp_path / "a.h5ad")


def test_h5ad_files_larger_than_memory(tmp_path, monkeypatch):
    """The matrix X is not read, and an entry that was never written takes no space in the file."""
    h5py = pytest.importorskip("h5py")
    path = write_h5ad(tmp_path / "a.h5ad")
    with h5py.File(path, "r+") as file:
        del file["obsp/distances"]
        file.create_dataset("obsp/distances", (10**6, 10**6), "f8", chunks=(100, 100))
    with pytest.raises(MemoryError, match=r"a\.h5ad must fit into memory, but its tables need 8000\.0 GB"):
        read_graph(path)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
def test_indices_outside_of_the_matrix(tmp_path, kind):
    h5py = pytest.importorskip("h5py")
    path = write_h5ad(tmp_path / "a.h5ad", graph=kind(A))
    with h5py.File(path, "r+") as file:
        file["obsp/connectivities/indices"][1] = 10**8
    with pytest.raises(ValueError, match=r"a\.h5ad is not a readable h5ad file .* indices"):
        read_graph(path)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n" + bytes(500)])
def test_damaged_h5ad_files(tmp_path, content):
    pytest.importorskip("anndata")
    (tmp_path / "a.h5ad").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.h5ad is not a readable h5ad file"):
        read_graph(tmp_path / "a.h5ad")


@pytest.mark.parametrize(
    ("extension", "library", "extra"),
    [("graphml", "networkx", "graph"), ("gml", "networkx", "graph"), ("h5ad", "anndata", "anndata")],
)
def test_missing_libraries(tmp_path, monkeypatch, extension, library, extra):
    (tmp_path / f"a.{extension}").write_bytes(b"")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        ImportError, match=rf"Reading a \.{extension} file needs {library}.* 'symrelu\[{extra}\]'"
    ):
        read_graph(tmp_path / f"a.{extension}")
