"""Maps with colours, links and names."""

import networkx as nx
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.exceptions import NotFittedError

from symrelu import SymReLUClustering
from symrelu.plots import maps, new_figure, planar_map, plot_clusters, plot_map
from symrelu.plots.figures import PALETTE

BLOCKS = np.kron(np.eye(3), np.ones((6, 6)))
U = np.kron(np.eye(3), np.ones((6, 1))) + 0.1 * np.random.default_rng(0).random((18, 3))
PLACES = np.random.default_rng(0).random((18, 2))


def points(ax):
    """Return the clouds of points."""
    return [part for part in ax.collections if isinstance(part, PathCollection)]


def test_points_are_those_of_the_map():
    ax = new_figure().add_subplot()
    assert plot_map(U, ax) is ax
    (cloud,) = points(ax)
    assert_allclose(cloud.get_offsets(), planar_map(U))
    assert ax.get_aspect() == 1
    assert ax.get_legend() is None


def test_each_group_has_its_colour_and_a_line_in_the_legend():
    labels = np.repeat(["_b", "a", "$x$"], 6)
    ax = plot_map(None, labels=labels, positions=PLACES)
    assert [len(cloud.get_offsets()) for cloud in points(ax)] == [6, 6, 6]
    assert_allclose(points(ax)[2].get_offsets(), PLACES[labels == "a"])
    assert len({tuple(cloud.get_facecolor()[0]) for cloud in points(ax)}) == 3
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [r"\$x\$", "\N{ZERO WIDTH SPACE}_b", "a"]
    ax.figure.canvas.draw()


def test_many_groups_differ_by_colour_or_marker_and_the_legend_stays_short():
    labels = np.concatenate([np.arange(50), np.arange(12), np.arange(12)])
    ax = plot_map(None, labels=labels, positions=np.random.default_rng(0).random((74, 2)))
    looks = {(tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in points(ax)}
    assert len(looks) == 50
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [str(k) for k in range(12)]
    assert legend.get_title().get_text() == "the largest 12\nof 50 groups"


# Linear RGB as it appears without one kind of cone: Machado, Oliveira and Fernandes (2009), "A physiologically-
# based model for simulation of color vision deficiency", IEEE TVCG 15(6), severity 1.0 of their table.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ_OF_RGB = np.array(  # sRGB with the white point D65 (IEC 61966-2-1)
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)


def seen(colours, vision):
    """Return colours in CIELAB, in which a distance of about 2 can just be seen."""
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.clip(linear @ np.transpose(VISIONS[vision]), 0, 1) @ XYZ_OF_RGB.T / XYZ_OF_RGB.sum(axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_differ_for_all_colour_visions(vision):
    assert pdist(seen(PALETTE, vision)).min() > 15


def test_red_and_green_are_alike_without_one_kind_of_cone():
    """The measure above can fail."""
    red_and_green = ["#d62728", "#2ca02c"]
    assert pdist(seen(red_and_green, "normal"))[0] > 100
    assert pdist(seen(red_and_green, "deuteranopia"))[0] < 10


def test_numbers_are_colours_and_nan_is_grey():
    values = np.arange(18.0)
    values[3] = np.nan
    ax = plot_map(None, values=values, positions=PLACES)
    grey, coloured = points(ax)
    assert_allclose(grey.get_offsets(), PLACES[[3]])
    assert_array_equal(coloured.get_array(), np.delete(values, 3))
    assert len(ax.figure.axes) == 2  # with a colour bar


def test_links_are_lines():
    M = np.zeros((18, 18))
    M[0, 1] = M[1, 0] = M[4, 9] = M[9, 4] = M[5, 5] = 1
    ax = plot_map(None, positions=PLACES, edges=M)
    (lines,) = (part for part in ax.collections if isinstance(part, LineCollection))
    assert_allclose(lines.get_segments(), PLACES[[[0, 1], [4, 9]]])


def test_names_of_the_graph_are_written():
    graph = nx.relabel_nodes(nx.from_numpy_array(BLOCKS), {k: f"node {k}" for k in range(18)})
    model = SymReLUClustering(3, method="linkage", n_components=3, random_state=0).fit(graph)
    shown = {text.get_text() for text in plot_map(model).texts}
    assert shown
    assert shown <= set(graph)
    assert not plot_map(model, names=False).texts
    assert len(plot_clusters(model, names=False).texts) == 3


def test_clusters_have_their_numbers_at_their_centres():
    model = SymReLUClustering(3, method="linkage", n_components=3, random_state=0).fit(BLOCKS)
    ax = plot_clusters(model)
    places = planar_map(model)
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2"]
    for k, text in enumerate(ax.texts):
        assert_allclose(text.get_position(), np.median(places[model.labels_ == k], axis=0))
    assert ax.get_title() == "3 clusters by linkage"
    assert ax.get_legend() is None
    assert plot_clusters(U, labels=np.repeat([0, 1], 9)).get_title() == "2 clusters"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0] * 18, "values": [0] * 18}, "labels or by values"),
        ({"labels": [0, 1]}, "one entry for each of the 18 items"),
        ({"values": np.ones((18, 2))}, "one entry for each"),
        ({"edges": np.eye(3)}, r"edges must have shape \(18, 18\)"),
        ({"names": ["a"]}, "one entry for each"),
        ({"names": True}, "requires a model with node_names_"),
        ({"positions": np.ones((18, 3))}, r"positions must have shape \(n, 2\), .* got shape \(18, 3\)\. Pass"),
        (
            {"positions": np.full((18, 2), np.nan)},
            r"one finite pair .* got shape \(18, 2\) with NaN or infinity",
        ),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        plot_map(U, **{"positions": PLACES, **options})


def test_too_many_links_are_refused(monkeypatch):
    monkeypatch.setattr(maps, "MOST_EDGES", 10)
    with pytest.raises(ValueError, match="at most 10 pairs, got 45"):
        plot_map(None, positions=PLACES, edges=BLOCKS)


def test_clusters_need_labels():
    with pytest.raises(ValueError, match="has no labels_: pass labels"):
        plot_clusters(U)
    with pytest.raises(NotFittedError):
        plot_clusters(SymReLUClustering())
