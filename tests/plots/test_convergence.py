"""Curves of convergence."""

from numpy.testing import assert_allclose

from symrelu.datasets import make_relu_gram
from symrelu.fit.decompose import decompose
from symrelu.plots import new_figure, plot_convergence, plot_matrices


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
