"""Convert objects of other libraries to a similarity matrix with labels.

This module chooses the converter. Each kind of object has its own module: ``networks``, ``tables``,
``tensors``, ``annotated`` and ``edges``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.graphs.annotated import from_anndata, is_anndata
from symrelu.graphs.edges import Labelled, comes_from, is_edge_table
from symrelu.graphs.networks import from_igraph, from_networkx, is_igraph, is_networkx
from symrelu.graphs.tables import aligned_flags, from_edge_table, from_pandas, is_frame
from symrelu.graphs.tensors import from_torch, is_tensor


def as_similarity(data: Any, *, weight: str | None = "weight") -> Labelled:
    """Return the similarity matrix of a graph, table or tensor of another library, with its labels.

    Parameters
    ----------
    data : graph, table, tensor or matrix
        A networkx or igraph graph, an AnnData, a square pandas DataFrame, a DataFrame with the columns
        "source", "target" and optionally "weight", a torch tensor, a :class:`Labelled` as returned by
        :func:`from_edges`, or the result of :func:`symrelu.datasets.load_graph`. Anything else, such as an
        array or a scipy.sparse matrix, is returned unchanged. The values are not validated here but by the fit.
    weight : str or None, default="weight"
        Edge attribute of a graph; see :func:`from_networkx`. Ignored for other data.

    Returns
    -------
    labelled : Labelled
        ``(matrix, labels)``.

    See Also
    --------
    from_edges : Similarity matrix of any list of edges.

    Examples
    --------
    >>> import networkx
    >>> from symrelu.graphs import as_similarity
    >>> matrix, labels = as_similarity(networkx.karate_club_graph())
    >>> matrix.shape, labels[:3]
    ((34, 34), array([0, 1, 2], dtype=object))
    >>> as_similarity([[1, 2], [2, 5]])
    Labelled(matrix=[[1, 2], [2, 5]], labels=None)
    """
    if isinstance(data, Labelled):
        return data
    # Recognised by the names of their classes, because graphs must not import datasets.
    if comes_from(data, "symrelu", "GraphDataset"):
        return Labelled(data.M, None)
    if comes_from(data, "symrelu", "Dataset"):
        raise TypeError(
            f"data must hold similarities, got the samples of {data.name}. Build a graph first: pass "
            "symrelu.graphs.self_tuning_graph(dataset.data)."
        )
    if is_networkx(data):
        return from_networkx(data, weight)
    if is_igraph(data):
        return from_igraph(data, weight)
    if is_anndata(data):
        return from_anndata(data)
    # Before is_frame: a table of edges is a DataFrame too.
    if is_edge_table(data):
        return from_edge_table(data, weight)
    if is_frame(data):
        return from_pandas(data)
    if is_tensor(data):
        return from_torch(data)
    return Labelled(data, None)


def aligned_mask(mask: Any, labels: np.ndarray | None) -> Any:
    """Return a mask of unobserved pairs with rows and columns in the order of a matrix with these labels.

    Parameters
    ----------
    mask : matrix, DataFrame, tensor or None
        A DataFrame is reordered by its labels. Any other mask is assumed to be in the order of the matrix.
    labels : ndarray of shape (n,), or None
        Labels of the matrix, if it has any.

    Returns
    -------
    mask : matrix or None
        Masks that are neither a DataFrame nor a tensor are returned unchanged.
    """
    if is_tensor(mask):
        return from_torch(mask).matrix
    return aligned_flags(mask, labels) if is_frame(mask) else mask
