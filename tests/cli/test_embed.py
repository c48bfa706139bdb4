"""The command ``embed``, run as a user runs it."""

import csv
import json
import shlex
import shutil

import numpy as np
import pytest
from command_line import symrelu
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import Status, SymReLU, cli
from symrelu.fit.checkpoint import CheckpointFile


def read_vectors(path):
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def test_vectors_are_those_of_the_estimator(tmp_path, matrix_file, monkeypatch, capsys):
    output, model = tmp_path / "v.csv", tmp_path / "m.npz"
    options = ["--components", 3, "--shrinkage", 0.01, "--diagonal", "fit", "--n-negative", 0, "--seed", 1]
    code, out, err = symrelu(
        monkeypatch, capsys, "embed", matrix_file, "-o", output, "--model", model, *options
    )
    assert (code, "Warning" in err) == (0, False)
    settings = {"shrinkage": 0.01, "diagonal": "fit", "n_negative": 0, "random_state": 1}
    expected = SymReLU(3, **settings).fit(sparse.load_npz(matrix_file))
    header, names, vectors = read_vectors(output)
    assert header == ["node", "x1", "x2", "x3"]
    assert names == [str(k) for k in range(60)]
    assert_array_equal(vectors, expected.embedding_)
    assert_array_equal(SymReLU.load(model).embedding_, expected.embedding_)
    assert f"{expected.relative_error_:.6g}" in out


def test_the_output_may_be_a_model(tmp_path, matrix_file, monkeypatch, capsys):
    output = tmp_path / "v.npz"
    options = ["--components", 2, "--max-iter", 3, "--seed", 0, "-o", output]
    assert symrelu(monkeypatch, capsys, "embed", matrix_file, *options)[0] == 0
    assert SymReLU.load(output).embedding_.shape == (60, 2)


def test_json_is_the_only_output(tmp_path, matrix_file, monkeypatch, capsys):
    output = tmp_path / "v.json"
    code, out, _ = symrelu(monkeypatch, capsys, "embed", matrix_file, "-o", output, "--max-iter", 5, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["command"] == "embed"
    assert found["output"] == str(output)
    assert found["model"] is None
    assert (found["nodes"], found["rank"]) == (60, 16)
    assert found["status"] == "max_iter"
    assert "--max-iter" in found["advice"]
    assert found["seconds"] > 0
    assert len(json.loads(output.read_text())) == 60


def test_quiet_prints_nothing(tmp_path, matrix_file, monkeypatch, capsys):
    arguments = ["embed", matrix_file, "-o", tmp_path / "v.csv", "--max-iter", 2, "--quiet"]
    assert symrelu(monkeypatch, capsys, *arguments) == (0, "", "")
    assert (tmp_path / "v.csv").exists()


def test_the_number_of_columns_may_be_left_to_the_data(tmp_path, matrix_file, monkeypatch, capsys):
    options = ["--components", "auto", "--seed", 0, "--n-negative", 0, "--json"]
    code, out, _ = symrelu(monkeypatch, capsys, "embed", matrix_file, "-o", tmp_path / "v.csv", *options)
    assert code == 0
    assert json.loads(out)["rank"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["matrix.npz"],
            "embed must write something: pass --output embedding.csv, --model model.npz, or both; or --dry-run",
        ),
        (["matrix.npz", "-o", "v.xlsx"], "must end in .csv"),
        (["matrix.npz", "--model", "v.csv"], "v.csv must end in .npz for the model, got '.csv'"),
        (["matrix.npz", "-o", "no/v.csv"], "/no does not exist. Create it"),
        (["matrix.npz", "-o", "v.csv", "--model", "v.csv"], "must be different files"),
        (["matrix.npz", "--model", "matrix.npz"], "must be different files"),
        (["missing.npz", "-o", "v.csv"], "The file missing.npz does not exist"),
        (["empty.npz", "-o", "v.csv"], "empty.npz"),
        (["matrix.npz", "-o", "v.csv", "--components", "few"], "must be 'auto' or an integer, got 'few'"),
        (["matrix.npz", "-o", "v.csv", "--components", "99"], "must be an integer from 1 to 60"),
        (["matrix.npz", "-o", "v.csv", "--directed", "no"], "--directed must be one of error, max"),
    ],
)
def test_errors(matrix_file, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(matrix_file.parent)
    (matrix_file.parent / "empty.npz").write_bytes(b"")
    code, out, err = symrelu(monkeypatch, capsys, "embed", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(matrix_file.parent.glob("v.*"))


EXACT = ["--components", 3, "--tol", 0, "--gtol", 0, "--ftol", 0]


def test_the_same_command_resumes_from_its_checkpoint(tmp_path, matrix_file, call):
    begun = ["embed", matrix_file, *EXACT, "--checkpoint", tmp_path / "c.ckpt"]
    assert call(*begun, "-o", tmp_path / "part.csv", "--max-iter", 5)[0] == 0
    code, out, err = call(
        *begun, "-o", tmp_path / "all.csv", "--model", tmp_path / "m.npz", "--max-iter", 12, "--json"
    )
    assert "c.ckpt, at step 5" in err
    assert (code, json.loads(out)["iterations"]) == (0, 12)
    assert call("embed", matrix_file, *EXACT, "-o", tmp_path / "once.csv", "--max-iter", 12)[0] == 0
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "once.csv").read_bytes()
    assert SymReLU.load(tmp_path / "m.npz").checkpoint is None


def test_a_fit_that_was_stopped_names_the_command_that_goes_on(tmp_path, matrix_file, call):
    begun = ["embed", matrix_file, *EXACT, "--checkpoint", tmp_path / "c.ckpt", "-o", tmp_path / "part.csv"]
    code, out, _ = call(*begun, "--max-iter", 5)
    assert (code, "which counts the steps of all runs: 5 so far." in " ".join(out.split())) == (0, True)
    last = out.splitlines()[-1]
    assert last.startswith("Next: symrelu embed ")
    command, *arguments = shlex.split(last.removeprefix("Next: "))
    code, out, _ = call(*arguments, "--json")
    assert (command, code, json.loads(out)["iterations"]) == ("symrelu", 0, 10)
    assert call("embed", matrix_file, *EXACT, "-o", tmp_path / "once.csv", "--max-iter", 10)[0] == 0
    assert (tmp_path / "part.csv").read_bytes() == (tmp_path / "once.csv").read_bytes()


def test_a_killed_fit_resumes(tmp_path, matrix_file, monkeypatch, call):
    """What ``kill -9`` leaves is the file as it is in the middle."""
    checkpoint = tmp_path / "c.ckpt"
    middle, write = tmp_path / "middle.ckpt", CheckpointFile.write

    def written(self, snapshot):
        write(self, snapshot)
        if snapshot.history.iteration[-1] == 4:
            shutil.copy(checkpoint, middle)

    monkeypatch.setattr(CheckpointFile, "is_due", lambda self: True)
    monkeypatch.setattr(CheckpointFile, "write", written)
    begun = ["embed", matrix_file, *EXACT, "--max-iter", 9]
    assert call(*begun, "--checkpoint", checkpoint, "-o", tmp_path / "whole.csv")[0] == 0
    assert call(*begun, "--checkpoint", middle, "-o", tmp_path / "rest.csv")[0] == 0
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "rest.csv").read_bytes()


def test_resume_says_that_the_command_must_be_given_again(tmp_path, matrix_file, call):
    checkpoint = tmp_path / "c.ckpt"
    options = [*EXACT, "--max-iter", 2, "--checkpoint", checkpoint, "-o", tmp_path / "v.csv"]
    assert call("embed", matrix_file, *options)[0] == 0
    code, _, err = call("resume", checkpoint)
    assert code == 2
    assert "but 'symrelu embed' wrote it. Give that command again, with the same --checkpoint" in " ".join(
        err.split()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--checkpoint", "v.csv"], "must be different files"),
        (["--checkpoint", "c.ckpt", "--n-init", 2], "A checkpoint belongs to one fit: pass --n-init 1"),
    ],
)
def test_a_checkpoint_of_one_fit(options, message, matrix_file, call):
    code, _, err = call("embed", matrix_file, "-o", "v.csv", *options)
    assert code == 2
    assert message in " ".join(err.split())


def test_an_interrupted_fit_is_written(tmp_path, matrix_file, monkeypatch, capsys):
    class Interrupted(SymReLU):
        def fit(self, X, y=None):
            super().fit(X)
            object.__setattr__(self.solution_, "status", Status.INTERRUPTED)

    monkeypatch.setattr(cli.embed, "SymReLU", Interrupted)
    output = tmp_path / "v.csv"
    code, out, _ = symrelu(monkeypatch, capsys, "embed", matrix_file, "-o", output, "--max-iter", 3, "--json")
    assert code == 130
    assert json.loads(out)["status"] == "interrupted"
    assert len(read_vectors(output)[1]) == 60


def test_an_interrupt_before_the_first_evaluation(tmp_path, matrix_file, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(SymReLU, "fit", interrupted)
    code, out, err = symrelu(monkeypatch, capsys, "embed", matrix_file, "-o", tmp_path / "v.csv")
    assert (code, out) == (130, "")
    assert "nothing was written" in err
    assert not (tmp_path / "v.csv").exists()


@pytest.mark.parametrize(
    ("output", "told"), [("v.csv", True), ("v.tsv.gz", True), ("-", True), ("v.json", False)]
)
def test_names_that_get_an_apostrophe_are_counted(call, tmp_path, output, told):
    (tmp_path / "g.csv").write_text("@ann,+49\n+49,bob\nbob,@ann\n-5,bob\n")
    code, out, err = call("embed", "g.csv", "--components", 2, "--max-iter", 2, "-o", output, "--json")
    assert code == 0
    where = "on stdout" if output == "-" else f"in {output}"
    note = f"1 name begins like a formula and got a leading apostrophe {where}"
    assert (note in err) is told
    assert note in "".join(json.loads((err if output == "-" else out).splitlines()[-1])["notes"]) or not told
