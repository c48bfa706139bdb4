"""Self loops, repeated entries and directions of matrices."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.graphs.matrix_rules import entries_once, similarity_of_matrix
from symrelu.graphs.pairs import NOT_ADDED, Rules

A = np.array([[4.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
KINDS = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_matrix])


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@KINDS
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize(
    ("directed", "expected"),
    [
        ("max", [[4, 2, 0], [2, 0, 3], [0, 3, 0]]),
        ("sum", [[4, 4, 0], [4, 0, 4], [0, 4, 0]]),
        ("mean", [[4, 2, 0], [2, 0, 2], [0, 2, 0]]),
    ],
)
def test_asymmetric_matrices(kind, dtype, directed, expected):
    matrix, notes = similarity_of_matrix(kind(A.astype(dtype)), Rules(directed=directed))
    assert_array_equal(dense(matrix), expected)
    assert matrix.dtype == (dtype if dtype is np.float32 else np.float64)
    assert notes[0] == "1 self loop is on the diagonal"
    assert notes[1].startswith("the two directions of all pairs were")


@KINDS
@pytest.mark.parametrize("directed", ["error", "max", "sum", "mean"])
def test_symmetric_matrices_are_not_changed(kind, directed):
    M = A + A.T
    M[0, 1] *= 1 + 1e-14  # a rounding error, which the fit averages
    matrix, notes = similarity_of_matrix(kind(M), Rules(directed=directed))
    assert_array_equal(dense(matrix), M)
    assert (NOT_ADDED in notes) == (directed == "sum")
    M[0, 1] = M[1, 0] = np.nan  # may be unobserved
    assert_array_equal(dense(similarity_of_matrix(kind(M), Rules(directed=directed)).matrix), M)


@KINDS
def test_a_full_diagonal_is_no_surprise(kind):
    assert similarity_of_matrix(kind(np.eye(3)), Rules()).notes == ()
    assert similarity_of_matrix(kind(np.diag([1.0, 0, 1])), Rules()).notes == (
        "2 self loops are on the diagonal",
    )


@KINDS
def test_self_loops(kind):
    M = kind(A + A.T)
    matrix, notes = similarity_of_matrix(M, Rules(self_loops="drop"))
    assert_array_equal(dense(matrix), (A + A.T) * ~np.eye(3, dtype=bool))
    assert notes == ("1 self loop was left out",)
    assert_array_equal(dense(M), A + A.T)
    with pytest.raises(
        ValueError, match=r"has 1 self loop on its diagonal, the first in row 0. Pass self_loops="
    ):
        similarity_of_matrix(M, Rules(self_loops="error"))


def test_entries_that_are_given_twice():
    twice = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match=r"Edge \(0, 1\) is given 2 times"):
        similarity_of_matrix(twice, Rules())
    matrix, notes = similarity_of_matrix(twice, Rules(duplicates="sum"))
    assert_array_equal(matrix.toarray(), [[0, 3], [3, 0]])
    assert notes == ("1 repeated edge was added",)
    assert_array_equal(entries_once(twice, "max")[0].toarray(), [[0, 2], [3, 0]])


@KINDS
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_values_are_checked_before_they_are_ones(kind, value):
    M = A + A.T
    assert_array_equal(dense(similarity_of_matrix(kind(M), Rules(), weighted=False).matrix), M != 0)
    M[0, 1] = M[1, 0] = value
    with pytest.raises(ValueError, match=f"must hold finite, nonnegative numbers, .* ignored, got {value:g}"):
        similarity_of_matrix(kind(M), Rules(), weighted=False)
    with pytest.raises(ValueError, match="must hold finite, nonnegative numbers"):
        entries_once(kind(M), "error", weighted=False)


def test_repeated_entries_come_before_ones():
    twice = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match=r"Edge \(0, 1\) is given 2 times"):
        similarity_of_matrix(twice, Rules(), weighted=False)
    matrix, notes = similarity_of_matrix(twice, Rules(duplicates="sum"), weighted=False)
    assert_array_equal(matrix.toarray(), [[0, 1], [1, 0]])
    assert notes == ("1 repeated edge was added",)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (A, r"must be symmetric, but entry \(1, 2\) is 3 and \(2, 1\) is 1. Pass directed=\"max\" .* \"mean\""),
        (A[:2], r"must be square, got shape \(2, 3\)"),
        (np.ones(3), r"must be square, got shape \(3,\)"),
        (A * 1j, "must hold real numbers, got the type complex128"),
        (A.astype(str), "must hold real numbers, got the type <U"),
    ],
)
def test_matrices_that_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        similarity_of_matrix(matrix, Rules())
