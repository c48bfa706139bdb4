"""Scores of pairs, and metrics of hidden links."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from symrelu import LinkPredictor, SymReLU, decompose
from symrelu.fit.link_evaluation import LinkEvaluation, LinkMetrics
from symrelu.plots import new_figure, plot_link_metrics, plot_link_scores

BLOCKS = np.kron(np.eye(2), np.ones((8, 8))) - np.eye(16)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_every_pair_of_a_small_graph_is_counted():
    hidden = [[0, 1], [9, 8]]
    B = BLOCKS.copy()
    for i, j in hidden:
        B[i, j] = B[j, i] = 0
    model = LinkPredictor(3, n_init=1, random_state=0).fit(B)
    ax = plot_link_scores(model, hidden=hidden)
    assert sorted(texts(ax)) == ["hidden links (2)", "links (54)", "pairs without a link (64)"]
    for outline in ax.patches:  # shares of the pairs, which add up to one
        heights = outline.get_xy()[:, 1]
        assert_allclose(np.sum(heights[1:-1:2]), 1)
    assert ax.get_xscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("score", "share of the pairs in a bin")


def test_pairs_are_drawn_if_there_are_many():
    model = LinkPredictor(3, n_init=1, random_state=0).fit(BLOCKS)
    ax = new_figure().add_subplot()
    assert model.plot(ax=ax, n_pairs=20) is ax
    assert "links (20)" in texts(ax)


def test_links_of_a_solution_are_passed():
    solution = decompose(BLOCKS, 3, n_negative=1, diagonal="ignore", random_state=0, max_iter=20)
    ax = solution.plot("link_scores", links=BLOCKS)
    assert sorted(texts(ax)) == ["links (56)", "pairs without a link (64)"]
    assert ax.get_xscale() == "linear"
    with pytest.raises(ValueError, match="does not keep its links: pass links=M"):
        plot_link_scores(solution)
    with pytest.raises(ValueError, match="call fit first"):
        plot_link_scores(SymReLU())
    with pytest.raises(ValueError, match=r"hidden must have shape \(count, 2\)"):
        plot_link_scores(solution, links=BLOCKS, hidden=[[0, 1, 2]])


def test_metrics_of_each_split():
    splits = (LinkMetrics(0.9, 0.8, 0.7, float("nan"), 0.2), LinkMetrics(0.7, 0.6, 0.5, float("nan"), 0.4))
    evaluation = LinkEvaluation(splits, 5, 50)
    ax = new_figure().add_subplot()
    assert evaluation.plot(ax) is ax
    assert_allclose(ax.lines[0].get_xdata(), [0.9, 0.7])
    assert_allclose(ax.lines[1].get_xdata(), [0.8])
    assert [text.get_text() for text in ax.texts] == ["0.800", "0.700", "0.600", "not defined", "0.300"]
    assert ax.get_title() == "5 of 50 links hidden, 2 splits"
    assert plot_link_metrics(evaluation) is not ax
