"""From data to a similarity matrix: graphs of samples, and the graphs and tables of other libraries."""

from __future__ import annotations

from symrelu.graphs.adapters import (
    as_similarity,
    embedding_frame,
    from_anndata,
    from_igraph,
    from_networkx,
    from_pandas,
    from_torch,
    write_anndata,
)
from symrelu.graphs.edges import Labelled, from_edges
from symrelu.graphs.self_tuning import SelfTuningGraph, self_tuning_graph

__all__ = [
    "Labelled",
    "SelfTuningGraph",
    "as_similarity",
    "embedding_frame",
    "from_anndata",
    "from_edges",
    "from_igraph",
    "from_networkx",
    "from_pandas",
    "from_torch",
    "self_tuning_graph",
    "write_anndata",
]
