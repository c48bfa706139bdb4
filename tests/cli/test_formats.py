"""Every command reads every format."""

import gzip
import json
import warnings

import networkx as nx
import numpy as np
import pytest
from command_line import symrelu
from scipy import io, sparse

N = 12
NAMES = [f"nöde {k}" for k in range(N)]


def ring_with_chords():
    """A weighted graph without self loops in which each node has four neighbors."""
    M = np.zeros((N, N))
    for k in range(N):
        for step, weight in ((1, 2.0), (3, 1.0)):
            M[k, (k + step) % N] = M[(k + step) % N, k] = weight
    return M


def write_text(path, separator):
    rows, cols = np.nonzero(np.triu(ring_with_chords()))
    lines = [
        f"{NAMES[i]}{separator}{NAMES[j]}{separator}{ring_with_chords()[i, j]}"
        for i, j in zip(rows, cols, strict=True)
    ]
    content = "\n".join([separator.join(["source", "target", "weight"]), *lines, ""]).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def named_graph():
    return nx.relabel_nodes(nx.from_numpy_array(ring_with_chords()), dict(enumerate(NAMES)))


def write_parquet(path):
    pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    edges = nx.to_pandas_edgelist(named_graph())
    edges.to_parquet(path)


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
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("command", QUICK)
def test_every_command_reads_every_format(command, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        WRITERS[name](tmp_path / name)
    code, out, err = symrelu(monkeypatch, capsys, command, name, *QUICK[command].split(), "--seed", 0, "--json")
    assert code in ((0, 3) if command == "neighbors" else (0,)), err  # too few steps for all neighbors
    found = json.loads(out)
    assert found["command"] == command
    if (tmp_path / "out.json").exists():
        rows = json.loads((tmp_path / "out.json").read_text())
        ends = ("source", "target") if command == "links" else ("node",)
        names = {row[end] for row in rows for end in ends}
        assert names <= set(range(N) if name in WITHOUT_NAMES else NAMES)
        assert command == "links" or len(rows) == N
