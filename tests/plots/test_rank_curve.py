"""The curve of scores."""

import numpy as np
import pytest
from hidden_pairs import M
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.fit.selection import RankSelection, select_rank
from symrelu.plots import new_figure, plot_rank_curve

QUICK = {"n_repeats": 2, "max_iter": 20, "random_state": 0}


@pytest.fixture(scope="module")
def found():
    return select_rank(M, [2, 3, 4], n_negative=[0, 1], **QUICK)


def drawn(ax):
    """Return label -> places, means and bars of the lines with error bars."""
    lines = {}
    for container in ax.containers:
        line, _, (bars,) = container.lines
        lengths = [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.get_segments()]
        lines[container.get_label()] = (*np.asarray(line.get_data(), float), lengths)
    return lines


def test_plot(found):
    ax = new_figure().add_subplot()
    assert plot_rank_curve(found, ax) is ax
    lines = drawn(ax)
    assert sorted(lines) == ["n_negative=0", "n_negative=1"]
    for negative in (0, 1):
        rows = [row for row in found.table if row["n_negative"] == negative]
        for column, values in zip(
            ("rank", "mean", "standard_error"), lines[f"n_negative={negative}"], strict=True
        ):
            assert_allclose(values, [row[column] for row in rows], atol=1e-12)
    (ring,) = (artist for artist in ax.collections if artist.get_label() == "chosen")
    assert_allclose(np.asarray(ring.get_offsets()), [[4, found.table[-1]["mean"]]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rank", "relative error of held-out pairs")


def handmade(scoring, means, bar=0.01, **axis):
    """Return a selection of given means along one axis of the grid."""
    ((name, values),) = axis.items()
    setting = {"rank": 3, "n_negative": 0, "alpha": 0.0, "zero_weight": 1.0}
    score = {"standard_error": bar, "scores": [0, 0]}
    table = [setting | {name: v, "mean": mean} | score for v, mean in zip(values, means, strict=True)]
    chosen = {name: table[0][name] for name in setting} | {"diagonal": "fit"}
    return RankSelection(table, chosen, chosen, scoring, "best")


def labels(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def test_the_method_draws_the_same(found):
    by_method, by_function = drawn(found.plot()), drawn(plot_rank_curve(found))
    assert list(by_method) == list(by_function)
    for label, line in by_method.items():
        assert_allclose(line, by_function[label])


def test_plot_of_other_axes():
    ax = handmade("auc", [0.9, 0.8, 0.7], alpha=[10.0, 0.1, 0.0]).plot()
    ((_, (x, y, _)),) = drawn(ax).items()
    assert_array_equal(x, [0, 1, 2])
    assert_array_equal(y, [0.7, 0.8, 0.9])
    assert labels(ax.xaxis) == ["0.0", "0.1", "10.0"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alpha", "AUC of held-out pairs")
    ax = handmade("neighbors", [0.9, 0.8], zero_weight=[0.5, 1.0]).plot()
    assert ax.get_ylabel() == "AUC of held-out pairs within a node"
    ax = handmade("error", [0.5, 0.6, 0.7], n_negative=[0, 2, "auto"]).plot()
    assert labels(ax.xaxis) == ["0", "2", "auto"]


def test_plot_chooses_its_scales():
    ax = handmade("error", [0.5, 0.6], rank=[3, 8]).plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    ax = handmade("error", [0.5, 0.001], bar=1e-4, rank=[1, 8]).plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ax = handmade("error", [0.5] * 30, rank=range(20, 50)).plot()
    assert labels(ax.xaxis) == [str(rank) for rank in range(20, 50, 3)]


@pytest.mark.parametrize(
    ("scoring", "means", "shown"),
    [
        ("error", [0.5, 1.2], True),
        ("error", [0.5, 0.6], False),
        ("auc", [0.4, 0.9], True),
        ("auc", [0.8, 0.9], False),
    ],
)
def test_plot_shows_the_baseline_where_it_is_near(scoring, means, shown):
    ax = handmade(scoring, means, rank=[2, 3]).plot()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert ("predicting zero" in names) == shown
    assert "chosen" in names
