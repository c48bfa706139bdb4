"""What the default solver and start reach where the paper's model and method do not."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symrelu import AAPB, Eigen, Status, decompose
from symrelu.datasets import make_relu_gram
from symrelu.experiments.paper import SHIFTED


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "planted", "shift"), SHIFTED)
def test_one_negative_column_holds_the_shifted_matrices(n, planted, shift, seed):
    """The paper's model ends at 1e-1 with seven times the rank. The data choose the signature themselves."""
    M, _ = make_relu_gram(n, planted, shift=shift, random_state=seed)
    solution = decompose(M, planted + 1, n_negative="auto", random_state=seed)
    assert solution.n_negative == 1
    assert solution.relative_error <= 1e-4
    assert solution.n_evaluations <= 150


@pytest.mark.parametrize(("n", "rank", "starts"), [(25, 3, 20), (100, 4, 5), (200, 4, 5)])
def test_the_identity_from_random_starts(n, rank, starts):
    """It is max(0, X) for X_ij = 1 - (i - j)^2, of rank 3 with one negative eigenvalue."""
    place = np.arange(n)
    assert_array_equal(np.maximum(0, 1 - np.subtract.outer(place, place) ** 2), np.eye(n))
    for seed in range(starts):
        solution = decompose(np.eye(n), rank, n_negative=1, init="random", random_state=seed, tol=1e-3)
        assert solution.relative_error <= 1e-3
        assert solution.n_evaluations <= 1000


def test_without_a_negative_column_the_identity_needs_half_its_size():
    """In r dimensions at most 2 r vectors have no positive inner product with each other."""
    assert decompose(np.eye(12), 4, random_state=0).relative_error > 0.3
    assert decompose(np.eye(12), 6, random_state=0, gtol=0).relative_error < 1e-3


@pytest.mark.parametrize(("rank", "at_most"), [(10, 15), (12, 40)])
@pytest.mark.parametrize("seed", range(3))
def test_an_order_of_magnitude_fewer_evaluations(rank, at_most, seed):
    """AAPB at step 10 needs 66-78 and 350-400, at step 1 about 430 and more than 1000."""
    M, _ = make_relu_gram(500, 10, random_state=seed)
    solution = decompose(M, rank, random_state=seed)
    assert solution.status is Status.TOLERANCE
    assert solution.n_evaluations <= at_most


@pytest.mark.parametrize("solver", [AAPB(step_size="adaptive"), Eigen(), "lbfgs"])
@pytest.mark.parametrize("rank", [12, 60])
def test_a_rank_larger_than_needed_neither_diverges_nor_stalls(solver, rank):
    M, _ = make_relu_gram(60, 10, random_state=2)
    errors = decompose(M, rank, solver=solver, random_state=0, gtol=0, ftol=0).history.relative_error
    assert errors[-1] < 5e-3
    assert errors.max() < 2 * errors[0]
