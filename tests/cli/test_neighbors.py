"""The command ``neighbors``, run as a user runs it."""

import csv
import json
from dataclasses import asdict

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symrelu import NeighborEmbedding, Status
from symrelu.fit.neighbor_goal import Attempt, Found
from symrelu.fitted.certificate import certify
from symrelu.graphs import read_graph

NAMES = ["ann", "bob", 'c "d", e', "Ørsted", "=1+1", "007", "NA", "日本"]
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (0, 7), (0, 4), (3, 3)]


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *([NAMES[i], NAMES[j]] for i, j in EDGES)])
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A saved model of the same graph."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    adjacency = np.zeros((8, 8))
    for i, j in EDGES:
        adjacency[i, j] = adjacency[j, i] = i != j
    estimator = NeighborEmbedding(random_state=0, max_iter=300).fit(adjacency)
    estimator.node_names_ = np.array(NAMES, object)
    estimator.save(path)
    return path


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, [row[0].removeprefix("'") for row in rows], np.array([row[1:] for row in rows], dtype=float)


def test_vectors_are_those_of_the_estimator(graph, call):
    files = ["-o", "v.csv", "--queries", "q.csv", "--model", "m.npz"]
    code, out, err = call("neighbors", graph, *files, "--seed", 0, "--max-iter", 300)
    assert code == 0
    assert "self loop" in err
    expected = NeighborEmbedding(random_state=0, max_iter=300).fit(read_graph(graph))
    header, names, vectors = table("v.csv")
    assert header == ["node", *(f"x{k + 1}" for k in range(expected.n_components_))]
    assert names == list(expected.node_names_) == NAMES
    assert_array_equal(vectors.astype(np.float32), expected.item_vectors_)
    assert_array_equal(table("q.csv")[2].astype(np.float32), expected.query_vectors_)
    assert "0 of 28, all checked" in out
    assert NeighborEmbedding.load("m.npz").node_names_.tolist() == NAMES


def test_the_tables_alone_give_back_the_graph(graph, call):
    code, out, _ = call(
        "neighbors", graph, "-o", "v.csv", "--queries", "q.csv", "--seed", 0, "--max-iter", 300, "--json"
    )
    assert code == 0
    result = json.loads(out)
    (_, names, items), (_, _, queries) = table("v.csv"), table("q.csv")
    above = queries @ items.T > result["certificate"]["threshold"]
    found = {(names[i], names[j]) for i, j in np.argwhere(above) if i < j}
    assert found == {tuple(sorted((NAMES[i], NAMES[j]), key=NAMES.index)) for i, j in EDGES if i != j}
    assert_array_equal(queries, items * result["signature"])


def test_json_has_the_certificate(graph, call):
    code, out, _ = call("neighbors", graph, "--seed", 0, "--max-iter", 300, "--json")
    assert code == 0
    result = json.loads(out)
    expected = NeighborEmbedding(random_state=0, max_iter=300).fit(read_graph(graph))
    assert result["certificate"] == asdict(expected.certificate_)
    assert (result["exact"], result["recall"], result["goal_met"]) == (True, 1, True)
    assert (result["nodes"], result["columns"]) == (8, expected.n_components_)
    assert result["attempts"][0]["succeeded"]


def test_neighbors_of_some_nodes_of_a_saved_model(model, call, monkeypatch):
    monkeypatch.setattr(NeighborEmbedding, "fit", None)  # no search
    code, out, _ = call("neighbors", model, "--of", "ann", "--of", "日本", "-o", "n.csv")
    assert code == 0
    header, nodes, _ = table_of_text("n.csv")
    assert header == ["node", "neighbor", "score"]
    assert nodes == ["ann", "ann", "ann", "日本", "日本"]
    code, out, _ = call("neighbors", model, "--of", "ann", "--json")
    loaded = NeighborEmbedding.load(model)
    rows = json.loads(out)["neighbors"]
    assert [row["neighbor"] for row in rows] == loaded.neighbors("ann").tolist()
    assert {row["neighbor"] for row in rows} == {"bob", "日本", "=1+1"}
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > loaded.threshold_


def table_of_text(path):
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows], rows


def test_vectors_of_a_saved_model(model, call):
    assert call("neighbors", model, "-o", "v.csv", "--quiet") == (0, "", "")
    loaded = NeighborEmbedding.load(model)
    _, names, vectors = table("v.csv")
    assert names == NAMES
    assert_array_equal(vectors.astype(np.float32), loaded.item_vectors_)


def test_an_isolated_node_has_no_neighbors(tmp_path, call):
    np.save(tmp_path / "a.npy", np.diag([0.0] * 4) + np.diag([1.0, 0, 0], 1) + np.diag([1.0, 0, 0], -1))
    code, out, _ = call("neighbors", "a.npy", "--of", 3, "--json")
    assert code == 0
    assert json.loads(out)["neighbors"] == []


@pytest.mark.parametrize("options", [["--components", 1], ["--components", 1, "--recall", 0.9]])
def test_a_goal_that_is_missed_has_its_exit_code(options, graph, call):
    code, out, err = call("neighbors", graph, "-o", "v.csv", "--seed", 0, "--max-iter", 300, "--json", *options)
    assert code == 3
    result = json.loads(out)
    assert (result["goal_met"], result["exact"], result["columns"]) == (False, False, 1)
    assert "No vectors with recall >=" in err
    assert "or a lower --recall." in err
    assert result["warnings"]
    assert table("v.csv")[2].shape == (8, 1)


def test_a_low_recall_can_be_met_without_being_exact(graph, call):
    code, out, _ = call(
        "neighbors", graph, "--recall", 0.3, "--components", 1, "--seed", 0, "--max-iter", 300, "--json"
    )
    result = json.loads(out)
    assert (code, result["goal_met"]) == (0, True)
    assert not result["exact"]


def test_ctrl_c_writes_the_best_so_far(graph, call, monkeypatch):
    def search(matrix, goal, **options):
        vectors, signature = np.ones((8, 2), np.float32), np.ones(2, np.float32)
        certificate = certify(vectors, signature, matrix.astype(bool), 0.5)
        return Found(vectors, signature, certificate, (), Status.INTERRUPTED)

    monkeypatch.setattr("symrelu.estimators.neighbors.search_neighbors", search)
    code, out, _ = call("neighbors", graph, "-o", "v.csv", "--json")
    assert code == 130
    assert json.loads(out)["exact"] is False
    assert json.loads(out)["status"] == "interrupted"
    assert_array_equal(table("v.csv")[2], np.ones((8, 2)))


@pytest.mark.parametrize(
    ("status", "tried", "advice"),
    [
        (
            Status.MAX_TIME,
            [4, 3],
            "--max-time ended the search before 2 columns were tried. Pass a larger --max-time, "
            "--components 3, which were enough, or a lower --recall.",
        ),
        (Status.MAX_TIME, [2], "--max-time ended the search. Pass a larger --max-time, or a lower --recall."),
        (
            Status.INTERRUPTED,
            [3],
            "Ctrl-C ended the search before 2 columns were tried. Give it more time, --components 3, "
            "which were enough, or a lower --recall.",
        ),
        (Status.INTERRUPTED, [2], "Ctrl-C ended the search. Give it more time, or a lower --recall."),
        (
            None,
            [3, 2],
            "wrong pairs with 1 column. Pass --components 3, which were enough, or a lower --recall.",
        ),
    ],
)
def test_a_missed_goal_names_what_ended_the_search(status, tried, advice, graph, call, monkeypatch):
    def search(matrix, goal, **options):
        vectors, signature = np.ones((8, 1), np.float32), np.ones(1, np.float32)
        certificate = certify(vectors, signature, matrix.astype(bool), 0.5)
        attempts = tuple(Attempt(rank, 9, 0, rank > 2, 1.0) for rank in tried)
        return Found(vectors, signature, certificate, attempts, status)

    monkeypatch.setattr("symrelu.estimators.neighbors.search_neighbors", search)
    _, _, err = call("neighbors", graph, "--components", 2)
    assert " ".join(err.split()).endswith(advice)


def test_how_the_search_ended(graph, model, call, tmp_path):
    options = ["--seed", 0, "--max-iter", 300, "--json"]
    ended = json.loads(call("neighbors", graph, *options)[1])
    assert (ended["status"], ended["stopped_because"]) == (None, "the search has ended")
    early = json.loads(call("neighbors", graph, *options, "--components", 1, "--max-time", 1e-9)[1])
    assert (early["status"], early["stopped_because"]) == ("max_time", "--max-time was reached")
    loaded = json.loads(call("neighbors", model, "--json")[1])
    assert (loaded["status"], loaded["stopped_because"]) == (None, None)
    assert "stopped because" not in call("neighbors", model, "--of", "ann")[1]


def test_ctrl_c_before_anything_was_found(graph, call, monkeypatch, tmp_path):
    def search(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("symrelu.estimators.neighbors.search_neighbors", search)
    code, _, err = call("neighbors", graph, "-o", "v.csv")
    assert code == 130
    assert "nothing was written" in err
    assert not (tmp_path / "v.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["graph.csv", "--of", "anne"], "'anne' is not one of the 8 names of nodes. The closest one is 'ann'"),
        (["graph.csv", "--components", "few"], "--components must be"),
        (["graph.csv", "--components", "9"], "--components must be an integer from 1 to 8"),
        (["graph.csv", "--recall", "2"], "--recall must be a number in (0, 1]"),
        (["graph.csv", "--dtype", "int8"], "--dtype must be one of 'float32', 'float16'"),
        (["graph.csv", "-o", "v.npz"], "must end in .csv"),
        (["graph.csv", "-o", "v.csv", "--queries", "v.csv"], "must be different files"),
        (["model.npz", "--model", "model.npz"], "must be different files"),
        (["graph.csv", "--model", "m.csv"], "m.csv must end in .npz for the model, got '.csv'"),
        (["model.npz", "--recall", "0.9"], "--recall must be left out, because model.npz is a saved model"),
        (["model.npz", "--components", "3", "--of", "ann"], "--components must be left out"),
        (["model.npz", "--seed", "3", "--header", "no"], "--seed, --header must be left out"),
        (["hostile.npz"], "hostile.npz cannot be read as NeighborVectors"),
        (["changed.npz"], "the file was changed after it was written"),
        (["missing.csv"], "missing.csv does not exist"),
    ],
)
def test_errors(arguments, message, graph, model, call, tmp_path):
    (tmp_path / "model.npz").write_bytes(model.read_bytes())
    np.savez(tmp_path / "hostile.npz", neighbor_vectors=np.array("{}"))
    with np.load(model) as archive:
        changed = dict(archive)
    np.savez(tmp_path / "changed.npz", **changed | {"item_vectors": changed["item_vectors"][::-1].copy()})
    code, out, err = call("neighbors", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
