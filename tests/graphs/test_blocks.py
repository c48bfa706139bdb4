"""Block folders from matrices and from files."""

import numpy as np
import pytest
import scipy.io
from block_folders import random_similarity, whole
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.files.block_folder import write_matrix
from symrelu.graphs import (
    GraphFileWarning,
    convert_to_blocks,
    edge_files,
    from_edges,
    read_graph,
    read_graph_file,
    write_blocks,
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(edge_files, "_EDGES_OF_A_PART", 10)


def write_list(path, edges):
    path.write_text("from,to,weight\n" + "".join(f"{i},{j},{w!r}\n" for i, j, w in edges))
    return path


def test_graphs_of_other_libraries_keep_their_names(tmp_path):
    folder = write_blocks(from_edges([("ann", "bob", 2.0), ("bob", "cid", 0.5)]), tmp_path / "b", rows=2)
    assert folder.names().tolist() == ["ann", "bob", "cid"]
    assert_array_equal(whole(folder), [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]])


def test_a_matrix_is_checked_before_it_is_written(tmp_path):
    with pytest.raises(ValueError, match="M must be symmetric"):
        write_blocks(np.triu(np.ones((3, 3))), tmp_path / "b")
    with pytest.raises(ValueError, match="rows must be"):
        write_blocks(np.ones((3, 3)), tmp_path / "b", rows=0)
    assert not list(tmp_path.iterdir())


def test_a_mask_is_written_without_values(tmp_path):
    mask = sparse.csr_array(random_similarity(9) > 0)
    folder = write_matrix(mask, tmp_path / "mask", rows=4)
    assert folder.dtype == bool
    assert_array_equal(whole(folder), mask.toarray())


@pytest.mark.parametrize("suffix", [".npz", ".mtx", " general.mtx", ".csv"])
def test_every_format_gives_the_matrix_of_read_graph(tmp_path, suffix):
    M, path = sparse.csr_array(random_similarity(31)), tmp_path / f"m{suffix}"
    if suffix == ".npz":
        sparse.save_npz(path, M)
    elif suffix == ".csv":
        upper = sparse.triu(M).tocoo()
        triples = zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True)
        write_list(path, [(f"n{i}", f"n{j}", w) for i, j, w in triples])
    else:
        scipy.io.mmwrite(path, M, symmetry="general" if "general" in suffix else "symmetric")
    expected, labels = read_graph(path)
    folder, notes = convert_to_blocks(path, tmp_path / "blocks", rows=8)
    assert_array_equal(whole(folder), expected.toarray())
    assert (folder.names() is None) == (labels is None)
    assert labels is None or folder.names().tolist() == labels.tolist()
    assert not any("spool" in child.name for child in folder.path.iterdir())
    assert notes == read_graph_file(path).notes


RULES = [
    {"duplicates": duplicates, "directed": directed, "self_loops": self_loops}
    for duplicates in ("sum", "max")
    for directed in ("max", "sum", "mean")
    for self_loops in ("keep", "drop")
]


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(rules.values()))
@pytest.mark.parametrize("kind", ["repeated", "undirected"])
def test_rules_for_edges_are_those_of_read_graph(tmp_path, rules, kind):
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 12, (60, 2)).tolist()
    edges = [(f"n{i}", f"n{j}", float(w)) for (i, j), w in zip(ends, rng.integers(1, 9, 60), strict=True)]
    if kind == "undirected":  # every pair once in each direction, with the same weight
        edges = [(i, j, 2.0) for i, j in {(i, j) for i, j, _ in edges} | {(j, i) for i, j, _ in edges}]
    path = write_list(tmp_path / "edges.csv", edges)
    expected, labels = read_graph(path, **rules)
    folder, notes = convert_to_blocks(path, tmp_path / "blocks", rows=5, **rules)
    assert_array_equal(whole(folder), expected.toarray())
    assert folder.names().tolist() == labels.tolist()
    assert sorted(notes) == sorted(read_graph_file(path, **rules).notes)


@pytest.mark.parametrize("directed", ["max", "sum", "mean"])
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_symmetric_block_of_a_directed_graph_is_combined_like_the_others(tmp_path, suffix, directed):
    path = tmp_path / f"m{suffix}"
    if suffix == ".csv":
        write_list(path, [("a", "b", 1.0), ("b", "a", 1.0), ("a", "a", 5.0), ("c", "d", 1.0), ("d", "c", 3.0)])
    else:
        M = np.array([[5.0, 1, 2, 0], [1, 0, 0, 0], [2, 0, 0, 1], [0, 0, 3, 0]])
        sparse.save_npz(path, sparse.csr_array(M))
    folder, notes = convert_to_blocks(path, tmp_path / "blocks", rows=2, directed=directed)
    file = read_graph_file(path, directed=directed)
    assert_array_equal(whole(folder), file.labelled.matrix.toarray())
    assert sorted(notes) == sorted(file.notes)


def test_doubts_about_a_list_are_warnings(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("from here,to there\na,b\nb,c\n")
    with pytest.warns(GraphFileWarning, match="the first line was read as the edge") as caught:
        _, notes = convert_to_blocks(path, tmp_path / "blocks")
    assert caught[0].filename == __file__
    assert notes == ()


@pytest.mark.parametrize("directed", ["max", "sum", "mean"])
def test_rules_for_matrices_are_those_of_read_graph(tmp_path, directed):
    rng = np.random.default_rng(2)
    M = sparse.csr_array(np.round(4 * rng.random((17, 17)) * (rng.random((17, 17)) < 0.3)))
    sparse.save_npz(tmp_path / "m.npz", M)
    expected = read_graph(tmp_path / "m.npz", directed=directed).matrix
    folder, notes = convert_to_blocks(tmp_path / "m.npz", tmp_path / "blocks", rows=5, directed=directed)
    assert_array_equal(whole(folder), expected.toarray())
    assert notes[-1].startswith("the two directions of all pairs were")
    with pytest.raises(ValueError, match="The matrix must be symmetric, but entries"):
        convert_to_blocks(tmp_path / "m.npz", tmp_path / "again", rows=5)
    assert not (tmp_path / "again").exists()


def test_asymmetry_by_rounding_is_averaged(tmp_path):
    M = random_similarity(9, density=0.9)
    M[0, 5] *= 1 + 1e-13
    sparse.save_npz(tmp_path / "m.npz", sparse.csr_array(M))
    folder, _ = convert_to_blocks(tmp_path / "m.npz", tmp_path / "blocks", rows=4)
    assert_array_equal(whole(folder), whole(folder).T)
    np.testing.assert_allclose(whole(folder), M, rtol=1e-12)


@pytest.mark.parametrize(
    ("edges", "reason"),
    [
        ([("a", "b", 1.0), ("a", "b", 2.0)], r"Edge \('a', 'b'\) is given 2 times"),
        ([("a", "b", 1.0), ("b", "a", 2.0)], r"Edge \('a', 'b'\) has the weight 1, but 2"),
        ([("a", "b", 1.0), ("c", "a", -2.0)], r"edge \('c', 'a'\) has -2"),
        ([("a", "b", 0.0)], "there is nothing to fit"),
    ],
)
def test_errors_name_the_edge_and_leave_nothing(tmp_path, edges, reason):
    path = write_list(tmp_path / "edges.csv", edges)
    with pytest.raises(ValueError, match=reason):
        convert_to_blocks(path, tmp_path / "blocks")
    assert list(tmp_path.iterdir()) == [path]


def test_weights_can_be_left_out_and_rounded(tmp_path):
    path = write_list(tmp_path / "edges.csv", [("a", "b", 0.1), ("b", "c", 7.0)])
    ones, _ = convert_to_blocks(path, tmp_path / "ones", weight=None)
    assert_array_equal(whole(ones), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    single, _ = convert_to_blocks(path, tmp_path / "single", dtype="float32")
    assert whole(single)[0, 1] == np.float32(0.1)
    with pytest.raises(ValueError, match="dtype must be"):
        convert_to_blocks(path, tmp_path / "other", dtype="float16")


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_weights_that_a_type_cannot_hold_are_refused_or_noted(tmp_path, suffix):
    """An infinite entry, or an edge that is lost, would be another graph."""

    def file_of(*weights):
        edges = [(0, k + 1, weight) for k, weight in enumerate(weights)]
        if suffix == ".csv":
            return write_list(tmp_path / "edges.csv", edges)
        rows, cols, values = (np.array(one) for one in zip(*edges, strict=True))
        upper = sparse.csr_array((values, (rows, cols)), shape=(len(edges) + 1,) * 2)
        sparse.save_npz(tmp_path / "edges.npz", upper + upper.T)
        return tmp_path / "edges.npz"

    with pytest.raises(
        ValueError, match=r"at most 3.4e\+38 as float32: edge \('?0'?, '?2'?\) has 1e\+39.*float64"
    ):
        convert_to_blocks(file_of(1.0, 1e39), tmp_path / "large", rows=2, dtype="float32")
    assert not (tmp_path / "large").exists()
    assert (
        convert_to_blocks(file_of(1.0, 1e39), tmp_path / "large", rows=2)[0].manifest.off_diagonal.largest
        == 1e39
    )
    tiny = file_of(1.0, 1e-46, 1e-50)
    folder, notes = convert_to_blocks(tiny, tmp_path / "tiny", rows=2, dtype="float32")
    smallest = np.finfo(np.float32).smallest_subnormal
    assert_array_equal(whole(folder)[0], np.array([0, 1, smallest, smallest], np.float32))
    assert notes[-1] == "2 weights were smaller than float32 can hold, and became its smallest positive number"


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_sums_that_overflow_are_refused(tmp_path):
    twice = write_list(tmp_path / "edges.csv", [("a", "b", 1e308), ("a", "b", 1e308)])
    with pytest.raises(ValueError, match=r"edge \('a', 'b'\) has inf\. Divide all weights"):
        convert_to_blocks(twice, tmp_path / "sum", duplicates="sum")
