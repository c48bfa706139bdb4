"""The command ``cluster``, run as a user runs it."""

import csv
import json
import warnings

import numpy as np
import pytest
from command_line import symrelu
from numpy.testing import assert_array_equal

from symrelu import Status, SymReLUClustering
from symrelu.fit.checkpoint import read_origin

SIZES = (12, 9, 7)


@pytest.fixture
def blocks_file(tmp_path):
    """A graph of three groups, each with all links inside and few to the others."""
    group = np.repeat(np.arange(3), SIZES)
    M = (group[:, None] == group).astype(float)
    M[0, -1] = M[-1, 0] = M[0, 14] = M[14, 0] = 0.5
    np.fill_diagonal(M, 0)
    np.save(tmp_path / "blocks.npy", M)
    return tmp_path / "blocks.npy"


def read_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_clusters_are_those_of_the_estimator(tmp_path, blocks_file, monkeypatch, capsys):
    output, shares = tmp_path / "c.csv", tmp_path / "s.tsv"
    options = ["--clusters", 3, "--seed", 0, "-o", output, "--memberships", shares, "--json"]
    code, out, err = symrelu(monkeypatch, capsys, "cluster", blocks_file, *options)
    assert (code, err) == (0, "")
    expected = SymReLUClustering(3, random_state=0).fit(np.load(blocks_file))
    rows = read_table(output)
    assert list(rows[0]) == ["node", "cluster", "membership"]
    assert_array_equal([int(row["cluster"]) for row in rows], expected.labels_)
    own = expected.memberships_[np.arange(28), expected.labels_]
    assert_array_equal([float(row["membership"]) for row in rows], own)
    with open(shares, encoding="utf-8", newline="") as file:
        header, *table = csv.reader(file, delimiter="\t")
    assert header == ["node", "cluster_0", "cluster_1", "cluster_2"]
    assert_array_equal(np.array(table, dtype=float)[:, 1:], expected.memberships_)
    found = json.loads(out)
    assert sorted(found["sizes"]) == sorted(SIZES)
    assert found["method"] == expected.method_
    assert found["modularity"] == expected.modularity_[expected.method_]
    assert found["output"] == str(output)


@pytest.mark.parametrize("options", [["--clusters", 3], ["--clusters", 3, "--method", "linkage"], []])
def test_the_same_command_resumes_from_its_checkpoint(options, tmp_path, blocks_file, call):
    arguments = ["cluster", blocks_file, *options]
    begun = [*arguments, "--checkpoint", tmp_path / "c.ckpt"]
    assert call(*begun, "-o", tmp_path / "part.csv", "--max-iter", 5)[0] == 0
    code, _, err = call(*begun, "-o", tmp_path / "all.csv", "--max-iter", 9)
    assert (code, "c.ckpt, at step 5" in err) == (0, True)
    assert call(*arguments, "-o", tmp_path / "once.csv", "--max-iter", 9)[0] == 0
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "once.csv").read_bytes()
    assert read_origin(tmp_path / "c.ckpt")["command"] == "cluster"


def test_a_checkpoint_of_directions_is_refused(tmp_path, blocks_file, call):
    options = ["--clusters", 3, "--method", "directions", "--checkpoint", tmp_path / "c.ckpt"]
    code, _, err = call("cluster", blocks_file, *options)
    assert code == 2
    assert "--checkpoint must be left out with --method directions" in " ".join(err.split())


def test_the_number_of_clusters_is_left_to_the_data_by_default(blocks_file, monkeypatch, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, _ = symrelu(monkeypatch, capsys, "cluster", blocks_file, "--seed", 0)
    assert code == 0
    expected = SymReLUClustering(None, random_state=0).fit(np.load(blocks_file))
    lines = [line.split() for line in out.splitlines()]
    assert ["clusters", str(expected.n_clusters_)] in lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npy"], "The file missing.npy does not exist"),
        (["blocks.npy", "--clusters", "many"], "got 'many'"),
        (["blocks.npy", "--clusters", "0"], "must be an integer from 1 to 28"),
        (["blocks.npy", "--method", "kmeans"], "must be one of 'auto', 'linkage', 'directions', got 'kmeans'"),
        (["blocks.npy", "-o", "c.npz"], "must end in .csv"),
        (["blocks.npy", "--memberships", "no/s.csv"], "/no does not exist. Create it"),
        (["blocks.npy", "-o", "c.csv", "--memberships", "c.csv"], "must be different files"),
    ],
)
def test_errors(blocks_file, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(blocks_file.parent)
    code, out, err = symrelu(monkeypatch, capsys, "cluster", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert [path.name for path in blocks_file.parent.iterdir()] == ["blocks.npy"]


def test_warnings_speak_of_options(blocks_file, monkeypatch, capsys):
    def fit(self, X, fitted=SymReLUClustering.fit):
        text = "Only 2 of n_clusters=3 clusters were found. Ask for fewer clusters, or use method='linkage'."
        warnings.warn(text, UserWarning, stacklevel=2)
        return fitted(self, X)

    monkeypatch.setattr(SymReLUClustering, "fit", fit)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, err = symrelu(monkeypatch, capsys, "cluster", blocks_file, "--clusters", 3, "--json")
    assert code == 0
    expected = "Only 2 of --clusters 3 clusters were found. Ask for fewer clusters, or use --method linkage."
    assert json.loads(out)["warnings"] == [expected]
    assert err == f"Warning: {expected}\n"


def test_an_early_end_is_shown(blocks_file, monkeypatch, capsys):
    options = ["--clusters", 3, "--seed", 0]
    _, out, _ = symrelu(monkeypatch, capsys, "cluster", blocks_file, *options)
    assert "stopped" not in out
    assert "not saved: pass -o clusters.csv" in out
    _, out, _ = symrelu(monkeypatch, capsys, "cluster", blocks_file, *options, "--max-time", 1e-9)
    shown = " ".join(out.split())
    assert "relative error" in shown
    assert "stopped because --max-time was reached (linkage, directions) advice These are the clusters" in shown
    assert "of an unfinished fit. The fit used all its time. Pass a larger --max-time." in shown
    assert "Next:" not in shown


@pytest.mark.filterwarnings("ignore")  # of clusters of one node each
def test_a_number_of_clusters_that_unfinished_fits_chose(blocks_file, call):
    assert "chosen" not in call("cluster", blocks_file)[1]
    shown = " ".join(call("cluster", blocks_file, "--max-time", 1e-9)[1].split())
    assert "chosen with the help of 10 fits that --max-time ended: with more time, it may be another" in shown
    assert json.loads(call("cluster", blocks_file, "--max-time", 1e-9, "--json")[1])["fits_out_of_time"] == 10


def test_a_limit_of_steps_is_an_early_end_if_it_is_below_the_usual_one(blocks_file, call):
    options = ["cluster", blocks_file, "--clusters", 3, "--json", "--method", "directions", "--max-iter"]
    for limit, early in ((3, {"directions": "max_iter"}), (20, {})):
        found = json.loads(call(*options, limit)[1])
        assert found["stopped_early"] == early
        assert (found["advice"] is not None) is bool(early)


def test_a_method_that_was_stopped_is_named_even_if_the_other_is_taken(blocks_file, monkeypatch, call):
    def fit(self, X, fitted=SymReLUClustering.fit):
        fitted(self, X)
        self.statuses_ = {"linkage": Status.MAX_TIME, "directions": Status.MAX_ITER}

    monkeypatch.setattr(SymReLUClustering, "fit", fit)
    shown = " ".join(call("cluster", blocks_file, "--clusters", 3, "--max-time", 60)[1].split())
    assert "stopped because --max-time was reached (linkage) advice" in shown


def test_clusters_that_can_go_on_name_the_command(tmp_path, blocks_file, call):
    options = ["cluster", blocks_file, "--clusters", 3, "--checkpoint", tmp_path / "c.ckpt", "--max-iter"]
    for method in ("auto", "linkage"):
        found = json.loads(call(*options, 4, "--method", method, "--json")[1])
        assert found["next"][-5:] == ["--max-iter", "8", "--method", method, "--json"]
        assert "It can be resumed from its checkpoint" in found["advice"]
    # Directions have no checkpoint.
    options = ["cluster", blocks_file, "--clusters", 3, "--max-iter", 4, "--method", "directions", "--json"]
    assert "checkpoint" not in json.loads(call(*options)[1])["advice"]
