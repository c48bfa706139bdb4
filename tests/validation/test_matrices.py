"""Matrices and masks: each bad one with its own message, and what comes through."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import decompose
from symrelu.validation import check_mask, check_similarity, find_asymmetry

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


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices(case, no_work):
    M, error, message = BAD_MATRICES[case]
    with pytest.raises(error, match=message):
        decompose(M, 1)


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


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_where_a_matrix_is_asymmetric(kind, dtype):
    M = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]).astype(dtype)
    assert find_asymmetry(kind(M)) is None
    M[2, 1] = 0
    assert sorted(find_asymmetry(kind(M))) == [1, 2]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rounding_and_nan_are_not_asymmetry(kind):
    M = np.array([[0, 1 + 1e-13], [1, 0]])
    assert find_asymmetry(kind(M)) is None
    M[0, 1] = np.nan
    assert find_asymmetry(kind(M)) is None
