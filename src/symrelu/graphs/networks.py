"""Convert graphs of networkx and igraph.

Neither library is imported: whoever passes a graph has imported it already.
"""

from __future__ import annotations

from typing import Any

from symrelu.graphs.edges import USUAL_WEIGHT, Labelled, as_labels, comes_from, integers
from symrelu.graphs.pairs import Pairs, Rules, similarity_of

_ADDED = Rules(duplicates="sum")  # a multigraph may have several edges between two nodes


def from_networkx(graph: Any, weight: str | None = "weight") -> Labelled:
    """Return the weighted adjacency matrix of an undirected networkx graph.

    Parameters
    ----------
    graph : networkx.Graph or networkx.MultiGraph
        The weights of parallel edges are added. Self loops go to the diagonal, once.
    weight : str or None, default="weight"
        Edge attribute that holds the weights. Edges without it have weight 1, as do all edges with None. An
        attribute other than "weight" must exist on at least one edge.

    Returns
    -------
    labelled : Labelled
        A csr_array of float64 in the order of ``graph.nodes``, and these nodes. Isolated nodes are kept.

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
    if not is_networkx(graph):
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
    return Labelled(similarity_of(pairs, weights, _ADDED).matrix, as_labels(nodes))


def from_igraph(graph: Any, weight: str | None = "weight") -> Labelled:
    """Return the weighted adjacency matrix of an undirected igraph graph.

    Parameters
    ----------
    graph : igraph.Graph
        The weights of parallel edges are added. Self loops go to the diagonal, once.
    weight : str or None, default="weight"
        Edge attribute that holds the weights. Edges without it have weight 1, as do all edges with None. An
        attribute other than "weight" must exist.

    Returns
    -------
    labelled : Labelled
        A csr_array of float64 in the order of the vertices, and their attribute "name" if they have one, or
        "_nx_name", in which igraph stores the nodes of a networkx graph. Isolated vertices are kept.

    Examples
    --------
    >>> import igraph  # doctest: +SKIP
    >>> from symrelu.graphs import from_igraph
    >>> matrix, labels = from_igraph(igraph.Graph.Famous("Zachary"))  # doctest: +SKIP
    """
    if not is_igraph(graph):
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
    # igraph stores None for edges without a value.
    weights = (
        [1.0 if w is None else w for w in graph.es[weight]] if weight in attributes else [1.0] * len(edges)
    )
    names = next((graph.vs[key] for key in ("name", "_nx_name") if key in graph.vs.attributes()), None)
    pairs = Pairs(
        integers(i for i, _ in edges),
        integers(j for _, j in edges),
        range(graph.vcount()) if names is None else names,
    )
    return Labelled(similarity_of(pairs, weights, _ADDED).matrix, None if names is None else as_labels(names))


def is_networkx(data: Any) -> bool:
    """Return whether an object is a networkx graph."""
    return comes_from(data, "networkx", "Graph")


def is_igraph(data: Any) -> bool:
    """Return whether an object is an igraph graph, of any class with its methods."""
    # The class is checked, because the columns of a DataFrame are attributes of the instance.
    return all(hasattr(type(data), name) for name in ("get_edgelist", "vcount", "is_directed", "es", "vs"))


def _check_weight_name(weight: Any) -> str | None:
    if weight is not None and not isinstance(weight, str):
        raise TypeError(f"weight must be the name of an edge attribute or None, got {weight!r}.")
    return weight


def _no_such_weight(weight: str | None, there: list[str]) -> str:
    return (
        f"weight must be an attribute of the edges, got {weight!r}; they have: "
        f"{', '.join(map(repr, there)) or 'none'}. Pass one of these, or weight=None to count each edge as 1."
    )
