"""The normalised graph: its formula, units, and the numbers that the scores of links use."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.fit.normalised_graph import NormalisedGraph, divided_rows
from symrelu.problem import Problem

B = np.array([[0.0, 2, 1, 0], [2, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
MASK = np.zeros((4, 4), bool)
MASK[0, 3] = MASK[3, 0] = True


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("mask", [None, MASK])
def test_the_formula_in_any_units(kind, scale, mask):
    graph = NormalisedGraph.of(Problem.of(kind(scale * B), mask, "ignore"), 0.5)
    D = B.sum(axis=1) + 0.5 * 1.5
    N = B / np.sqrt(np.outer(D, D))
    found = graph.problem.M.toarray() if kind is sparse.csr_array else graph.problem.M
    assert_allclose(found, N)
    assert_allclose(graph.root_degrees, np.sqrt(scale) * np.sqrt(D))
    assert_array_equal(graph.links.toarray(), B > 0)
    assert_allclose(graph.root_mean_square, np.sqrt(np.sum(N**2) / (12 if mask is None else 10)))
    assert_allclose(graph.suggested_shrinkage, 0.2 / 1.5 / np.linalg.eigvalsh(N)[-1])


def test_a_large_regularisation_keeps_the_root_mean_square_in_range():
    graph = NormalisedGraph.of(Problem.of(B, None, "ignore"), 1e200)
    assert_allclose(graph.root_mean_square * 1e200, np.sqrt(np.mean(B[~np.eye(4, dtype=bool)] ** 2)) / 1.5)


@pytest.mark.parametrize(("degree", "expected"), [(4, 0.2), (64, 0.1)])
def test_denser_graphs_get_less_shrinkage(degree, expected):
    n = degree + 1
    complete = 1 - np.eye(n)
    graph = NormalisedGraph.of(Problem.of(complete, None, "ignore"), 1.0)
    assert_allclose(graph.suggested_shrinkage, expected)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("regularization", [0.5, 1.0])
def test_rows_of_the_graph_are_divided_as_the_graph(kind, regularization):
    graph = NormalisedGraph.of(Problem.of(B, None, "ignore"), regularization)
    rows = divided_rows(kind(B[:2]), graph.root_degrees, regularization)
    assert_allclose(rows.toarray(), graph.problem.M[:2])
