"""Read graphs from GraphML and GML files, through networkx."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np

from symrelu.files.checks import WrongKind, naming_damaged_file, naming_missing_library
from symrelu.files.text import open_text, read_bytes
from symrelu.graphs.column_names import is_no_weight, weight_columns
from symrelu.graphs.columns import AUTO
from symrelu.graphs.edges import integers
from symrelu.graphs.pairs import Pairs
from symrelu.graphs.remarks import Doubt

# Memory for each byte of text. An edge of 60 bytes takes about a kilobyte as elements and dictionaries.
_EXPANSION = 20
_GRAPH = re.compile(rb"<(?:[\w.-]+:)?graph[\s/>]")  # the element, with or without a namespace
_NAMES = ("label", "name")  # attributes that people see, in order of preference


class Network(NamedTuple):
    """The edges of a graph file, their weights, whether the file says they are directed, and notes."""

    pairs: Pairs
    weights: list[Any]
    directed: bool
    notes: tuple[str, ...]


def read_network(path: Path, extension: str, weight: Any = AUTO) -> Network:
    """Read a .graphml or .gml file.

    Nodes are named by their attribute "label", or "name", if each node has one and they are all different, and
    by their ids otherwise.
    """
    with naming_missing_library("networkx", "graph", extension):
        networkx = import_module("networkx")
    with naming_damaged_file(path, extension.lstrip(".")), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports, keys and other parts of a file that are not used
        graph, notes = _read_graphml(networkx, path) if extension == ".graphml" else _read_gml(networkx, path)
    names, naming = _names_of(graph)
    _check_characters(path, names)
    position = {node: k for k, node in enumerate(graph)}
    edges = list(graph.edges(data=True))
    pairs = Pairs(integers(position[e[0]] for e in edges), integers(position[e[1]] for e in edges), names)
    weights, weighting = _weights_of(path, [edge[2] for edge in edges], weight)
    return Network(pairs, weights, graph.is_directed(), notes + naming + weighting)


def _read_graphml(networkx: Any, path: Path) -> tuple[Any, tuple[str, ...]]:
    content = read_bytes(path, _EXPANSION)
    _refuse_doctype(path, content)
    graph = networkx.read_graphml(io.BytesIO(content))
    number = len(_GRAPH.findall(content))
    return graph, (Doubt(f"only the first of {number} graphs in the file was read"),) if number > 1 else ()


class _AtRoot(Exception):
    """The prolog of a document is over."""


def _refuse_doctype(path: Path, content: bytes) -> None:
    """Raise if a document has a DOCTYPE, whose entities could expand to any size or name other files."""

    def refuse(*declared: Any) -> None:
        raise WrongKind(f"{path} must be XML without a DOCTYPE, which GraphML does not need. Remove it.")

    def stop(*element: Any) -> None:
        raise _AtRoot

    # The parser itself finds it in any encoding. It comes before the first element.
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    with suppress(_AtRoot):
        parser.Parse(content, True)


def _read_gml(networkx: Any, path: Path) -> tuple[Any, tuple[str, ...]]:
    with open_text(path, _EXPANSION) as file:
        text = file.read()
    # networkx refuses repeated edges unless the file allows them, but here the rule is the user's.
    text = re.sub(r"^(\s*graph\s*\[)", r"\1 multigraph 1 ", text, count=1, flags=re.MULTILINE)
    return networkx.parse_gml(text.splitlines(), label=None), ()


def _names_of(graph: Any) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the nodes, and a note if they have labels that cannot be names."""
    notes: tuple[str, ...] = ()
    for attribute in _NAMES:
        labels = [data.get(attribute) for _, data in graph.nodes(data=True)]
        names = [str(label) for label in labels if label is not None and str(label).strip()]
        if labels and len(names) == len(labels) == len(set(names)):
            return names, ()
        if names and not notes:
            notes = (f"nodes are named by their ids: {attribute!r} is missing or the same for some of them",)
    return [str(node) for node in graph], notes


def _check_characters(path: Path, names: Sequence[str]) -> None:
    """Raise if a name has half of a character, which no file could be written with."""
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise WrongKind(
                f"{path} must have names in Unicode, but {name!r} has half of a character (a lone surrogate). "
                "Rename the node."
            ) from None


def _weights_of(path: Path, edges: Sequence[dict[str, Any]], weight: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Return the weight of each edge, and doubts."""
    there = sorted({str(name) for data in edges for name in data})
    if weight == AUTO:
        weight = _usual_weight(path, edges, there)
        if weight is None:
            return [1.0] * len(edges), _doubt_unused(edges, there)
    if weight is None:
        return [1.0] * len(edges), ()
    if weight not in there:
        raise WrongKind(
            f"{path} must have edges with the attribute {weight!r}, got {there or 'none'}. Pass the right "
            "name: weight=..."
        )
    missing = sum(weight not in data for data in edges)
    doubt = Doubt(f"edges without the attribute {weight!r} have weight 1: {missing} of {len(edges)}")
    return [data.get(weight, 1.0) for data in edges], (doubt,) if missing else ()


def _usual_weight(path: Path, edges: Sequence[dict[str, Any]], there: Sequence[str]) -> str | None:
    """Return the attribute with the usual name of weights, or None."""
    found = weight_columns(there, [_all_numbers(edges, name) for name in there])
    if len(found) > 1:
        same = [there[k] for k in found]
        raise WrongKind(f"{path} has several attributes that may be weights: {same}. Choose one: weight=...")
    return there[found[0]] if found else None


def _doubt_unused(edges: Sequence[dict[str, Any]], there: Sequence[str]) -> tuple[str, ...]:
    numeric = [name for name in there if not is_no_weight(name) and _all_numbers(edges, name)]
    if not numeric:
        return ()
    names = ", ".join(map(repr, numeric))
    return (Doubt(f"edge attributes not read: {names}. Every edge has weight 1: pass weight= to choose one"),)


def _all_numbers(edges: Sequence[dict[str, Any]], name: str) -> bool:
    return all(isinstance(data.get(name, 0), (int, float, np.number)) for data in edges)
