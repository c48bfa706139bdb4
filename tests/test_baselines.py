import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu.baselines import truncated_eigen
from symrelu.datasets import make_relu_gram


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rank", [1, 5, 29, 30])
def test_truncated_eigen_is_the_best_of_its_rank(kind, rank):
    M, _ = make_relu_gram(30, 4, shift=0.1, random_state=0)
    result = truncated_eigen(kind(M), rank)
    values = np.linalg.eigvalsh(M)
    dropped = np.sort(np.abs(values))[: 30 - rank]
    best = np.linalg.norm(dropped) / np.linalg.norm(values)
    assert_allclose(result.relative_error, best, atol=1e-7)
    residual = M - (result.U * result.signature) @ result.U.T
    assert_allclose(np.linalg.norm(residual) / np.linalg.norm(M), best, atol=1e-7)


def test_zero_eigenvalues_have_a_sign():
    assert set(truncated_eigen(np.ones((4, 4)), 4).signature) <= {1.0, -1.0}


def test_truncated_eigen_checks_its_rank():
    with pytest.raises(ValueError, match="rank must be an integer from 1 to 3"):
        truncated_eigen(np.eye(3), 4)
