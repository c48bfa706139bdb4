"""Loaders of published data: the logic on small stand-ins, and the real files where they are."""

import hashlib
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu import datasets
from symrelu.datasets import published, sources
from symrelu.experiments import find_signed_data

LOADERS = {
    "ORL": datasets.load_orl,
    "YaleB": datasets.load_yaleb,
    "COIL20": datasets.load_coil20,
    "PIE": datasets.load_pie,
    "TDT2": datasets.load_tdt2,
}

ALL_LOADERS = {**LOADERS, "COIL100": datasets.load_coil100}

DATA = np.arange(24.0).reshape(6, 4)
LABELS = np.array([3, 3, 1, 1, 2, 2])


@pytest.fixture(autouse=True)
def no_directory(monkeypatch):
    if "real" not in os.environ.get("PYTEST_CURRENT_TEST", ""):
        monkeypatch.delenv("SYMRELU_DATA", raising=False)


def stand_in(monkeypatch, name, path=None, shape=(6, 4), classes=3):
    """Let a set be 6 x 4 with three classes, and its npz file be the one at ``path``."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path else "0" * 64
    replaced = tuple(
        replace(source, shape=shape, classes=classes, sha256=source.sha256 and digest)
        for source in sources.SAMPLES[name]
    )
    monkeypatch.setitem(sources.SAMPLES, name, replaced)


@pytest.mark.parametrize("name", LOADERS)
def test_npz_and_mat_give_the_same(tmp_path, monkeypatch, name):
    source = sources.SAMPLES[name][0]
    path = tmp_path / source.npz
    np.savez(path, fea=(DATA * 2).astype(np.uint8), scale=2.0, gnd=LABELS)
    stand_in(monkeypatch, name, path)
    compact = LOADERS[name](tmp_path)
    io.savemat(tmp_path / source.mat[0], {"fea": DATA, "gnd": LABELS[:, None]})
    original = LOADERS[name](tmp_path)
    for dataset in (compact, original):
        assert_array_equal(dataset.data, DATA)
        assert dataset.data.dtype == np.float64
        assert_array_equal(dataset.target, [2, 2, 0, 0, 1, 1])
        assert dataset.name == name


@pytest.mark.parametrize("name", ALL_LOADERS)
def test_loaders_are_ordinary_functions(name):
    """Those made by one function too: pickle, help() and Sphinx find them by name."""
    load = ALL_LOADERS[name]
    assert pickle.loads(pickle.dumps(load)) is load
    assert load.__name__ == load.__qualname__ == f"load_{name.lower()}"
    assert getattr(published, load.__name__) is load
    shape = sources.SAMPLES[name][0].shape
    assert f"{shape[0]} " in load.__doc__.splitlines()[0]


def test_sparse_counts(tmp_path, monkeypatch):
    csr = sparse.csr_array(np.triu(DATA))
    path = tmp_path / "TDT2.npz"
    np.savez(
        path,
        data=csr.data.astype(np.uint8),
        indices=csr.indices,
        indptr=csr.indptr,
        shape=csr.shape,
        gnd=LABELS,
    )
    stand_in(monkeypatch, "TDT2", path)
    assert_array_equal(datasets.load_tdt2(tmp_path).data.toarray(), np.triu(DATA))
    io.savemat(tmp_path / "TDT2.mat", {"fea": sparse.csc_array(np.triu(DATA)), "gnd": LABELS})
    original = datasets.load_tdt2(tmp_path).data
    assert isinstance(original, sparse.csr_array)
    assert_array_equal(original.toarray(), np.triu(DATA))


def test_directory_from_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "ORL.npz"
    np.savez(path, fea=DATA, gnd=LABELS)
    stand_in(monkeypatch, "ORL", path)
    monkeypatch.setenv("SYMRELU_DATA", str(tmp_path))
    assert datasets.load_orl().name == "ORL"


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files_say_which_where_from_and_where_to(tmp_path, name):
    with pytest.raises(
        FileNotFoundError, match=rf"{name} needs a data directory: .*SYMRELU_DATA.*{name}.*http"
    ):
        LOADERS[name]()
    with pytest.raises(
        FileNotFoundError, match=rf"{name} was not found: put .*{name}.npz into .*published at http"
    ):
        LOADERS[name](tmp_path)
    with pytest.raises(FileNotFoundError, match=r"The data directory .* does not exist"):
        LOADERS[name](tmp_path / "nowhere")


def test_wrong_contents_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "ORL.npz"
    np.savez(path, fea=DATA, gnd=LABELS)
    stand_in(monkeypatch, "ORL")
    with pytest.raises(ValueError, match=r"ORL.npz must have the SHA-256 0{64}, got .* copy it again"):
        datasets.load_orl(tmp_path)
    stand_in(monkeypatch, "ORL", path, shape=(7, 4))
    with pytest.raises(ValueError, match="is not ORL: expected 7 x 4 with 3 classes, got 6 x 4 with 3"):
        datasets.load_orl(tmp_path)
    stand_in(monkeypatch, "ORL", path, classes=2)
    with pytest.raises(ValueError, match="with 2 classes, got 6 x 4 with 3"):
        datasets.load_orl(tmp_path)
    (tmp_path / "ORL64.mat").write_bytes(b"not MATLAB")
    with pytest.raises(ValueError, match=r"ORL64.mat cannot be read as a MATLAB file with fea and gnd"):
        datasets.load_orl(tmp_path)
    io.savemat(tmp_path / "ORL64.mat", {"X": DATA})
    with pytest.raises(ValueError, match=r"cannot be read as a MATLAB file with fea and gnd: 'fea'"):
        datasets.load_orl(tmp_path)


def test_coil100_prefers_the_original_and_names_the_reconstruction(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"put COIL100.mat or COIL100_7178.npz into"):
        datasets.load_coil100(tmp_path)
    path = tmp_path / "COIL100_7178.npz"
    np.savez(path, fea=DATA, gnd=LABELS)
    stand_in(monkeypatch, "COIL100", path)
    assert "reconstruction" in datasets.load_coil100(tmp_path).name
    io.savemat(tmp_path / "COIL100.mat", {"fea": DATA, "gnd": LABELS})
    assert datasets.load_coil100(tmp_path).name == "COIL100"


def test_olivetti_is_an_alternative(monkeypatch):
    from sklearn.utils import Bunch

    faces = Bunch(data=DATA.astype(np.float32), target=LABELS)
    monkeypatch.setattr("sklearn.datasets.fetch_olivetti_faces", lambda: faces)
    dataset = datasets.load_orl(source="olivetti")
    assert "Olivetti" in dataset.name
    assert_array_equal(dataset.data, DATA)
    with pytest.raises(ValueError, match="source must be one of 'files', 'olivetti'"):
        datasets.load_orl(source="web")


def small_graph(folder, monkeypatch, name, labels=None):
    """Let a graph be a path of three nodes; return its matrix, and the path and the digest of its file."""
    A = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.uint8))
    (source,) = sources.GRAPHS[name]
    path = folder / source.npz
    target = {} if labels is None else {"gnd": labels}
    np.savez(path, data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, **target)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    classes = 0 if labels is None else len(set(labels) - {0})
    small = type(source)(name, source.npz, digest, (3, 3), classes, page=source.page)
    monkeypatch.setitem(sources.GRAPHS, name, (small,))
    return A, path, digest


@pytest.mark.parametrize("name", ["celegans", "usair", "ecoli", "ppi"])
def test_graphs_without_labels(tmp_path, monkeypatch, name):
    assert sources.GRAPHS[name][0].classes == 0
    A, path, digest = small_graph(tmp_path, monkeypatch, name)
    dataset = datasets.load_graph(name, tmp_path)
    assert_array_equal(dataset.M.toarray(), A.toarray())
    assert (dataset.target, dataset.name, dataset.M.dtype) == (None, name, np.float64)
    assert published.find_dataset(name, tmp_path).sha256 == digest
    path.write_bytes(b"other")
    with pytest.raises(ValueError, match=r"must have the SHA-256"):
        datasets.load_graph(name, tmp_path)


def test_graphs(tmp_path, monkeypatch):
    A, path, digest = small_graph(tmp_path, monkeypatch, "cora", [1, 0, 2])
    dataset = datasets.load_graph("cora", tmp_path)
    assert_array_equal(dataset.M.toarray(), A.toarray())
    assert_array_equal(dataset.target, [0, -1, 1])
    found = published.find_dataset("cora", tmp_path)
    assert (found.name, found.path, found.n_samples, found.sha256) == ("cora", path, 3, digest)
    (case,), missing = find_signed_data(str(tmp_path), ("cora", "polblogs"))
    assert_array_equal(case.load(0).toarray(), A.toarray())
    assert (case.name, case.n) == ("cora", 3)
    assert len(missing) == 1
    assert "graph_polblogs.npz" in missing[0]
    with pytest.raises(FileNotFoundError, match=r"pubmed was not found: put graph_pubmed.npz into"):
        datasets.load_graph("pubmed", tmp_path)
    with pytest.raises(ValueError, match="name must be one of 'cora', 'pubmed'"):
        datasets.load_graph("karate", tmp_path)


if os.environ.get("SYMRELU_DATA"):  # the real files, where a data directory has them

    @pytest.mark.parametrize("name", ALL_LOADERS)
    def test_real_sets(name):
        dataset = ALL_LOADERS[name]()
        assert dataset.data.shape[0] == len(dataset.target)
        assert dataset.target.min() == 0

    @pytest.mark.parametrize("name", list(sources.GRAPHS))
    def test_real_graphs(name):
        M, target, _ = datasets.load_graph(name)
        assert (target is None) == (name in ("celegans", "usair", "ecoli", "ppi"))
        assert abs(M - M.T).max() == 0
        assert not M.diagonal().any()
