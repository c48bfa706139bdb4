"""The methods of clustering: what they fit, and the clusters they form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.fit.cluster_methods import METHODS
from symrelu.fit.normalised_graph import NormalisedGraph
from symrelu.fitted.models import SymmetricReLU
from symrelu.problem import Problem

M = np.kron(np.eye(2), np.ones((5, 5))) + np.eye(10)
M[4, 5] = M[5, 4] = 0.5


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize(
    ("clusters", "n", "columns"), [(1, 500, None), (40, 500, 40), (200, 500, 100), (5, 7, 7)]
)
def test_columns(method, clusters, n, columns):
    assert method.columns(clusters, n) == (columns or method.fewest_columns)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
def test_directions_divide_by_degrees_without_the_diagonal(kind, diagonal):
    mask = np.zeros(M.shape, bool)
    mask[0, 1] = mask[1, 0] = True
    problem, roots, shrinkage = METHODS["directions"].prepare(Problem.of(kind(M), mask, diagonal))
    graph = NormalisedGraph.of(Problem.of(kind(M), mask, diagonal="ignore"), 1.0)
    assert shrinkage == graph.suggested_shrinkage
    B = np.where(mask, 0, M)
    np.fill_diagonal(B, 0)
    degrees = B.sum(axis=1)
    assert_allclose(roots, np.sqrt(degrees + degrees.mean()))
    N = problem.M.toarray() if sparse.issparse(problem.M) else problem.M
    assert_allclose(N * np.outer(roots, roots), B, atol=1e-12)
    assert problem.diagonal == "ignore"
    assert_array_equal(problem.unknown.toarray(), mask | np.eye(10, dtype=bool))


def test_linkage_takes_the_problem_as_it_is():
    problem = Problem.of(M)
    assert METHODS["linkage"].prepare(problem) == (problem, None, METHODS["linkage"].shrinkage)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_clusters_of_a_factor(method):
    U = np.array([[2.0, 0.1, 0.3], [0.1, 1.0, 0.2], [0.0, 2.0, 0.1], [0.1, 1.5, 0.1], [9.0, 0.0, 0.0]])
    form = method.cluster(SymmetricReLU(U, np.array([1.0, 1.0, -1.0])), np.arange(5) < 4, seed=0)
    assert_array_equal(form(2).labels[:4], [0, 1, 1, 1])
    # Items without similarities are in the largest cluster, unless their row has come from a full fit.
    assert form(2).labels[4] == (1 if method.normalised else 0)
    assert_array_equal(form(1).labels, np.zeros(5))
