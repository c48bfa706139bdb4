"""Convert lists of edges to a similarity matrix with labels."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.validation import check_choice

# The default name of the weights is optional. Any other name was chosen by the user and must exist.
USUAL_WEIGHT = "weight"

# With "error", all weights of a pair are equal by the time they are combined.
_COMBINE = {"error": np.maximum, "max": np.maximum, "sum": np.add}


class Labelled(NamedTuple):
    """A similarity matrix with the labels of its rows.

    Attributes
    ----------
    matrix : csr_array or ndarray of shape (n, n)
        Sparse, unless the input was dense.
    labels : ndarray of shape (n,) of object, or None
        The names in the order of the rows; None if there are none.
    """

    matrix: Any
    labels: np.ndarray | None


def from_edges(
    edges: Any,
    source: Hashable = "source",
    target: Hashable = "target",
    weight: Hashable | None = "weight",
    *,
    nodes: Iterable[Hashable] | None = None,
    duplicates: str = "error",
) -> Labelled:
    """Return the similarity matrix of a list of undirected edges.

    Each edge must be given once, or once in each direction with the same weight; see ``duplicates`` for other
    lists. Self loops go to the diagonal.

    Parameters
    ----------
    edges : DataFrame, list of tuples, array of shape (n_edges, 2 or 3), or tuple of arrays
        A pandas table with one row per edge; a list of (i, j) or (i, j, weight), or an array of such rows; or a
        tuple (i, j) or (i, j, weight) of whole columns. Nodes can be any hashable values; in an array of floats
        they must be whole numbers, which are converted to integers.
    source, target : hashable, default="source" and "target"
        Columns of a table that hold the two ends.
    weight : hashable or None, default="weight"
        Column of a table that holds the weights. The column "weight" is optional; any other column must exist.
        Edges without a weight have weight 1. With None, weights are ignored and all edges have weight 1.
    nodes : iterable, optional
        All nodes in the order of the rows, including nodes without an edge. Defaults to the nodes of the edges
        in order of appearance. If the nodes are row numbers, pass ``range(n)``.
    duplicates : {"error", "max", "sum"}, default="error"
        How to combine the weights of a pair that is given more than once, in either direction: raise an error,
        take the largest, or add them.

    Returns
    -------
    labelled : Labelled
        A csr_array and the nodes. The array is float32 if the weights are, and float64 otherwise.

    Examples
    --------
    >>> from symrelu.graphs import from_edges
    >>> matrix, labels = from_edges([("ann", "bob", 2), ("bob", "cid", 0.5)])
    >>> matrix.toarray()
    array([[0. , 2. , 0. ],
           [2. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    >>> labels.tolist()
    ['ann', 'bob', 'cid']

    From a table, with a node that has no edge:

    >>> import pandas as pd
    >>> mails = pd.DataFrame({"from": ["ann", "bob", "ann"], "to": ["bob", "ann", "bob"]})
    >>> from_edges(mails, "from", "to", nodes=["ann", "bob", "cid"], duplicates="sum").matrix.toarray()
    array([[0., 3., 0.],
           [3., 0., 0.],
           [0., 0., 0.]])
    """
    check_choice("duplicates", duplicates, tuple(_COMBINE))
    sources, targets, weights = _read_edges(edges, source, target, weight)
    ends = chain.from_iterable(zip(sources, targets, strict=True))
    position = _positions(ends) if nodes is None else _given_positions(nodes, ends)
    names = list(position)
    pairs = Pairs(integers(position[i] for i in sources), integers(position[j] for j in targets), names)
    matrix = similarity_of(pairs, [1.0] * len(sources) if weights is None else weights, duplicates)
    return Labelled(matrix, as_labels(names))


class Pairs(NamedTuple):
    """The ends of each edge as row numbers, and the names of the rows."""

    rows: np.ndarray
    cols: np.ndarray
    names: Sequence[Any]

    def edge(self, k: int) -> str:
        return f"({self.names[self.rows[k]]!r}, {self.names[self.cols[k]]!r})"


def similarity_of(pairs: Pairs, weights: Any, duplicates: str) -> Any:
    """Return the symmetric matrix of undirected edges, with repeated pairs combined as ``duplicates`` says."""
    values = _check_weights(pairs, weights)
    if duplicates == "error":
        _check_given_once(pairs, values)
    low, high = np.minimum(pairs.rows, pairs.cols), np.maximum(pairs.rows, pairs.cols)
    # The two directions of an edge are one pair from here on.
    order, starts = _groups(low, high)
    values = _COMBINE[duplicates].reduceat(values[order], starts)
    low, high = low[order[starts]], high[order[starts]]
    off = low != high  # self loops are stored once
    coordinates = (np.concatenate([low, high[off]]), np.concatenate([high, low[off]]))
    n = len(pairs.names)
    matrix = sparse.csr_array((np.concatenate([values, values[off]]), coordinates), shape=(n, n))
    matrix.eliminate_zeros()  # an edge of weight zero is no edge
    return matrix


def _groups(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an order that puts equal pairs together, and the position in it where each group starts."""
    order = np.lexsort((second, first))
    changes = (np.diff(first[order], prepend=-1) != 0) | (np.diff(second[order], prepend=-1) != 0)
    return order, np.flatnonzero(changes)


def _check_given_once(pairs: Pairs, values: np.ndarray) -> None:
    """Raise unless each pair is given once, or once in each direction with the same weight."""
    order, starts = _groups(pairs.rows, pairs.cols)
    times = np.diff(starts, append=len(order))
    if (times > 1).any():
        worst = int(np.argmax(times > 1))
        raise ValueError(
            f"Edge {pairs.edge(order[starts[worst]])} is given {times[worst]} times. "
            'Pass duplicates="sum" to add the weights, or "max" to keep the largest.'
        )
    # Each direction occurs at most once by now, so a group holds one value or those of both directions.
    order, starts = _groups(np.minimum(pairs.rows, pairs.cols), np.maximum(pairs.rows, pairs.cols))
    values = values[order]
    differing = np.flatnonzero(np.minimum.reduceat(values, starts) != np.maximum.reduceat(values, starts))
    if differing.size:
        k = starts[differing[0]]
        raise ValueError(
            f"Edge {pairs.edge(order[k])} has the weight {values[k]:g}, "
            f"but {values[k + 1]:g} in the other direction. "
            'Pass duplicates="max" to keep the larger, or "sum" to add them.'
        )


def _check_weights(pairs: Pairs, weights: Any) -> np.ndarray:
    """Return the weights as floats, or raise an error that names an edge with an invalid weight."""
    array = _as_floats(pairs, weights)
    bad = np.flatnonzero(~((array >= 0) & (array < np.inf)))  # catches NaN, which compares false
    if bad.size:
        k = int(bad[0])
        raise ValueError(
            f"Weights must be finite and nonnegative: edge {pairs.edge(k)} has {array[k]:g}. "
            "Drop the edge, or give it a valid weight."
        )
    return array


def _as_floats(pairs: Pairs, weights: Any) -> np.ndarray:
    try:
        array = np.asarray(weights)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        # Convert one by one from the original values: NumPy turns numbers among strings into strings.
        values = weights.tolist() if hasattr(weights, "tolist") else weights
        array = np.array([_as_number(pairs, k, value) for k, value in enumerate(values)], dtype=np.float64)
    return array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)


def _as_number(pairs: Pairs, k: int, value: Any) -> float:
    if isinstance(value, (numbers.Real, Decimal)):
        return float(value)
    if _is_missing(value):
        return float("nan")
    raise TypeError(
        f"Weights must be numbers: edge {pairs.edge(k)} has {value!r}. Convert them to float first."
    )


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA, whose truth value raises an error."""
    if value is None:
        return True
    try:
        return bool(value != value)  # true for NaN and NaT only
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _read_edges(edges: Any, source: Any, target: Any, weight: Any) -> tuple[list[Any], list[Any], Any | None]:
    """Return the first ends, the second ends, and the weights or None."""
    if comes_from(edges, "pandas", "DataFrame"):
        columns = _table_columns(edges, source, target, weight)
    elif isinstance(edges, tuple):
        columns = _given_columns(edges)
    elif hasattr(edges, "ndim"):
        columns = _array_columns(np.asarray(edges))
    else:
        columns = _row_columns(edges)
    sources, targets = (list(ends.tolist() if hasattr(ends, "tolist") else ends) for ends in columns[:2])
    weights = columns[2] if len(columns) == 3 and weight is not None else None
    return sources, targets, weights


def is_edge_table(data: Any) -> bool:
    """Return whether data is a DataFrame with the columns "source" and "target", one row per edge."""
    # A square table may have items with these names; they are then in its index too.
    ends = {"source", "target"}
    return comes_from(data, "pandas", "DataFrame") and ends <= set(data.columns) and not ends <= set(data.index)


def _table_columns(table: Any, source: Any, target: Any, weight: Any) -> list[Any]:
    weighted = weight is not None and (weight != USUAL_WEIGHT or weight in table.columns)
    wanted = {"source": source, "target": target} | ({"weight": weight} if weighted else {})
    for role, name in wanted.items():
        if name not in table.columns:
            raise ValueError(
                f"edges must have a column {name!r}, got the columns {list(table.columns)}. "
                f"Pass the right name: {role}=..."
            )
    return [table[name].to_numpy() for name in wanted.values()]


def _given_columns(columns: tuple[Any, ...]) -> list[Any]:
    # A tuple of tuples is most likely a sequence of edges, so tuples are not accepted as columns.
    arrays = all(hasattr(column, "__len__") and not isinstance(column, (str, tuple)) for column in columns)
    if len(columns) not in (2, 3) or not arrays:
        raise TypeError(
            "A tuple of edges must hold two or three arrays: all sources, all targets and, optionally, all "
            "weights. Pass a list of (i, j) or (i, j, weight) to give the edges one by one."
        )
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ValueError(f"Sources, targets and weights must have the same length, got {lengths}.")
    return list(columns)


def _array_columns(array: np.ndarray) -> list[Any]:
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise ValueError(
            f"An array of edges must have shape (n_edges, 2) or (n_edges, 3), got {array.shape}. "
            "Pass tuple(edges) if it has one row of sources and one of targets."
        )
    ends = array[:, :2]
    if array.dtype.kind == "f":
        if not (np.isfinite(ends) & (ends == np.floor(ends))).all():
            raise ValueError(
                "The first two columns of a float array of edges must hold whole numbers. Pass a list or a "
                "tuple of columns for other nodes."
            )
        ends = ends.astype(np.int64)
    return [ends[:, 0], ends[:, 1], *array[:, 2:].T]


def _row_columns(edges: Any) -> list[Any]:
    if isinstance(edges, Mapping):
        raise TypeError(
            f"edges must be a table, an array or a list, got a mapping ({type(edges).__name__}). "
            "Pass a list of (i, j, weight)."
        )
    edges = list(edges)
    length = len(edges[0]) if edges and isinstance(edges[0], Sequence) else 2
    for k, edge in enumerate(edges):
        if not isinstance(edge, (tuple, list)) or len(edge) != length or length not in (2, 3):
            raise ValueError(f"Edges must all be (i, j), or all (i, j, weight): edge number {k} is {edge!r}.")
    return [list(column) for column in zip(*edges, strict=True)] if edges else [[], []]


def _positions(nodes: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return the row of each node, in order of appearance."""
    position: dict[Hashable, int] = {}
    try:
        for node in nodes:
            position.setdefault(node, len(position))
    except TypeError as error:
        raise TypeError(f"Nodes must be hashable, such as numbers or strings: {error}.") from error
    missing = [node for node in position if _is_missing(node)]
    if missing:
        raise ValueError(f"Nodes must not be missing, got {missing[0]!r}. Drop the edges with a missing end.")
    return position


def _given_positions(nodes: Iterable[Hashable], ends: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return the row of each node in the given order, which must contain all ends of the edges."""
    nodes = list(nodes)
    position = _positions(nodes)
    if len(position) < len(nodes):
        twice = next(node for k, node in enumerate(nodes) if position[node] != k)
        raise ValueError(f"nodes must name each node once, but {twice!r} occurs twice. Remove one.")
    for node in _positions(ends):
        if node not in position:
            raise ValueError(
                f"nodes must name every node of the edges, but {node!r} is missing. Add it, or drop its edges."
            )
    return position


def integers(values: Iterable[int]) -> np.ndarray:
    """Return integers as an array, also if there are none."""
    return np.fromiter(values, dtype=np.int64)


def as_labels(names: Sequence[Any]) -> np.ndarray:
    """Return names as a one-dimensional array of objects, also if they are tuples."""
    return np.fromiter(names, dtype=object, count=len(names))  # np.array would make a matrix of tuples


def comes_from(data: Any, library: str, name: str) -> bool:
    """Return whether data is an instance of a library's class, without importing the library."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == library for base in type(data).__mro__
    )
