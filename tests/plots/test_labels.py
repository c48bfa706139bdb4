"""Names in a map do not overlap."""

import itertools

import numpy as np
import pytest

from symrelu.plots import labels, new_figure
from symrelu.plots.labels import place_names, short, write_at_centers


def drawn(places):
    figure = new_figure(figsize=(4, 3))
    ax = figure.add_subplot()
    ax.scatter(*places.T)
    return ax


@pytest.mark.parametrize("n", [1, 2, 40, 120])
def test_names_do_not_overlap(n):
    places = np.random.default_rng(n).random((n, 2))
    ax = drawn(places)
    texts = place_names(ax, places, np.array([f"name {k}" for k in range(n)], dtype=object))
    assert 1 <= len(texts) <= labels.MOST_NAMES
    renderer = ax.figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in texts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    frame = ax.get_window_extent(renderer)
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)
    for text in texts:
        k = int(text.get_text().split()[1])
        assert tuple(text.xy) == tuple(places[k])


def test_names_that_fit_nowhere_are_left_out():
    places = np.zeros((50, 2))
    assert len(place_names(drawn(places), places, np.array(["name"] * 50, dtype=object))) <= 4


@pytest.mark.parametrize(
    ("name", "text"),
    [("a", "a"), (3, "3"), ("a\n b", "a b"), ("$x$", r"\$x\$"), ("x" * 30, "x" * 23 + "…")],
)
def test_names_are_one_line_of_plain_text(name, text):
    assert short(name) == text


def test_labels_at_centres():
    places = np.array([[0.0, 0], [2, 2], [5, 5]])
    ax = drawn(places)
    write_at_centers(ax, places, np.array([7, 7, 1]))
    assert [(text.get_text(), text.get_position()) for text in ax.texts] == [("1", (5, 5)), ("7", (1, 1))]
