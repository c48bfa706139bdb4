import json
import os

import networkx as nx
import numpy as np
import pytest
import report_pages
from numpy.testing import assert_allclose
from report_pages import read_page
from scipy import sparse
from solutions import with_model

from symrelu import Problem, decompose, report
from symrelu.graphs import Labelled

KINDS = ("Solution", "SymReLU", "linkage", "directions", "LinkPredictor", "NeighborEmbedding")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_page(kind, models, miserables, places, tmp_path):
    path = report.write(tmp_path / "page.html", miserables, models[kind], positions=places, hidden=None)
    data = read_page(path).data
    # A Solution has no names, but the graph does.
    assert data["names"] == [str(name) for name in miserables.nodes]
    degrees = [len(miserables[node]) for node in miserables]
    assert report_pages.column(data, "degree") == degrees
    found = {tuple(sorted(pair)) for pair in report_pages.links(data)}
    numbers = {node: k for k, node in enumerate(miserables)}
    assert found == {tuple(sorted((numbers[a], numbers[b]))) for a, b in miserables.edges}
    clusters = [column["name"] for column in data["columns"] if column["name"] == "cluster"]
    assert clusters == (["cluster"] if kind in ("linkage", "directions") else [])
    assert data["curve"] is not None
    assert os.listdir(tmp_path) == ["page.html"]


def test_the_map_and_hidden_pairs_are_computed(models, miserables, tmp_path):
    path = report.write(tmp_path / "page.html", miserables, models["SymReLU"], random_state=3)
    page = read_page(path)
    assert "did not see 25 links" in page.text
    places = report_pages.numbers(page.data["positions"], "<u2").reshape(-1, 2)
    assert len(np.unique(places, axis=0)) > 70
    again = report.write(tmp_path / "again.html", miserables, models["SymReLU"], random_state=3)
    assert again.read_bytes() == path.read_bytes()


def test_columns_names_and_labels(models, miserables, places, tmp_path):
    path = report.write(
        tmp_path / "page.html",
        miserables,
        models["SymReLU"],
        ["odd", "even"] * 38 + ["odd"],
        columns={"size": np.linspace(0, 1, 77), "kind": ["x"] * 77},
        names=range(100, 177),
        title="Title",
        positions=places,
        hidden=None,
    )
    page = read_page(path)
    assert "Title" in page.texts
    data = page.data
    assert data["names"][0] == "100"
    assert data["colour"] == "cluster"
    assert report_pages.column(data, "cluster")[:2] == ["odd", "even"]
    assert_allclose(report_pages.column(data, "size"), np.linspace(0, 1, 77), rtol=1e-6)
    assert "There are 2 clusters of 39, 38 nodes" in page.text


def test_the_first_column_colours_the_map_without_clusters(models, miserables, places, tmp_path):
    def colour(**columns):
        path = report.write(
            tmp_path / "page.html",
            miserables,
            models["SymReLU"],
            columns=columns,
            positions=places,
            hidden=None,
        )
        return read_page(path).data["colour"]

    assert colour() == "degree"
    assert colour(kind=["x"] * 77, size=range(77)) == "kind"
    assert colour(degree=["x"] * 77) == "degree (given)"


def test_a_table_of_pandas(models, miserables, places, tmp_path):
    pandas = pytest.importorskip("pandas")
    for size in (2, 90):  # fewer and more columns than rows of the graph
        table = pandas.DataFrame({f"c{k}": np.linspace(0, 1, 77) for k in range(size)})
        path = report.write(
            tmp_path / "page.html", miserables, models["SymReLU"], columns=table, positions=places, hidden=None
        )
        data = read_page(path).data
        assert data["colour"] == "c0"
        assert [column["name"] for column in data["columns"]][-size:] == list(table)


def test_labels_and_names_as_tensors(models, miserables, places, tmp_path):
    torch = pytest.importorskip("torch")
    path = report.write(
        tmp_path / "page.html",
        miserables,
        models["SymReLU"],
        torch.arange(77) % 2,
        names=torch.arange(77),
        columns={"size": torch.linspace(0, 1, 77)},
        positions=places,
        hidden=None,
    )
    data = read_page(path).data
    assert data["names"][:2] == report_pages.column(data, "cluster")[:2] == ["0", "1"]
    assert_allclose(report_pages.column(data, "size"), np.linspace(0, 1, 77), atol=1e-6)


def test_free_texts_do_not_colour_the_map(tmp_path):
    M = np.ones((300, 300))
    path = report.write(
        tmp_path / "page.html",
        M,
        decompose(M, 1, max_iter=1, random_state=0),
        columns={"title": [f"title {k}" for k in range(300)], "size": np.linspace(0, 1, 300)},
        positions=np.random.default_rng(0).random((300, 2)),
        hidden=None,
    )
    assert read_page(path).data["colour"] == "size"


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_nodes_without_a_cluster_are_no_cluster(missing, models, miserables, places, tmp_path):
    path = report.write(
        tmp_path / "page.html",
        miserables,
        models["SymReLU"],
        [missing] * 7 + ["a"] * 30 + ["b"] * 40,
        positions=places,
        hidden=None,
    )
    page = read_page(path)
    assert "There are 2 clusters of 40, 30 nodes" in page.text
    assert "7 nodes have no cluster." in page.text
    assert "clusters 2" in page.text
    assert page.data["matrices"]["byCluster"]
    assert report_pages.column(page.data, "cluster")[6:8] == [None, "a"]


def test_labels_that_are_all_missing_are_no_clusters(models, miserables, places, tmp_path):
    path = report.write(
        tmp_path / "page.html", miserables, models["SymReLU"], [None] * 77, positions=places, hidden=None
    )
    page = read_page(path)
    assert "modularity" not in page.text
    assert page.data["colour"] == "degree"
    assert not page.data["matrices"]["byCluster"]


def test_a_column_called_cluster_orders_nothing(models, miserables, places, tmp_path):
    path = report.write(
        tmp_path / "page.html",
        miserables,
        models["SymReLU"],
        columns={"cluster": ["x"] * 77},
        positions=places,
        hidden=None,
    )
    assert not read_page(path).data["matrices"]["byCluster"]


def test_stages_are_named_when_they_begin(models, miserables, places, tmp_path):
    def stages(**options):
        found = []
        report.write(tmp_path / "page.html", miserables, models["SymReLU"], progress=found.append, **options)
        return found

    assert stages() == ["drawing the map", "fitting again without some pairs", "writing the page"]
    assert stages(positions=places, hidden=None) == ["writing the page"]


HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "=cmd()",
    "😀",
    "שלום",
    "<!--",
    "\u2028",
    "\udcff",
    "a,b\n",
]


def test_hostile_names_are_kept(tmp_path):
    M = np.ones((9, 9)) - np.eye(9)
    path = report.write(
        tmp_path / "page.html",
        Labelled(M, np.array(HOSTILE, dtype=object)),
        decompose(M, 2, max_iter=2, random_state=0),
        HOSTILE,
        columns=dict.fromkeys(HOSTILE, HOSTILE),
        title=HOSTILE[0],
        positions=np.eye(9, 2),
        hidden=None,
    )
    page = read_page(path)
    assert page.data["names"] == HOSTILE
    assert report_pages.column(page.data, HOSTILE[1]) == HOSTILE
    assert len(page.scripts) == 2
    (found,) = [text for attributes, text in page.scripts if "type" in attributes]
    assert json.loads(found) == page.data
    assert not set(found) & set("<>&")


@pytest.mark.parametrize(
    "M",
    [
        np.array([[2.0]]),
        np.array([[1.0, 0.5], [0.5, 1.0]]),
        np.pad(np.ones((4, 4)), (0, 3)),  # the last three nodes have no links
        np.diag([1.0, 2.0, 3.0]),  # no links at all
    ],
    ids=["one node", "two nodes", "isolated nodes", "loops only"],
)
def test_small_graphs(M, tmp_path):
    solution = decompose(M, 1, random_state=0)
    path = report.write(tmp_path / "page.html", sparse.csr_array(M), solution)
    page = read_page(path)
    assert page.data["names"] == [str(k) for k in range(len(M))]
    assert report_pages.column(page.data, "degree") == [str(d) for d in (M > 0).sum(axis=1) - (np.diag(M) > 0)]


@pytest.mark.parametrize("scale", [1e-300, 1e305])
def test_any_scale(scale, tmp_path):
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((30, 30)) < 0.3, 1) * rng.random((30, 30))
    M = (half + half.T) * scale
    path = report.write(
        tmp_path / "page.html", M, decompose(M, 3, random_state=0), positions=rng.random((30, 2))
    )
    data = read_page(path).data
    first, _ = (report_pages.numbers(cells, np.uint8) for cells in data["matrices"]["cells"])
    assert first.max() == 255


def test_a_problem_and_baselines(models, miserables, places, tmp_path):
    problem = Problem.of(miserables, None, "ignore")
    for name in ("Linear", "TwoFactor", "Logistic"):
        solution = with_model(models["Solution"], name)
        path = report.write(tmp_path / "page.html", problem, solution, positions=places)
        assert f"A model of the kind {name} is not fitted again" in read_page(path).text


@pytest.mark.parametrize("name", ["Linear", "TwoFactor", "Logistic"])
def test_maps_of_baselines_are_drawn(name, models, miserables, tmp_path):
    problem = Problem.of(miserables, None, "ignore")
    path = report.write(tmp_path / "page.html", problem, with_model(models["Solution"], name))
    places = report_pages.numbers(read_page(path).data["positions"], "<u2").reshape(-1, 2)
    assert len(np.unique(places, axis=0)) > 40


def large_graph(n, degree):
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, n, (2, n * degree // 2))
    half = sparse.csr_array((rng.random(len(i)) + 0.5, (i, j)), shape=(n, n))
    graph = sparse.csr_array(half + half.T)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


@pytest.mark.parametrize(("length", "complete"), [(6, True), (25, False)])
def test_size_at_20_000_nodes(length, complete, tmp_path):
    """The limit of 1 MB: all links with short names, the strongest ones with long names."""
    n = 20_000
    M, rng = large_graph(n, 10), np.random.default_rng(0)
    solution = decompose(M[:50][:, :50] + np.eye(50), 2, max_iter=1, random_state=0)
    model = type(solution.model)(rng.standard_normal((n, 2)), solution.signature)
    path = report.write(
        tmp_path / "page.html",
        M,
        type(solution).of(solution, model, history=solution.history, solver="", diagonal="ignore"),
        rng.integers(0, 20, n),
        names=[f"{k:0{length}d}" for k in range(n)],
        positions=rng.standard_normal((n, 2)),
        hidden=None,
    )
    page = read_page(path)
    assert path.stat().st_size <= 1_000_000
    pairs = report_pages.links(page.data)
    assert (len(pairs) == M.nnz // 2) == complete
    assert ("To keep this page small" in page.text) == (not complete)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [1, 2]}, "labels must have one entry for each of the 77 nodes, got 2"),
        ({"names": ["a"]}, "names must have one entry for each of the 77 nodes, got 1"),
        ({"columns": {"c": [1]}}, "got 1 in 'c'"),
        ({"positions": np.zeros((77, 3))}, r"positions must have shape \(77, 2\).*got shape \(77, 3\)"),
        ({"positions": np.full((77, 2), np.nan)}, "with NaN or infinity"),
        ({"hidden": 1.0}, "hidden must be"),
        ({"M": np.ones((3, 3))}, "of 77 nodes, got 3 nodes"),
    ],
)
def test_errors(options, message, models, miserables, tmp_path):
    arguments = {"M": miserables} | options
    with pytest.raises(ValueError, match=message):
        report.write(tmp_path / "page.html", arguments.pop("M"), models["SymReLU"], **arguments)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused_before_any_work(models, miserables, tmp_path, monkeypatch):
    monkeypatch.setattr("symrelu.report.writing.View", None)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        report.write(tmp_path / "no" / "page.html", miserables, models["SymReLU"])
    with pytest.raises(IsADirectoryError):
        report.write(tmp_path, miserables, models["SymReLU"])


def test_tuples_as_names(tmp_path):
    graph = nx.grid_2d_graph(3, 3)
    solution = decompose(nx.to_numpy_array(graph), 3, diagonal="ignore", max_iter=5, random_state=0)
    path = report.write(tmp_path / "page.html", graph, solution, positions=list(graph), hidden=None)
    assert read_page(path).data["names"][:2] == ["(0, 0)", "(0, 1)"]
