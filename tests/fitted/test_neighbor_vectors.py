"""Vectors that stand for the neighbours of a graph: queries, new nodes, files."""

import json
import pickle
from dataclasses import asdict, replace

import numpy as np
import pytest
from example_graphs import GRAPHS, symmetric
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import decompose
from symrelu.fit.neighbor_goal import Goal
from symrelu.fit.neighbor_search import search_neighbors
from symrelu.fitted import NeighborVectors, Solution


def vectors_of(name, dtype="float32"):
    graph = GRAPHS[name]
    found = search_neighbors(
        graph.astype(np.float32), Goal(dtype=np.dtype(dtype), max_iter=200), random_state=0
    )
    return NeighborVectors(found.vectors, found.signature, graph, found.certificate)


@pytest.fixture(scope="module")
def grid():
    return vectors_of("grid")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["path", "sparse", "complete", "one edge"])
def test_neighbors_are_the_rows_of_the_graph(name, dtype):
    vectors, edge = vectors_of(name, dtype), GRAPHS[name].toarray()
    assert vectors.certificate.exact
    scores = vectors.query_vectors.astype(float) @ vectors.item_vectors.astype(float).T
    for node in range(len(edge)):
        found = vectors.neighbors(node)
        assert_array_equal(np.sort(found), np.flatnonzero(edge[node]))
        assert_array_equal(scores[node, found], np.sort(scores[node, found])[::-1])
    assert vectors.query_vectors.dtype == vectors.item_vectors.dtype == dtype


@pytest.mark.parametrize("node", [-1, 20, 1.5, True, "a"])
def test_nodes_that_do_not_exist(grid, node):
    with pytest.raises((TypeError, ValueError), match=r"node must be an integer .*got"):
        grid.neighbors(node)


def test_printed(grid):
    assert repr(grid) == f"NeighborVectors(n=20, rank={grid.item_vectors.shape[1]}, wrong_pairs=0)"


def test_certified_again(grid):
    assert grid.certify() == grid.certificate
    assert grid.threshold == grid.certificate.threshold
    items = grid.item_vectors.copy()
    items[3] *= -1
    assert replace(grid, item_vectors=items).certify().wrong_pairs > 0


def test_new_nodes_are_placed_next_to_their_neighbours(grid):
    wanted = symmetric(20, [(0, 1), (5, 6), (0, 0)])[[0, 5, 10]]  # one node, another one, and no neighbours
    placed = grid.place(wanted)
    assert placed.dtype == np.float32
    scores = (placed * grid.signature) @ grid.item_vectors.T
    assert_array_equal(scores > grid.threshold, wanted.toarray())
    assert_array_equal(placed[2], 0)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_saved_and_loaded(tmp_path, dtype):
    vectors, path = vectors_of("sparse", dtype), tmp_path / "graph.npz"
    vectors.save(path)
    loaded = NeighborVectors.load(path)
    assert_array_equal(loaded.item_vectors, vectors.item_vectors)
    assert loaded.item_vectors.dtype == loaded.query_vectors.dtype == dtype
    assert_array_equal(loaded.graph.toarray(), vectors.graph.toarray())
    assert loaded.certificate == vectors.certificate
    assert_array_equal(loaded.neighbors(3), vectors.neighbors(3))


def test_names_are_stored(grid, tmp_path):
    path = tmp_path / "graph.npz"
    grid.save(path)
    assert NeighborVectors.load(path).names is None
    names = np.fromiter([f"{k}" if k % 2 else (k, "x") for k in range(20)], dtype=object)
    replace(grid, names=names).save(path)
    assert NeighborVectors.load(path).names.tolist() == names.tolist()
    for name in (1.5, None, True, ("a", ("b",)), b"a"):
        names[3] = name
        with pytest.raises(
            TypeError, match="Names in a file must be strings, integers or tuples of these, got"
        ):
            replace(grid, names=names).save(path)
    assert NeighborVectors.load(path).names[3] == "3"  # the file of before


def test_a_file_without_names_is_that_of_earlier_versions(grid, tmp_path):
    grid.save(tmp_path / "graph.npz")
    with np.load(tmp_path / "graph.npz") as archive:
        header = json.loads(str(archive["neighbor_vectors"]))
    assert set(header) == {"format", "version", "certificate"}
    assert header["version"] == 1


def test_pickled(grid):
    grid.neighbors(0)
    copy = pickle.loads(pickle.dumps(grid))
    assert_array_equal(copy.item_vectors, grid.item_vectors)
    assert copy.certificate == grid.certificate


def in_header(**changes):
    """Return a change of the header of a file."""

    def change(arrays):
        header = {**json.loads(str(arrays["neighbor_vectors"])), **changes}
        arrays["neighbor_vectors"] = np.array(json.dumps(header))

    return change


def in_claim(**changes):
    def change(arrays):
        header = json.loads(str(arrays["neighbor_vectors"]))
        in_header(certificate={**header["certificate"], **changes})(arrays)

    return change


def without_claim(arrays):
    header = json.loads(str(arrays["neighbor_vectors"]))
    del header["certificate"]["margin"]
    arrays["neighbor_vectors"] = np.array(json.dumps(header))


def at(name, place, value):
    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def another_graph(arrays):
    other = symmetric(20, [(0, 1)])
    arrays["indptr"], arrays["indices"] = other.indptr.astype(np.int64), other.indices.astype(np.int64)


def set_to(name, value):
    return lambda arrays: arrays.update({name: value})


CHANGES = {
    "a vector": (
        at("item_vectors", 0, 0.0),
        r"says wrong_pairs = 0, but a count of all pairs gives \d+: the file",
    ),
    "the graph": (another_graph, "says wrong_pairs = 0, but a count of all pairs gives 30"),
    "an edge in one direction": (at("indices", 0, 2), "its graph is not symmetric without loops"),
    "a loop": (at("indices", 0, 0), "its graph is not symmetric without loops"),
    "an index out of range": (at("indices", 0, 10**6), "cannot be read as NeighborVectors"),
    "a negative index": (at("indices", 0, -1), "cannot be read as NeighborVectors"),
    "real indices": (
        set_to("indices", np.ones(62)),
        "indptr and indices of its graph must be lists of integers",
    ),
    "short rows": (set_to("indptr", np.zeros(3, np.int64)), "cannot be read as NeighborVectors"),
    "the signs": (at("signature", 0, -1), "says wrong_pairs = 0"),
    "no signs": (at("signature", 0, 0.5), r"signature must be \+1 or -1 for each column"),
    "NaN": (
        at("item_vectors", 0, np.nan),
        "item_vectors must be a matrix of finite numbers in float32 or float16",
    ),
    "float64": (set_to("item_vectors", np.ones((20, 3))), "item_vectors must be a matrix of finite numbers"),
    "no columns": (set_to("item_vectors", np.ones((20, 0), np.float32)), "signature must be"),
    "a claim": (in_claim(wrong_pairs=3), "says wrong_pairs = 3, but a count of all pairs gives 0"),
    "a claimed edge": (in_claim(n_edges=30), "says n_edges = 30, but a count of all pairs gives 31"),
    "a claimed margin": (in_claim(margin=7.0), "says margin = 7.0, but"),
    "a claimed text": (in_claim(missing="no"), "cannot be read as NeighborVectors"),
    "a threshold": (in_claim(threshold=0.0), "says wrong_pairs = 0|says threshold|says margin"),
    "no threshold": (in_claim(threshold=None), "threshold must be a finite number >= 0, got None"),
    "NaN as threshold": (in_claim(threshold=float("nan")), "threshold must be a finite number"),
    "an unknown claim": (in_claim(proof=1), "its certificate has an unknown 'proof'"),
    "a claim left out": (without_claim, "its certificate has no 'margin'"),
    "no certificate": (in_header(certificate=None), "cannot be read as NeighborVectors"),
    "another format": (
        in_header(format="other"),
        "its format is not symrelu.fitted.NeighborVectors, version 1",
    ),
    "a later version": (in_header(version=2), "its format is not symrelu.fitted.NeighborVectors, version 1"),
    "no backend": (in_header(backend="abacus"), "backend must be one of .*, got 'abacus'"),
    "too few names": (in_header(names=["a"]), "its header must have a name for each of its 20 nodes"),
    "no list of names": (in_header(names={"a": 1}), "its header must have a name for each of its 20 nodes"),
    "a number as name": (in_header(names=[0.5] * 20), "names must be strings, integers .*, got 0.5"),
    "a nested name": (in_header(names=[[["a"]]] * 20), r"names must be strings, integers .*, got \(\['a'\],\)"),
    "True as name": (in_header(names=[True] * 20), "names must be strings, integers .*, got True"),
    "a list as header": (set_to("neighbor_vectors", np.array("[1]")), "must hold a JSON object"),
    "an array less": (lambda arrays: arrays.pop("signature"), "it has no 'signature'"),
    "an array more": (set_to("more", np.ones(1)), "it has an unknown 'more'"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changed_files_are_refused(grid, tmp_path, case):
    change, message = CHANGES[case]
    path = tmp_path / "changed.npz"
    grid.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message) as refusal:
        NeighborVectors.load(path)
    assert str(refusal.value).startswith(f"{path} cannot be read as NeighborVectors: ")


def test_other_files_are_refused(grid, tmp_path):
    path = tmp_path / "file.npz"
    grid.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"file.npz is not a readable npz file \(damaged or truncated\?\)"):
        NeighborVectors.load(path)
    sparse.save_npz(path, grid.graph)
    with pytest.raises(ValueError, match="must be a NeighborVectors file, which is never compressed"):
        NeighborVectors.load(path)
    decompose(GRAPHS["grid"].astype(float), 2, random_state=0, max_iter=3).save(path)
    with pytest.raises(ValueError, match="cannot be read as NeighborVectors: it has no 'indices'"):
        NeighborVectors.load(path)
    grid.save(path)
    with pytest.raises(ValueError, match=r"file.npz"):
        Solution.load(path)
    with pytest.raises(FileNotFoundError, match=r"none.npz does not exist"):
        NeighborVectors.load(tmp_path / "none.npz")


def test_a_margin_may_differ_in_its_last_digits(grid, tmp_path):
    path = tmp_path / "graph.npz"
    other = replace(grid, certificate=replace(grid.certificate, margin=grid.certificate.margin * (1 + 1e-12)))
    other.save(path)
    assert NeighborVectors.load(path).certificate == grid.certificate
    assert asdict(grid.certificate)["n_pairs"] == 190
