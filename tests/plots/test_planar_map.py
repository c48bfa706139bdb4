"""Maps of the items in the plane."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from symrelu import decompose
from symrelu.plots import planar_map
from symrelu.plots.planar_map import (
    along_leading_directions,
    checked_positions,
    neighbor_graph,
    unit_rows,
)


def groups(sizes, columns=None, seed=0):
    """Return rows close to a different axis for each group, and the group of each row."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.eye(len(sizes), columns)[labels] + 0.03 * rng.standard_normal(
        (len(labels), columns or len(sizes))
    ), labels


def is_sound(coordinates, n):
    return coordinates.shape == (n, 2) and coordinates.dtype == np.float64 and np.isfinite(coordinates).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 17])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_any_number_of_items(n, rank):
    rng = np.random.default_rng(n)
    coordinates = planar_map(rng.standard_normal((n, rank)))
    assert is_sound(coordinates, n)
    assert len(np.unique(coordinates.round(9), axis=0)) == n


@pytest.mark.parametrize(
    "U",
    [
        np.zeros((1, 2)),
        np.zeros((7, 2)),
        np.ones((9, 3)),
        np.ones((30, 1)),
        np.repeat(np.eye(3), [1, 2, 1], axis=0),
        np.repeat(np.eye(3), 8, axis=0),
        np.vstack([np.zeros((1, 2)), np.eye(2)]),
        np.full((6, 2), 1e-300),
        np.full((6, 2), 1e300),
    ],
)
def test_equal_and_empty_rows(U):
    assert is_sound(planar_map(U), len(U))


def test_groups_are_apart():
    U, labels = groups([20, 30, 25])
    coordinates = planar_map(U)
    distances = np.linalg.norm(coordinates[:, None] - coordinates, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert_array_equal(labels[distances.argmin(axis=1)], labels)
    same = labels[:, None] == labels
    np.fill_diagonal(distances, 0)
    assert distances[same].max() < distances[~same].min()


def test_items_without_a_direction_are_below():
    U, _ = groups([20, 30])
    isolated = [0, 7, 33]
    U[isolated] = 0
    coordinates = planar_map(U)
    others = np.setdiff1d(np.arange(50), isolated)
    assert coordinates[isolated, 1].max() < coordinates[others, 1].min()
    assert_allclose(coordinates[others], planar_map(U[others]))
    assert len(np.unique(coordinates[isolated], axis=0)) == 3


def test_rows_of_length_one():
    rng = np.random.default_rng(1)
    U = rng.standard_normal((6, 3))
    scales = np.array([1e-300, 1e-5, 1, 2, 1e5, 1e300])[:, None]
    assert_allclose(np.linalg.norm(unit_rows(U), axis=1), 1)
    assert_allclose(unit_rows(scales * U), unit_rows(U))
    assert_array_equal(unit_rows(np.zeros((2, 3))), np.zeros((2, 3)))
    assert unit_rows(np.empty((2, 0))).shape == (2, 0)


def test_the_seed_decides():
    U, _ = groups([20, 30])
    assert_array_equal(planar_map(U, random_state=3), planar_map(U, random_state=3))
    assert (planar_map(U, random_state=3) != planar_map(U, random_state=4)).any()


def test_a_solution_has_a_map():
    M = np.kron(np.eye(3), np.ones((4, 4)))
    solution = decompose(M, 3, random_state=0)
    assert_array_equal(planar_map(solution), planar_map(solution.U, solution.signature))


@pytest.mark.parametrize("n_neighbors", [0, 2.5, "15"])
def test_a_wrong_number_of_neighbors(n_neighbors):
    with pytest.raises((ValueError, TypeError), match="n_neighbors must be"):
        planar_map(np.eye(5), n_neighbors=n_neighbors)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_graph_of_neighbours(scale):
    rng = np.random.default_rng(0)
    U, signature = rng.standard_normal((9, 4)), np.array([1.0, 1, 1, -1])
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    X = np.maximum(0, (U * signature) @ U.T)
    np.fill_diagonal(X, 0)
    X[-np.sort(-X, axis=1)[:, 2:3] > X] = 0  # the three largest of each row
    X /= np.where(X.any(axis=1), X.sum(axis=1), 1)[:, None]
    expected = (X + X.T) / np.sum(X + X.T)
    assert_allclose(neighbor_graph(scale * U, signature, 3).toarray(), expected, atol=1e-12)


def test_leading_directions_have_a_sign_and_an_order():
    rng = np.random.default_rng(0)
    rows = rng.exponential(size=(50, 3)) * [1, 5, 2]
    along = along_leading_directions(rows, 2)
    assert_allclose(along_leading_directions(-rows, 2), -along * np.sign(np.sum((-along) ** 3, axis=0)))
    assert_allclose(along.mean(axis=0), 0, atol=1e-12)
    assert along[:, 0].std() > along[:, 1].std()
    assert along_leading_directions(rows[:, :1], 2).shape == (50, 1)


@pytest.mark.parametrize(
    ("positions", "n", "message"),
    [
        (np.ones((3, 2)), 4, r"shape \(4, 2\), .* got shape \(3, 2\)\. Pass"),
        (np.ones((0, 2)), None, r"shape \(n, 2\), .* got shape \(0, 2\)\. Pass"),
        (np.full((4, 2), np.inf), 4, r"shape .* got shape \(4, 2\) with NaN or infinity\. Pass"),
    ],
)
def test_positions_that_are_refused(positions, n, message):
    with pytest.raises(ValueError, match=f"positions must have {message} the result"):
        checked_positions(positions, n)
