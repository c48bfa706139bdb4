"""Nodes that are named on the command line, pairs in a file, and tables of answers."""

from __future__ import annotations

import struct
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from symrelu.cli.layout import fitting_table
from symrelu.cli.screen import note
from symrelu.cli.tables import node_names
from symrelu.estimators.naming import NameIndex
from symrelu.files.block_manifest import MANIFEST
from symrelu.files.checks import check_readable
from symrelu.graphs import Labelled, reading

_SHOWN = 10  # rows of an answer on the screen


class NodeFinder:
    """Find nodes by the names in a graph file, or by row numbers if it has none.

    Parameters
    ----------
    labels : ndarray of shape (n,), or None
    n : int
    """

    def __init__(self, labels: Any | None, n: int) -> None:
        self.names = node_names(labels, n)
        # As text: that is what the command line has, also of names that are numbers.
        self._index = NameIndex(np.fromiter(map(str, self.names), dtype=object, count=n))

    @classmethod
    def of(cls, estimator: Any, graph: Labelled | None) -> NodeFinder:
        """Return the finder for a graph, or for the nodes of a fitted estimator if there is no graph."""
        if graph is not None:
            return cls(graph.labels, graph.matrix.shape[0])
        return cls(getattr(estimator, "node_names_", None), estimator.n_features_in_)

    def indices(self, names: Iterable[str]) -> np.ndarray:
        """Return the indices of nodes; raise an error that suggests another name if there is none."""
        return np.array([self._index.index_of(str(name)) for name in names], dtype=np.int64)

    def named(self, indices: Iterable[int]) -> list[Any]:
        """Return the names of nodes."""
        return [self.names[k] for k in indices]


def read_pairs(path: Path) -> tuple[list[str], list[str]]:
    """Return the names in the first two columns of a list, or in its columns for the ends, and print notes."""
    sources, targets, notes = reading.read_pairs(path)
    for text in notes:
        note(text)
    return sources, targets


@contextmanager
def asking_by_index() -> Iterator[None]:
    """Silence the warning that numbers mean indices, for nodes whose names are integers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The names of the nodes are integers")
        yield


def has_entry(path: Path, name: str) -> bool:
    """Return whether a file is an npz archive with this entry; the reader of the file reports any damage."""
    if (path / MANIFEST).is_file():  # a block folder holds no model
        return False
    check_readable(path)  # opening a pipe would wait for its other end
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{name}.npy" in archive.namelist()
    except (OSError, ValueError, OverflowError, struct.error, zipfile.BadZipFile, NotImplementedError):
        return False


def preview(columns: Mapping[str, Sequence[Any]], by: str | None = None) -> list[Any]:
    """Return what to show of a table on the screen: a few rows, and how many more there are.

    These are the first rows, or with ``by`` the first ones of each value in that column.
    """
    rows = list(zip(*columns.values(), strict=True))
    places = range(len(rows))[:_SHOWN] if by is None else _first_of_each(columns[by])
    shown = [[_cell(value) for value in rows[place]] for place in places]
    table = fitting_table(list(columns), shown, justify="left")
    more = len(rows) - len(shown)
    return [table, f"... and {more} more."] if more else [table]


def _first_of_each(values: Sequence[Any]) -> list[int]:
    """Return the places of rows to show: at least one of each value, and as many of each as there is room."""
    seen: Counter[Any] = Counter()
    turns = []
    for place, value in enumerate(values):
        turns.append((seen[value], place))
        seen[value] += 1
    return sorted(place for _, place in sorted(turns)[: max(_SHOWN, len(seen))])


def records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return a table as a list of rows, for ``--json``."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
