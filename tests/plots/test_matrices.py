"""Pictures of matrices: cells are averages of entries."""

from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu import LinkPredictor
from symrelu.datasets import make_relu_gram
from symrelu.fit.decompose import decompose
from symrelu.plots import binned, binned_gram, matrices, new_figure, plot_fit, plot_matrices


def test_binning_averages_cells():
    M, U = make_relu_gram(90, 3, random_state=0)
    order = np.random.default_rng(0).permutation(90)
    expected = M[np.ix_(order, order)].reshape(30, 3, 30, 3).mean(axis=(1, 3))
    assert_allclose(binned(M, order, 30), expected)
    solution = decompose(M, 3, init=U)
    assert_allclose(binned_gram(solution, order, 30), expected, atol=1e-10)


def means_of_blocks(M, order, bins):
    """The same by slicing: the rows of a cell follow each other in the order, in counts that differ by one."""
    edges = -(-np.arange(bins + 1) * len(order) // bins)
    parts = [order[a:b] for a, b in pairwise(edges)]
    return np.array([[M[np.ix_(rows, cols)].mean() for cols in parts] for rows in parts])


@given(n=st.integers(1, 30), bins=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
def test_cells_of_any_number(n, bins, seed):
    bins = min(n, bins)
    rng = np.random.default_rng(seed)
    M = rng.random((n, n)) * (rng.random((n, n)) < 0.5)
    M, order = M + M.T, rng.permutation(n)
    expected = means_of_blocks(M, order, bins)
    assert_allclose(binned(M, order, bins), expected, atol=1e-12)
    assert_allclose(binned(sparse.csr_array(M), order, bins), expected, atol=1e-12)


@pytest.mark.parametrize("tile", [1, 7, 30, 384])
def test_the_gram_matrix_is_binned_in_blocks_of_rows(monkeypatch, tile):
    monkeypatch.setattr(matrices, "TILE", tile)
    M, _ = make_relu_gram(30, 3, shift=0.1, random_state=0)
    solution = decompose(M, 4, n_negative=1, max_iter=5, random_state=0)
    order = np.random.default_rng(0).permutation(30)
    X = np.maximum(0, (solution.U * solution.signature) @ solution.U.T)
    assert_allclose(binned_gram(solution, order, 8), means_of_blocks(X, order, 8), atol=1e-12)


def test_zeros_have_no_colour_and_all_pictures_one_scale():
    figure = new_figure()
    axes = figure.subplots(1, 2)
    shown = {"one": np.array([[0.0, 2.0], [2.0, 1.0]]), "other": np.array([[8.0, 0.0], [0.0, 0.5]])}
    plot_matrices(shown, axes)
    for ax, matrix in zip(axes, shown.values(), strict=True):
        (image,) = ax.images
        assert (image.get_array().mask == (matrix == 0)).all()
        assert (image.norm.vmin, image.norm.vmax) == (8e-3, 8.0)
        assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0


def test_a_fit_is_ordered_by_cluster_with_boundaries():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([0, 1, 2], [4, 6, 10]))
    M = (labels[:, None] == labels).astype(float)
    solution = decompose(M, 3, random_state=0, max_iter=50)
    axes = plot_fit(M, solution, labels=labels)
    for ax, title in zip(axes, ("M", "max(0, X)"), strict=True):
        assert ax.get_title() == title
        assert sorted(line.get_ydata()[0] for line in ax.lines[::2]) == [3.5, 9.5]
        (image,) = ax.images
        sorted_labels = np.sort(labels)
        assert_allclose(image.get_array().filled(0), sorted_labels[:, None] == sorted_labels, atol=1e-3)


def test_a_fit_on_given_axes_and_without_labels():
    M, _ = make_relu_gram(30, 3, random_state=0)
    axes = new_figure().subplots(1, 2)
    drawn = plot_fit(sparse.csr_array(M), decompose(M, 3, random_state=0, max_iter=5), axes, bins=10)
    assert list(drawn) == list(axes)
    assert axes[0].images[0].get_array().shape == (10, 10)
    assert not axes[0].lines


def test_degrees_are_multiplied_again():
    B = np.kron(np.eye(2), np.ones((8, 8))) - np.eye(16)
    model = LinkPredictor(3, n_init=1, random_state=0).fit(B)
    axes = plot_fit(B, model, labels=np.repeat([0, 1], 8))
    U = model.embedding_ * model.root_degrees_[:, None]
    X = np.maximum(0, (U * model.signature_) @ U.T)
    shown = axes[1].images[0].get_array().filled(0)
    assert_allclose(shown.sum(), X.sum())


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.eye(4), np.eye(5)), {}, r"M must have shape \(5, 5\)"),
        ((np.eye(4), np.eye(4)), {"labels": [0, 1]}, "one entry for each of the 4 items"),
        ((np.eye(4), np.eye(4)), {"bins": 0}, "bins must be"),
    ],
)
def test_fits_that_cannot_be_drawn(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plot_fit(*arguments, **options)


def test_the_order_does_not_depend_on_the_number_of_threads(monkeypatch):
    """One function has the leading directions, for the map and for the order of the items."""
    entered = []

    @contextmanager
    def one_thread():
        entered.append(True)
        yield

    monkeypatch.setattr(import_module("symrelu.plots.planar_map"), "single_threaded_blas", one_thread)
    plot_fit(np.eye(4), np.eye(4))
    assert entered == [True]
