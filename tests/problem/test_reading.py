"""Data that must be fully observed, and the hidden part of a matrix."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.problem import Problem, complete, read_hidden

M = np.array([[2.0, 1.0, 0.0], [1.0, 0.0, 3.0], [0.0, 3.0, 1.0]])
HIDDEN = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, Problem.of])
def test_a_fully_observed_matrix_is_complete(form):
    problem = complete(form(M))
    assert problem.unknown is None
    assert_array_equal(sparse.csr_array(problem.M).toarray(), M)


@pytest.mark.parametrize("problem", [Problem.of(M, HIDDEN), Problem.of(M, diagonal="ignore")], ids=repr)
def test_an_unobserved_entry_is_refused(problem):
    with pytest.raises(ValueError, match="M must be fully observed for this model"):
        complete(problem)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("mask_form", [np.asarray, sparse.csr_array])
def test_the_hidden_part_is_zero_outside_the_mask(form, mask_form):
    matrix, mask = read_hidden(form(M), mask_form(HIDDEN))
    assert_array_equal(sparse.csr_array(matrix).toarray(), np.where(HIDDEN, M, 0))
    assert_array_equal(sparse.csr_array(mask).toarray(), HIDDEN)


def test_what_a_problem_does_not_observe_is_not_in_its_hidden_part():
    problem = Problem.of(M, diagonal="ignore")
    matrix, mask = read_hidden(problem, HIDDEN)
    off_diagonal = HIDDEN & ~np.eye(3, dtype=bool)
    assert_array_equal(sparse.csr_array(mask).toarray(), off_diagonal)
    assert_array_equal(sparse.csr_array(matrix).toarray(), np.where(off_diagonal, M, 0))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="mask"):
        read_hidden(M, np.ones((2, 2), dtype=bool))
