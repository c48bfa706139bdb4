"""A large list of edges as people have it: the names in the results are those of the file."""

import csv

import numpy as np
import pytest
from command_line import symrelu
from numpy.testing import assert_array_equal

from symrelu import SymReLU, SymReLUClustering
from symrelu.graphs import from_edges

N = 5000
ODD_NAMES = [
    'say "hi"', "Müller, Jürgen", "日本", "=1+1", "-5", "007", "NA", "nan", "True", " padded ", "a;b", "two\nlines", "@x"
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
