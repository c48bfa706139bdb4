"""t-SNE on a grid against the formulas on all pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.plots import tsne as module
from symrelu.plots.tsne import Repulsion, tsne


@pytest.fixture(params=[0, 1000], ids=["grid", "pairs"])
def repulsion(monkeypatch, request):
    monkeypatch.setattr(module, "_PAIRWISE", request.param)
    return Repulsion()


def expected_repulsion(points):
    d = points[:, :, None] - points[:, None, :]
    q = 1 / (1 + np.sum(d**2, axis=0))
    return np.sum(d * q**2, axis=2) / (q.sum() - points.shape[1])


@pytest.mark.parametrize(("n", "scale"), [(5, 30), (100, 0.3), (300, 10), (300, 60)])
def test_repulsion(repulsion, n, scale):
    points = scale * np.random.default_rng(n).standard_normal((2, n))
    expected = expected_repulsion(points)
    assert np.linalg.norm(repulsion(points) - expected) < 0.1 * np.linalg.norm(expected)


def test_a_wide_map_gets_a_coarser_grid(monkeypatch):
    monkeypatch.setattr(module, "_PAIRWISE", 0)
    monkeypatch.setattr(module, "_MOST_NODES", 50)
    points = np.array([[0.0, 1.0, 1e4], [0.0, 1.0, -1e4]])
    forces = Repulsion()(points)
    assert np.isfinite(forces).all()
    assert_allclose(forces.sum(axis=1), 0, atol=1e-4)  # the forces of two points on each other are opposite


def test_a_grid_that_was_used_before_gives_the_same_forces(repulsion):
    rng = np.random.default_rng(0)
    wide, narrow = 10 * rng.standard_normal((2, 50)), rng.standard_normal((2, 50))
    for points in (narrow, wide, 1.01 * wide, narrow):
        assert_allclose(repulsion(points), Repulsion()(points), rtol=1e-4, atol=1e-6)


def ring(n):
    half = sparse.eye_array(n, k=1) + sparse.eye_array(n, k=1 - n)
    return sparse.csr_array((half + half.T) / (2 * n))


def divergence(graph, Y):
    q = 1 / (1 + np.sum((Y[:, None] - Y) ** 2, axis=2))
    np.fill_diagonal(q, 0)
    q /= q.sum()
    P = graph.toarray()
    return np.sum(P[P > 0] * np.log(P[P > 0] / q[P > 0]))


def test_the_divergence_reaches_a_minimum():
    graph = ring(40)
    start = 1e-4 * np.random.default_rng(0).standard_normal((40, 2))
    Y = tsne(graph, start)
    assert divergence(graph, Y) < 0.5 * divergence(graph, start)
    other = Y + 0.3 * np.random.default_rng(1).standard_normal(Y.shape)
    assert divergence(graph, Y) < divergence(graph, other)
    assert_array_equal(Y, tsne(graph, start))
    assert_allclose(Y.mean(axis=0), 0, atol=1e-9)
