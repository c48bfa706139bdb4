"""The command ``report``, run as a user runs it."""

import json
import re
from io import StringIO
from itertools import count
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import report_pages
from report_pages import read_page
from rich.console import Console

from symrelu import LinkPredictor, NeighborEmbedding, Status, SymReLU, decompose
from symrelu.cli import report as command
from symrelu.graphs import read_graph


@pytest.fixture(autouse=True)
def quick_map(monkeypatch):
    """Put the nodes on a circle: other tests draw maps."""
    monkeypatch.setattr(
        "symrelu.report.writing.planar_map",
        lambda model, *, random_state: np.stack([np.cos(np.arange(77)), np.sin(np.arange(77))], axis=1),
    )


@pytest.fixture
def graph_file(tmp_path):
    lines = (f"{a},{b},{w}\n" for a, b, w in nx.les_miserables_graph().edges.data("weight"))
    (tmp_path / "graph.csv").write_text("source,target,weight\n" + "".join(lines))
    return tmp_path / "graph.csv"


def test_one_command_gives_a_page_with_clusters(call, graph_file, tmp_path):
    (tmp_path / "nodes.csv").write_text("node,side\nValjean,hero\nJavert,police\n")
    options = ["--labels", "nodes.csv", "--components", 4, "--max-iter", 30, "-o", "page.html", "--json"]
    code, out, err = call("report", "graph.csv", *options)
    assert code == 0
    assert "Drawing the map ..." in err
    assert "Fitting again without some pairs ..." in err
    found = json.loads(out)
    assert (found["model"], found["nodes"], found["columns"]) == ("SymReLU", 77, 4)
    assert found["bytes"] == (tmp_path / "page.html").stat().st_size
    assert 2 < found["clusters"] == len(found["sizes"]) < 20
    page = read_page(tmp_path / "page.html")
    assert "graph.csv" in page.texts
    assert "did not see 25 links" in page.text
    sides = report_pages.column(page.data, "side")
    assert sides[page.data["names"].index("Javert")] == "police"
    assert page.data["colour"] == "cluster"


def test_options(call, graph_file, tmp_path):
    options = ["--clusters", 3, "--no-hidden", "--title", "The <title>", "--max-iter", 5, "-o", "page.html"]
    code, out, _ = call("report", "graph.csv", *options)
    assert code == 0
    assert "open it in a browser" in out
    page = read_page(tmp_path / "page.html")
    assert page.texts.count("The <title>") == 2
    assert "There are 3 clusters" in page.text
    assert "was not measured" in page.text
    call("report", "graph.csv", *options[:-1], "again.html", "--quiet")
    again = read_page(tmp_path / "again.html")
    assert again.data["positions"] == page.data["positions"]
    assert report_pages.column(again.data, "cluster") == report_pages.column(page.data, "cluster")


@pytest.mark.parametrize("kind", ["SymReLU", "LinkPredictor", "NeighborEmbedding", "Solution"])
@pytest.mark.filterwarnings("ignore")
def test_a_saved_model_is_not_fitted_again(kind, call, graph_file, tmp_path, monkeypatch):
    graph = read_graph(graph_file)
    model = {
        "SymReLU": lambda: SymReLU(3, max_iter=5, random_state=0).fit(graph),
        "LinkPredictor": lambda: LinkPredictor(3, n_init=1, max_iter=3, random_state=0).fit(graph),
        "NeighborEmbedding": lambda: NeighborEmbedding(4, max_iter=5, random_state=0).fit(graph),
        "Solution": lambda: decompose(graph, 3, diagonal="ignore", max_iter=5, random_state=0),
    }[kind]()
    model.save(tmp_path / "model.npz")
    monkeypatch.setattr(command, "_embedding", None)
    options = ["--model", "model.npz", "--clusters", "none", "--no-hidden", "-o", "page.html", "--json"]
    code, out, err = call("report", "graph.csv", *options)
    assert code == 0, err
    assert json.loads(out)["model"] == kind
    assert json.loads(out)["clusters"] is None
    assert f"{kind} fitted" in read_page(tmp_path / "page.html").text


def test_ctrl_c_writes_the_page_of_what_is_known(call, graph_file, tmp_path, monkeypatch):
    def interrupted(file, graph, options):
        solution = decompose(graph, 2, diagonal="ignore", max_iter=2, random_state=0)
        object.__setattr__(solution, "status", Status.INTERRUPTED)
        return solution

    monkeypatch.setattr(command, "_embedding", interrupted)
    code, _, _ = call("report", "graph.csv", "-o", "page.html")
    assert code == 130
    assert "the fit was interrupted" in read_page(tmp_path / "page.html").text


@pytest.mark.filterwarnings("ignore")  # of clusters of one node each
def test_fits_that_were_stopped_are_named(call, graph_file, tmp_path):
    options = ["--clusters", 3, "--max-time", 1e-9, "--no-hidden", "-o", "page.html", "--json"]
    code, out, err = call("report", "graph.csv", *options)
    assert code == 0
    said = [
        f"{what} is that of an unfinished fit: --max-time was reached. The fit used all its time. Pass a "
        "larger --max-time."
        for what in ("The embedding", "The clustering by linkage", "The clustering by directions")
    ]
    assert json.loads(out)["warnings"] == said
    assert all(text in err for text in said)


def test_ctrl_c_during_the_map_writes_nothing(call, graph_file, tmp_path, monkeypatch):
    def interrupted(model, *, random_state):
        raise KeyboardInterrupt

    monkeypatch.setattr("symrelu.report.writing.planar_map", interrupted)
    code, _, err = call("report", "graph.csv", "--clusters", "none", "--max-iter", 3, "-o", "page.html")
    assert code == 130
    assert "Interrupted: nothing was written" in err
    assert not list(tmp_path.glob("*.html"))


@pytest.fixture
def ctrl_c_in(monkeypatch):
    """A function that lets Ctrl-C end fits, chosen by a function of the problem and the number of the fit."""

    def press(record):
        raise KeyboardInterrupt

    def install(chosen):
        numbers = count(1)

        def fit(problem, *arguments, **settings):
            stop = {"callback": press} if chosen(problem, next(numbers)) else {}
            return decompose(problem, *arguments, **settings | stop)

        monkeypatch.setattr("symrelu.estimators.base.decompose", fit)

    return install


@pytest.mark.parametrize("clusters", ["auto", 3])
@pytest.mark.filterwarnings("ignore")  # on the clusters, which are not shown
def test_ctrl_c_during_the_clustering_writes_the_page_without_clusters(
    clusters, call, graph_file, tmp_path, ctrl_c_in
):
    ctrl_c_in(lambda problem, number: number > 1)
    options = ["--clusters", clusters, "--max-iter", 3, "-o", "page.html", "--json"]
    code, out, _ = call("report", "graph.csv", *options)
    assert code == 130
    assert json.loads(out)["clusters"] is None
    page = read_page(tmp_path / "page.html")
    assert "modularity" not in page.text
    assert "was not measured" in page.text


def test_ctrl_c_during_the_second_fit_writes_nothing(call, graph_file, tmp_path, ctrl_c_in):
    ctrl_c_in(lambda problem, number: problem.mask is not None)
    code, _, err = call("report", "graph.csv", "--clusters", "none", "--max-iter", 3, "-o", "page.html")
    assert code == 130
    assert "Interrupted: nothing was written" in err
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.filterwarnings("ignore")
def test_a_model_whose_fit_was_interrupted_once_is_shown_like_others(call, graph_file, tmp_path, ctrl_c_in):
    ctrl_c_in(lambda problem, number: number == 1)
    SymReLU(3, random_state=0).fit(read_graph(graph_file)).save(tmp_path / "model.npz")
    code, out, _ = call("report", "graph.csv", "--model", "model.npz", "-o", "page.html", "--json")
    assert code == 0
    assert json.loads(out)["clusters"] > 1


def test_a_terminal_shows_the_stage_and_its_time(monkeypatch):
    shown = Console(file=StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(command.screen, "errors", shown)
    with command._stages(Path("page.html")) as begin:
        begin("drawing the map")
        begin("[writing] the page")
    assert "drawing the map 0:00:00" in re.sub(r"\x1b\[[\d;?]*\w", "", shown.file.getvalue())
    assert "[writing] the page 0:00:00" in re.sub(r"\x1b\[[\d;?]*\w", "", shown.file.getvalue())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv", "-o", "page.html"], "missing.csv does not exist"),
        (["graph.csv", "-o", "page.pdf"], "must end in .html, got '.pdf'"),
        (["graph.csv", "-o", "no/page.html"], "does not exist. Create it"),
        (["graph.csv", "-o", "page.html", "--clusters", "many"], "a number, 'auto' or 'none', got 'many'"),
        (["graph.csv", "-o", "page.html", "--clusters", "0"], "--clusters must be from 1 to 77"),
        (["graph.csv", "-o", "page.html", "--clusters", "78"], "the number of nodes, got 78"),
        (["graph.csv", "-o", "page.html", "--labels", "graph.csv"], "must be different files"),
        (["graph.csv", "-o", "page.html", "--labels", "other.csv"], "other.csv does not exist"),
        (["graph.csv", "-o", "page.html", "--model", "matrix.npz"], "must be a model that symrelu saved"),
    ],
)
def test_errors(arguments, message, call, graph_file, tmp_path, no_work):
    np.savez(tmp_path / "matrix.npz", x=np.eye(3))
    code, out, err = call("report", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.filterwarnings("ignore")
def test_a_model_of_another_graph_is_refused(call, graph_file, tmp_path):
    names = read_graph(graph_file).labels
    fitted = SymReLU(2, max_iter=3, random_state=0).fit(
        nx.relabel_nodes(nx.path_graph(77), dict(enumerate(names[::-1])))
    )
    fitted.save(tmp_path / "model.npz")
    code, _, err = call("report", "graph.csv", "--model", "model.npz", "-o", "page.html")
    assert code == 2
    assert "with the same nodes in the same order" in err
    code, _, err = call("report", "graph.csv", "--model", "model.npz", "--components", 3, "-o", "page.html")
    assert code == 2
    assert "--components must be left out" in err
