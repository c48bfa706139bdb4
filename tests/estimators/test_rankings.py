"""Answers as named tuples, and as tables."""

import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symrelu.estimators.rankings import Links, Ranking, frame_of, named

pd = pytest.importorskip("pandas", reason="pandas is not installed")

NAMES = np.array(["a", "b", "c", "d"], dtype=object)
NODES = np.array([2, 0])
ITEMS = np.array([[1, 0, -1], [3, -1, -1]])
SCORES = np.array([[0.5, 0.25, -np.inf], [1.0, -np.inf, -np.inf]])
PAIRS = np.array([[0, 2], [1, 3]])


def ranking(names=NAMES, by_name=True):
    return Ranking.of(NODES, ITEMS, SCORES, names, by_name)


RANKINGS = {
    "by name": (ranking(), [["b", "a", None], ["d", None, None]], ["c", "c", "a"], ["b", "a", "d"]),
    "by index": (ranking(by_name=False), ITEMS.tolist(), ["c", "c", "a"], ["b", "a", "d"]),
    "without names": (ranking(None, False), ITEMS.tolist(), [2, 2, 0], [1, 0, 3]),
}


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("case", RANKINGS)
def test_rankings(case, copied):
    found, expected, nodes, best = RANKINGS[case]
    found = pickle.loads(pickle.dumps(found)) if copied else found
    items, scores = found
    assert isinstance(found, tuple)
    assert items.tolist() == found.items.tolist() == found[0].tolist() == expected
    assert_array_equal(scores, SCORES)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["node", "item", "score"]
    assert frame["node"].tolist() == nodes
    assert frame["item"].tolist() == best
    assert frame["score"].tolist() == [0.5, 0.25, 1.0]


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("names", [NAMES, None])
def test_links(names, copied):
    links = Links.of(PAIRS, np.array([2.0, 1.0]), names)
    links = pickle.loads(pickle.dumps(links)) if copied else links
    pairs, scores = links
    assert isinstance(links, tuple)
    assert_array_equal(pairs, PAIRS)
    assert_array_equal(scores, [2, 1])
    assert (links.names is None) == (names is None)
    if names is not None:
        assert links.names.tolist() == [["a", "c"], ["b", "d"]]
    frame = links.to_frame()
    assert frame.columns.tolist() == ["first", "second", "score"]
    assert frame["second"].tolist() == ([2, 3] if names is None else ["c", "d"])
    assert frame["first"].dtype.kind == ("i" if names is None else "O")


def test_names_of_any_kind():
    tuples = np.fromiter([("a", 1), ("b", 2)], dtype=object, count=2)
    assert named(np.array([[1, -1]]), tuples).tolist() == [[("b", 2), None]]
    frame = frame_of({"node": np.array([1, 0]), "cluster": np.array([0, 1])}, tuples, instead="labels_")
    assert frame["node"].tolist() == [("b", 2), ("a", 1)]
    assert frame["cluster"].dtype.kind == "i"
    integers = np.array([10, 11], dtype=object)
    assert frame_of({"node": np.array([1])}, integers, instead="labels_")["node"].dtype.kind == "i"


def test_nothing_found():
    empty = Ranking.of(np.empty(0, int), np.empty((0, 3), int), np.empty((0, 3)), NAMES, True)
    assert empty.to_frame().shape == (0, 3)
    assert Links.of(np.empty((0, 2), int), np.empty(0), NAMES).to_frame().shape == (0, 3)


def test_an_edited_copy_has_no_table():
    with pytest.raises(ValueError, match=r"this is an edited copy\. Call to_frame on the result of top_k"):
        ranking()._replace(scores=SCORES).to_frame()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ranking().to_frame(), r"to_frame needs pandas: pip install pandas\. .*in items and scores"),
        (lambda: Links.of(PAIRS, SCORES[0, :2], None).to_frame(), r"to_frame needs .*in pairs and scores"),
        (lambda: frame_of({}, None, method="clusters", instead="labels_"), r"clusters needs .*in labels_"),
    ],
)
def test_without_pandas(monkeypatch, make, message):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=message):
        make()
