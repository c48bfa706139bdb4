"""Every command reads every format; the installed script in a process of its own."""

import gzip
import json

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import io, sparse

from symrelu import SymReLU
from symrelu.cli import COMMANDS

N = 12
NAMES = [f"nöde {k}" for k in range(N)]


def ring_with_chords():
    """A weighted graph without self loops in which each node has four neighbors.

    No two nodes are alike: symmetries would give eigenvectors that depend on rounding.
    """
    M = np.zeros((N, N))
    for k in range(N):
        for step, weight in ((1, 2.0), (3, 1.0)):
            M[k, (k + step) % N] = M[(k + step) % N, k] = weight + k / 8
    return M


def edges():
    """The ring first, so that the nodes appear in their order in the matrix."""
    M = ring_with_chords()
    return [(NAMES[k], NAMES[(k + step) % N], M[k, (k + step) % N]) for step in (1, 3) for k in range(N)]


def write_text(path, separator, rows=None):
    lines = (separator.join(map(str, row)) for row in rows or edges())
    content = "\n".join([separator.join(["source", "target", "weight"]), *lines, ""]).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def named_graph():
    return nx.relabel_nodes(nx.from_numpy_array(ring_with_chords()), dict(enumerate(NAMES)))


def write_parquet(path, rows=None):
    pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    from pyarrow import parquet, table

    columns = zip(*(rows or edges()), strict=True)
    parquet.write_table(table(dict(zip(("source", "target", "weight"), columns, strict=True))), path)


def write_h5ad(path):
    anndata = pytest.importorskip("anndata", reason="h5ad files need anndata")
    data = anndata.AnnData(np.zeros((N, 1)))
    data.obs_names = NAMES
    data.obsp["connectivities"] = sparse.csr_matrix(ring_with_chords())
    data.write_h5ad(path)


WRITERS = {
    "g.csv": lambda path: write_text(path, ","),
    "g.csv.gz": lambda path: write_text(path, ","),
    "g.tsv": lambda path: write_text(path, "\t"),
    "g.txt": lambda path: write_text(path, ";"),
    "g.parquet": write_parquet,
    "g.graphml": lambda path: nx.write_graphml(named_graph(), path),
    "g.gml": lambda path: nx.write_gml(named_graph(), path),
    "g.h5ad": write_h5ad,
    "g.mtx": lambda path: io.mmwrite(path, sparse.coo_array(ring_with_chords())),
    "g.npz": lambda path: sparse.save_npz(path, sparse.csr_array(ring_with_chords())),
    "g.npy": lambda path: np.save(path, ring_with_chords()),
    "g.mat": lambda path: io.savemat(path, {"W": sparse.csc_matrix(ring_with_chords())}),
}
WITHOUT_NAMES = ("g.mtx", "g.npz", "g.npy", "g.mat")

QUICK = {
    "embed": "--components 2 --max-iter 1 -o out.json",
    "cluster": "--clusters 2 --method linkage --max-iter 1 -o out.json",
    "links": "--components 2 --max-iter 1 --n-init 1 --top 3 -o out.json",
    "neighbors": "--components 4 --n-negative 1 --max-iter 1 -o out.json",
    "rank": "--ranks 2 --repeats 2 --max-iter 1",
    "evaluate": "--components 2 --max-iter 1 --n-init 1 --splits 2 --fraction 0.3",
    "fit": "--rank 2 --max-iter 1 -o out.json",
    "report": "--components 2 --max-iter 1 --clusters 2 --no-hidden -o out.html",
}


def test_no_command_is_forgotten():
    """``transform`` reads new items, see below; ``blocks`` has its own tests; the others read no graph."""
    assert QUICK.keys() | {"transform", "blocks", "resume", "demo", "reproduce"} == set(COMMANDS)


def table(path):
    """Return the texts and numbers of a table in two lists; nodes by their names, also those without names."""
    rows = json.loads(path.read_text())
    ends = ("node", "source", "target")
    texts = [
        NAMES[row[end]] if isinstance(row[end], int) else row[end] for row in rows for end in ends & row.keys()
    ]
    return texts, [value for row in rows for key, value in row.items() if key not in ends]


def numbers(value):
    """Return all numbers in a part of the result of ``--json``, NaN for those that are missing."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in numbers(part)]
    return [np.nan if value is None else value]


def answer(command, name, folder, script):
    """Run a command on a graph in one format; return its texts and numbers."""
    WRITERS[name](folder / name)
    code, out, err = script(command, name, *QUICK[command].split(), "--seed", 0, "--json")
    assert code in ((0, 3) if command == "neighbors" else (0,)), err  # too few steps for all neighbors
    found = json.loads(out)
    assert found["command"] == command
    if command == "rank":
        return [], numbers([[row["mean"], row["standard_error"]] for row in found["scores"]])
    if command == "evaluate":
        return [], numbers(found["by_split"])
    if command == "report":
        assert (NAMES[0] in (folder / "out.html").read_text()) != (name in WITHOUT_NAMES)
        return [], numbers([found["nodes"], found["relative_error"], sorted(found["sizes"])])
    has_names = isinstance(next(iter(json.loads((folder / "out.json").read_text())[0].values())), str)
    assert has_names != (name in WITHOUT_NAMES)
    return table(folder / "out.json")


@pytest.fixture(scope="module")
def answers():
    """The answers for .npz files by command, filled by the first test of each."""
    return {}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("command", QUICK)
def test_every_command_has_the_same_answer_for_every_format(command, name, tmp_path, script, answers):
    if command not in answers:
        answers[command] = answer(command, "g.npz", tmp_path, script)
    texts, found = answer(command, name, tmp_path, script)
    expected_texts, expected = answers[command]
    assert texts == expected_texts
    assert_allclose(found, expected, rtol=1e-5 if command == "neighbors" else 1e-9, atol=1e-9)


NEW = np.eye(2, N) + np.eye(2, N, 3) / 2
NEW_EDGES = [(f"new {i}", NAMES[j], NEW[i, j]) for i, j in np.argwhere(NEW)]
NEW_WRITERS = {
    "new.csv": lambda path: write_text(path, ",", NEW_EDGES),
    "new.csv.gz": lambda path: write_text(path, ",", NEW_EDGES),
    "new.tsv": lambda path: write_text(path, "\t", NEW_EDGES),
    "new.parquet": lambda path: write_parquet(path, NEW_EDGES),
    "new.mtx": lambda path: io.mmwrite(path, sparse.coo_array(NEW)),
    "new.npz": lambda path: sparse.save_npz(path, sparse.csr_array(NEW)),
    "new.npy": lambda path: np.save(path, NEW),
    "new.mat": lambda path: io.savemat(path, {"W": sparse.csc_matrix(NEW)}),
}


NAMED = ("new.csv", "new.csv.gz", "new.tsv", "new.parquet")


@pytest.mark.parametrize("name", NEW_WRITERS)
def test_new_items_have_the_same_vectors_in_every_format(name, tmp_path, script):
    WRITERS["g.csv"](tmp_path / "g.csv")
    NEW_WRITERS[name](tmp_path / name)
    options = ["--components", 3, "--n-negative", 0, "--max-iter", 20, "--seed", 0, "--model", "m.npz"]
    assert script("embed", "g.csv", *options)[0] == 0
    key = ["--key", "W"] if name.endswith(".mat") else []  # only a square matrix is found without it
    code, out, err = script("transform", "m.npz", name, *key, "-o", "out.json", "--json")
    assert code == 0, err
    assert json.loads(out)["command"] == "transform"
    rows = json.loads((tmp_path / "out.json").read_text())
    vectors = np.array([[row[f"x{k}"] for k in (1, 2, 3)] for row in rows])
    assert [row["node"] for row in rows] == (["new 0", "new 1"] if name in NAMED else [0, 1])
    assert_allclose(vectors, SymReLU.load(tmp_path / "m.npz").transform(NEW), rtol=1e-9, atol=1e-12)
