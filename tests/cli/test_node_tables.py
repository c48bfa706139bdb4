"""Tables of nodes as input."""

import pytest

from symrelu.cli.node_tables import read_node_table

NAMES = ["ann", "bob", "=cid", "dan"]


def written(tmp_path, text, name="nodes.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_in_the_order_of_the_nodes(tmp_path, capsys):
    path = written(tmp_path, '\ufeffage,Node,team,size\n3,dan,x,0.5\n1,ann,,1e3\n2,\'=cid,"y, z",\n')
    found = read_node_table(path, NAMES)
    assert found == {
        "age": [1, None, 2, 3],
        "team": [None, None, "y, z", "x"],
        "size": [1000.0, None, None, 0.5],
    }
    assert "1 nodes of the graph have no row in nodes.csv" in capsys.readouterr().err


def test_the_first_column_names_the_nodes_if_none_is_called_so(tmp_path, capsys):
    path = written(tmp_path, "who\tteam\n" + "".join(f"{name}\tt\n" for name in [*NAMES, "eve"]), "nodes.tsv")
    assert read_node_table(path, NAMES) == {"team": ["t"] * 4}
    assert "1 rows of nodes.tsv name no node of the graph, for example 'eve'" in capsys.readouterr().err


def test_other_delimiters_and_decimal_commas(tmp_path):
    path = written(tmp_path, "node;size;team\nann;0,5;x, y\nbob;1;z\n=cid;;z\ndan;2,25;z\n")
    assert read_node_table(path, NAMES) == {"size": [0.5, 1.0, None, 2.25], "team": ["x, y", "z", "z", "z"]}
    path = written(tmp_path, "node\tsize\n" + "".join(f"{name}\t3\n" for name in NAMES))
    assert read_node_table(path, NAMES) == {"size": [3] * 4}


def test_a_doubt_about_the_delimiter_is_noted(tmp_path, capsys):
    path = written(tmp_path, "node,a;b\n" + "".join(f"{name},x;y\n" for name in NAMES))
    assert read_node_table(path, NAMES) == {"a;b": ["x;y"] * 4}
    err = capsys.readouterr().err
    assert "nodes.csv: the lines were split at commas, not at semicolons" in err
    assert "delimiter" not in err  # --delimiter is about the graph


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["007", "1", "2", "3"], ["007", "1", "2", "3"]),
        (["00.5", "1", "2", "3"], ["00.5", "1", "2", "3"]),
        (["1_0", "1", "2", "3"], ["1_0", "1", "2", "3"]),
        (["0", "-1", "", " 3"], [0, -1, None, 3]),
        (["0.5", "0", "1e3", " "], [0.5, 0.0, 1000.0, None]),
        (["12345678901234567890", "1", "2", "3"], [12345678901234567890, 1, 2, 3]),
    ],
)
def test_what_is_a_number(tmp_path, cells, read):
    rows = "".join(f"{name},{cell}\n" for name, cell in zip(NAMES, cells, strict=True))
    assert read_node_table(written(tmp_path, "node,x\n" + rows), NAMES) == {"x": read}


def test_a_file_that_does_not_fit_into_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = written(tmp_path, "node,x\n" + "".join(f"{name},1\n" for name in NAMES))
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 29 * path.stat().st_size)
    with pytest.raises(MemoryError, match=r"nodes\.csv must fit into memory"):
        read_node_table(path, NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,team\n", "must have a header and a row for each node, got 1 rows"),
        ("node\nann\n", "must have a column besides the names"),
        ("node,team\nann,x,y\n", "line 2 must have 2 cells, like the header, got 3"),
        ("", "must have a header and a row for each node, got 0 rows"),
        ("node,team\nann,x\nbob,y\n\nann,z\n", "lines 2 and 5 name 'ann'. Leave one of them out"),
        ("node,team\n=cid,x\n'=cid,y\n", 'lines 2 and 3 name "\'=cid"'),
        ("node,team,size, team\nann,x,1,y\n", "a different name for each column, but 'team' is there twice"),
        ("full name\nann lee\n", "must have a column besides the names"),
        ("node,team\nxyz,x\n", "column 'node', but none of its names, such as 'xyz', is one of them"),
    ],
)
def test_errors(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_node_table(written(tmp_path, text), NAMES)


def test_names_that_begin_like_comments(tmp_path):
    path = written(tmp_path, "node,x\n#ann,1\n# bob,2\n")
    assert read_node_table(path, ["#ann", "# bob"]) == {"x": [1, 2]}


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a \.csv or \.tsv file, got '\.txt'"):
        read_node_table(written(tmp_path, "node,x\nann,1\n", "nodes.txt"), NAMES)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_node_table(tmp_path / "no.csv", NAMES)
    path = tmp_path / "latin.csv"
    path.write_bytes("node,x\nann,é\n".encode("latin-1"))
    with pytest.raises(ValueError, match="must be text in UTF-8"):
        read_node_table(path, NAMES)
