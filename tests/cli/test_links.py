"""The command ``links``, run as a user runs it."""

import csv
import gzip
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symrelu import LinkPredictor, Status, SymReLU
from symrelu.graphs import read_graph

NAMES = ["ann", "bob", 'c "d", e', "Ørsted", "=1+1", "007", "NA", "日本"]
QUICK = ["--components", 3, "--n-init", 2, "--max-iter", 4, "--seed", 0]
SETTINGS = {"n_init": 2, "max_iter": 4, "random_state": 0}


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to", "weight"])
        edges = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (0, 2), (0, 1), (3, 3)]
        writer.writerows([NAMES[i], NAMES[j], 2] for i, j in edges)
    return path


@pytest.fixture
def predictor(graph):
    return LinkPredictor(3, **SETTINGS).fit(read_graph(graph, duplicates="sum"))


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def defused(name):
    return f"'{name}" if name == "=1+1" else name


def test_links_are_those_of_the_predictor(graph, predictor, call):
    code, out, err = call("links", graph, "-o", "links.csv", "--top", 7, *QUICK, "--duplicates", "sum")
    assert code == 0
    assert "1 repeated edge" in err
    expected = predictor.top_links(7)
    rows = rows_of("links.csv")
    assert [[row["source"], row["target"]] for row in rows] == [
        list(map(defused, pair)) for pair in expected.names.tolist()
    ]
    assert_array_equal([float(row["score"]) for row in rows], expected.scores)
    assert "links.csv" in out


def test_links_of_some_nodes(graph, predictor, call):
    options = ["--of", "日本", "--of", 'c "d", e', "--top", 3, *QUICK, "--duplicates", "sum", "--json"]
    code, out, _ = call("links", graph, *options)
    assert code == 0
    result = json.loads(out)
    items, scores = predictor.top_k(["日本", 'c "d", e'], 3)
    assert [row["source"] for row in result["links"]] == ["日本"] * 3 + ['c "d", e'] * 3
    assert [row["target"] for row in result["links"]] == items.ravel().tolist()
    assert_array_equal([row["score"] for row in result["links"]], scores.ravel())
    assert (result["command"], result["count"], result["known_links"], result["fits"]) == ("links", 6, 10, 2)


def test_a_node_with_few_candidates(graph, call):
    code, out, _ = call("links", graph, "--of", "ann", *QUICK, "--duplicates", "sum", "--json")
    assert code == 0
    assert {row["target"] for row in json.loads(out)["links"]} == {"007", "NA", "日本"}


def test_scores_of_given_pairs(graph, predictor, call, tmp_path):
    (tmp_path / "pairs.csv").write_text("source,target\n007,日本\nann,bob\n007,日本\n", encoding="utf-8")
    code, _, _ = call("links", graph, "--pairs", "pairs.csv", "-o", "s.csv", *QUICK, "--duplicates", "sum")
    assert code == 0
    rows = rows_of("s.csv")
    assert [(row["source"], row["target"]) for row in rows] == [
        ("007", "日本"),
        ("ann", "bob"),
        ("007", "日本"),
    ]
    expected = predictor.score_pairs(["007", "ann", "007"], ["日本", "bob", "日本"])
    assert_array_equal([float(row["score"]) for row in rows], expected)


def test_a_saved_model_is_not_fitted_again(graph, predictor, call, monkeypatch):
    assert call("links", graph, "--model", "m.npz", *QUICK, "--duplicates", "sum", "--quiet")[0] == 0
    monkeypatch.setattr(LinkPredictor, "fit", None)
    code, out, _ = call("links", "m.npz", "--top", 4, "--json")
    assert code == 0
    assert [[row["source"], row["target"]] for row in json.loads(out)["links"]] == predictor.top_links(
        4
    ).names.tolist()


def test_nodes_without_names_are_numbers(matrix_file, call):
    code, out, _ = call("links", matrix_file, "--of", 5, "--top", 2, *QUICK, "--json")
    assert code == 0
    assert all(row["source"] == 5 and type(row["target"]) is int for row in json.loads(out)["links"])


def test_an_early_end_is_shown(matrix_file, call):
    assert "stopped" not in call("links", matrix_file, "--n-init", 2)[1]
    early = ["--n-init", 2, "--max-time", 1e-9, "--model", "links.npz"]
    shown = " ".join(call("links", matrix_file, *early)[1].split())
    assert "of the graph divided by its degrees stopped because --max-time was reached (2 of 2 fits)" in shown
    several = "These are the links of unfinished fits. The fits used all their time. Pass a larger --max-time."
    assert several in shown
    shown = " ".join(call("links", matrix_file, "--n-init", 1, "--max-time", 1e-9)[1].split())
    assert "These are the links of an unfinished fit. The fit used all its time. Pass a larger" in shown
    shown = " ".join(call("links", "links.npz")[1].split())
    assert shown.endswith("advice These are the links of unfinished fits.")  # there is no fit to give more time
    found = json.loads(call("links", matrix_file, *QUICK, "--json")[1])
    assert (found["status"], found["stopped_because"]) == ("max_iter", "--max-iter was reached (2 of 2 fits)")
    assert found["advice"].startswith("These are the links of unfinished fits.")


def test_quiet_prints_nothing(matrix_file, call):
    assert call("links", matrix_file, "-o", "l.json", *QUICK, "--quiet") == (0, "", "")
    with open("l.json") as file:
        assert len(json.load(file)) == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["graph.csv"], "is given 2 times. Pass --duplicates sum to add the weights"),
        (["graph.csv", "--duplicates", "sum", "--of", "anne"], "'anne' is not one of the 8 names"),
        (["graph.csv", "--of", "ann", "--pairs", "graph.csv"], "--of and --pairs ask for different things"),
        (["graph.csv", "--pairs", "graph.csv"], "must be different files"),
        (["graph.csv", "--duplicates", "sum", "--pairs", "none.csv"], "none.csv does not exist"),
        (
            ["graph.csv", "--duplicates", "sum", "--pairs", "cut.csv.gz"],
            "cut.csv.gz is not a readable text file",
        ),
        (["graph.csv", "-o", "graph.csv"], "must be different files"),
        (["graph.csv", "-o", "links.npz"], "must end in .csv"),
        (["graph.csv", "-o", "no/links.csv"], "does not exist. Create it"),
        (["graph.csv", "--top", "0"], "'--top'"),
        (
            ["graph.csv", "--duplicates", "sum", "--components", "0"],
            "--components must be an integer of at least 1",
        ),
        (
            ["graph.csv", "--duplicates", "sum", "--shrinkage", "x"],
            "--shrinkage must be 'auto' or a number, got 'x'",
        ),
        (["missing.csv"], "missing.csv does not exist"),
        (["graph.csv", "--model", "m.csv"], "m.csv must end in .npz for the model, got '.csv'"),
        (["model.npz", "--components", "3"], "--components must be left out, because model.npz is a saved"),
        (["model.npz", "--of", "0", "--duplicates", "sum"], "--duplicates must be left out"),
        (["embedding.npz"], "but it is one of 'symrelu embed' or 'symrelu fit', which does not predict links"),
        (["hostile.npz"], "hostile.npz"),
    ],
)
def test_errors(arguments, message, graph, call, tmp_path):
    if "embedding.npz" in arguments:
        SymReLU(2, max_iter=500, n_negative=0, diagonal="fit").fit(np.eye(4) + 0.5).save(
            tmp_path / "embedding.npz"
        )
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"ann,bob\n" * 99)[:-9])
    np.savez(tmp_path / "hostile.npz", model=np.array("{}"))
    if "model.npz" in arguments:
        LinkPredictor(2, n_init=1, max_iter=500).fit(np.ones((4, 4)) - np.eye(4)).save(tmp_path / "model.npz")
    code, out, err = call("links", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


@pytest.mark.parametrize("at", [1, 3])
def test_ctrl_c_keeps_the_fits_so_far(at, graph, call, monkeypatch):
    def interrupted(estimator, *arguments, **options):
        fit(estimator, *arguments, **options)
        object.__setattr__(estimator.solution_, "status", Status.INTERRUPTED)
        return estimator

    fit = LinkPredictor.fit
    monkeypatch.setattr(LinkPredictor, "fit", interrupted)
    code, _, _ = call("links", graph, "-o", "links.csv", *QUICK, "--duplicates", "sum", "--top", at)
    assert code == 130
    assert len(rows_of("links.csv")) == at


def test_ctrl_c_before_a_fit_writes_nothing(graph, call, monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(LinkPredictor, "fit", interrupted)
    code, _, err = call("links", graph, "-o", "links.csv", "--duplicates", "sum")
    assert code == 130
    assert "nothing was written" in err
    assert not (tmp_path / "links.csv").exists()
