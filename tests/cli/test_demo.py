"""What the demo claims is computed, and its picture shows the matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from symrelu import metrics
from symrelu.cli import demo
from symrelu.datasets import make_relu_gram
from symrelu.fit.decompose import decompose
from symrelu.plots import binned, binned_gram, new_figure, plot_convergence, plot_matrices


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "ITERATIONS", 40)
        yield demo.run_demo()


def test_models_beat_the_eigendecomposition_also_on_held_out_pairs(result):
    eigen, paper, signed, shrunk = result.rows
    assert signed.relative_error < shrunk.relative_error < paper.relative_error < eigen.relative_error
    assert shrunk.held_out_error < signed.held_out_error < paper.held_out_error < eigen.held_out_error


def test_rows_are_true(result):
    name, solution = next(iter(result.solutions.items()))
    assert result.rows[1].name == name
    assert_allclose(result.rows[1].relative_error, metrics.relative_error(result.M, solution.U))


def test_binning_averages_cells():
    M, U = make_relu_gram(90, 3, random_state=0)
    order = np.random.default_rng(0).permutation(90)
    expected = M[np.ix_(order, order)].reshape(30, 3, 30, 3).mean(axis=(1, 3))
    assert_allclose(binned(M, order, 30), expected)
    solution = decompose(M, 3, init=U)
    assert_allclose(binned_gram(solution, order, 30), expected, atol=1e-10)


def test_plots_draw_what_they_are_given():
    M, _ = make_relu_gram(40, 3, random_state=0)
    solutions = {f"rank {rank}": decompose(M, rank, random_state=0, max_iter=20) for rank in (2, 3)}
    ax = plot_convergence({name: solution.history for name, solution in solutions.items()})
    assert [line.get_label() for line in ax.lines] == list(solutions)
    assert_allclose(ax.lines[0].get_ydata(), solutions["rank 2"].history.relative_error)
    assert ax.get_yscale() == "log"
    figure = new_figure()
    axes = figure.subplots(1, 2)
    image = plot_matrices({"M": M, "half": M / 2}, axes)
    assert [ax.get_title() for ax in axes] == ["M", "half"]
    assert image.norm.vmax == M.max()
    figure.canvas.draw()
