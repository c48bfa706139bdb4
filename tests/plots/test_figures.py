"""Figures, axes and files that all plots share."""

import io
import sys

import numpy as np
import pytest
from matplotlib import image as images
from matplotlib import pyplot

from symrelu.plots.figures import is_our_figure, new_figure, plain_ticks, save_figure, shown_axes


def drawing():
    figure = new_figure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1], [1, 3], label="line")
    return figure


@pytest.mark.parametrize("ending", ["png", "svg", "picture"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, ending):
    contents = []
    for name in ("first", "second"):
        save_figure(drawing(), tmp_path / f"{name}.{ending}")
        contents.append((tmp_path / f"{name}.{ending}").read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(b"<?xml" if ending == "svg" else b"\x89PNG")
    assert b"date" not in contents[0].lower()


def test_dots_per_inch_are_those_of_the_file(tmp_path):
    for dpi in (50, 100):
        save_figure(drawing(), tmp_path / "figure.png", dpi=dpi)
        assert images.imread(tmp_path / "figure.png").shape[:2] == (dpi, 2 * dpi)


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path, figure = tmp_path / "figure.png", drawing()
    path.write_bytes(b"old")

    def failing(file, **settings):
        file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(figure, "savefig", failing)
    with pytest.raises(OSError, match="the disk is full"):
        save_figure(figure, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_figure_is_unknown_to_pyplot():
    figure = new_figure(figsize=(3, 2))
    assert pyplot.get_fignums() == []
    assert tuple(figure.get_size_inches()) == (3, 2)
    figure.savefig(io.BytesIO())


def test_shown_axes_are_known_to_pyplot():
    ax = shown_axes(figsize=(3, 2))
    assert pyplot.get_fignums() == [ax.figure.number]
    assert tuple(ax.figure.get_size_inches()) == (3, 2)


@pytest.mark.parametrize("make", [new_figure, shown_axes])
def test_without_matplotlib_the_extra_is_named(monkeypatch, make):
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'symrelu\[plot\]'"):
        make()


@pytest.mark.parametrize(("low", "high", "between"), [(0.2, 3.0, True), (0.001, 2.0, False)])
def test_ticks_are_plain_numbers(low, high, between):
    figure = new_figure()
    ax = figure.add_subplot()
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    plain_ticks(ax.yaxis)
    figure.canvas.draw()
    for kind in ("major", "minor"):
        places = getattr(ax.yaxis, f"get_{kind}ticklocs")()
        labels = [label.get_text() for label in ax.yaxis.get_ticklabels(which=kind)]
        shown = kind == "major" or between
        assert labels == [f"{place:g}" if shown else "" for place in places]
    decades = 10.0 ** np.arange(-4, 3)
    assert not set(np.round(ax.yaxis.get_minorticklocs(), 9)) & set(decades)


@pytest.mark.parametrize("name", ["f.png", "f.svg"])
def test_our_figures_are_recognised(name, tmp_path):
    save_figure(new_figure(), tmp_path / name)
    assert is_our_figure(tmp_path / name)
    figure = new_figure()
    figure.savefig(tmp_path / name)
    assert not is_our_figure(tmp_path / name)
    (tmp_path / name).write_text("a text about a symrelu figure")
    assert not is_our_figure(tmp_path / name)
