"""Graphs of any size for the benchmarks; nothing but NumPy and SciPy is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.datasets import load_graph
from symrelu.graphs import self_tuning_graph


def points(kind: str, n: int) -> Any:
    """Return the graph of the 10 nearest neighbours of random points: in the plane, in blobs or on a sphere."""
    rng = np.random.default_rng(0)
    if kind == "plane":
        samples = rng.random((n, 2))
    elif kind == "blobs":
        centres = 3 * rng.standard_normal((20, 20))
        samples = centres[rng.integers(20, size=n)] + rng.standard_normal((n, 20))
    else:
        samples = rng.standard_normal((n, 5))
        samples /= np.linalg.norm(samples, axis=1, keepdims=True)
    return self_tuning_graph(samples, 10)


def blocks(n: int) -> Any:
    """Return a block model: blocks of 200 nodes, 12 links of a node inside its block and 2 to others."""
    rng = np.random.default_rng(0)
    block = np.arange(n) // 200
    inside = rng.integers(n, size=6 * n)
    partner = np.minimum(200 * block[inside] + rng.integers(200, size=6 * n), n - 1)
    others = rng.integers(n, size=(2, n))
    return adjacency(n, np.append(inside, others[0]), np.append(partner, others[1]))


def power_law(n: int) -> Any:
    """Return a graph of Chung and Lu: 5 n links, with degrees that follow a power law with exponent 2.5."""
    rng = np.random.default_rng(0)
    weights = (np.arange(n) + 10.0) ** (-1 / 1.5)
    ends = rng.choice(n, size=(2, 5 * n), p=weights / weights.sum())
    return adjacency(n, *ends)


def adjacency(n: int, i: np.ndarray, j: np.ndarray) -> Any:
    """Return the adjacency matrix of links, without loops and with each link once."""
    i, j = i[i != j], j[i != j]
    M = sparse.coo_array((np.ones(2 * len(i)), (np.append(i, j), np.append(j, i))), shape=(n, n)).tocsr()
    M.data[:] = 1
    return M


def graph(kind: str, n: int) -> Any:
    """Return a graph by the name of its kind; PubMed has its own size."""
    if kind in ("plane", "blobs", "sphere"):
        return points(kind, n)
    return {"blocks": blocks, "power law": power_law, "PubMed": lambda n: load_graph("pubmed").M}[kind](n)
