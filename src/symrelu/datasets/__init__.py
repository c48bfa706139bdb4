"""Example data: synthetic matrices, embedded graphs, and published sets read from a data directory."""

from symrelu.datasets.embedded import load_digits_graph, make_relu_gram
from symrelu.datasets.published import (
    Dataset,
    GraphDataset,
    load_coil20,
    load_coil100,
    load_graph,
    load_orl,
    load_pie,
    load_tdt2,
    load_yaleb,
)

__all__ = [
    "Dataset",
    "GraphDataset",
    "load_coil20",
    "load_coil100",
    "load_digits_graph",
    "load_graph",
    "load_orl",
    "load_pie",
    "load_tdt2",
    "load_yaleb",
    "make_relu_gram",
]
