"""Convert lists of edges to a similarity matrix with labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from symrelu.graphs.pairs import Pairs, Rules, is_missing, similarity_of

# The default name of the weights is optional. Any other name was chosen by the user and must exist.
USUAL_WEIGHT = "weight"


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
    self_loops: str = "keep",
    directed: str | None = None,
) -> Labelled:
    """Return the similarity matrix of a list of undirected edges.

    Each edge must be given once, or once in each direction with the same weight; see ``duplicates`` and
    ``directed`` for other lists.

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
        How to combine the weights of a pair that is given more than once: raise an error, take the largest, or
        add them. This includes the other direction, unless ``directed`` is given.
    self_loops : {"keep", "drop", "error"}, default="keep"
        What to do with edges from a node to itself: put their weights on the diagonal, leave them out, or raise
        an error.
    directed : {"error", "max", "sum", "mean"}, optional
        How to combine the two directions of a pair, after ``duplicates`` was applied to each of them. "error"
        raises an error if their weights differ; the others take the larger weight, add the weights or average
        the weights that are given. A list that has every edge in both directions with the same weight is
        symmetric, and is not changed. Defaults to ``duplicates`` for both directions alike.

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
    rules = Rules(duplicates, self_loops, directed)
    sources, targets, weights = _read_edges(edges, source, target, weight)
    ends = chain.from_iterable(zip(sources, targets, strict=True))
    position = _positions(ends) if nodes is None else _given_positions(nodes, ends)
    names = list(position)
    pairs = Pairs(integers(position[i] for i in sources), integers(position[j] for j in targets), names)
    matrix = similarity_of(pairs, [1.0] * len(sources) if weights is None else weights, rules).matrix
    return Labelled(matrix, as_labels(names))


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
    missing = [node for node in position if is_missing(node)]
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
