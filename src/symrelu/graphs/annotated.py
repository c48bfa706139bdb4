"""Read the graph of an AnnData, and write an embedding back to it.

The anndata package is not imported: whoever passes an AnnData has imported it already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs.edges import Labelled, comes_from
from symrelu.graphs.tables import check_embedding, counts_from_zero, is_frame


def from_anndata(adata: Any, key: str | None = None) -> Labelled:
    """Return the graph of the observations of an AnnData.

    Parameters
    ----------
    adata : anndata.AnnData
    key : str, optional
        The entry of ``adata.obsp``. Defaults to the entry named in ``adata.uns["neighbors"]``, where
        ``scanpy.pp.neighbors`` records it, or to "connectivities" if there is none.

    Returns
    -------
    labelled : Labelled
        The matrix, sparse if it is stored sparse, and ``adata.obs_names``.

    See Also
    --------
    write_anndata : Store an embedding in an AnnData.

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
            "Run scanpy.pp.neighbors(adata) first, or choose an entry: from_anndata(adata, key=...)."
        )
    graph = adata.obsp[key]
    matrix = sparse.csr_array(graph) if sparse.issparse(graph) else np.asarray(graph)
    return Labelled(matrix, adata.obs_names.to_numpy(dtype=object))


def write_anndata(
    adata: Any,
    embedding: Any,
    key_added: str = "X_symrelu",
    signature: Any | None = None,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Store an embedding of the observations in an AnnData, following the conventions of scanpy.

    Parameters
    ----------
    adata : anndata.AnnData
        Changed in place.
    embedding : array-like or DataFrame of shape (n_obs, n_components)
        Rows in the order of ``adata.obs_names``. If it is a DataFrame with labels, its index must equal
        ``adata.obs_names``.
    key_added : str, default="X_symrelu"
        The embedding is stored in ``adata.obsm[key_added]``, its signature and params in ``adata.uns`` under
        the same name without ``X_``. An entry that another tool stored there is not overwritten.
    signature : array-like of shape (n_components,), optional
        Signs of the columns.
    params : mapping, optional
        Settings to store, such as ``SymReLU.get_params()``. Numbers, strings and arrays are stored as they are,
        None is left out, and anything else is stored as its repr, so that the AnnData can be written to a file.

    Returns
    -------
    None

    See Also
    --------
    from_anndata : Read the graph to embed.

    Examples
    --------
    >>> from symrelu import SymReLU
    >>> from symrelu.graphs import from_anndata, write_anndata
    >>> model = SymReLU(8, random_state=0).fit(from_anndata(adata).matrix)  # doctest: +SKIP
    >>> write_anndata(adata, model.embedding_, params=model.get_params())  # doctest: +SKIP
    >>> scanpy.pl.embedding(adata, "symrelu")  # doctest: +SKIP
    """
    _check_anndata(adata)
    if is_frame(embedding):
        _check_frame_of(adata, embedding)
    embedding = check_embedding(embedding)
    if len(embedding) != adata.n_obs:
        raise ValueError(
            f"embedding must have one row for each of the {adata.n_obs} observations, got {len(embedding)} "
            "rows. Pass an embedding of this adata."
        )
    name = key_added.removeprefix("X_")  # scanpy.pl.embedding adds the prefix to the name
    if name in adata.uns and not _written_here(adata.uns[name]):
        raise ValueError(
            f"adata.uns[{name!r}] belongs to another tool and is not overwritten. Choose another key_added."
        )
    entry: dict[str, Any] = {"method": "symrelu", "params": _storable(params or {})}
    if signature is not None:
        entry["signature"] = np.asarray(signature)
        if entry["signature"].shape != embedding.shape[1:]:
            raise ValueError(
                f"signature must have one sign for each of the {embedding.shape[1]} columns of the embedding, "
                f"got shape {entry['signature'].shape}."
            )
    # Assigned after all checks, so that an error leaves adata unchanged.
    adata.obsm[key_added] = embedding
    adata.uns[name] = entry


def is_anndata(data: Any) -> bool:
    """Return whether an object is an AnnData."""
    return comes_from(data, "anndata", "AnnData")


def _check_anndata(adata: Any) -> None:
    if not is_anndata(adata):
        raise TypeError(f"adata must be an AnnData, got {type(adata).__name__}.")


def _connectivities_key(adata: Any) -> str:
    neighbors = adata.uns.get("neighbors")
    default = "connectivities"
    return str(neighbors.get("connectivities_key", default)) if isinstance(neighbors, Mapping) else default


def _check_frame_of(adata: Any, frame: Any) -> None:
    # A default index carries no names, so the rows are assumed to be in order.
    if counts_from_zero(frame.index) or frame.index.equals(adata.obs_names):
        return
    raise ValueError(
        "The index of embedding must be adata.obs_names, in the same order. "
        "Pass embedding.loc[adata.obs_names] if it holds the same names."
    )


def _written_here(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("method") == "symrelu"


def _storable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as types that h5ad files can store."""
    plain = (bool, int, float, str, np.ndarray, np.generic)
    return {
        str(name): value if isinstance(value, plain) else repr(value)
        for name, value in params.items()
        if value is not None
    }
