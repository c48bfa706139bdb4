"""Kinds of matrices: odd ones that are fine, malformed ones, and objects that are no matrix."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import SymReLU, decompose, metrics, select_rank, validation
from symrelu.datasets import Dataset
from symrelu.graphs import self_tuning_graph
from symrelu.validation import check_similarity

GOOD = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]])


def test_networkx_graph_names_the_adapter():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(TypeError, match=r"got a networkx Graph. Pass symrelu.graphs.from_networkx\(graph\)"):
        check_similarity(networkx.path_graph(4))


@pytest.mark.parametrize("read", [check_similarity, SymReLU(affinity="self_tuning").fit])
def test_a_named_tuple_is_no_matrix(read):
    dataset = Dataset(GOOD, np.zeros(3), "small")
    with pytest.raises(TypeError, match=r"got a Dataset with the fields data, target, name\. Pass the field"):
        read(dataset)


@pytest.mark.parametrize("memory", [None, 10**18])
def test_memory_check_lets_through_what_fits(monkeypatch, memory):
    monkeypatch.setattr(validation.formats, "available_memory", lambda: memory)
    assert_array_equal(check_similarity(GOOD.astype(int)), GOOD.astype(int))


def _reference(M, U):
    return np.linalg.norm(M - np.maximum(0, U @ U.T)) / np.linalg.norm(M)


def unsorted_with_duplicates(M):
    coo = sparse.coo_array(M)
    rows, cols = coo.coords
    data = np.concatenate([coo.data / 4, coo.data * 3 / 4, [0.0]])
    rows, cols = np.concatenate([rows, rows, [0]]), np.concatenate([cols, cols, [2]])
    order = np.random.default_rng(0).permutation(len(data))
    csr = sparse.csr_array((data[order], (rows[order], cols[order])), shape=M.shape)
    csr.indices, csr.data = csr.indices.copy(), csr.data.copy()
    for i in range(M.shape[0]):
        row = slice(csr.indptr[i], csr.indptr[i + 1])
        csr.indices[row], csr.data[row] = csr.indices[row][::-1].copy(), csr.data[row][::-1].copy()
    csr.has_sorted_indices = False
    return csr


def read_only(M):
    M = M.copy()
    M.flags.writeable = False
    return M


def read_only_sparse(M):
    csr = sparse.csr_array(M)
    for array in (csr.data, csr.indices, csr.indptr):
        array.flags.writeable = False
    return csr


def long_indices(M):
    csr = sparse.csr_array(M)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def explicit_zeros(M):
    rows, cols = np.indices(M.shape).reshape(2, -1)
    return sparse.coo_array((M.ravel(), (rows, cols)), shape=M.shape)


FORMS = {
    "list": lambda M: M.tolist(),
    "Fortran order": np.asfortranarray,
    "strided": lambda M: np.repeat(np.repeat(M, 2, axis=0), 2, axis=1)[::2, ::2],
    "read-only": read_only,
    "float16": lambda M: M.astype(np.float16),
    "longdouble": lambda M: M.astype(np.longdouble),
    "int64": lambda M: M.astype(np.int64),
    "int8": lambda M: M.astype(np.int8),
    "uint16": lambda M: M.astype(np.uint16),
    "negative zeros": lambda M: np.where(M == 0, -0.0, M),
    "big-endian": lambda M: M.astype(">f8"),
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "coo_matrix": sparse.coo_matrix,
    "lil_array": sparse.lil_array,
    "dia_array": sparse.dia_array,
    "sparse int32": lambda M: sparse.csr_array(M.astype(np.int32)),
    "int64 indices": long_indices,
    "unsorted, duplicates, zeros": unsorted_with_duplicates,
    "explicit zeros": explicit_zeros,
    "read-only sparse": read_only_sparse,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_answer_of_the_dense_reference(form):
    rng = np.random.default_rng(0)
    U = rng.integers(-2, 3, (12, 3)).astype(float)
    M = np.maximum(0, U @ U.T)
    M[5] = M[:, 5] = 0  # an isolated node
    given_form = FORMS[form](M)
    kept = given_form.copy()
    expected = decompose(M, 3, random_state=1, max_iter=12, backend="reference")
    actual = decompose(given_form, 3, random_state=1, max_iter=12)
    assert actual.U.dtype == np.float64
    assert_allclose(actual.U, expected.U, rtol=1e-8, atol=1e-8)
    assert_allclose(actual.relative_error, _reference(M, actual.U), rtol=1e-9)
    if sparse.issparse(given_form):
        assert (given_form != kept).nnz == 0
        assert given_form.nnz == kept.nnz
    else:
        assert_array_equal(given_form, kept)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_bool_adjacency(kind):
    A = np.zeros((6, 6), bool)
    A[[0, 1, 2, 3], [1, 2, 3, 4]] = True
    A |= A.T
    expected = decompose(A.astype(float), 2, random_state=0, max_iter=8, backend="reference")
    assert_allclose(decompose(kind(A), 2, random_state=0, max_iter=8).U, expected.U, atol=1e-9)


# ----------------------------------------------------------------------- duplicates (issue 11.3)

INTEGERS = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("format", ["coo", "csr", "csc", "bsr", "coo_matrix", "csr_matrix"])
def test_duplicates_are_added_as_floats(dtype, format):
    largest = 1 if dtype == np.bool_ else np.iinfo(dtype).max
    data = np.array([largest, largest, largest, 1, largest, 1], dtype)
    rows, cols = np.array([0, 1, 0, 0, 1, 1]), np.array([0, 1, 1, 1, 0, 0])
    indptr, kind = np.array([0, 3, 6]), getattr(sparse, format if "_" in format else f"{format}_array")
    order = np.argsort(rows if "csc" not in format else cols, kind="stable")
    M = kind((2, 2), dtype=dtype)
    if "coo" in format:
        M = kind((data, (rows, cols)), shape=(2, 2))
    elif format == "bsr":
        M = kind((data[order][:, None, None], cols[order], indptr), shape=(2, 2))
    else:
        M = kind((data[order], (cols if "csr" in format else rows)[order], indptr), shape=(2, 2))
    twice = 1.0 if dtype == np.bool_ else float(largest) + 1
    assert_array_equal(check_similarity(M).toarray(), [[float(largest), twice], [twice, float(largest)]])


# -------------------------------------------------------------- malformed sparse input (issue 11.9)


def malformed_lil(dtype=float):
    M = sparse.lil_array(GOOD.astype(dtype))
    M.rows[0][1] = 10**6
    return M


def uneven_lil(dtype=float):
    M = sparse.lil_array(GOOD.astype(dtype))
    M.data[0].append(dtype(1))
    return M


def malformed_dok(dtype=float):
    M = sparse.dok_array(GOOD.astype(dtype))
    M._dict[(0, 10**6)] = dtype(1)
    return M


def bsr_without_width(dtype=float):
    M = sparse.bsr_array(GOOD.astype(dtype), blocksize=(1, 1))
    M.data = M.data[:, :, :0]
    return M


def broken(dtype):
    """Return sparse matrices that scipy's compiled code would follow out of memory."""
    good = GOOD.astype(dtype)

    def change(kind, attribute, by):
        M = kind(good)
        setattr(M, attribute, getattr(M, attribute) + by)
        return M

    coo = sparse.coo_array(good)
    coo.coords = tuple(index + 10**6 for index in coo.coords)
    return {
        "csr": change(sparse.csr_array, "indices", 10**6),
        "csr_matrix": change(sparse.csr_matrix, "indices", -5),
        "csc": change(sparse.csc_array, "indices", 10**6),
        "indptr": change(sparse.csr_array, "indptr", 7),
        "bsr": change(sparse.bsr_array, "indices", 10**6),
        "bsr without width": bsr_without_width(dtype),
        "coo": coo,
        "lil": malformed_lil(dtype),
        "lil, uneven": uneven_lil(dtype),
        "dok": malformed_dok(dtype),
    }


BROKEN = list(broken(float))


@pytest.mark.parametrize("case", BROKEN)
def test_malformed_sparse_input_is_refused_before_compiled_code_sees_it(case):
    M, mask = broken(float)[case], broken(bool)[case]
    solution = decompose(GOOD, 2, random_state=0)
    model = SymReLU(2, random_state=0, diagonal="ignore").fit(GOOD)
    for name, use in {
        "M": lambda: decompose(M, 2),
        "mask": lambda: decompose(GOOD, 2, mask=mask),
        "M_new": lambda: solution.transform(M),
        "mask ": lambda: solution.transform(GOOD, mask=mask),
        "mask  ": lambda: model.transform(GOOD, mask=mask),
        "mask of the metric": lambda: metrics.relative_error(GOOD, solution.U, mask=mask),
        "exclude": lambda: solution.top_k([0], 1, exclude=M),
        "X": lambda: self_tuning_graph(M),
    }.items():
        with pytest.raises(ValueError, match=f"{name.split()[0]} must be a well-formed sparse matrix: "):
            use()


@pytest.mark.parametrize(
    ("M", "message"),
    [
        ("graph.npz", r"M must be a matrix or a graph, got the str 'graph.npz'.*read_matrix\('graph.npz'\)"),
        (Path("graph.tsv"), r"pandas.read_csv\('graph.tsv', index_col=0\)"),
        (b"graph.npy", r"got the bytes 'graph.npy'"),
    ],
)
def test_names_of_files_say_how_to_read_them(M, message):
    for call in (lambda: decompose(M, 2), lambda: select_rank(M), lambda: metrics.parameters_per_pair(M, 1)):
        with pytest.raises(TypeError, match=message):
            call()
