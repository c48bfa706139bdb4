"""Options for reading graphs."""

import json
import re

import numpy as np
import pytest
from command_line import symrelu
from scipy import sparse

from symrelu.cli import app
from symrelu.cli.inputs import graph_options, read_input, reading_options
from symrelu.graphs import GraphFileWarning


def test_options_are_those_of_the_reader():
    names = [option.name for option in graph_options()]
    assert names == [
        "source", "target", "weight", "delimiter", "header", "decimal", "duplicates", "self_loops", "directed",
        "key",
    ]  # fmt: skip
    defaults = {option.name: option.default for option in graph_options()}
    assert reading_options(defaults | {"rank": 3}) == defaults


@pytest.mark.parametrize(
    ("given", "keyword"),
    [
        ({"weight": "none"}, None),
        ({"header": "yes"}, True),
        ({"header": "no"}, False),
        ({"directed": "sum"}, "sum"),
    ],
)
def test_words_of_the_command_line(given, keyword):
    (name,) = given
    assert reading_options(given)[name] == keyword


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"duplicates": "mean"}, "--duplicates must be one of error, sum, max, got 'mean'."),
        ({"self_loops": "yes"}, "--self-loops must be one of keep, drop, error, got 'yes'."),
        ({"header": "maybe"}, "--header must be one of auto, yes, no, got 'maybe'."),
    ],
)
def test_other_words_are_refused_before_the_file_is_read(given, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_input(tmp_path / "missing.csv", given)


def test_words_are_completed(monkeypatch, capsys):
    words = {"_SYMRELU_COMPLETE": "complete_bash", "COMP_WORDS": "symrelu fit --self-loops ", "COMP_CWORD": "3"}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        app(prog_name="symrelu")
    assert capsys.readouterr().out.split() == ["keep", "drop", "error"]


HUGE = "%%MatrixMarket matrix coordinate real symmetric\n1000000000 1000000000 1\n2 1 1\n"
EDGES = "a,b,2\nb,a,2\nb,c,1\nc,a,0.5\na,b,2\nc,c,3\n"


def test_notes_say_how_the_file_was_read(tmp_path, monkeypatch, capsys):
    (tmp_path / "g.csv").write_text(EDGES)
    options = ["-r", 2, "--duplicates", "max", "--max-iter", 1, "-o", tmp_path / "u.csv", "--json"]
    code, out, err = symrelu(monkeypatch, capsys, "fit", tmp_path / "g.csv", *options)
    assert code == 0
    notes = json.loads(out)["notes"]
    assert len(notes) == 3
    assert "pass --weight to choose another column, or --weight none" in notes[0]
    assert err == "".join(f"Note: {text}\n" for text in notes)
    names = [line.split(",")[0] for line in (tmp_path / "u.csv").read_text().splitlines()]
    assert names == ["node", "a", "b", "c"]


@pytest.mark.filterwarnings("default::symrelu.graphs.GraphFileWarning")
@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_what_may_be_wrong_is_a_warning_also_with_quiet(tmp_path, monkeypatch, capsys, options):
    (tmp_path / "g.csv").write_text("from,to,minutes\na,b,2\nb,c,1\nc,a,5\n")
    call = ["fit", tmp_path / "g.csv", "-r", 1, "--max-iter", 1, "-o", tmp_path / "u.csv"]
    code, _, err = symrelu(monkeypatch, capsys, *call, *options)
    assert code == 0
    assert (
        f"Warning: {tmp_path / 'g.csv'}: columns 'from', 'to' were read as the two ends, every edge has" in err
    )
    assert "column 'minutes' not at all. Pass --source and --target for other ends, --weight for other" in err
    assert "weights, or --weight none for none." in err
    code, out, err = symrelu(monkeypatch, capsys, *call, *options, "--json")
    assert "column 'minutes' not at all" in json.loads(out)["warnings"][0]
    code, out, err = symrelu(monkeypatch, capsys, *call, "--quiet", "--weight", "minutes")
    assert (code, out, err) == (0, "", "")


def test_a_file_that_was_read_before_is_not_warned_of_again(tmp_path):
    (tmp_path / "g.csv").write_text("from,to,minutes\na,b,2\nb,c,1\n")
    with pytest.warns(GraphFileWarning, match="column 'minutes' not at all"):
        read_input(tmp_path / "g.csv", {})
    assert read_input(tmp_path / "g.csv", {}, again=True).labels.tolist() == ["a", "b", "c"]


def test_a_decimal_comma_that_is_not_clear(tmp_path, monkeypatch, capsys):
    (tmp_path / "g.csv").write_text("a;b;1,234\nb;c;2,345\n")
    call = ["fit", tmp_path / "g.csv", "-r", 1, "--max-iter", 1, "-o", tmp_path / "u.csv"]
    code, out, err = symrelu(monkeypatch, capsys, *call)
    assert (code, out) == (2, "")
    assert "got '1,234'. Pass --decimal , if this is a decimal comma" in err
    assert symrelu(monkeypatch, capsys, *call, "--decimal", ",")[0] == 0


READERS = {
    "embed": ["-o", "v.csv"],
    "cluster": [],
    "rank": [],
    "fit": ["-r", 1, "-o", "u.npz"],
    "links": ["-o", "l.csv"],
    "neighbors": ["--model", "m.npz"],
    "evaluate": [],
}


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.csv", None, "missing.csv does not exist"),
        ("empty.csv", "", "empty.csv must have at least one edge, but it has none."),
        ("folder.csv", "folder", "folder.csv is a folder, not a file"),
        ("graph.docx", "a", "Got the extension '.docx'."),
        (
            "header.csv",
            "source,target,weight\n",
            "header.csv must have at least one edge, but it has only a header.",
        ),
        ("one.csv", "alone\n", "one.csv must have a column for each of the two ends of an edge, got 1 column."),
        ("binary.csv", "\0\1\2,\0\n", "binary.csv must be a text file, but it has zero bytes"),
        ("negative.csv", "a,b,-1\nb,c,1\n", "nonnegative: edge ('a', 'b') has -1."),
        ("twice.csv", EDGES, "Edge ('a', 'b') is given 2 times. Pass --duplicates sum"),
        ("both.csv", "a,b,1\na,b,1\nb,a,5\n", "('a', 'b'): pass --duplicates sum --directed sum to add both."),
        ("directed.csv", "a,b,1\nb,a,2\n", "but 2 in the other direction. Pass --directed max"),
        ("broken.npz", "PK", "broken.npz is not a readable npz file (damaged or truncated?)"),
        ("hostile.graphml", '<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', "must be XML without a DOCTYPE"),
        ("huge.mtx", HUGE, "fits of a 1000000000 x 1000000000 matrix need 200.0 GB"),
    ],
)
def test_files_that_cannot_be_read_are_named(command, name, content, message, tmp_path, monkeypatch, capsys):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 16 * 10**9)
    before = sorted(tmp_path.iterdir())
    code, out, err = symrelu(monkeypatch, capsys, command, name, *READERS[command])
    assert (code, out) == (2, "")
    assert message in err
    assert name in err
    assert sorted(tmp_path.iterdir()) == before


MODELS = {
    "links": "is a model of links. Pass it to 'symrelu links m.npz'.",
    "neighbors": "is a model of neighbors. Pass it to 'symrelu neighbors m.npz'.",
    "embed": "is a saved fit. Pass it to 'symrelu transform m.npz NEW'.",
    "fit": "is a saved fit. Pass it to 'symrelu transform m.npz NEW'.",
}


@pytest.mark.parametrize("model", MODELS)
def test_a_saved_model_is_named_with_its_command(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.csv").write_text("a,b\nb,c\nc,d\nd,a\n")
    own = ["--rank", 2, "-o", "m.npz"] if model == "fit" else ["--components", 2, "--model", "m.npz"]
    assert symrelu(monkeypatch, capsys, model, "g.csv", *own, "--max-iter", 5, "--seed", 0)[0] in (0, 3)
    masked = ["fit", "--rank", 1, "-o", "o.npz", "g.csv", "--mask"]
    for command in (["cluster"], ["embed", "-o", "v.csv"], ["rank"], ["evaluate"], masked):
        code, out, err = symrelu(monkeypatch, capsys, *command, "m.npz")
        assert (code, out) == (2, "")
        assert f"m.npz must be a graph or a matrix, but it {MODELS[model]}" in err


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_file_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("symrelu.files.writing.os.access", lambda *_: False)  # for root, all folders can be
    for command in (["embed", "-o"], ["cluster", "-o"], ["rank", "-o"], ["fit", "-r", 1, "-o"]):
        code, out, err = symrelu(monkeypatch, capsys, *command, tmp_path / "x.csv", tmp_path / "missing.csv")
        assert (code, out) == (2, "")
        assert f"The output folder {tmp_path} cannot be written to." in " ".join(err.split())


VALUES = {
    "nan.npz": (np.nan, "must not contain NaN, but entry (0, 1) is nan. Replace it by a number in the file"),
    "infinite.npz": (np.inf, "must be finite, without infinity, but entry (0, 1) is inf. Replace it by a"),
    "negative.npz": (
        -1,
        "must be nonnegative, but entry (0, 1) is -1. Replace negative entries in the file by 0, or by their "
        "absolute values, whichever is intended.",
    ),
    "zero.npz": (0, "must have a positive entry, but all are zero: there is nothing to fit."),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("command", [*READERS, "report"])
@pytest.mark.parametrize("dense", [False, True])
def test_a_matrix_that_cannot_be_fitted_is_named(command, name, dense, call):
    value, message = VALUES[name]
    matrix = np.ones((4, 4)) - np.eye(4) if value else np.zeros((4, 4))
    matrix[0, 1] = matrix[1, 0] = value
    if dense:
        name = name.replace(".npz", ".npy")
        np.save(name, matrix)
    else:
        sparse.save_npz(name, sparse.csr_array(matrix))
    code, out, err = call(command, name, *READERS.get(command, ["-o", "r.html"]))
    assert (code, out) == (2, "")
    assert f"Error: {name}: The matrix {message}" in err
    assert not re.search(r"\b[MX]\b|mask=|numpy", err)
    assert ("--mask" in err) == (command in ("fit", "rank") and name.startswith(("nan", "infinite")))


@pytest.mark.parametrize("command", [["fit", "-r", 1, "-o", "u.npz"], ["rank"]])
def test_a_matrix_with_a_mask_that_is_not_symmetric_is_named(command, call):
    matrix = np.ones((6, 6)) - np.eye(6)
    matrix[0, 1] = 5
    np.save("m.npy", matrix)
    np.save("mask.npy", np.eye(6, dtype=bool))
    code, out, err = call(*command, "m.npy", "--mask", "mask.npy")
    assert (code, out) == (2, "")
    assert "m.npy: The matrix must be symmetric, but entries (0, 1) and (1, 0) differ by 4. Pass --dir" in err
    assert ".T" not in err


def test_the_name_of_the_matrix_may_resemble_an_option(call):
    np.save("max_iter=3.npy", -np.ones((4, 4)))
    assert "Error: max_iter=3.npy: The matrix must be nonnegative" in call("cluster", "max_iter=3.npy")[2]
