"""From the graphs and tables of other libraries to a similarity matrix with its labels, and back.

No library is imported here: an object that comes from one has brought it along.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs.edges import (
    USUAL_WEIGHT,
    Labelled,
    Pairs,
    as_labels,
    comes_from,
    from_edges,
    integers,
    is_edge_table,
    similarity_of,
)


def as_similarity(data: Any, *, weight: str | None = "weight") -> Labelled:
    """Return the similarity matrix that an object of some library holds, with its labels.

    Parameters
    ----------
    data : graph, table, tensor or matrix
        A networkx or igraph graph, an AnnData, a square pandas DataFrame, a DataFrame with the columns
        "source", "target" and perhaps "weight", a torch tensor, or what :func:`from_edges` gave. Anything else,
        such as an array or a scipy.sparse matrix, is passed through as it is. Whether the values make a
        similarity matrix is judged later, by the fit.
    weight : str or None, default="weight"
        Edge attribute of a graph; see :func:`from_networkx`. Other data have none.

    Returns
    -------
    labelled : Labelled
        ``(matrix, labels)``.

    See Also
    --------
    from_edges : The same for any list of edges.

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
    if comes_from(data, "networkx", "Graph"):
        return from_networkx(data, weight)
    if _is_igraph(data):
        return from_igraph(data, weight)
    if comes_from(data, "anndata", "AnnData"):
        return from_anndata(data)
    if is_edge_table(data):
        return _from_edge_table(data, weight)
    if comes_from(data, "pandas", "DataFrame"):
        return from_pandas(data)
    if is_tensor(data):
        return from_torch(data)
    return Labelled(data, None)


def aligned_mask(mask: Any, labels: np.ndarray | None) -> Any:
    """Return a mask of unknown pairs with its rows and columns in the order of a matrix with these labels.

    Parameters
    ----------
    mask : matrix, DataFrame, tensor or None
        Only a DataFrame has labels of its own; any other is taken to be in the order of the matrix.
    labels : ndarray of shape (n,), or None
        Those of the matrix, where it has some.

    Returns
    -------
    mask : matrix or None
        What comes from no other library is passed through as it is.
    """
    if is_tensor(mask):
        return from_torch(mask).matrix
    if not comes_from(mask, "pandas", "DataFrame"):
        return mask
    own = _row_labels(mask)[1]
    if labels is None and own is not None and set(own) == set(range(len(own))):
        labels = np.arange(len(own)).astype(object)  # items without names are counted
    if labels is not None and own is not None:
        rows, columns = (_order_of(axis, labels) for axis in (mask.index, mask.columns))
        return flags_of(mask)[np.ix_(rows, columns)]
    if own is not None and not mask.index.equals(mask.columns):
        raise ValueError(
            "mask has its rows and columns in different orders, and the matrix has no names to tell which is "
            "meant. Pass the matrix as a DataFrame too, or mask.loc[names, names] in the order of the matrix."
        )
    return flags_of(mask)


def _order_of(axis: Any, labels: np.ndarray) -> np.ndarray:
    """Return where the labels are along an axis of a mask, which must hold them all."""
    if _is_default(axis):
        return np.arange(len(axis))
    order = axis.get_indexer(labels) if axis.is_unique else np.array([-1])
    if len(axis) != len(labels) or (order < 0).any():
        strange = sorted(map(repr, set(axis) ^ set(labels)))
        raise ValueError(
            "mask must have the names of the matrix, each once; they differ, "
            f"for example in {strange[0] if strange else 'one that is there twice'}. "
            "Pass mask.to_numpy() if it is in the same order."
        )
    return np.asarray(order)


def flags_of(mask: Any) -> np.ndarray:
    """Return the values of a DataFrame of bools; any other stay what they are, to be refused."""
    boolean = all(dtype.kind == "b" for dtype in mask.dtypes)
    if boolean and mask.isna().any(axis=None):
        raise ValueError("mask must be True or False everywhere, got a missing value. Pass mask.fillna(True).")
    return np.asarray(mask.to_numpy(dtype=bool) if boolean else mask.to_numpy())


def _from_edge_table(table: Any, weight: str | None) -> Labelled:
    further = [column for column in table.columns if column not in ("source", "target", USUAL_WEIGHT, weight)]
    if further:
        raise ValueError(
            'A table with the columns "source" and "target" is read as a list of edges, but this one also has '
            f"{further}. Pass symrelu.graphs.from_edges(frame) if its rows are edges, or rename the columns."
        )
    return from_edges(table, weight=weight)


def from_networkx(graph: Any, weight: str | None = "weight") -> Labelled:
    """Return the weighted adjacency matrix of an undirected networkx graph.

    Parameters
    ----------
    graph : networkx.Graph or networkx.MultiGraph
        The weights of parallel edges are added. Self loops go to the diagonal, once.
    weight : str or None, default="weight"
        Edge attribute with the weights. Edges without it count 1, as do all edges for None. A name other
        than "weight" must be there on one edge at least.

    Returns
    -------
    labelled : Labelled
        A csr_array of float64 in the order of ``graph.nodes``, and these nodes. Isolated nodes stay.

    Examples
    --------
    >>> import networkx
    >>> from symrelu.graphs import from_networkx
    >>> graph = networkx.Graph()
    >>> graph.add_edge("ann", "bob", weight=2.5)
    >>> graph.add_node("cid")
    >>> matrix, labels = from_networkx(graph)
    >>> matrix.toarray()
    array([[0. , 2.5, 0. ],
           [2.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    >>> labels.tolist()
    ['ann', 'bob', 'cid']
    """
    if not comes_from(graph, "networkx", "Graph"):
        raise TypeError(f"graph must be a networkx graph, got {type(graph).__name__}.")
    if graph.is_directed():
        raise ValueError("graph must be undirected, got a directed one. Pass graph.to_undirected().")
    weight = _check_weight_name(weight)
    nodes = list(graph.nodes)
    edges = list(graph.edges(data=True))
    if weight is not None and weight != USUAL_WEIGHT and edges and not any(weight in e[2] for e in edges):
        raise ValueError(_no_such_weight(weight, sorted({str(name) for e in edges for name in e[2]})))
    position = {node: k for k, node in enumerate(nodes)}
    pairs = Pairs(
        integers(position[edge[0]] for edge in edges), integers(position[edge[1]] for edge in edges), nodes
    )
    weights = [1.0 if weight is None else edge[2].get(weight, 1.0) for edge in edges]
    return Labelled(similarity_of(pairs, weights, "sum"), as_labels(nodes))


def from_igraph(graph: Any, weight: str | None = "weight") -> Labelled:
    """Return the weighted adjacency matrix of an undirected igraph graph.

    Parameters
    ----------
    graph : igraph.Graph
        The weights of parallel edges are added. Self loops go to the diagonal, once.
    weight : str or None, default="weight"
        Edge attribute with the weights. Edges without it count 1, as do all edges for None. A name other
        than "weight" must be there.

    Returns
    -------
    labelled : Labelled
        A csr_array of float64 in the order of the vertices, and their attribute "name" (or "_nx_name",
        where igraph keeps the nodes of a networkx graph) if they have one. Isolated vertices stay.

    Examples
    --------
    >>> import igraph  # doctest: +SKIP
    >>> from symrelu.graphs import from_igraph
    >>> matrix, labels = from_igraph(igraph.Graph.Famous("Zachary"))  # doctest: +SKIP
    """
    if not _is_igraph(graph):
        raise TypeError(f"graph must be an igraph graph, got {type(graph).__name__}.")
    if graph.is_directed():
        raise ValueError(
            "graph must be undirected, got a directed one. "
            'Pass graph.as_undirected(combine_edges={"weight": "max"}).'
        )
    weight = _check_weight_name(weight)
    attributes = graph.es.attributes()
    if weight not in (None, USUAL_WEIGHT, *attributes):
        raise ValueError(_no_such_weight(weight, sorted(attributes)))
    edges = graph.get_edgelist()
    # igraph holds None where an edge has no value.
    weights = (
        [1.0 if w is None else w for w in graph.es[weight]] if weight in attributes else [1.0] * len(edges)
    )
    names = next((graph.vs[key] for key in ("name", "_nx_name") if key in graph.vs.attributes()), None)
    pairs = Pairs(
        integers(i for i, _ in edges),
        integers(j for _, j in edges),
        range(graph.vcount()) if names is None else names,
    )
    return Labelled(similarity_of(pairs, weights, "sum"), None if names is None else as_labels(names))


def from_anndata(adata: Any, key: str | None = None) -> Labelled:
    """Return the graph of the observations of an AnnData.

    Parameters
    ----------
    adata : anndata.AnnData
    key : str, optional
        Which entry of ``adata.obsp``. By default the one that ``adata.uns["neighbors"]`` names, as
        ``scanpy.pp.neighbors`` leaves it, or else "connectivities".

    Returns
    -------
    labelled : Labelled
        The matrix, sparse where it is stored so, and ``adata.obs_names``.

    See Also
    --------
    write_anndata : The way back.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData  # doctest: +SKIP
    >>> from symrelu.graphs import from_anndata
    >>> adata = AnnData(np.ones((3, 2)), obsp={"connectivities": np.eye(3)})  # doctest: +SKIP
    >>> matrix, labels = from_anndata(adata)  # doctest: +SKIP
    """
    _check_anndata(adata)
    key = _connectivities_key(adata) if key is None else key
    if key not in adata.obsp:
        there = ", ".join(map(repr, adata.obsp)) or "none"
        raise ValueError(
            f"adata.obsp must hold the graph {key!r}; its entries are: {there}. "
            "Run scanpy.pp.neighbors(adata) first, or name an entry: from_anndata(adata, key=...)."
        )
    graph = adata.obsp[key]
    matrix = sparse.csr_array(graph) if sparse.issparse(graph) else np.asarray(graph)
    return Labelled(matrix, adata.obs_names.to_numpy(dtype=object))


def from_pandas(frame: Any) -> Labelled:
    """Return the matrix that a square DataFrame holds.

    Index and columns must hold the same labels. Where the columns have them in another order, they are
    brought into the order of the index. A default index (0, 1, 2, ...) is no label: where only the index
    or only the columns have labels, rows and columns are taken to be in the same order; where neither has,
    there are no labels.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, n)
        Of numbers. If all columns are sparse, with the fill value 0, the matrix is sparse.

    Returns
    -------
    labelled : Labelled
        The matrix, float32 where all columns are, and the labels of the rows.

    See Also
    --------
    from_edges : For a table with a row for each edge.

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
    if not comes_from(frame, "pandas", "DataFrame"):
        raise TypeError(f"frame must be a pandas DataFrame, got {type(frame).__name__}.")
    if frame.shape[0] != frame.shape[1]:
        raise ValueError(
            f"frame must be square, with a row and a column for each item, got shape {frame.shape}. "
            "For samples x features, build a graph first: symrelu.graphs.self_tuning_graph(frame); for a row "
            "for each edge, call symrelu.graphs.from_edges(frame)."
        )
    order, labels = _row_labels(frame)
    matrix = _frame_values(frame)
    return Labelled(matrix if order is None else matrix[:, order], labels)


def is_tensor(data: Any) -> bool:
    """Whether an object is a tensor of torch."""
    return comes_from(data, "torch", "Tensor")


def from_torch(tensor: Any) -> Labelled:
    """Return the matrix that a torch tensor holds.

    Parameters
    ----------
    tensor : torch.Tensor of shape (n, n)
        Dense, or sparse in any layout; sparse ones stay sparse. It is detached from its gradient, and
        copied to the CPU if it lies elsewhere.

    Returns
    -------
    labelled : Labelled
        A csr_array, or an ndarray that shares the memory of a dense tensor of the CPU. No labels.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from symrelu.graphs import from_torch
    >>> from_torch(torch.eye(2).to_sparse()).matrix.toarray()  # doctest: +SKIP
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if not is_tensor(tensor):
        raise TypeError(f"tensor must be a torch tensor, got {type(tensor).__name__}.")
    layout = str(tensor.layout).removeprefix("torch.")
    if layout == "strided":
        return Labelled(_tensor_values(tensor), None)
    if not layout.startswith("sparse"):
        raise TypeError(f"tensor must be dense or sparse, got the layout {layout}. Pass tensor.to_dense().")
    if tensor.sparse_dim() != 2 or tensor.ndim != 2:
        raise ValueError(
            f"tensor must be a matrix with two sparse dimensions, got shape {tuple(tensor.shape)} "
            f"with {tensor.sparse_dim()} sparse and {tensor.dense_dim()} dense ones."
        )
    if layout == "sparse_csr":
        parts = (tensor.values(), tensor.col_indices(), tensor.crow_indices())
        return Labelled(sparse.csr_array(tuple(map(_tensor_values, parts)), shape=tuple(tensor.shape)), None)
    tensor = tensor.to_sparse_coo().coalesce()
    entries = (_tensor_values(tensor.values()), tuple(_tensor_values(tensor.indices())))
    return Labelled(sparse.csr_array(entries, shape=tuple(tensor.shape)), None)


def embedding_frame(embedding: Any, labels: Iterable[Hashable] | None, prefix: str = "symrelu") -> Any:
    """Return an embedding as a DataFrame with the labels as its index.

    Parameters
    ----------
    embedding : array-like of shape (n, n_components)
        Such as ``Solution.U``.
    labels : iterable of length n, or None
        Such as ``Labelled.labels``. None leaves the index at 0, 1, 2, ...
    prefix : str, default="symrelu"
        The columns are called prefix0, prefix1, ..., as scikit-learn's ``set_output`` calls them.

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
    embedding = _check_embedding(embedding)
    index = None
    if labels is not None:
        # A label that is a tuple is one label, not a row of a table of them.
        index = pandas.Index(list(labels), tupleize_cols=False)
        if len(index) != len(embedding):
            raise ValueError(
                f"labels must name each of the {len(embedding)} rows of the embedding, got {len(index)}."
            )
    return pandas.DataFrame(embedding, index, [f"{prefix}{k}" for k in range(embedding.shape[1])])


def write_anndata(
    adata: Any,
    embedding: Any,
    key_added: str = "X_symrelu",
    signature: Any | None = None,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Store an embedding of the observations in an AnnData, as scanpy stores its own.

    Parameters
    ----------
    adata : anndata.AnnData
        Changed in place.
    embedding : array-like or DataFrame of shape (n_obs, n_components)
        Rows in the order of ``adata.obs_names``. A DataFrame with labels must have just these.
    key_added : str, default="X_symrelu"
        The embedding goes to ``adata.obsm[key_added]``, what else is known of it to ``adata.uns`` under the
        same name without ``X_``. What another tool put there is not overwritten.
    signature : array-like of shape (n_components,), optional
        Signs of the columns.
    params : mapping, optional
        Settings to remember, such as ``SymReLU.get_params()``. Numbers, strings and arrays are kept, None
        is left out, and anything else is kept as it prints, so that the file can be written.

    Returns
    -------
    None

    See Also
    --------
    from_anndata : The graph to embed.

    Examples
    --------
    >>> from symrelu import SymReLU
    >>> from symrelu.graphs import from_anndata, write_anndata
    >>> model = SymReLU(8, random_state=0).fit(from_anndata(adata).matrix)  # doctest: +SKIP
    >>> write_anndata(adata, model.embedding_, params=model.get_params())  # doctest: +SKIP
    >>> scanpy.pl.embedding(adata, "symrelu")  # doctest: +SKIP
    """
    _check_anndata(adata)
    if comes_from(embedding, "pandas", "DataFrame"):
        _check_frame_of(adata, embedding)
    embedding = _check_embedding(embedding)
    if len(embedding) != adata.n_obs:
        raise ValueError(
            f"embedding must have a row for each of the {adata.n_obs} observations, got {len(embedding)} rows."
        )
    name = key_added.removeprefix("X_")
    if name in adata.uns and not _written_here(adata.uns[name]):
        raise ValueError(
            f"adata.uns[{name!r}] holds something else, which is not overwritten. Choose another key_added."
        )
    entry: dict[str, Any] = {"method": "symrelu", "params": _storable(params or {})}
    if signature is not None:
        entry["signature"] = np.asarray(signature)
        if entry["signature"].shape != embedding.shape[1:]:
            raise ValueError(
                f"signature must have a sign for each of the {embedding.shape[1]} columns of the embedding, "
                f"got shape {entry['signature'].shape}."
            )
    adata.obsm[key_added] = embedding
    adata.uns[name] = entry


def _is_igraph(data: Any) -> bool:
    # Of the class: the columns of a DataFrame are attributes of the object.
    return all(hasattr(type(data), name) for name in ("get_edgelist", "vcount", "is_directed", "es", "vs"))


def _check_anndata(adata: Any) -> None:
    if not comes_from(adata, "anndata", "AnnData"):
        raise TypeError(f"adata must be an AnnData, got {type(adata).__name__}.")


def _check_weight_name(weight: Any) -> str | None:
    if weight is not None and not isinstance(weight, str):
        raise TypeError(f"weight must be the name of an edge attribute or None, got {weight!r}.")
    return weight


def _no_such_weight(weight: str | None, there: list[str]) -> str:
    return (
        f"weight={weight!r} is an attribute of no edge; edges have: {', '.join(map(repr, there)) or 'none'}. "
        "Pass one of these, or weight=None to count each edge as 1."
    )


def _connectivities_key(adata: Any) -> str:
    neighbors = adata.uns.get("neighbors")
    default = "connectivities"
    return str(neighbors.get("connectivities_key", default)) if isinstance(neighbors, Mapping) else default


def _row_labels(frame: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the order that the columns need, and the labels of the rows; None where there is none."""
    index, columns = frame.index, frame.columns
    if index.equals(columns):
        return None, None if _is_default(index) else index.to_numpy(dtype=object)
    if columns.is_unique and index.is_unique:
        order = columns.get_indexer(index)
        if (order >= 0).all():
            return order, index.to_numpy(dtype=object)
    for named, other in ((index, columns), (columns, index)):
        if _is_default(other):
            return None, named.to_numpy(dtype=object)
    raise ValueError(
        "The index and the columns of frame must hold the same labels, each once, but "
        f"{_difference(index, columns)}. "
        "Pass frame.set_axis(frame.index, axis=1) if both are in the same order."
    )


def _difference(index: Any, columns: Any) -> str:
    """Return why two sets of labels of the same length are not the same."""
    for name, labels in (("index", index), ("columns", columns)):
        if not labels.is_unique:
            return f"{labels[labels.duplicated()].tolist()[0]!r} is in the {name} twice"
    return f"{index[columns.get_indexer(index) < 0].tolist()[0]!r} is in the index and not in the columns"


def _is_default(index: Any) -> bool:
    """Return whether an index just counts from 0."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _frame_values(frame: Any) -> Any:
    """Return the values of a DataFrame: a csr_array if all columns are sparse, or else an ndarray."""
    for name, dtype in frame.dtypes.items():
        if dtype.kind not in "biufc":
            raise TypeError(f"frame must hold numbers, got the column {name!r} of type {dtype}.")
    if len(frame) and all(type(dtype).__name__ == "SparseDtype" for dtype in frame.dtypes):
        for name, dtype in frame.dtypes.items():
            if dtype.fill_value != 0:
                raise ValueError(
                    f"Sparse columns must have the fill value 0, but {name!r} has {dtype.fill_value!r}."
                )
        return sparse.csr_array(frame.sparse.to_coo())
    values = frame.to_numpy()
    if values.dtype.kind == "O":  # pandas' own types of numbers, or numbers beside booleans
        single = all(dtype.name.lower() == "float32" for dtype in frame.dtypes)
        values = frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return values


def _tensor_values(tensor: Any) -> np.ndarray:
    try:
        return tensor.numpy(force=True)
    except TypeError as error:
        raise TypeError(
            f"tensor must be of a type that NumPy has, got {tensor.dtype}. Pass tensor.float()."
        ) from error


def _check_embedding(embedding: Any) -> np.ndarray:
    array = np.asarray(embedding)
    if array.ndim != 2:
        raise ValueError(f"embedding must have shape (n, n_components), got {array.shape}.")
    return array


def _check_frame_of(adata: Any, frame: Any) -> None:
    if _is_default(frame.index) or frame.index.equals(adata.obs_names):
        return
    raise ValueError(
        "The index of embedding must be adata.obs_names, in the same order. "
        "Pass embedding.loc[adata.obs_names] if it holds the same names."
    )


def _written_here(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("method") == "symrelu"


def _storable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in the few types that h5ad files know."""
    plain = (bool, int, float, str, np.ndarray, np.generic)
    return {
        str(name): value if isinstance(value, plain) else repr(value)
        for name, value in params.items()
        if value is not None
    }
