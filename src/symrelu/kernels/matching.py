"""Pairs of similar nodes of a graph: a matching along heavy edges."""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled

NONE = -1  # in place of a node, if there is none


def matched_groups(n: int, i: np.ndarray, j: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Divide the nodes of a graph into groups of two similar nodes, and of one where none is left.

    Edges are taken from the heaviest to the lightest, each if both of its nodes are still free. Of the nodes
    that remain, two with the same heaviest neighbour form a group (otherwise the leaves of a star would stay
    single), and so do two without neighbours. Edges of equal weight are taken in the given order.

    Parameters
    ----------
    n : int
        Number of nodes.
    i, j : ndarray of int64 of shape (edges,)
        The nodes of each edge, i < j, each edge once.
    weights : ndarray of shape (edges,)

    Returns
    -------
    groups : ndarray of int64 of shape (n,)
        The group of each node; groups are numbered by their first node.
    n_groups : int
    """
    mate, heaviest = match(i, j, np.argsort(-weights, kind="stable"), n)
    free = np.flatnonzero(mate == NONE)
    first, second = _neighbours_in_order(free[np.argsort(heaviest[free], kind="stable")], heaviest)
    mate[first], mate[second] = second, first
    nodes = np.arange(n)
    leaders, groups = np.unique(np.where(mate == NONE, nodes, np.minimum(nodes, mate)), return_inverse=True)
    return groups.astype(np.int64, copy=False), len(leaders)


@compiled
def match(i, j, order, n):  # type: ignore[no-untyped-def]
    """Return the node with which each node is matched, and its neighbour on its heaviest edge."""
    mate = np.full(n, NONE)
    heaviest = np.full(n, NONE)
    for k in order:
        a, b = i[k], j[k]
        if mate[a] == NONE and mate[b] == NONE:
            mate[a], mate[b] = b, a
        if heaviest[a] == NONE:
            heaviest[a] = b
        if heaviest[b] == NONE:
            heaviest[b] = a
    return mate, heaviest


def _neighbours_in_order(nodes: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of nodes with the same key that follow each other; each node is in one pair at most."""
    keys = key[nodes]
    begins = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))  # of the runs of equal keys
    place = np.arange(len(nodes)) - np.repeat(begins, np.diff(begins, append=len(nodes)))
    second = np.flatnonzero(place % 2)
    return nodes[second - 1], nodes[second]
