"""The result of a selection: how it is shown."""

import math
import sys
from dataclasses import replace

import pytest
from hidden_pairs import M
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.fit import selection
from symrelu.fit.selection import select_rank
from symrelu.plots import new_figure

QUICK = {"n_repeats": 2, "max_iter": 20, "random_state": 0}


@pytest.fixture(scope="module")
def found():
    return select_rank(M, [2, 3, 4], n_negative=[0, 1], **QUICK)


def test_repr(found):
    row = next(row for row in found.table if (row["rank"], row["n_negative"]) == (4, 1))
    assert found.chosen["rank"] == 4
    assert repr(found) == (
        "RankSelection(rank=4, n_negative=1, alpha=0.0, zero_weight=1.0; "
        f"error {row['mean']:.4g} +- {row['standard_error']:.2g}, 6 settings x 2 repeats)"
    )
    assert found.baseline == 1.0


def test_an_interrupted_selection_says_so(found):
    scores = [found.table[0]["scores"][0], math.nan]
    row = found.table[0] | {"scores": scores, "mean": scores[0], "standard_error": math.nan}
    setting = {name: row[name] for name in selection.GRID}
    partial = replace(found, table=[row], best=setting, chosen=setting, complete=False)
    assert (found.complete, found.n_fits) == (True, 12)
    assert (partial.complete, partial.n_fits) == (False, 1)
    assert repr(partial).endswith(
        f"; error {scores[0]:.4g}, interrupted after 1 fits of 1 settings x 2 repeats)"
    )
    assert partial.plot(new_figure().add_subplot()).get_title() == "interrupted after 1 fits"
    assert found.plot(new_figure().add_subplot()).get_title() == ""


def test_records(found):
    for record, row in zip(found.records(), found.table, strict=True):
        first, second = row["scores"]
        expected = {name: value for name, value in row.items() if name != "scores"}
        assert record == expected | {"score_0": first, "score_1": second}


def test_frame(found):
    frame = found.to_frame()
    assert list(frame.columns) == [
        *selection.GRID,
        *("mean", "standard_error", "converged", "parameters_per_pair", "score_0", "score_1"),
    ]
    assert_array_equal(frame["rank"], [2, 2, 3, 3, 4, 4])
    assert_allclose(frame[["score_0", "score_1"]], [row["scores"] for row in found.table])


def test_frame_needs_pandas(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install pandas"):
        found.to_frame()


def test_plot_needs_matplotlib(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'symrelu\[plot\]'"):
        found.plot()


def test_a_notebook_shows_the_plot(found):
    """Axes of its own are in a figure of pyplot, and those of others stay where they are."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    ax = found.plot()
    assert ax.figure.number in set(pyplot.get_fignums()) - set(before)
    assert found.plot(ax) is ax
    assert len(pyplot.get_fignums()) == len(before) + 1


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
