"""Similarity matrices from data: graphs of samples, and graphs and tables of other libraries."""

from __future__ import annotations

from symrelu.graphs.adapters import as_similarity
from symrelu.graphs.annotated import from_anndata, write_anndata
from symrelu.graphs.blocks import convert_to_blocks, write_blocks
from symrelu.graphs.edges import Labelled, from_edges
from symrelu.graphs.networks import from_igraph, from_networkx
from symrelu.graphs.reading import (
    GraphFile,
    read_graph,
    read_graph_file,
    read_new_items,
    read_new_items_file,
)
from symrelu.graphs.remarks import GraphFileWarning
from symrelu.graphs.self_tuning import SelfTuningGraph, self_tuning_graph
from symrelu.graphs.tables import embedding_frame, from_pandas
from symrelu.graphs.tensors import from_torch

__all__ = [
    "GraphFile",
    "GraphFileWarning",
    "Labelled",
    "SelfTuningGraph",
    "as_similarity",
    "convert_to_blocks",
    "embedding_frame",
    "from_anndata",
    "from_edges",
    "from_igraph",
    "from_networkx",
    "from_pandas",
    "from_torch",
    "read_graph",
    "read_graph_file",
    "read_new_items",
    "read_new_items_file",
    "self_tuning_graph",
    "write_anndata",
    "write_blocks",
]
