"""The operator of dense matrices: what it holds, and what it finds in tiles."""

from unittest import mock

import numpy as np
import pytest
from helpers import factor, problems
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.operators import DenseOperator, dense
from symrelu.operators.dense import UNKNOWN

ROWS = st.sampled_from([1, 3, 5, 384])  # in a block


def operator_of(problem, kind=sparse.csr_array):
    unknown = kind(problem.unknown) if problem.unknown.any() else None
    return DenseOperator(problem.M, unknown, **problem.settings())


@given(problems(max_n=14), ROWS, st.sampled_from([sparse.csr_array, np.asarray]))
def test_what_is_unknown_counts_as_zero(problem, rows, kind):
    op, V = operator_of(problem, kind), factor(problem, columns=3)
    known = np.where(problem.unknown, 0.0, problem.M)
    assert_allclose(op.norm, np.linalg.norm(known), rtol=1e-13)
    with mock.patch.object(dense, "TILE", rows):
        product = op.matmul(V)
    assert_allclose(product, known @ V, rtol=1e-13, atol=1e-13 * np.abs(known).sum() * np.abs(V).max())
    assert_array_equal(op.row_maxima(), known.max(axis=1))
    assert op.n_positive == np.count_nonzero(known)


@given(problems(max_n=14), ROWS)
def test_the_support_is_that_of_scipy(problem, rows):
    with mock.patch.object(dense, "TILE", rows):
        indptr, indices = operator_of(problem).support
    expected = sparse.csr_array(np.where(problem.unknown, 0.0, problem.M))
    assert_array_equal(indptr, expected.indptr)
    assert_array_equal(indices, expected.indices)
    assert (indptr.dtype, indices.dtype) == (np.int64, np.int32)


def test_a_matrix_that_is_known_is_held_and_not_copied():
    M = np.eye(4)
    op = DenseOperator(M, None, signature=np.ones(2))
    assert np.shares_memory(op._coded, M)


def test_a_mask_is_written_into_a_copy():
    M, unknown = np.eye(4), np.zeros((4, 4), bool)
    unknown[1, 2] = unknown[2, 1] = True
    op = DenseOperator(M, unknown, signature=np.ones(2))
    assert_array_equal(M, np.eye(4))
    assert_array_equal(op._coded, np.where(unknown, UNKNOWN, M))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sparse.csr_array, np.asarray])
def test_of_any_checked_matrix(kind, dtype):
    M = np.eye(3, dtype=dtype)
    op = DenseOperator.of(kind(M), None, signature=np.ones(2))
    assert isinstance(op, DenseOperator)
    assert_array_equal(op.matmul(np.eye(3, dtype=dtype)), M, strict=True)


def test_squares_of_float32_are_summed_in_float64():
    M = np.full((300, 300), 1e-3, np.float32)
    M[0, 0] = 1e3
    op = DenseOperator(M, None, signature=np.ones(2))
    assert_allclose(op.norm, np.linalg.norm(M.astype(np.float64)), rtol=1e-13)
