"""The command ``evaluate``, run as a user runs it."""

import csv
import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from command_line import set_width
from scipy import sparse

from symrelu import LinkPredictor, Problem, Status, decompose
from symrelu.baselines.common_neighbors import resource_allocation
from symrelu.fit.link_evaluation import METRICS, evaluate_scores, link_splits, split_generator

QUICK = ["--components", 3, "--n-init", 1, "--max-iter", 3, "--seed", 0, "--splits", 2]
METHODS = ["symrelu", "degree product", "resource allocation"]


@pytest.fixture
def graph(tmp_path):
    """A graph of 40 nodes in two groups, with some loops."""
    rng = np.random.default_rng(0)
    inside = np.arange(40)[:, None] % 2 == np.arange(40) % 2
    upper = np.triu(rng.random((40, 40)) < np.where(inside, 0.5, 0.05)).astype(float)
    np.save(tmp_path / "graph.npy", np.maximum(upper, upper.T))
    return tmp_path / "graph.npy"


def test_metrics_are_those_of_the_estimator(graph, call):
    options = [*QUICK, "--fraction", 0.3, "--split-seed", 3, "--json", "-o", "metrics.csv"]
    code, out, _ = call("evaluate", graph, *options)
    assert code == 0
    result = json.loads(out)
    M = np.load(graph)
    predictor = LinkPredictor(3, n_init=1, max_iter=3, random_state=0)
    expected = predictor.evaluate(M, fraction=0.3, n_splits=2, random_state=3)
    assert result["mean"]["symrelu"] == asdict(expected.mean)
    assert (result["links"], result["hidden"], result["splits"]) == (expected.n_links, expected.n_hidden, 2)
    assert list(result["mean"]) == METHODS
    splits = link_splits(Problem.of(sparse.csr_array(M), diagonal="ignore"), 0.3, 2, split_generator(3))
    baseline = [asdict(evaluate_scores(resource_allocation(split.train), split)) for split in splits]
    found = result["by_split"]["resource allocation"]
    assert [{name: row[name] for name in METRICS} for row in found] == baseline
    with open("metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == [name for name in METHODS for _ in range(2)]
    assert float(rows[0]["auc_uniform"]) == expected.splits[0].auc_uniform


def test_the_table_has_a_row_for_each_method(graph, call, monkeypatch):
    set_width(monkeypatch, 200)  # no name is wrapped
    code, out, err = call("evaluate", graph, *QUICK)
    assert code == 0
    assert all(name in out for name in METHODS)
    assert "links hidden, mean of 2 splits" in out
    assert "Traceback" not in err


def test_few_links_have_no_hits(tmp_path, call):
    np.save(tmp_path / "ring.npy", np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0))
    code, out, _ = call("evaluate", "ring.npy", *QUICK, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["mean"]["symrelu"]["hits_at_50"] is None
    needed = "it needs at least 50 held-out links in each split, and there are 1"
    assert found["missing"] == {"hits_at_50": f"{needed}. The graph is too small."}
    code, out, _ = call("evaluate", "ring.npy", *QUICK)
    assert code == 0
    assert f"Hits@50 is missing (-): {needed}. The graph is too small." in " ".join(out.split())


@pytest.mark.parametrize(("fraction", "missing"), [(0.1, True), (0.3, False)])
def test_a_larger_fraction_has_hits(graph, call, fraction, missing):
    _, out, _ = call("evaluate", graph, *QUICK, "--fraction", fraction, "--json")
    found = json.loads(out)
    assert (found["mean"]["symrelu"]["hits_at_50"] is None) == missing
    assert list(found["missing"]) == ["hits_at_50"] * missing
    least = np.ceil(100 * 50 / found["links"]) / 100
    assert not missing or f"Pass a --fraction of at least {least:g}." in found["missing"]["hits_at_50"]
    assert 0.1 < least <= 0.3


def test_quiet_prints_nothing(graph, call):
    assert call("evaluate", graph, *QUICK, "--quiet") == (0, "", "")


def test_ctrl_c(graph, call, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(LinkPredictor, "fit", interrupted)
    code, out, err = call("evaluate", graph, "-o", "m.csv")
    assert (code, out) == (130, "")
    assert "nothing was measured" in err


def test_ctrl_c_in_a_fit(graph, call, monkeypatch):
    """The fit returns what it has, and would warn that it was interrupted."""

    def interrupted(*arguments, **settings):
        return replace(decompose(*arguments, **settings), status=Status.INTERRUPTED)

    monkeypatch.setattr("symrelu.estimators.base.decompose", interrupted)
    code, out, err = call("evaluate", graph, *QUICK)
    assert (code, out) == (130, "")
    assert "Warning" not in err
    assert "nothing was measured" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["graph.npy", "--fraction", "1"], "--fraction must be a number in (0, 0.99], got 1.0"),
        (["graph.npy", "--fraction", "0.0001"], "Hiding --fraction 0.0001 of the links must hide at least one"),
        (["graph.npy", "--splits", "0"], "'--splits'"),
        (["graph.npy", "-o", "graph.npy"], "must be different files"),
        (["graph.npy", "-o", "metrics.npz"], "must end in .csv"),
        (["complete.npy"], "it is complete"),
        (["missing.npy"], "missing.npy does not exist"),
    ],
)
def test_errors(arguments, message, graph, call, tmp_path):
    np.save(tmp_path / "complete.npy", np.ones((6, 6)))
    code, out, err = call("evaluate", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())
