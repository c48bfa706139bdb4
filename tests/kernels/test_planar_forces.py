"""Forces of a graph, and interpolation to and from a grid."""

import numpy as np
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu.kernels.planar_forces import attract, cubic, gather, own_field, spread


def test_attraction():
    rng = np.random.default_rng(0)
    graph = sparse.csr_array(sparse.random_array((12, 12), density=0.4, rng=rng))
    points = rng.standard_normal((2, 12))
    d = points[:, :, None] - points[:, None, :]
    expected = np.sum(graph.toarray() * d / (1 + np.sum(d**2, axis=0)), axis=2)
    forces = np.empty((2, 12))
    attract(points, graph.indptr, graph.indices, graph.data, forces)
    assert_allclose(forces, expected)


def test_weights_are_exact_for_cubics():
    for t in (0.0, 0.3, 0.99):
        weights = np.array(cubic(t))
        for power in range(4):
            assert_allclose(weights @ np.arange(-1.0, 3.0) ** power, t**power, atol=1e-12)


def test_points_on_the_grid():
    rng = np.random.default_rng(0)
    places = rng.uniform(1, 7.99, (2, 20))
    grid = np.zeros((10, 10))
    spread(places, grid)
    assert_allclose(grid.sum(), 20)
    rows, columns = np.arange(10.0)[:, None], np.arange(10.0)
    assert_allclose([(grid * rows).sum(), (grid * columns).sum()], places.sum(axis=1))
    values = np.empty((2, 20))
    gather(places, np.stack([rows**3 + 0 * columns, rows * columns**2]), values)
    assert_allclose(values, [places[0] ** 3, places[0] * places[1] ** 2])


def test_the_field_of_a_point_at_its_own_place():
    place = np.array([[3.4], [5.7]])
    offsets = np.abs(np.arange(10)[:, None] - np.arange(10))
    kernel = np.random.default_rng(0).random((10, 10))
    grid = np.zeros((10, 10))
    spread(place, grid)
    field = np.einsum("abcd,cd->ab", kernel[offsets[:, None, :, None], offsets[None, :, None, :]], grid)
    values = np.empty((1, 1))
    gather(place, field[None], values)
    assert_allclose(own_field(place, kernel[:4, :4]), values[0, 0])
