"""Bad input: each with its own message, before any work starts. And odd input that is fine."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import pdist, squareform

from symrelu import (
    AAPB,
    LinkPredictor,
    SymReLU,
    SymReLUClustering,
    decompose,
    metrics,
    select_rank,
    validation,
)
from symrelu.graphs import self_tuning_graph
from symrelu.kernels.memory import available_memory
from symrelu.problem import Problem
from symrelu.problem.distances import looks_like_distances
from symrelu.validation import check_mask, check_similarity, scale_exponent, scaled

GOOD = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]])


def with_entry(value, i=1, j=2, dtype=float):
    M = GOOD.astype(dtype)
    M[i, j] = M[j, i] = value
    return M


def asymmetric():
    M = np.zeros((20, 20))
    M[4, 17] = 0.3
    return M


def malformed(kind, attribute="indices", change=10**6):
    M = kind(GOOD)
    setattr(M, attribute, getattr(M, attribute) + change)
    return M


def malformed_coo():
    M = sparse.coo_array(GOOD)
    M.coords = tuple(index + 10**6 for index in M.coords)
    return M


# What comes in, the kind of error, and what the message must say.
BAD_MATRICES = {
    "not square": (np.ones((3, 4)), ValueError, r"must be square .* got shape \(3, 4\).*self_tuning_graph"),
    "not square, sparse": (sparse.csr_array(np.ones((3, 4))), ValueError, "must be square"),
    "not symmetric": (
        asymmetric(),
        ValueError,
        r"must be symmetric: \|M - M.T\| reaches 0.3 at \(4, 17\). Pass \(M \+ M.T\) / 2",
    ),
    "not symmetric, sparse": (sparse.csc_array(asymmetric()), ValueError, r"reaches 0.3 at \(4, 17\)"),
    "negative": (with_entry(-0.25), ValueError, r"must be nonnegative: entry \(1, 2\) is -0.25"),
    "negative, sparse": (sparse.csr_array(with_entry(-0.25)), ValueError, r"entry \(1, 2\) is -0.25"),
    "NaN": (with_entry(np.nan), ValueError, r"must not contain NaN: entry \(1, 2\) is nan. .*mask="),
    "NaN, sparse": (sparse.csr_array(with_entry(np.nan)), ValueError, r"NaN: entry \(1, 2\)"),
    "infinite": (with_entry(np.inf), ValueError, r"must be finite, without infinity: entry \(1, 2\) is inf"),
    "minus infinity": (with_entry(-np.inf), ValueError, "must be finite"),
    "complex": (GOOD.astype(complex), TypeError, r"must be real, got complex entries \(complex128\)"),
    "complex, sparse": (sparse.csr_array(GOOD.astype(complex)), TypeError, "must be real"),
    "strings": (np.array([["a", "b"], ["b", "a"]]), TypeError, "must hold numbers, got entries of type <U1"),
    "objects": (GOOD.astype(object), TypeError, "must hold numbers, got an object array"),
    "dates": (np.zeros((2, 2), "datetime64[D]"), TypeError, "must hold numbers"),
    "ragged": ([[1, 2], [2]], ValueError, "rows of different lengths"),
    "None": (None, TypeError, r"object array \(of NoneType\)"),
    "empty": (np.empty((0, 0)), ValueError, r"at least one row, got an empty matrix of shape \(0, 0\)"),
    "empty, sparse": (sparse.csr_array((0, 0)), ValueError, "at least one row"),
    "0-D": (np.array(3.0), ValueError, r"must be a square matrix, got 0 dimension\(s\), shape \(\)"),
    "1-D": (np.ones(3), ValueError, r"must be a square matrix, got 1 dimension\(s\), shape \(3,\)"),
    "3-D": (np.ones((2, 2, 2)), ValueError, r"must be a square matrix, got 3 dimension\(s\)"),
    "all zero": (np.zeros((3, 3)), ValueError, "must have a positive entry, but all are zero"),
    "all zero, sparse": (sparse.csr_array((3, 3)), ValueError, "must have a positive entry"),
    "explicit zeros only": (
        sparse.csr_array(([0.0], ([0], [0])), shape=(2, 2)),
        ValueError,
        "must have a positive entry",
    ),
    "malformed csr": (malformed(sparse.csr_array), ValueError, "must be a well-formed sparse matrix"),
    "malformed csc": (malformed(sparse.csc_array), ValueError, "must be a well-formed sparse matrix"),
    "malformed bsr": (malformed(sparse.bsr_array), ValueError, "must be a well-formed sparse matrix"),
    "negative indices": (malformed(sparse.csc_matrix, change=-5), ValueError, "must be a well-formed sparse"),
    "malformed indptr": (malformed(sparse.csc_array, "indptr"), ValueError, "must be a well-formed sparse"),
    "malformed coo": (malformed_coo(), ValueError, "must be a well-formed sparse matrix: coordinates"),
    "masked array": (
        np.ma.masked_array(GOOD, mask=GOOD == 0),
        TypeError,
        r"must be a plain array, got a masked array. Pass M.filled\(0\) and mask=M.mask",
    ),
    "too large": (
        np.broadcast_to(np.True_, (10**6, 10**6)),
        MemoryError,
        r"dense 1000000 x 1000000 array needs 8000.0 GB as float64; .* GB are available. Pass a scipy",
    ),
}

BAD_SETTINGS = {
    "rank 0": (
        {"rank": 0},
        ValueError,
        r"rank must be an integer of at least 1 \(and at most the size of M\), got 0",
    ),
    "rank negative": ({"rank": -1}, ValueError, "rank must be an integer of at least 1"),
    "rank above n": ({"rank": 4}, ValueError, r"rank must be an integer from 1 to 3 .* got 4"),
    "rank not an integer": ({"rank": 1.0}, TypeError, "rank must be an integer .* got 1.0"),
    "rank a bool": ({"rank": True}, TypeError, "rank must be an integer .* got True"),
    "rank a string": ({"rank": "2"}, TypeError, "rank must be an integer .* got '2'"),
    "unknown solver": (
        {"solver": "newton"},
        ValueError,
        "solver must be one of 'aapb', 'eigen', 'lbfgs', 'palm' or a solver instance, got 'newton'",
    ),
    "solver class": (
        {"solver": AAPB},
        TypeError,
        r"solver must be an instance, got the class AAPB. Pass AAPB\(\)",
    ),
    "no solver": ({"solver": 3}, TypeError, "an object with init and step, got int"),
    "start shape": ({"init": np.ones((3, 1))}, ValueError, r"init must have shape .* \(3, 2\), got \(3, 1\)"),
    "start NaN": ({"init": np.full((3, 2), np.nan)}, ValueError, "init must be finite"),
    "start zero": ({"init": np.zeros((3, 2))}, ValueError, "init must not be zero everywhere"),
    "start that vanishes": (
        {"init": np.full((3, 2), 1e-163)},
        ValueError,
        "init must not vanish next to M: its largest entry is 1e-163, and the root of .* 1.4. Scale it up",
    ),
    "start text": (
        {"init": "svd"},
        ValueError,
        "init must be one of 'random', 'uniform', 'spectral', 'imputed', got 'svd'",
    ),
    "start kind": ({"init": {"a": 1}}, TypeError, "init must be an array of real numbers, got dict of object"),
    "start complex": ({"init": np.ones((3, 2)) * 1j}, TypeError, "init must be .* real numbers, .* complex128"),
    "start strings": ({"init": [["1", "2"]] * 3}, TypeError, "init must be .* real numbers, got list of <U1"),
    "start ragged": ({"init": [[1, 2], [1]]}, ValueError, "init must be a matrix, got rows of different"),
    "alpha negative": ({"alpha": -1e-3}, ValueError, "alpha must be a finite number >= 0, got -0.001"),
    "alpha NaN": ({"alpha": np.nan}, ValueError, "alpha must be a finite number >= 0, got nan"),
    "alpha text": ({"alpha": "0"}, TypeError, "alpha must be a finite number >= 0, got '0'"),
    "zero_weight 0": ({"zero_weight": 0}, ValueError, r"zero_weight must be a number in \(0, 1\], got 0"),
    "zero_weight 2": ({"zero_weight": 2.0}, ValueError, r"zero_weight must be a number in \(0, 1\], got 2.0"),
    "max_iter 0": ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
    "max_time": ({"max_time": -1.0}, ValueError, "max_time must be a finite number > 0"),
    "tol": ({"tol": -1.0}, ValueError, "tol must be a finite number >= 0"),
    "diagonal": ({"diagonal": "keep"}, ValueError, "diagonal must be one of 'fit', 'ignore', got 'keep'"),
    "backend": ({"backend": "cuda"}, ValueError, "backend must be one of 'auto', .* got 'cuda'"),
    "callback": ({"callback": 3}, TypeError, "callback must be callable or None, got int"),
    "random_state": ({"random_state": "x"}, TypeError, "random_state must be None"),
    "n_negative": (
        {"n_negative": 2},
        ValueError,
        r"n_negative must be an integer from 0 to 1 \(rank - 1, since .* positive\) or 'auto', got 2",
    ),
    "n_negative word": (
        {"n_negative": "some"},
        ValueError,
        "n_negative must be 'auto' or an integer, got 'some'",
    ),
    "n_negative kind": ({"n_negative": 1.0}, TypeError, "n_negative must be an integer .* or 'auto', got 1.0"),
    "mask shape": (
        {"mask": np.zeros((2, 2), bool)},
        ValueError,
        r"mask must have the shape of M, \(3, 3\), got \(2, 2\)",
    ),
    "mask kind": ({"mask": np.zeros((3, 3))}, TypeError, r"mask must be boolean \(True = unknown\)"),
    "mask one-sided": (
        {"mask": np.triu(np.ones((3, 3), bool), 1)},
        ValueError,
        r"mask must be symmetric, but only one of \(0, 1\) and \(1, 0\) is unknown",
    ),
}


@pytest.fixture
def no_work(monkeypatch):
    """Make any work fail: errors must come before it."""

    def work(*args, **kwargs):
        raise AssertionError("work started")

    monkeypatch.setattr("symrelu.fit.decompose.run", work)
    monkeypatch.setattr("symrelu.problem.problem.as_operator", work)


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices(case, no_work):
    M, error, message = BAD_MATRICES[case]
    with pytest.raises(error, match=message):
        decompose(M, 1)


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings(case, no_work):
    settings, error, message = BAD_SETTINGS[case]
    with pytest.raises(error, match=message):
        decompose(GOOD, **{"rank": 2, **settings})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["aapb", "eigen", "lbfgs", "palm"])
@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_a_small_start_is_fitted_or_refused(dtype, solver, scale):  # issue 11, found by the fuzzer
    M = (scale * GOOD).astype(dtype)
    U0 = np.sqrt(scale) * np.random.default_rng(0).standard_normal((3, 2))
    assert decompose(M, 2, init=1e-7 * U0, solver=solver).relative_error < 0.5
    with pytest.raises(ValueError, match="init must not vanish next to M"):
        decompose(M, 2, init=1e-9 * U0, solver=solver)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_mask_of_a_matrix_without_entries(kind):  # issue 11, found by the fuzzer
    mask = np.array([[False, True], [True, False]])
    with pytest.raises(ValueError, match="must have a positive entry, but all are zero"):
        decompose(sparse.csr_array((2, 2)), 1, mask=kind(mask))


def test_networkx_graph_names_the_adapter():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(TypeError, match=r"got a networkx Graph. Pass symrelu.graphs.from_networkx\(graph\)"):
        check_similarity(networkx.path_graph(4))


def test_mask_that_hides_everything():
    with pytest.raises(ValueError, match="must have a positive entry that is observed"):
        decompose(GOOD, 2, mask=np.ones((3, 3), bool))


def test_ignored_diagonal_of_a_diagonal_matrix():
    with pytest.raises(ValueError, match="mask and diagonal hide them all"):
        decompose(np.eye(3), 2, diagonal="ignore")


def test_alpha_out_of_proportion(no_work):
    with pytest.raises(ValueError, match=r"alpha=1e.300 is out of all proportion"):
        decompose(GOOD * 1e-200, 2, alpha=1e300)


@pytest.mark.parametrize("backend", ["dense", "reference"])
def test_dense_backend_of_a_large_sparse_matrix_is_refused(backend, no_work):
    M = sparse.csr_array(sparse.eye_array(10**6))
    with pytest.raises(MemoryError, match=r"M as a dense 1000000 x 1000000 array needs 8000.0 GB"):
        decompose(M, 2, backend=backend)


@pytest.mark.parametrize("memory", [None, 10**18])
def test_memory_check_lets_through_what_fits(monkeypatch, memory):
    monkeypatch.setattr(validation.formats, "available_memory", lambda: memory)
    assert_array_equal(check_similarity(GOOD.astype(int)), GOOD.astype(int))


def test_available_memory_is_plausible():
    assert 10**7 < available_memory() < 10**14


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


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_one_by_one(kind):
    solution = decompose(kind(np.array([[4.0]])), 1, random_state=0)
    assert_allclose(solution.U**2, [[4.0]], rtol=1e-3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-30, 1e30, 1e200, 1e300])
def test_tiny_and_huge_entries_fit_as_well_as_entries_of_one(kind, size):
    factor = np.random.default_rng(0).standard_normal((15, 3))
    M = np.maximum(0, factor @ factor.T)
    exponent = round(np.log2(size) / 2)
    plain = decompose(kind(M), 3, random_state=0, max_iter=100)
    other = decompose(kind(np.ldexp(M, 2 * exponent)), 3, random_state=0, max_iter=100)
    assert other.n_iter == plain.n_iter
    assert_allclose(other.relative_error, plain.relative_error, rtol=1e-10)
    assert_allclose(np.ldexp(other.U, -exponent), plain.U, rtol=1e-10)


def test_float32_at_the_ends_of_its_range():
    factor = np.random.default_rng(0).standard_normal((15, 3))
    M = np.maximum(0, factor @ factor.T).astype(np.float32)
    plain = decompose(M, 3, random_state=0, max_iter=100)
    for exponent in (-60, 60):
        other = decompose(np.ldexp(M, 2 * exponent), 3, random_state=0, max_iter=100)
        assert other.U.dtype == np.float32
        assert_allclose(other.relative_error, plain.relative_error, rtol=1e-3)


@given(k=st.integers(-300, 300), alpha=st.sampled_from([0.0, 0.5]))
def test_scaling_by_a_power_of_four_scales_x_exactly(k, alpha):
    factor = np.random.default_rng(0).standard_normal((10, 2))
    M = np.maximum(0, factor @ factor.T)
    plain = decompose(M, 2, alpha=alpha, random_state=0, max_iter=15)
    other = decompose(np.ldexp(M, 2 * k), 2, alpha=np.ldexp(alpha, 2 * k), random_state=0, max_iter=15)
    assert_array_equal(other.U, np.ldexp(plain.U, k))
    assert other.relative_error == plain.relative_error
    assert other.alpha == np.ldexp(alpha, 2 * k)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_scaling_loses_no_support_entry(kind):
    M = kind(np.array([[1e200, 1e-200], [1e-200, 0.0]]))
    k = scale_exponent(M)
    smaller = scaled(M, k)
    smaller = smaller.toarray() if sparse.issparse(smaller) else smaller
    assert (smaller > 0).tolist() == [[True, True], [True, False]]
    assert 1 <= smaller.max() < 4


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rounding_asymmetry_is_averaged(kind):
    M = GOOD.copy()
    M[0, 1] += 1e-13
    checked = check_similarity(kind(M))
    checked = checked.toarray() if sparse.issparse(checked) else checked
    assert_array_equal(checked, checked.T)
    assert_allclose(checked, GOOD)


def test_a_fine_array_is_not_copied():
    assert check_similarity(GOOD) is GOOD


@pytest.mark.parametrize("n", [1, 400, 801])
def test_symmetry_is_checked_across_tiles(n):
    M = np.ones((n, n))
    if n > 1:
        M[n - 1, 0] = 2.0
        with pytest.raises(ValueError, match=rf"reaches 1 at \(0, {n - 1}\)"):
            check_similarity(M)
    else:
        assert check_similarity(M) is M


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_mask_forms(kind):
    mask = np.zeros((3, 3), bool)
    mask[0, 2] = mask[2, 0] = True
    checked = check_mask(kind(mask), 3)
    assert_array_equal(checked.toarray() if sparse.issparse(checked) else checked, mask)


def test_mask_with_duplicates_and_explicit_false():
    mask = sparse.coo_array(([True, True, True, False], ([0, 0, 1, 2], [1, 1, 0, 2])), shape=(3, 3))
    assert check_mask(mask, 3).nnz == 2


# ------------------------------------------------------------------- unknown entries (issue 11.1)

UNKNOWN = [0.0, 1.0, -3.0, 1e-20, 1e20, 1e120, 1e170, 1e308, np.nan, np.inf, -np.inf]


def hidden_and_known():
    """Return a matrix of 12 items and a mask of some of its pairs."""
    factor = np.random.default_rng(3).standard_normal((12, 3))
    M = np.maximum(0, factor @ factor.T)
    mask = np.zeros((12, 12), bool)
    mask[[0, 2, 2, 11], [1, 9, 4, 11]] = True
    return M, mask | mask.T


def forms(M, mask):
    """Return M and its mask dense and sparse, crossed; a stored zero is no other thing than none."""
    return [
        (kind(M), how(mask)) for kind in (np.array, sparse.csr_array) for how in (np.array, sparse.csr_array)
    ]


def assert_same(one, other):
    assert_array_equal(one.U, other.U)
    assert one.status is other.status
    for name in ("relative_error", "objective", "norm", "n_iter"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("value", UNKNOWN)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_about_an_unknown_entry_changes_a_fit(value, dtype):
    M, mask = hidden_and_known()
    other = M.copy()
    other[mask] = value
    np.fill_diagonal(other, value)
    with np.errstate(over="ignore"):
        M, other = M.astype(dtype), other.astype(dtype)
    settings = {"diagonal": "ignore", "random_state": 0, "max_iter": 20, "n_negative": 1}
    for (one, mask_one), (two, _) in zip(forms(M, mask), forms(other, mask), strict=True):
        assert_same(decompose(one, 3, mask=mask_one, **settings), decompose(two, 3, mask=mask_one, **settings))


@pytest.mark.parametrize("value", UNKNOWN)
def test_nothing_about_an_unknown_entry_changes_a_judgement(value):
    M, mask = hidden_and_known()
    other = M.copy()
    other[mask] = value
    np.fill_diagonal(other, value)
    U = np.random.default_rng(0).standard_normal((12, 3))
    settings = {"diagonal": "ignore", "random_state": 0, "max_iter": 5}
    for (one, mask_one), (two, _) in zip(forms(M, mask), forms(other, mask), strict=True):
        known = {"mask": mask_one, "diagonal": "ignore"}
        for metric in (metrics.relative_error, metrics.half_squared_error):
            assert metric(one, U, **known) == metric(two, U, **known)
        assert metrics.parameters_per_pair(one, 3, **known) == metrics.parameters_per_pair(two, 3, **known)
        tables = [select_rank(A, [1, 2], mask=mask_one, n_repeats=2, **settings).table for A in (one, two)]
        assert tables[0] == tables[1]


@pytest.mark.parametrize("value", UNKNOWN)
def test_what_a_fit_saw_does_not_change_the_error_on_what_it_did_not_see(value):
    M, mask = hidden_and_known()
    other = np.where(mask, M, value)
    U = np.random.default_rng(0).standard_normal((12, 3))
    for (one, mask_one), (two, _) in zip(forms(M, mask), forms(other, mask), strict=True):
        assert metrics.held_out_error(one, U, mask=mask_one) == metrics.held_out_error(two, U, mask=mask_one)


@pytest.mark.parametrize("value", UNKNOWN)
def test_nothing_about_an_unknown_similarity_changes_a_new_row(value):
    M, mask = hidden_and_known()
    solution = decompose(M, 3, random_state=0, max_iter=30)
    rows, unknown = M[:5].copy(), mask[:5]
    rows[unknown] = value
    for (one, mask_one), (two, _) in zip(forms(M[:5], unknown), forms(rows, unknown), strict=True):
        assert_array_equal(solution.transform(one, mask_one), solution.transform(two, mask_one))
        assert solution.score(one, mask_one) == solution.score(two, mask_one)


@pytest.mark.parametrize(("dtype", "value"), [(np.float32, 1e20), (np.float64, 1e120), (np.float64, 1e170)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_huge_diagonal_that_is_ignored_does_not_end_a_fit(dtype, value, kind):
    factor = np.random.default_rng(0).standard_normal((40, 4))
    M = np.maximum(0, factor @ factor.T).astype(dtype)
    np.fill_diagonal(M, value)
    solution = decompose(kind(M), 4, diagonal="ignore", random_state=0)
    assert solution.relative_error <= 1e-4
    assert solution.n_iter > 0


@given(st.integers(0, 2**32 - 1), st.sampled_from(UNKNOWN), st.booleans())
def test_unknown_entries_are_taken_out_and_no_others(seed, value, ignored):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    mask = np.triu(rng.random((n, n)) < 0.4)
    mask |= mask.T
    truth = np.triu(rng.integers(0, 3, (n, n))).astype(float)
    truth = np.maximum(truth, truth.T)
    unknown = mask | (ignored & np.eye(n, dtype=bool))
    given_M, diagonal = np.where(unknown, value, truth), "ignore" if ignored else "fit"
    expected = np.where(unknown, 0.0, truth)
    if not expected.any():
        return
    for M, a_mask in forms(given_M, mask):
        checked, _ = validation.check_observed(M, a_mask, diagonal)
        assert_array_equal(checked.toarray() if sparse.issparse(checked) else checked, expected)


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


# Distances in place of similarities (issue 11.15)


def points(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d))


def blobs(n, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 5)) + 4 * rng.integers(0, 3, (n, 1))


def distances(metric, X):
    return squareform(pdist(X, metric))


def shortest_paths(n, seed):
    ring = np.arange(n)
    rows, cols = (
        np.r_[ring, ring, np.random.default_rng(seed).permutation(n)],
        np.r_[(ring + 1) % n, (ring + 2) % n, ring],
    )
    return shortest_path(
        sparse.csr_array((np.ones(3 * n), (rows, cols)), shape=(n, n)), unweighted=True, directed=False
    )


def without_diagonal(K):
    K = (K + K.T) / 2
    np.fill_diagonal(K, 0)
    return K


def gaussian(X, width):
    """Return a Gaussian kernel whose width is that multiple of the median distance."""
    D = pdist(X)
    return without_diagonal(np.exp(-(squareform(D / np.median(D)) ** 2) / (2 * width**2)))


def symmetric_noise(n, low, seed):
    W = np.triu(np.random.default_rng(seed).uniform(low, 1, (n, n)), 1)
    return W + W.T


def counts(n, seed):
    return np.random.default_rng(seed).poisson(2.0, (n, 40)) + 0.0


# From 20 items on, each of these warns.
DISTANCES = {
    **{
        f"{metric}, {d} dimensions": lambda n, seed, metric=metric, d=d: distances(metric, points(n, d, seed))
        for metric in ("euclidean", "cityblock", "cosine", "correlation", "sqeuclidean")
        for d in (3, 8)
    },
    "euclidean, clusters": lambda n, seed: distances("euclidean", blobs(n, seed)),
    "euclidean, nonnegative": lambda n, seed: distances("euclidean", counts(n, seed)[:, :6]),
    "chebyshev": lambda n, seed: distances("chebyshev", points(n, 3, seed)),
    "hamming, words of 8 letters": lambda n, seed: np.maximum(
        distances("hamming", np.random.default_rng(seed).integers(0, 3, (n, 8))), 0.1 * (1 - np.eye(n))
    ),
    "shortest paths": shortest_paths,
}

# None of these ever warns.
SIMILARITIES = {
    **{
        f"gaussian of width {width}, {d} dimensions": lambda n, seed, width=width, d=d: gaussian(
            points(n, d, seed), width
        )
        for width in (0.1, 0.3, 1, 3, 10, 100)
        for d in (2, 10, 100)
    },
    "gaussian, clusters": lambda n, seed: gaussian(blobs(n, seed), 10),
    "laplace": lambda n, seed: without_diagonal(np.exp(-distances("euclidean", points(n, 5, seed)))),
    "inverse distances": lambda n, seed: without_diagonal(1 / (1 + distances("euclidean", points(n, 5, seed)))),
    "linear": lambda n, seed: without_diagonal(counts(n, seed) @ counts(n, seed).T),
    "cosine": lambda n, seed: without_diagonal(1 - distances("cosine", counts(n, seed))),
    "jaccard": lambda n, seed: without_diagonal(1 - distances("jaccard", counts(n, seed) > 1)),
    "correlation, shifted": lambda n, seed: without_diagonal((1 + np.corrcoef(points(n, 5, seed))) / 2),
    "correlation, absolute": lambda n, seed: without_diagonal(abs(np.corrcoef(points(n, 5, seed)))),
    "degrees": lambda n, seed: without_diagonal(np.multiply.outer(*2 * [counts(n, seed).mean(axis=1)])),
    "sums": lambda n, seed: without_diagonal(np.add.outer(*2 * [counts(n, seed).mean(axis=1)])),
    "random weights": lambda n, seed: symmetric_noise(n, 0, seed),
    "random weights above a half": lambda n, seed: symmetric_noise(n, 0.5, seed),
    "a complete graph": lambda n, seed: 1.0 - np.eye(n),
    "two groups": lambda n, seed: without_diagonal(0.6 + 0.4 * np.kron(np.eye(2), np.ones((n // 2, n // 2)))),
}


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("case", DISTANCES)
def test_distances_are_told(case, n):
    for seed in range(5):
        assert looks_like_distances(Problem.of(DISTANCES[case](n, seed)))


@pytest.mark.parametrize("case", SIMILARITIES)
def test_similarities_without_their_diagonal_are_not_taken_for_distances(case):
    for n in (6, 8, 12, 20, 100):
        for seed in range(8):
            M = SIMILARITIES[case](n, seed)
            assert not looks_like_distances(Problem.of(M))
            assert not looks_like_distances(Problem.of(sparse.csr_array(M)))


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if "distances" in str(w.message)]


FITS = {
    "decompose": lambda D, **kw: decompose(D, 2, max_iter=3, random_state=0, **kw),
    "select_rank": lambda D, **kw: select_rank(D, [1, 2], n_repeats=2, max_iter=3, random_state=0, **kw),
    "SymReLU": lambda D, **kw: SymReLU(2, max_iter=3, n_init=2, random_state=0).fit(D, **kw),
    "rank chosen": lambda D, **kw: SymReLU("auto", max_iter=3, random_state=0).fit(D, **kw),
    "clustering": lambda D, **kw: SymReLUClustering(2, max_iter=3, random_state=0).fit(D, **kw),
    "links": lambda D, **kw: LinkPredictor(2, random_state=0).fit(D, **kw),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_distances_warns_once(name):
    """Issue 11.15: and says how to make similarities of them."""
    D = distances("euclidean", points(40, 2, 0))
    mask = np.random.default_rng(1).random(D.shape) < 0.05
    mask |= mask.T
    hidden = np.where(mask, np.nan, D)
    for call in (
        lambda: FITS[name](D),
        lambda: FITS[name](sparse.csr_array(D)),
        lambda: FITS[name](hidden, mask=mask),
        lambda: FITS[name](hidden, mask=sparse.csr_array(mask)),
    ):
        (text,) = warned(call)
        assert re.search(
            r"looks like a matrix of distances.*exp\(-\([MX](.toarray\(\))? / numpy.median.*self_tuning_graph",
            text,
        )
    similarities = np.exp(-((D / np.median(D)) ** 2))
    assert warned(lambda: FITS[name](similarities)) == []
    assert warned(lambda: FITS[name](without_diagonal(similarities))) == []
    assert warned(lambda: FITS[name](D + np.eye(40))) == []  # a diagonal is of similarities, also where ignored


def test_zeros_are_equal_items_or_no_distances():
    X = points(60, 2, 0)
    X[:3] = X[3:6]
    assert looks_like_distances(Problem.of(distances("euclidean", X)))
    halves = np.kron([[0, 1], [1, 0]], np.ones((30, 30)))  # a complete bipartite graph obeys the triangles too
    thirds = np.kron(1 - np.eye(3), np.ones((20, 20)))
    for graph in (halves, thirds, halves * gaussian(points(60, 2, 1), 10)):
        assert not looks_like_distances(Problem.of(graph))
        assert not looks_like_distances(Problem.of(sparse.csr_array(graph)))


def test_a_sparse_matrix_with_a_zero_costs_nothing(monkeypatch):
    M = sparse.csr_array(distances("euclidean", points(30, 2, 0)))
    M[3, 4] = M[4, 3] = 0
    M.eliminate_zeros()
    monkeypatch.setattr(Problem, "block", None)
    assert not looks_like_distances(Problem.of(M))


def test_what_distances_become_is_fitted_without_a_warning():
    X = points(60, 3, 0)
    assert warned(lambda: SymReLUClustering(2, random_state=0).fit(X)) == []
    assert warned(lambda: SymReLU(2, affinity="self_tuning", max_iter=3).fit(X[:6])) == []


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
