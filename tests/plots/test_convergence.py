"""Curves of convergence."""

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from symrelu import SymReLU
from symrelu.datasets import make_relu_gram
from symrelu.fit.decompose import decompose
from symrelu.fitted.history import History, Record
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


def history(*errors):
    """A history that makes two evaluations in each step."""
    return History.from_records([Record(k, 2 * k, 0.0, error, 0, 0, 0) for k, error in enumerate(errors)])


def test_the_work_is_counted_in_evaluations():
    ax = plot_convergence({"fit": history(1.0, 0.5, 0.25)})
    assert_array_equal(ax.lines[0].get_xydata(), [[0, 1.0], [2, 0.5], [4, 0.25]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("evaluations", "relative error")


@pytest.mark.parametrize("count", [1, 2, 6])
def test_several_lines_differ_without_colour_and_have_a_legend(count):
    ax = plot_convergence({f"fit {k}": history(1.0, 0.1 * (k + 1)) for k in range(count)})
    styles = [line.get_linestyle() for line in ax.lines]
    assert len(set(styles)) == min(count, 4)
    assert (ax.get_legend() is not None) == (count > 1)


def test_axes_that_are_given_are_drawn_on():
    ax = new_figure().add_subplot()
    assert plot_convergence({"fit": history(1.0, 0.5)}, ax) is ax
    assert len(ax.lines) == 1


def test_runs_of_any_kind():
    M, _ = make_relu_gram(30, 3, random_state=0)
    solution = decompose(M, 3, random_state=0, max_iter=10)
    model = SymReLU(3, n_negative=0, random_state=0).fit(M)
    ax = plot_convergence([solution, model, history(1.0, 0.5)])
    assert [line.get_label() for line in ax.lines] == ["run 1", "run 2", "run 3"]
    for line, expected in zip(ax.lines, (solution.history, model.history_), strict=False):
        assert_allclose(line.get_ydata(), expected.relative_error)
    for run in (solution, model, solution.history):
        assert len(plot_convergence(run).lines) == 1


def test_a_fit_without_error_has_a_linear_axis():
    assert plot_convergence(history(0.0, 0.0)).get_yscale() == "linear"


def test_runs_without_a_history():
    with pytest.raises(TypeError, match="a Solution, a fitted estimator with history_, or a History, got str"):
        plot_convergence("fit")
    with pytest.raises(NotFittedError):
        plot_convergence(SymReLU())
