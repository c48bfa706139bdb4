"""The problem of a block folder, as far as no cluster is needed."""

import numpy as np
import pytest
from block_folders import random_similarity
from scipy import sparse

from symrelu import Problem, decompose, metrics
from symrelu.files.block_folder import write_matrix
from symrelu.graphs import Labelled, write_blocks
from symrelu.problem import BlockProblem


@pytest.fixture
def path(tmp_path):
    names = np.array([f"n{k}" for k in range(12)], object)
    return write_blocks(Labelled(random_similarity(12, density=0.5), names), tmp_path / "blocks", rows=5).path


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_path_is_a_problem(path, kind):
    problem, same = Problem.of(kind(path)), Problem.of(random_similarity(12, density=0.5))
    assert isinstance(problem, BlockProblem)
    assert (problem.n, problem.dtype, problem.is_sparse) == (12, np.float64, True)
    assert problem.largest == same.largest
    assert problem.exponent == same.exponent
    assert problem.labels[0] == "n0"
    assert problem.diagonal == "fit"
    assert metrics.parameters_per_pair(path, 3) == metrics.parameters_per_pair(same, 3)
    assert repr(problem) == "Problem(12 items in blocks, float64, diagonal='fit')"


def test_the_diagonal_is_ignored_if_it_is_empty(tmp_path):
    M = random_similarity(8, density=0.8)
    np.fill_diagonal(M, 0)
    assert Problem.of(write_blocks(M, tmp_path / "b", rows=3).path, diagonal="auto").diagonal == "ignore"


def test_an_ignored_diagonal_does_not_set_the_scale(tmp_path):
    M = random_similarity(8, density=0.8)
    M[0, 0] = 1e30
    path = write_blocks(M, tmp_path / "b", rows=3).path
    assert Problem.of(path).exponent > 0
    assert Problem.of(path, diagonal="ignore").exponent == 0


@pytest.mark.parametrize("diagonal", ["fit", "ignore", "auto"])
@pytest.mark.parametrize("hidden", ["largest", "diagonal", "all"])
def test_what_is_masked_counts_in_nothing(tmp_path, diagonal, hidden):
    """The masked entries of a folder set its scale, and made "auto" fit a diagonal that is hidden."""
    M = random_similarity(9, density=0.8)
    M[2, 7] = M[7, 2] = 1e30
    M[4, 4] = 1e20
    mask = {"largest": M == 1e30, "diagonal": np.eye(9, dtype=bool), "all": np.ones((9, 9), bool)}[hidden]
    found = Problem.of(write_blocks(M, tmp_path / "b", rows=4).path, mask, diagonal)
    if hidden == "all":
        assert found.largest == 0
        return
    same = Problem.of(sparse.csr_array(M), mask, diagonal)
    assert (found.largest, found.exponent, found.diagonal) == (same.largest, same.exponent, same.diagonal)
    assert found._entries_on_diagonal == np.count_nonzero(same.M.diagonal())


def test_fingerprints_know_the_data_the_grid_and_the_mask(path, tmp_path):
    problem = Problem.of(path)
    other = write_blocks(random_similarity(12, density=0.5), tmp_path / "other", rows=4).path
    assert problem.fingerprint() == Problem.of(path).fingerprint()
    assert problem.fingerprint() != Problem.of(other).fingerprint()
    assert problem.fingerprint() != Problem.of(path, diagonal="ignore").fingerprint()
    hidden = problem.hide([0], [5])
    assert hidden.fingerprint()["mask"] is not None
    assert hidden.mask[5, 0]
    assert hidden.hide([1], [2]).mask.nnz == 4


def test_masks_are_checked(path):
    with pytest.raises(ValueError, match="mask must have the shape of M"):
        Problem.of(path, np.zeros((3, 3), bool))


def test_what_needs_the_matrix_in_memory_says_so(path):
    problem = Problem.of(path)
    for question in (lambda: problem.scaled, problem.positive_pairs, lambda: problem.divided(np.ones(12))):
        with pytest.raises(TypeError, match="M is a block folder"):
            question()
    with pytest.raises(ValueError, match="backend must be 'dask', got 'sparse'"):
        decompose(path, 2, backend="sparse")
    with pytest.raises(TypeError, match="mask must be a boolean matrix, got None"):
        metrics.held_out_error(path, np.ones((12, 1)), mask=None)


def test_a_folder_of_a_mask_is_no_matrix(tmp_path):
    folder = write_matrix(sparse.csr_array(np.eye(4, dtype=bool)), tmp_path / "mask", rows=2)
    with pytest.raises(TypeError, match="holds a mask"):
        Problem.of(folder)
