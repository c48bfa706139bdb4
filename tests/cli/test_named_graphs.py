"""A large list of edges as people have it: the names in the results are those of the file."""

import csv
import warnings

import numpy as np
import pytest
from command_line import symrelu
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from symrelu import LinkPredictor, NeighborEmbedding, SymReLU, SymReLUClustering
from symrelu.graphs import from_edges

N = 5000
ODD_NAMES = [
    'say "hi"', "Müller, Jürgen", "日本", "=1+1", "-5", "007", "NA", "nan", "True", " padded ", "a;b", "@x",
    "two\nlines",
]  # fmt: skip


def names_of_nodes():
    return [*ODD_NAMES, *(f"node {k}" for k in range(N - len(ODD_NAMES)))]


@pytest.fixture(scope="module")
def edges():
    """Edges of a ring with chords, some of them given twice, and self loops; each node has at least two."""
    rng = np.random.default_rng(0)
    ring = [(k, (k + 1) % N, 1.0) for k in range(N)]
    chords = {
        (int(i), int(j))
        for i, j in rng.integers(0, N, (2 * N, 2))
        if i < j and j - i > 1 and (i, j) != (0, N - 1)
    }
    loops = [(int(k), int(k), 2.0) for k in rng.choice(N, 50, replace=False)]
    weighted = [*ring, *((i, j, round(float(rng.random()), 3) + 0.001) for i, j in sorted(chords)), *loops]
    repeated = [weighted[k] for k in rng.choice(len(ring) + len(chords), 300, replace=False)]
    names = names_of_nodes()
    return [(names[i], names[j], weight) for i, j, weight in [*weighted, *repeated]]


@pytest.fixture(scope="module")
def edge_file(edges, tmp_path_factory):
    path = tmp_path_factory.mktemp("named") / "friends of friends.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["since", "From", "To", "strength"])
        for k, (i, j, weight) in enumerate(edges):
            if k % 1000 == 0:
                file.write("\n")
            writer.writerow([2000 + k % 20, i, j, weight])
    return path


READING = ["--source", "From", "--target", "To", "--weight", "strength", "--duplicates", "sum", "--quiet"]


def read_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def defused(name):
    return f"'{name}" if name in ("=1+1", "@x") else name


def test_vectors_have_the_names_of_the_file(edges, edge_file, tmp_path, monkeypatch, capsys):
    output = tmp_path / "vectors.csv"
    options = ["--components", 2, "--n-negative", 0, "--diagonal", "ignore", "--init", "random", "--seed", 0]
    arguments = ["embed", edge_file, "-o", output, "--max-iter", 2, *options, *READING]
    assert symrelu(monkeypatch, capsys, *arguments) == (0, "", "")
    estimator = SymReLU(2, n_negative=0, diagonal="ignore", init="random", random_state=0, max_iter=2)
    with pytest.warns(match="stopped before convergence"):
        estimator.fit(from_edges(edges, duplicates="sum"))
    header, rows = read_table(output)
    assert header == ["node", "x1", "x2"]
    assert [row[0] for row in rows] == [defused(name) for name in estimator.node_names_]
    assert_array_equal(np.array([row[1:] for row in rows], dtype=float), estimator.embedding_)


def test_clusters_have_the_names_of_the_file(edges, edge_file, tmp_path, monkeypatch, capsys):
    output = tmp_path / "clusters.csv"
    options = ["--clusters", 4, "--method", "directions", "--n-init", 1, "--max-iter", 2, "--seed", 0]
    code, _, _ = symrelu(monkeypatch, capsys, "cluster", edge_file, "-o", output, *options, *READING)
    assert code == 0
    settings = {"method": "directions", "n_init": 1, "max_iter": 2, "random_state": 0}
    estimator = SymReLUClustering(4, **settings).fit(from_edges(edges, duplicates="sum"))
    header, rows = read_table(output)
    assert header == ["node", "cluster", "membership"]
    assert [row[0] for row in rows] == [defused(name) for name in estimator.node_names_]
    assert_array_equal([int(row[1]) for row in rows], estimator.labels_)


def test_links_have_the_names_of_the_file(edges, edge_file, tmp_path, monkeypatch, capsys):
    output, pairs = tmp_path / "links.csv", tmp_path / "pairs.csv"
    options = ["--components", 2, "--n-init", 1, "--max-iter", 2, "--seed", 0, "--top", 500, *READING]
    model = ["--model", tmp_path / "links.npz"]
    assert symrelu(monkeypatch, capsys, "links", edge_file, "-o", output, *options, *model) == (0, "", "")
    settings = {"n_init": 1, "max_iter": 2, "random_state": 0}
    predictor = LinkPredictor(2, **settings).fit(from_edges(edges, duplicates="sum"))
    header, rows = read_table(output)
    assert header == ["source", "target", "score"]
    expected = predictor.top_links(500)
    assert [row[:2] for row in rows] == [list(map(defused, pair)) for pair in expected.names.tolist()]
    assert_array_equal([float(row[2]) for row in rows], expected.scores)
    # The names of the file, each with the next, are found again in a file of pairs.
    following = [*ODD_NAMES[1:], ODD_NAMES[0]]
    with open(pairs, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *zip(ODD_NAMES, following, strict=True)])
    arguments = ["links", tmp_path / "links.npz", "--pairs", pairs, "-o", output, "--quiet"]
    assert symrelu(monkeypatch, capsys, *arguments) == (0, "", "")
    scores = [float(row[2]) for row in read_table(output)[1]]
    assert_array_equal(scores, predictor.score_pairs(ODD_NAMES, following))


def test_neighbors_have_the_names_of_the_file(edges, edge_file, tmp_path, monkeypatch, capsys):
    output = tmp_path / "vectors.csv"
    options = ["--components", 24, "--max-iter", 2, "--recall", 0.001, "--seed", 0, *READING]
    code, _, err = symrelu(monkeypatch, capsys, "neighbors", edge_file, "-o", output, *options)
    settings = {"max_iter": 2, "recall": 0.001, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = NeighborEmbedding(24, **settings).fit(from_edges(edges, duplicates="sum"))
    met = min(estimator.certificate_.recall, estimator.certificate_.precision) >= 0.001
    assert (code, err == "") == (0 if met else 3, met)
    header, rows = read_table(output)
    assert header == ["node", *(f"x{k + 1}" for k in range(24))]
    assert [row[0] for row in rows] == [defused(name) for name in estimator.node_names_]
    vectors = np.array([row[1:] for row in rows], dtype=np.float32)
    assert_array_equal(vectors, estimator.item_vectors_)
