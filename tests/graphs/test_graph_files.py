"""GraphML and GML files."""

import gzip
import sys
from contextlib import nullcontext

import pytest
from graph_sources import networkx
from numpy.testing import assert_array_equal

from symrelu.graphs import GraphFileWarning, read_graph, read_graph_file

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
    with pytest.warns(GraphFileWarning, match="edges without the attribute 'weight' have weight 1: 1 of 2"):
        (matrix, _), notes = read(tmp_path, graph, extension)
    assert_array_equal(matrix.toarray(), [[0, 1, 0], [1, 0, 5], [0, 5, 0]])
    assert notes == ()
    assert read(tmp_path, graph, extension, weight="value").labelled.matrix.max() == 3
    with pytest.raises(
        ValueError, match=r"must have edges with the attribute 'w', got \['kind', 'value', 'weight'\]"
    ):
        read(tmp_path, graph, extension, weight="w")
    with pytest.raises(ValueError, match=r"Weights must be numbers: edge \('a', 'b'\) has 'x'"):
        read(tmp_path, graph, extension, weight="kind")
    assert read(tmp_path, graph, extension, weight=None).notes == ()


@FORMAT
def test_other_names_of_weights(tmp_path, extension):
    graph = networkx.Graph()
    graph.add_edge("a", "b", Value=2.0, kind="x")
    graph.add_edge("b", "c", Value=3.0, kind="y", km=7.0)
    assert read(tmp_path, graph, extension).labelled.matrix.max() == 3
    graph["a"]["b"]["score"] = 1.0
    with pytest.raises(
        ValueError, match=r"has several attributes that may be weights: \['Value', 'score'\]. Choose"
    ):
        read(tmp_path, graph, extension)
    for data in (graph["a"]["b"], graph["b"]["c"]):
        data.pop("score", None)
        data.pop("Value")
    with pytest.warns(
        GraphFileWarning, match=r"edge attributes not read: 'km'. Every edge has weight 1: pass weight="
    ):
        assert read(tmp_path, graph, extension).labelled.matrix.max() == 1


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
    expected = (
        pytest.warns(GraphFileWarning, match="only the first of 3 graphs in the file was read")
        if count == 3
        else nullcontext()
    )
    with expected:
        file = read_graph_file(path)
    assert file.labelled.labels.tolist() == ["a0", "b"]
    assert file.notes == ()


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
        ("gml", "<xml/>"),
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


@pytest.mark.parametrize(
    ("extension", "library", "extra"),
    [("graphml", "networkx", "graph"), ("gml", "networkx", "graph")],
)
def test_missing_libraries(tmp_path, monkeypatch, extension, library, extra):
    (tmp_path / f"a.{extension}").write_bytes(b"")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        ImportError, match=rf"Reading a \.{extension} file needs {library}.* 'symrelu\[{extra}\]'"
    ):
        read_graph(tmp_path / f"a.{extension}")
