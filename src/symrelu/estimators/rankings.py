"""Answers of the estimators as named tuples that know the nodes they are about, and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.scores import NO_ITEM


class _ItemsAndScores(NamedTuple):
    items: np.ndarray
    scores: np.ndarray


class _PairsAndScores(NamedTuple):
    pairs: np.ndarray
    scores: np.ndarray


class Ranking(_ItemsAndScores):
    """The best items for each of several nodes: ``items, scores = ranking``.

    Attributes
    ----------
    items : ndarray of shape (n_nodes, k)
        Names (dtype object, None if there are fewer than k) if the nodes were given by name; indices (-1 if
        there are fewer than k) if they were given by index.
    scores : ndarray of shape (n_nodes, k)
        Minus infinity if there are fewer than k items.
    """

    # Defaults for copies made by _replace and _make, which have no frame.
    _nodes: np.ndarray | None = None
    _found: np.ndarray | None = None
    _names: np.ndarray | None = None

    @classmethod
    def of(
        cls, nodes: np.ndarray, items: np.ndarray, scores: np.ndarray, names: np.ndarray | None, by_name: bool
    ) -> Ranking:
        """Return the ranking of items for nodes, both given by indices."""
        ranking = cls(named(items, names) if by_name and names is not None else items, scores)
        ranking._nodes, ranking._found, ranking._names = nodes, items, names
        return ranking

    def to_frame(self) -> Any:
        """Return a table with one row for each node and item, the best items first.

        Nodes and items are names if the input of ``fit`` had names, and indices otherwise.

        Returns
        -------
        frame : pandas.DataFrame
            With the columns ``node``, ``item`` and ``score``.
        """
        nodes, found = _kept(self._nodes), _kept(self._found)
        rows, columns = np.nonzero(found != NO_ITEM)
        values = {"node": nodes[rows], "item": found[rows, columns], "score": self.scores[rows, columns]}
        return frame_of(values, self._names, ("node", "item"), instead="items and scores")


class Links(_PairsAndScores):
    """The best pairs of nodes: ``pairs, scores = links``.

    Attributes
    ----------
    pairs : ndarray of int of shape (k, 2)
        Indices of the nodes.
    scores : ndarray of shape (k,)
    """

    _names: np.ndarray | None = None

    @classmethod
    def of(cls, pairs: np.ndarray, scores: np.ndarray, names: np.ndarray | None) -> Links:
        """Return pairs of indices with their scores and the names of all nodes, if they have any."""
        links = cls(pairs, scores)
        links._names = names
        return links

    @property
    def names(self) -> np.ndarray | None:
        """The names of the pairs, an array of object of shape (k, 2); None if the nodes have no names."""
        return None if self._names is None else named(self.pairs, self._names)

    def to_frame(self) -> Any:
        """Return a table with one row for each pair, the best first.

        Nodes are names if the input of ``fit`` had names, and indices otherwise.

        Returns
        -------
        frame : pandas.DataFrame
            With the columns ``first``, ``second`` and ``score``.
        """
        values = {"first": self.pairs[:, 0], "second": self.pairs[:, 1], "score": self.scores}
        return frame_of(values, self._names, ("first", "second"), instead="pairs and scores")


def named(nodes: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the names of nodes given by indices, None for ``NO_ITEM``.

    Parameters
    ----------
    nodes : ndarray of int of any shape
    names : ndarray of object of shape (n,)

    Returns
    -------
    names : ndarray of object of the shape of ``nodes``
    """
    found = names[nodes]
    found[nodes == NO_ITEM] = None
    return found


def frame_of(
    columns: Mapping[str, np.ndarray],
    names: np.ndarray | None,
    nodes: tuple[str, ...] = ("node",),
    *,
    method: str = "to_frame",
    instead: str,
) -> Any:
    """Return columns as a pandas DataFrame, with names in place of the indices of nodes.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n_rows,)
    names : ndarray of object of shape (n,), or None
        Names of the nodes, if they have any.
    nodes : tuple of str, default=("node",)
        The columns that hold indices of nodes.
    method : str, default="to_frame"
        The method that was called, for the error if pandas is not installed.
    instead : str
        What holds the same data, for that error.

    Returns
    -------
    frame : pandas.DataFrame
    """
    try:
        pandas = import_module("pandas")  # optional, and slow to import
    except ImportError as error:
        raise ImportError(
            f"{method} needs pandas: pip install pandas. The same data is in {instead}."
        ) from error
    if names is not None:
        columns = {name: named(c, names) if name in nodes else c for name, c in columns.items()}
    return pandas.DataFrame(dict(columns)).infer_objects()


def _kept(indices: np.ndarray | None) -> np.ndarray:
    if indices is None:
        raise ValueError(
            "to_frame requires the nodes that were asked for, but this is an edited copy. "
            "Call to_frame on the result of top_k."
        )
    return indices
