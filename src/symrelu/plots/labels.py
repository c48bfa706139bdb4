"""Texts in a map that do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_NAMES = 60
_MOST_TRIED = 500
_LONGEST = 24  # characters of a name
# Where a name may be, relative to its point: offsets in points, and alignments.
_SIDES = (
    ((4, 0), "left", "center"),
    ((-4, 0), "right", "center"),
    ((0, 4), "center", "bottom"),
    ((0, -4), "center", "top"),
)


def place_names(ax: Any, places: np.ndarray, names: np.ndarray) -> list[Any]:
    """Write as many names next to their points as fit without overlap, those of free points first.

    Parameters
    ----------
    ax : matplotlib Axes
        After all points have been drawn.
    places : ndarray of shape (n, 2)
    names : ndarray of str of shape (n,)

    Returns
    -------
    texts : list of matplotlib Annotation
        The names that are shown.
    """
    ax.figure.draw_without_rendering()  # the size of the axes is known only after the layout
    renderer = ax.figure.canvas.get_renderer()
    frame, pixels = ax.get_window_extent(renderer), ax.transData.transform(places)
    boxes = [[x - 2, y - 2, x + 2, y + 2] for x, y in pixels]  # of the points, which names must not cover
    shown: list[Any] = []
    for k in _loneliest_first(pixels)[:_MOST_TRIED]:
        if len(shown) == MOST_NAMES:
            break
        text = _place(ax, places[k], short(names[k]), np.delete(np.array(boxes), k, axis=0), frame, renderer)
        if text is not None:
            shown.append(text)
            boxes.append(text.get_window_extent(renderer).extents.tolist())
    return shown


def write_at_centers(ax: Any, places: np.ndarray, labels: np.ndarray) -> None:
    """Write each label at the median of its points.

    Parameters
    ----------
    ax : matplotlib Axes
    places : ndarray of shape (n, 2)
    labels : ndarray of shape (n,)
    """
    from matplotlib.patheffects import withStroke

    for label in np.unique(labels):
        place = np.median(places[labels == label], axis=0)
        text = ax.text(*place, short(label), ha="center", va="center", weight="bold", zorder=4)
        text.set_path_effects([withStroke(linewidth=3, foreground="white")])


def short(name: Any) -> str:
    """Return a name as one line of plain text, cut if it is long.

    Parameters
    ----------
    name : object

    Returns
    -------
    text : str
    """
    text = " ".join(str(name).split())
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return text.replace("$", r"\$")  # two of them would begin a formula


def _loneliest_first(pixels: np.ndarray) -> np.ndarray:
    """Return the points in descending order of the distance to the next one."""
    from scipy.spatial import cKDTree

    if len(pixels) < 2:
        return np.arange(len(pixels))
    distances = cKDTree(pixels).query(pixels, k=2)[0][:, 1]
    return np.argsort(-distances, kind="stable")


def _place(ax: Any, place: np.ndarray, name: str, boxes: np.ndarray, frame: Any, renderer: Any) -> Any | None:
    """Write a name on a side of its point where it covers no box, or nowhere."""
    for offset, horizontal, vertical in _SIDES:
        text = ax.annotate(
            name, place, offset, textcoords="offset points", ha=horizontal, va=vertical, fontsize=8, zorder=3
        )
        left, bottom, right, top = text.get_window_extent(renderer).extents
        inside = frame.x0 <= left and right <= frame.x1 and frame.y0 <= bottom and top <= frame.y1
        free = (boxes[:, 0] > right) | (boxes[:, 2] < left) | (boxes[:, 1] > top) | (boxes[:, 3] < bottom)
        if inside and free.all():
            return text
        text.remove()
    return None
