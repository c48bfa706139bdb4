"""Convert pandas tables: square ones, masks and edges; return an embedding as a table.

pandas is not imported to read a table: whoever passes one has imported it already.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs.edges import USUAL_WEIGHT, Labelled, comes_from, from_edges


def from_pandas(frame: Any) -> Labelled:
    """Return the matrix of a square DataFrame.

    Index and columns must hold the same labels. If the columns have them in a different order, they are
    reordered to match the index. A default index (0, 1, 2, ...) does not count as labels: if only the index or
    only the columns have labels, rows and columns are assumed to be in the same order; if neither has, there
    are no labels.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, n)
        A table of numbers. If all columns are sparse with the fill value 0, the matrix is sparse.

    Returns
    -------
    labelled : Labelled
        The matrix, float32 if all columns are, and the labels of the rows.

    See Also
    --------
    from_edges : For a table with one row per edge.

    Examples
    --------
    >>> import pandas as pd
    >>> from symrelu.graphs import from_pandas
    >>> matrix, labels = from_pandas(pd.DataFrame([[1, 5], [2, 1]], index=["a", "b"], columns=["b", "a"]))
    >>> matrix
    array([[5, 1],
           [1, 2]])
    >>> labels
    array(['a', 'b'], dtype=object)
    """
    if not is_frame(frame):
        raise TypeError(f"frame must be a pandas DataFrame, got {type(frame).__name__}.")
    if frame.shape[0] != frame.shape[1]:
        raise ValueError(
            f"frame must be square, with a row and a column for each item, got shape {frame.shape}. "
            "For samples x features, build a graph first: symrelu.graphs.self_tuning_graph(frame); for a "
            "table with one row per edge, call symrelu.graphs.from_edges(frame)."
        )
    order, labels = _row_labels(frame)
    matrix = _frame_values(frame)
    return Labelled(matrix if order is None else matrix[:, order], labels)


def embedding_frame(embedding: Any, labels: Iterable[Hashable] | None, prefix: str = "symrelu") -> Any:
    """Return an embedding as a DataFrame with the labels as its index.

    Parameters
    ----------
    embedding : array-like of shape (n, n_components)
        For example ``Solution.U``.
    labels : iterable of length n, or None
        For example ``Labelled.labels``. With None, the index is 0, 1, 2, ...
    prefix : str, default="symrelu"
        The columns are named prefix0, prefix1, ..., as by scikit-learn's ``set_output``.

    Returns
    -------
    frame : pandas.DataFrame of shape (n, n_components)

    Examples
    --------
    >>> from symrelu.graphs import embedding_frame
    >>> embedding_frame([[0.5, 1.0], [2.0, 0.0]], ["ann", "bob"])
         symrelu0  symrelu1
    ann       0.5       1.0
    bob       2.0       0.0
    """
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ImportError("embedding_frame needs pandas: pip install pandas.") from error
    embedding = check_embedding(embedding)
    index = None
    if labels is not None:
        # By default pandas would turn labels that are tuples into a MultiIndex.
        index = pandas.Index(list(labels), tupleize_cols=False)
        if len(index) != len(embedding):
            raise ValueError(
                f"labels must name each of the {len(embedding)} rows of the embedding, got {len(index)}."
            )
    return pandas.DataFrame(embedding, index, [f"{prefix}{k}" for k in range(embedding.shape[1])])


def is_frame(data: Any) -> bool:
    """Return whether an object is a pandas DataFrame."""
    return comes_from(data, "pandas", "DataFrame")


def from_edge_table(table: Any, weight: str | None) -> Labelled:
    """Return the matrix of a table of edges, which must not have other columns."""
    further = [column for column in table.columns if column not in ("source", "target", USUAL_WEIGHT, weight)]
    if further:
        raise ValueError(
            'A table with the columns "source" and "target" is read as a list of edges, but this one also has '
            f"{further}. Pass symrelu.graphs.from_edges(frame) if its rows are edges, or rename the columns."
        )
    return from_edges(table, weight=weight)


def aligned_flags(mask: Any, labels: np.ndarray | None) -> np.ndarray:
    """Return a mask given as a DataFrame as an array, in the order of a matrix with these labels."""
    own = _row_labels(mask)[1]
    if labels is None and own is not None and set(own) == set(range(len(own))):
        labels = np.arange(len(own)).astype(object)  # the rows of a matrix without labels are numbered
    if labels is not None and own is not None:
        rows, columns = (_order_of(axis, labels) for axis in (mask.index, mask.columns))
        return flags_of(mask)[np.ix_(rows, columns)]
    if own is not None and not mask.index.equals(mask.columns):
        raise ValueError(
            "mask must have its rows and columns in the same order if the matrix has no labels, but its index "
            "and columns differ. Pass the matrix as a DataFrame too, or mask.loc[names, names] in the order of "
            "the matrix."
        )
    return flags_of(mask)


def flags_of(mask: Any) -> np.ndarray:
    """Return the values of a DataFrame of bools. Other types are returned unchanged and refused later."""
    boolean = all(dtype.kind == "b" for dtype in mask.dtypes)
    if boolean and mask.isna().any(axis=None):
        raise ValueError("mask must be True or False everywhere, got a missing value. Pass mask.fillna(True).")
    return np.asarray(mask.to_numpy(dtype=bool) if boolean else mask.to_numpy())


def counts_from_zero(index: Any) -> bool:
    """Return whether an index is the default 0, 1, 2, ..."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def check_embedding(embedding: Any) -> np.ndarray:
    """Return an embedding as an array, or raise unless it has two dimensions."""
    array = np.asarray(embedding)
    if array.ndim != 2:
        raise ValueError(f"embedding must have shape (n, n_components), got {array.shape}.")
    return array


def _order_of(axis: Any, labels: np.ndarray) -> np.ndarray:
    """Return the positions of the labels along an axis of a mask, which must contain all of them."""
    if counts_from_zero(axis):
        return np.arange(len(axis))
    # get_indexer returns -1 for a label that is missing, and requires an axis without duplicates.
    order = axis.get_indexer(labels) if axis.is_unique else np.array([-1])
    if len(axis) != len(labels) or (order < 0).any():
        strange = sorted(map(repr, set(axis) ^ set(labels)))
        raise ValueError(
            "mask must have the labels of the matrix, each once; they differ, "
            f"for example in {strange[0] if strange else 'one that occurs twice'}. "
            "Pass mask.to_numpy() if it is in the same order."
        )
    return np.asarray(order)


def _row_labels(frame: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the order to put the columns in and the labels of the rows, each None if there is none."""
    index, columns = frame.index, frame.columns
    if index.equals(columns):
        return None, None if counts_from_zero(index) else index.to_numpy(dtype=object)
    if columns.is_unique and index.is_unique:  # get_indexer requires it
        order = columns.get_indexer(index)
        if (order >= 0).all():
            return order, index.to_numpy(dtype=object)
    for named, other in ((index, columns), (columns, index)):
        if counts_from_zero(other):
            return None, named.to_numpy(dtype=object)
    raise ValueError(
        "The index and the columns of frame must hold the same labels, each once, but "
        f"{_label_difference(index, columns)}. "
        "Pass frame.set_axis(frame.index, axis=1) if both are in the same order."
    )


def _label_difference(index: Any, columns: Any) -> str:
    """Return how two lists of labels of the same length differ."""
    for name, labels in (("index", index), ("columns", columns)):
        if not labels.is_unique:
            return f"{labels[labels.duplicated()].tolist()[0]!r} is in the {name} twice"
    return f"{index[columns.get_indexer(index) < 0].tolist()[0]!r} is in the index and not in the columns"


def _frame_values(frame: Any) -> Any:
    """Return the values of a DataFrame, a csr_array if all columns are sparse and an ndarray otherwise."""
    for name, dtype in frame.dtypes.items():
        if dtype.kind not in "biufc":
            raise TypeError(
                f"frame must hold numbers, got the column {name!r} of type {dtype}. Drop or convert it."
            )
    if len(frame) and all(type(dtype).__name__ == "SparseDtype" for dtype in frame.dtypes):
        for name, dtype in frame.dtypes.items():
            if dtype.fill_value != 0:
                raise ValueError(
                    f"Sparse columns must have the fill value 0, but {name!r} has {dtype.fill_value!r}. "
                    "Pass frame.sparse.to_dense()."
                )
        return sparse.csr_array(frame.sparse.to_coo())
    values = frame.to_numpy()
    if values.dtype.kind == "O":  # nullable pandas types, or numbers mixed with booleans
        single = all(dtype.name.lower() == "float32" for dtype in frame.dtypes)
        values = frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return values
