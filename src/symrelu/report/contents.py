"""Everything that a page shows, as plain data, and how it is made to fit into a page of limited size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symrelu.estimators import NeighborEmbedding
from symrelu.fitted.history import History
from symrelu.report.columns import Column
from symrelu.report.encoding import base64_text, json_text, levels, quantised
from symrelu.report.matrices import DECADES
from symrelu.report.neighbors import MOST_NEIGHBORS, Links
from symrelu.report.summary import Summary

SMALLEST_LIMIT = 1_000_000  # bytes of a page
_BYTES_OF_A_NODE = 50  # the limit of a larger graph: 1 MB at 20,000 nodes
_CURVE_POINTS = 200
_FEWER = (MOST_NEIGHBORS, 5, 3, 0)  # neighbours that are tried, after all of them, until a page is small enough


@dataclass(frozen=True, eq=False)
class Contents:
    """What a page shows.

    Attributes
    ----------
    title, version : str
        The title, and the release of symrelu that wrote the page.
    summary : Summary
    names : list of str
        Names of the nodes.
    has_names : bool
        Whether they are more than row numbers.
    positions : ndarray of shape (n, 2)
        The map.
    links : Links
        All links of the graph.
    columns : list of Column
    colour : str or None
        The column that colours the map at first.
    curve : dict or None
        "x", "y", "x_label", "y_label" and "logarithmic".
    spectrum : ndarray
        Eigenvalues of X with their signs.
    matrices : tuple of two ndarrays of shape (bins, bins)
        Means of M and of its model.
    matrix_titles : tuple of two str
    ordered_by_cluster : bool
        Whether the matrices are ordered by cluster first, or only by place on the map.
    most_neighbors : int or None
        Of a node, if not all are on the page; see :meth:`Links.strongest`.
    notes : tuple of str
        What was left out of the page, in sentences.
    """

    title: str
    version: str
    summary: Summary
    names: list[str]
    has_names: bool
    positions: np.ndarray
    links: Links
    columns: list[Column]
    colour: str | None
    curve: dict[str, Any] | None
    spectrum: np.ndarray
    matrices: tuple[np.ndarray, np.ndarray]
    matrix_titles: tuple[str, str]
    ordered_by_cluster: bool = False
    most_neighbors: int | None = None
    notes: tuple[str, ...] = ()

    def limited(self, most: int) -> Contents:
        """Return the contents with the strongest links of each node only, and a note if that leaves out any.

        Parameters
        ----------
        most : int
            Neighbours of a node; 0 leaves out all links.

        Returns
        -------
        contents : Contents
        """
        if not len(self.links.i) or (most and self.links.degrees().max() <= most):
            return self
        note = (
            f"To keep this page small, it has those links that are among the {most} strongest of one of their "
            "nodes. The column degree counts all links."
            if most
            else "To keep this page small, the links are left out: the map shows no neighbours. The column "
            "degree still counts all links."
        )
        return replace(self, most_neighbors=most, notes=(*self.notes, note))

    def data(self) -> dict[str, Any]:
        """Return what the script of the page reads, as values for JSON.

        Returns
        -------
        data : dict
            Arrays are texts, see :mod:`symrelu.report.encoding`.
        """
        shown = self.links if self.most_neighbors is None else self.links.strongest(self.most_neighbors)
        means = np.nan_to_num(self.matrices)  # sums of very large entries overflow
        first, second = levels(means, DECADES)
        return {
            "names": self.names,
            "hasNames": self.has_names,
            "positions": base64_text(quantised(self.positions)),
            "links": shown.encoded(),
            "columns": [column.encoded() for column in self.columns],
            "colour": self.colour,
            "curve": self.curve,
            "spectrum": [float(f"{value:.6g}") for value in self.spectrum if np.isfinite(value)],
            "matrices": {
                "bins": len(first),
                "titles": self.matrix_titles,
                "byCluster": self.ordered_by_cluster,
                "cells": [base64_text(first), base64_text(second)],
                "largest": float(means.max()),
                "decades": DECADES,
            },
        }

    def json(self) -> str:
        """Return :meth:`data` as JSON for a script element.

        Returns
        -------
        text : str
        """
        return json_text(self.data())


def size_limit(n: int) -> int:
    """Return how many bytes the page of n nodes should have at most.

    Parameters
    ----------
    n : int

    Returns
    -------
    limit : int
    """
    return max(SMALLEST_LIMIT, _BYTES_OF_A_NODE * n)


def fit_to_size(contents: Contents, size_of: Callable[[Contents], int]) -> Contents:
    """Return contents whose page is below the limit, with fewer neighbours if necessary.

    Names and columns are never cut: if the page is too large even without links, a note says so.

    Parameters
    ----------
    contents : Contents
    size_of : function of contents that returns an int
        Bytes of the whole page, with its notes.

    Returns
    -------
    contents : Contents
    """
    limit = size_limit(len(contents.names))
    for limited in (contents, *map(contents.limited, _FEWER)):
        size = size_of(limited)
        if size <= limit:
            return limited
    note = (
        f"This page has {size / 1e6:.1f} MB, more than the usual {limit / 1e6:.1f} MB for so many nodes, "
        "because of its names and columns: shorten the names, or leave out columns."
    )
    return replace(limited, notes=(*limited.notes, note))


def course_of(model: Any, history: History | None) -> dict[str, Any] | None:
    """Return the curve of a fit: its error, or the wrong pairs of a search for vectors.

    Parameters
    ----------
    model : Solution or fitted estimator
    history : History or None

    Returns
    -------
    curve : dict or None
        None if nothing is known, as of vectors that were loaded from a file.
    """
    if isinstance(model, NeighborEmbedding):
        attempts = getattr(model, "attempts_", ())
        points = sorted((attempt.rank, attempt.wrong_pairs) for attempt in attempts)
        x, y = [point[0] for point in points], [point[1] for point in points]
        labels, logarithmic = ("columns", "wrong pairs"), False
    else:
        x, y = _error_curve(history) if history is not None else ([], [])
        labels, logarithmic = ("passes over the pairs", "relative error"), True
    if not x:
        return None
    return {"x": x, "y": y, "x_label": labels[0], "y_label": labels[1], "logarithmic": logarithmic}


def _error_curve(history: History) -> tuple[list[float], list[float]]:
    """Return at most so many points as can be seen, with the first and the last."""
    usable = np.flatnonzero(np.isfinite(history.relative_error) & (history.relative_error > 0))
    if not len(usable):
        return [], []
    chosen = usable[np.unique(np.linspace(0, len(usable) - 1, _CURVE_POINTS).astype(int))]
    errors = [float(f"{error:.5g}") for error in history.relative_error[chosen]]
    return history.evaluations[chosen].tolist(), errors
