"""Lists of edges in text files."""

import csv
import gzip
import io
import warnings

import numpy as np
import pytest
from graph_sources import pd
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from symrelu.graphs import GraphFileWarning, from_edges, read_graph, read_graph_file

FOUND = (["ann", "bob", "cid"], [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]])

TEXTS = {
    "comma.csv": "source,target,weight\nann,bob,2\nbob,cid,0.5\n",
    "no header.csv": "ann,bob,2\nbob,cid,0.5",
    "semicolon.csv": "from;to;weight\nann;bob;2\nbob;cid;0.5\n",
    "tab.tsv": "Source\tTarget\tWeight\nann\tbob\t2\nbob\tcid\t.5\n",
    "tab.csv": "ann\tbob\t2\nbob\tcid\t0.5\n",
    "pipe.txt": "ann|bob|2\nbob|cid|0.5\n",
    "blank.txt": "ann bob 2\nbob cid 0.5\n",
    "aligned.edges": "  ann   bob 2  \n  bob   cid 0.5\n",
    "unusual header.csv": "a,b,strength\nann,bob,2\nbob,cid,0.5\n",
    "comments.txt": "% sym\n# a b c d e f\nann bob 2\n\n   \n# ann cid 7\nbob cid 0.5\n",
    "comment before a header.csv": "# made by hand\nsource,target,weight\nann,bob,2\nbob,cid,0.5\n",
    "quotes.csv": '"source","target","weight"\n"ann","bob","2"\n"bob","cid",0.5\n',
    "byte order mark.csv": "\ufeffsource,target,weight\nann,bob,2\nbob,cid,0.5\n",
    "windows.csv": "source,target,weight\r\nann,bob,2\r\nbob,cid,0.5\r\n",
    "old mac.csv": "source,target,weight\rann,bob,2\rbob,cid,0.5\r",
    "order.csv": "weight,target,source\n2,bob,ann\n0.5,cid,bob\n",
    "both directions.csv": "ann,bob,2\nbob,ann,2\nbob,cid,0.5\n",
    "a weight of zero.csv": "ann,bob,2\nbob,cid,0.5\nann,cid,0\n",
    "UPPER.CSV": "ann,bob,2\nbob,cid,5e-1\n",
}
OPTIONS = {"unusual header.csv": {"weight": "strength"}}


@pytest.mark.parametrize("compressed", [False, True], ids=["", "gz"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_one_graph(tmp_path, name, compressed):
    path = tmp_path / (f"{name}.gz" if compressed else name)
    content = TEXTS[name].encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    matrix, labels = read_graph(path, **OPTIONS.get(name, {}))
    assert labels.tolist() == FOUND[0]
    assert all(type(label) is str for label in labels)
    assert_array_equal(matrix.toarray(), FOUND[1])


def read(tmp_path, text, name="f.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_graph_file(path, **options)


def remarks(tmp_path, text, **options):
    """The doubts and the notes on a text; what all doubts begin with is replaced by a question mark."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        file = read(tmp_path, text, **options)
    assert all(one.category is GraphFileWarning and one.filename == __file__ for one in given)
    doubts = [str(one.message).replace(f"{tmp_path / 'f.csv'}: ", "? ") for one in given]
    return [*doubts, *file.notes]


def found(file):
    """The edges of a graph, each once, by name."""
    matrix, labels = file.labelled
    coo = matrix.tocoo()
    return {(labels[i], labels[j], w) for i, j, w in zip(*coo.coords, coo.data, strict=True) if i <= j}


@pytest.mark.parametrize(
    ("text", "options", "edges"),
    [
        ("a,b,0\n5,c,1\n", {"delimiter": ","}, {("5", "c", 1)}),
        ("007,7,1\n7,NA,1\nnan,7,2\n", {}, {("007", "7", 1), ("7", "NA", 1), ("7", "nan", 2)}),
        ("1,2\n2,3\n", {}, {("1", "2", 1), ("2", "3", 1)}),
        (
            "last, first;doe, jane;1\nx, y;doe, jane;2\n",
            {"delimiter": ";"},
            {("last, first", "doe, jane", 1), ("doe, jane", "x, y", 2)},
        ),
        ("x,y,1\n", {"weight": None}, {("x", "y", 1)}),
        ("x,y,7\n", {"weight": None}, {("x", "y", 1)}),
        ("x,y,label\nz,y,label\n", {}, {("x", "y", 1), ("y", "z", 1)}),
        ("source,target\nx,y\n", {"header": False}, {("source", "target", 1), ("x", "y", 1)}),
        ("one,two\nx,y\n", {"header": True}, {("x", "y", 1)}),
        ("one,two,n\nx,y,3\n", {"source": "one", "weight": "n"}, {("x", "y", 3)}),
        ("one,two,n\nx,y,3\n", {"source": "2", "target": 1, "weight": 3}, {("y", "x", 3)}),
        ("x;y,1\nz;y,2\n", {"delimiter": ","}, {("x;y", "1", 1), ("z;y", "2", 1)}),
        ("x\ty\n", {"delimiter": "tab"}, {("x", "y", 1)}),
        ("x\ty\n", {"delimiter": "\\t"}, {("x", "y", 1)}),
        ("x y\n", {"delimiter": "space"}, {("x", "y", 1)}),
        ('"#x",y\n"%z",y\n', {}, {("#x", "y", 1), ("y", "%z", 1)}),
        ('"two\n# lines",y\n# no edge\nz,y\n', {}, {("two\n# lines", "y", 1), ("y", "z", 1)}),
        ("#a,#b\n#b,#c\n", {}, {("#a", "#b", 1), ("#b", "#c", 1)}),
        ("#a,b,2\n%c,b,3\n", {}, {("#a", "b", 2), ("b", "%c", 3)}),
        ("#more than one cell, and no edge,\nb,#c\n#,b\n", {}, {("b", "#c", 1), ("b", "#", 1)}),
        ("#node1,node2,score\nx,y,3\n", {"weight": "score"}, {("x", "y", 3)}),
        ("#source,target\nx,y\n", {}, {("x", "y", 1)}),
        ('"# a",y\n', {}, {("# a", "y", 1)}),
        ("x;1,y;2\nx;1,z;3\n", {}, {("x;1", "y;2", 1), ("x;1", "z;3", 1)}),
        ("x|1,y|2,7\n", {}, {("x|1", "y|2", 7)}),
        ("x,y,1_0\nx,z,2_0\n", {}, {("x", "y", 1), ("x", "z", 1)}),
        ('"say ""hi""",y\n', {}, {('say "hi"', "y", 1)}),
        ('6" pipe,y\n', {}, {('6" pipe', "y", 1)}),
        (" x, y\n", {}, {(" x", " y", 1)}),
        ("Zoë,Åsa,2\n北京,Zoë,1\n", {}, {("Zoë", "Åsa", 2), ("Zoë", "北京", 1)}),
    ],
)
@pytest.mark.filterwarnings("ignore::symrelu.graphs.GraphFileWarning")
def test_names_weights_and_options(tmp_path, text, options, edges):
    assert found(read(tmp_path, text, **options)) == edges


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("source,target,weight\na,b,1\n", {}, []),
        ("a,b\nb,c\nc,a\n", {}, []),
        (
            "one,two,3rd\na,b,1\n",
            {},
            [
                "? columns 'one', 'two' were read as the two ends, every edge has weight 1, and column '3rd' "
                "not at all. Pass source= and target= for other ends, weight= for other",
                "? the first line was read as a header: pass header=False if it is an edge",
            ],
        ),
        ("one,two,3rd\na,b,1\n", {"weight": "3rd"}, []),
        ("one,two,3rd\na,b,1\n", {"weight": None, "header": True}, []),
        (
            "one,two\na,b\nb,c\n",
            {},
            ["? the first line was read as the edge ('one', 'two'): pass header=True if it names the columns"],
        ),
        ("one,two\na,b\nb,c\n", {"header": False}, []),
        ("8,9\n1,2\n2,3\n", {}, []),
        ("# x\n% y\na,b\nb,c\n", {}, ["comments, lines that begin with # or %, were skipped: 2"]),
        (
            "#c,b\nb,d\n%e,c\n#f,b\n# g,h\n",
            {},
            [
                "? lines that begin with # or % were read as edges: 3. Put a blank after the # of a comment",
                "comments, lines that begin with # or %, were skipped: 1",
            ],
        ),
        ("#c,#b\n#b,#d\n", {}, ["lines that begin with # or % were read as edges: 2"]),
        ("#source,target\na,b\n", {}, []),
        ("a,b,1\nb,c,2\n", {"weight": 3}, []),
        ("a,b,1\nb,c,2\n", {}, ["column 3 was read as weights: pass weight="]),
        (
            "a,b,1,x\nb,c,2,y\n",
            {},
            ["? columns 1, 2 were read as the two ends, column 3 as the weights, and column 4 not at all"],
        ),
        ("x;y,1\nz;y,2\n", {}, ["? the lines were split at commas, not at semicolons: pass delimiter="]),
        ("x;y,1\nz;y,2\n", {"delimiter": ","}, []),
        ("x y,1\nz y,2\n", {}, []),
        (
            "a,b\nb, a\nc,b \n",
            {},
            ["? names that differ in blanks only are different nodes, such as 'a' and ' a': 2"],
        ),
        (
            "Source,Target,Type,Weight\na,b,Directed,1\nb,c,Undirected,1\n",
            {},
            ["? some edges are declared directed, and all were read as undirected"],
        ),
        ("Source,Target,Type,Weight\na,b,Undirected,1\nb,c,Undirected,1\n", {}, []),
        ("Source,Target,Type,Weight\na,b,Directed,1\n", {"directed": "max"}, []),
        ("Source,Target,Type,Weight\na,b,friend,1\n", {}, []),
        ("ann,knows,bob\nbob,knows,cid\n", {}, ["? columns 1, 2 were read as the two ends, every edge"]),
        ("a,b,x\nb,c,y\n", {"source": 1, "target": 2}, ["column 3 was not read, and every edge has weight 1"]),
        (
            "a,b,1\na,b,2\na,a,1\n",
            {"duplicates": "sum"},
            [
                "column 3 was read as weights: pass weight= to choose another column, or weight=None",
                "1 self loop is on the diagonal",
                "1 repeated edge was added",
            ],
        ),
        # Times are no weights, and numbers in another notation may be.
        ("a,b,1082040961\nb,c,1082155839\n", {}, ["? columns 1, 2 were read as the two ends, every edge"]),
        ("a,b,1_0\nb,c,2_0\n", {}, ["? columns 1, 2 were read as the two ends, every edge has weight 1"]),
        ("from;to;kg\na;b;1.234,5\nb;c;12,0\n", {}, ["? columns 'from', 'to' were read as the two ends"]),
        # Names of columns that say what they are.
        ("from,to,year\na,b,1999\nb,c,2001\n", {}, ["column 'year' was not read, and every edge has weight 1"]),
        ("from,to,kind\na,b,x\nb,c,y\n", {}, ["column 'kind' was not read, and every edge has weight 1"]),
        ("from,to,id\na,b,1\nb,c,2\n", {}, ["column 'id' was not read, and every edge has weight 1"]),
        ("from,to,km\na,b,1\nb,c,2\n", {}, ["? columns 'from', 'to' were read as the two ends, every"]),
        ("from,to,score,km\na,b,1,5\nb,c,2,5\n", {}, []),
        ("i,j,w\n1,2,0.5\n2,3,1\n", {}, []),
        ("i,j\n1,2\n2,3\n", {}, []),
        ("city1,city2,trips\nx,y,5\n", {"weight": "trips"}, []),
        # The first line may be an edge, although it has the names of columns.
        ("node1,node2\nnode2,node3\nnode3,node1\n", {}, []),
        (
            "from,to\n" + "".join(f"x{k},x{k + 1}\n" for k in range(60)) + "from,to\n",
            {},
            ["? the first line was read as a header, but its names are nodes too: pass header="],
        ),
        ("weight,mass\nmass,kilogram\n", {}, []),
        # 1 to 5 may count the lines.
        ("1,7,9\n2,7,8\n3,8,9\n4,9,6\n5,6,7\n", {}, ["? columns 1, 2 were read as the two ends, column 3"]),
        ("1,2,1\n2,3,1\n3,4,1\n4,5,1\n5,1,1\n", {}, ["column 3 was read as weights"]),
        ("1,7,.5\n2,7,.8\n3,8,.9\n4,9,.6\n5,6,.7\n", {}, ["column 3 was read as weights"]),
        ("a;b;0,75\nb;c;1\n", {"weight": 3}, ["weights such as '0,75' were read with a decimal comma"]),
    ],
)  # fmt: skip
def test_notes_and_doubts(tmp_path, text, options, said):
    found = remarks(tmp_path, text, **options)
    assert len(found) == len(said), found
    assert all(one.startswith(begin) for one, begin in zip(found, said, strict=True)), found


@pytest.mark.parametrize(
    ("text", "doubts"),
    [
        ("id,Von,Nach\n1,a,b\n2,b,c\n3,c,a\n", 0),
        ("id,Quelle,Ziel,Gewicht\n1,a,b,1\n2,b,c,1\n3,c,a,1\n", 0),
        ("ID,origine,destination,poids\n7,a,b,1\n5,b,c,1\n9,c,a,1\n", 0),
        ("origen;destino;peso\na;b;1,0\nb;c;1,0\nc;a;1,0\n", 0),
        ("citing\tcited\na\tb\nb\tc\nc\ta\n", 0),
        (",source,target\n0,a,b\n1,b,c\n2,c,a\n", 0),
        ("id,person,friend\n10,a,b\n12,b,c\n11,c,a\n", 1),
        ("person,id,friend\na,10,b\nb,12,c\nc,11,a\n", 1),
        ("Unnamed: 0,person,friend,weight\n0,a,b,1\n1,b,c,1\n2,c,a,1\n", 1),
        (",person,friend\n0,a,b\n1,b,c\n2,c,a\n", 1),
        ("zeile,person,friend\n1,a,b\n2,b,c\n3,c,a\n", 1),
        ("entry,person,friend\n1,a,b\n2,b,c\n3,c,a\n", 2),
        ("1,a,b\n2,b,c\n3,c,a\n", 1),
        ("1,a,b,1\n2,b,c,1\n3,c,a,1\n", 1),
        ("id,person1,person2,since\n1,a,b,7\n2,b,c,7\n3,c,a,7\n", 1),
    ],
)
def test_a_column_that_numbers_the_lines_is_no_end(tmp_path, text, doubts):
    said = remarks(tmp_path, text)
    assert sum(one.startswith("? ") for one in said) == doubts, said
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = read(tmp_path, text)
    assert found(file) == {("a", "b", 1), ("b", "c", 1), ("a", "c", 1)}


def test_an_id_that_repeats_is_an_end(tmp_path):
    with pytest.warns(GraphFileWarning, match="columns 'id', 'friend' were read as the two ends"):
        file = read(tmp_path, "id,friend,note\n1,2,x\n1,3,y\n2,3,z\n", header=True)
    assert file.labelled.labels.tolist() == ["1", "2", "3"]


@pytest.mark.parametrize(
    "name",
    [
        "weight",
        "Weights",
        "W",
        "VALUE",
        "score",
        "Strength",
        "similarity",
        "Count",
        "Gewicht",
        "poids",
        "Häufigkeit",
    ],
)
@pytest.mark.parametrize("ends", ["from,to", "x,y", "left,right"])
def test_usual_names_of_weights(tmp_path, name, ends):
    assert found(read(tmp_path, f"{ends},{name}\na,b,2\nb,c,3\n")) == {("a", "b", 2), ("b", "c", 3)}


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("f.csv", "a;b;0,75\nb;c;1,5\n", {}),
        ("f.csv", "Von;Nach;Gewicht\na;b;0,75\nb;c;1,5\n", {}),
        ("f.txt", "a;b;0,75\nb;c;1,5\n", {}),
        ("f.tsv", "a\tb\t0,75\nb\tc\t1,5\n", {}),
        ("f.txt", "a b 0,75\nb c 1,5\n", {"delimiter": "space"}),
        ("f.csv", "a|b|,75\nb|c|15e-1\n", {"decimal": ","}),
        ("f.csv", "a;b;0,750\nb;c;1,500\n", {}),
        ("f.csv", 'a,b,"0,75"\nb,c,"1,5"\n', {"decimal": ","}),
        ("f.csv", "a;b;0.75\nb;c;1.5\n", {"decimal": "."}),
    ],
)
def test_decimal_commas(tmp_path, name, text, options):
    assert found(read(tmp_path, text, name, **options)) == {("a", "b", 0.75), ("b", "c", 1.5)}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, r"f\.csv must have at least one edge, but it has none"),
        ("# nothing\n\n", {}, "must have at least one edge, but it has none"),
        ("source,target\n", {}, "must have at least one edge, but it has only a header"),
        ("ann\nbob\n", {}, "a column for each of the two ends of an edge, got 1 column. Pass delimiter="),
        ("a,b\nc,\n", {}, "line 2 has no name in column 2. Fill the cell, or delete the line"),
        ("a,b\n\n# x\n ,b\n", {}, "line 4 has no name in column 1"),
        ("a,b,1\nc,d,\n", {}, "line 2 has no weight in column 3"),
        ("a,b,1\nc,d\n", {}, "line 2 has 2 cells, but the first line has 3. Put cells .* in quotes"),
        ("a,b,1\nc,d,1,\n", {}, "line 2 has 4 cells, but the first line has 3"),
        ("source,target,weight\na,b,x\n", {}, "line 2 must have a number in column 3, got 'x'. Pass weight="),
        ("a;b;1\n" * 60 + "a;b;0,5\n", {}, "line 61 must have .* '0,5'. Write numbers with a decimal point"),
        ("Source,Target,Type\na,b,Directed\nb,c,directed\n", {}, "declares itself directed. Pass dir"),
        ("a;b;1,234\nb;c;12,500\n", {}, "column 3 must be numbers .*, got '1,234'. Pass decimal="),
        ('a,b,"0,5"\nb,c,"1,5"\n', {}, "column 3 must be numbers .*, got '0,5'. Pass decimal=\",\" if"),
        ("a;b;0,5\nb;c;1,5\n", {"weight": 3, "decimal": "."}, "line 1 must have .* '0,5'. Write numbers with"),
        ("a;b;0.5\nb;c;1,5\n", {"weight": 3, "decimal": ","}, "line 1 must have a number .* '0.5'"),
        ("a;b;1.000,5\nb;c;1,5\n", {"weight": 3, "decimal": ","}, "line 1 must have a number .* '1.000,5'"),
        ("a,b\n", {"decimal": ";"}, "decimal must be 'auto', '.' or ',', got ';'"),
        ("from,to,value,score\na,b,1,2\n", {}, r"several columns of weights: \['value', 'score'\]. Choose"),
        ("source,target,weight\na,b,1_0\n", {}, "line 2 must have a number in column 3, got '1_0'"),
        ("source,target,weight\na,b,-1\n", {}, r"f.csv: Weights must be finite .* edge \('a', 'b'\)"),
        ("source,target,weight\na,b,nan\n", {}, "must be finite"),
        ("source,target,weight\na,b,inf\n", {}, "must be finite"),
        ("a,b\na,b\n", {}, r"f.csv: Edge \('a', 'b'\) is given 2 times"),
        ("a,b,1\nb,a,2\n", {}, r"Edge \('a', 'b'\) has the weight 1, but 2 in the other direction"),
        ("a,a\n", {"self_loops": "error"}, r"Edge \('a', 'a'\) is a self loop"),
        ('a,b\nc,d\n"e,f\ng,h\n', {}, "line 3 cannot be split into cells: a quote is not closed"),
        ('a,b\n"c"d,e\n', {}, "line 2 cannot be split into cells: .* expected after"),
        ('a,b\n"' + "x,\n" * 60_000, {}, "line 2 cannot be split into cells: a quote is not closed"),
        ("a,b\n" + "x" * 2**21, {}, "at most 1048576 characters, but line 2 is longer"),
        ("José,b\n".encode("latin-1"), {}, "must be text in UTF-8, but line 1 has the byte 0xe9"),
        ("a,b\n" * 9000 + "José,b\n", {"encoding": "latin-1"}, "UTF-8, but line 9001 has the byte 0xe9"),
        ("a,b,1\n" * 9000 + "José,b,1\n", {"encoding": "latin-1"}, "but line 9001 has the byte 0xe9"),
        ("a,b\n".encode("utf-16"), {}, "but it is in UTF-16"),
        ("a,b\n".encode("utf-16-le"), {}, "must be a text file, but it has zero bytes"),
        ("a,b\n", {"source": "x"}, r"must have a column 'x', got the columns \['a', 'b'\]"),
        ("a,b\n", {"delimiter": "ab"}, "delimiter must be a single character such as ',' or ';'"),
        ("a,b\n", {"delimiter": '"'}, "delimiter must be a single character"),
        ("a,b\n", {"delimiter": ""}, "delimiter must be a single character"),
    ],
)  # fmt: skip
def test_texts_that_are_refused(tmp_path, text, options, message):
    if "encoding" in options:
        text, options = text.encode(options["encoding"]), {}
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, **options)


def saved_matrix(n, begin="", names=None):
    """The text of a symmetric matrix, with a header and an index column if it has names."""
    rows = [[str((i + j) % n / n) for j in range(n)] for i in range(n)]
    if names is not None:
        rows = [[begin, *names], *([name, *row] for name, row in zip(names, rows, strict=True))]
    return "\n".join(map(",".join, rows))


def test_a_named_node_among_numbered_ones_is_no_header(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text("Total,5,1\n5,7,2\n7,9,1\n9,12,4\n")
    file = read_graph_file(path)
    assert file.labelled.labels.tolist() == ["Total", "5", "7", "9", "12"]
    assert file.labelled.matrix.sum() == 16
    assert not any("header" in note for note in file.notes)


@pytest.mark.parametrize(
    "text",
    [
        saved_matrix(4),
        saved_matrix(70),
        saved_matrix(4).replace(",", " "),
        saved_matrix(3, names="abc"),
        saved_matrix(3, names="123"),
        saved_matrix(4, "id", names="abcd"),
        saved_matrix(4, "id", names="0123"),
        saved_matrix(70, "id", names=[f"n{k}" for k in range(70)]),
        saved_matrix(70, "", names=[f"n{k}" for k in range(70)]),
        "w,x,y,z\n" + saved_matrix(4),
        "0,1,2,3\n" + saved_matrix(4),
        "w,1,2,3,4\nx,1,2,3,4\ny,1,2,3,4\nz,1,2,3,4\n",
        ",x,y\n0,1,2\n1,2,1\n",
    ],
)
@pytest.mark.filterwarnings("ignore::symrelu.graphs.GraphFileWarning")
def test_a_matrix_is_no_list_of_edges(tmp_path, text):
    with pytest.raises(
        ValueError, match=r"f\.csv must .* looks like a matrix: .* Save a matrix as \.npy, \.npz or"
    ):
        read(tmp_path, text)
    assert (
        read(tmp_path, text, source=1, target=2, directed="max", duplicates="max").labelled.labels is not None
    )


@pytest.mark.parametrize(
    "text",
    [
        ",source,target,weight\n0,1,2,3\n1,2,4,5\n2,5,6,4\n",
        "source,target,weight,day\n1,2,3,1\n2,4,3,1\n5,6,3,1\n8,9,2,2\n",
        "1,2,5,x\n2,3,5,y\n4,5,3,x\n7,8,1,x\n",
        "1,2,3,4\n2,3,4,5\n",
        ",one,two,n\n0,a,b,1\n1,b,c,1\n2,c,d,5\n3,a,d,5\n",
        ",one,two\n0,5,7\n1,7,8\n2,8,5\n",
        "1,2,1\n2,3,1\n3,1,1\n",
    ],
)
@pytest.mark.filterwarnings("ignore::symrelu.graphs.GraphFileWarning")
def test_lists_that_are_no_matrix(tmp_path, text):
    assert read(tmp_path, text).labelled.matrix.nnz > 0


@pytest.mark.parametrize("header", ["yes", 1, None])
def test_header_is_checked(tmp_path, header):
    with pytest.raises(TypeError, match="header must be True, False or 'auto', got"):
        read(tmp_path, "a,b\n", header=header)


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: b"a,b\n", lambda content: content[:-9], lambda content: content[:20]],
)
def test_damaged_gzip_files(tmp_path, damage):
    content = damage(gzip.compress(b"a,b\n" * 99))
    with pytest.raises(
        ValueError, match=r"f\.csv\.gz (is not a readable text file|must have at least one edge)"
    ):
        read(tmp_path, content, "f.csv.gz", duplicates="max")


def test_gzip_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr("symrelu.files.text.available_memory", lambda: 2**20)
    with pytest.raises(MemoryError, match=r"f\.csv\.gz must fit .* but it has more than 87.4 kB of text"):
        read(tmp_path, gzip.compress(b"a,b\n" * 10**6), "f.csv.gz", duplicates="max")


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5).filter(
    lambda name: not name.isspace()
)
ODD = st.sampled_from(
    ["NA", "nan", "007", "1e5", 'a"b', "a,b", "x\ny", "#", "%a", "ü", "'", "null", "-", "source"]
)
EDGE = st.tuples(NAMES | ODD, NAMES | ODD, st.integers(1, 9).map(lambda w: w / 8))


@given(
    st.lists(EDGE, min_size=1, max_size=8, unique_by=lambda edge: frozenset(edge[:2])), st.sampled_from(",;\t|")
)
def test_round_trip(tmp_path_factory, edges, delimiter):
    """Any names that the csv module writes in quotes are read as they were."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["source", "target", "weight"])
    writer.writerows(edges)
    file = read(tmp_path_factory.getbasetemp(), text.getvalue().encode(), "round trip.csv", delimiter=delimiter)
    appear = dict.fromkeys(name for i, j, _ in edges for name in (i, j))
    assert file.labelled.labels.tolist() == list(appear)
    directed = {(i, j, w) for i, j, w in edges} | {(j, i, w) for i, j, w in edges}
    assert found(file) <= directed
    assert len(found(file)) == len(edges)


@st.composite
def written_lists(draw):
    """Edges with repeated ones, self loops and both directions, and a file that pandas or csv wrote of them."""
    pool = draw(st.lists(NAMES | ODD, min_size=2, max_size=6, unique_by=str.strip))
    ends = st.sampled_from(pool)
    edges = draw(
        st.lists(st.tuples(ends, ends, st.integers(1, 9).map(lambda w: w / 8)), min_size=1, max_size=12)
    )
    delimiter, quoting = (
        draw(st.sampled_from(",;\t|")),
        draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])),
    )
    end = draw(st.sampled_from(["\n", "\r\n"]))
    header, text = ["source", "target", "weight"], io.StringIO(newline="")
    if draw(st.booleans()):
        options = {"index": False, "sep": delimiter, "quoting": quoting, "lineterminator": end}
        pd.DataFrame(edges, columns=header).to_csv(text, **options)
    else:
        writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end)
        writer.writerows([header, *edges])
    blank = draw(st.sampled_from(["", end, f"  {end}"]))
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return edges, delimiter, mark + (text.getvalue() + blank).encode()


@given(written_lists())
def test_what_others_write_is_the_same_graph(tmp_path_factory, written):
    edges, delimiter, content = written
    rules = {"duplicates": "sum", "directed": "max"}
    folder = tmp_path_factory.getbasetemp()
    file = read(folder, content, "written.csv", delimiter=delimiter, **rules)
    matrix, labels = from_edges(edges, self_loops="keep", **rules)
    assert file.labelled.labels.tolist() == labels.tolist()
    assert_array_equal(file.labelled.matrix.toarray(), matrix.toarray())


def large_list():
    """Edges of 5000 nodes with repeated ones, self loops, both directions, and names that need quotes."""
    rng = np.random.default_rng(0)
    odd = ["Zoë {}", '{} "the great"', "{}, jun.", "0{}", "{}\n2nd line", "#{}", " {}"]
    names = [odd[k % len(odd)].format(k) for k in range(5000)]
    ends = rng.integers(0, 5000, (20_000, 2))
    ends[:50] = ends[50:100]
    ends[100:150] = ends[150:200, ::-1]
    ends[200:250, 0] = ends[200:250, 1]
    weights = rng.integers(1, 99, len(ends)) / 8
    return [(names[i], names[j], w) for (i, j), w in zip(ends, weights.tolist(), strict=True)]


@pytest.mark.parametrize("rules", [("sum", "keep", "mean"), ("max", "drop", "sum"), ("sum", "keep", "max")])
def test_a_large_list_against_from_edges(tmp_path, rules):
    edges, text = large_list(), io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["to", "weight", "from"])
    writer.writerows((j, w, i) for i, j, w in edges)
    options = dict(zip(("duplicates", "self_loops", "directed"), rules, strict=True))
    file = read(tmp_path, f"# made by a test\n{text.getvalue()}\n\n", **options)
    matrix, labels = from_edges(edges, **options)
    assert file.labelled.labels.tolist() == labels.tolist()
    assert (file.labelled.matrix != matrix).nnz == 0
    assert len(file.notes) == 4  # the comment is one
