"""Small graphs, and what a certificate counts, written out as plainly as possible."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

EPS = float(np.finfo(np.float32).eps)


def symmetric(n: int, edges: Any) -> Any:
    """Return a graph of bool without loops, as NeighborEmbedding keeps it."""
    A = np.zeros((n, n), bool)
    for i, j in edges:
        A[i, j] = A[j, i] = True
    return sparse.csr_array(A)


def random_graph(n: int, share: float, seed: int) -> Any:
    rows, columns = np.nonzero(np.triu(np.random.default_rng(seed).random((n, n)) < share, 1))
    return symmetric(n, zip(rows, columns, strict=True))


def grid(height: int, width: int) -> Any:
    right = [(k, k + 1) for k in range(height * width) if (k + 1) % width]
    down = [(k, k + width) for k in range((height - 1) * width)]
    return symmetric(height * width, right + down)


GRAPHS = {
    "path": symmetric(20, [(k, k + 1) for k in range(19)]),
    "cycle": symmetric(16, [(k, (k + 1) % 16) for k in range(16)]),
    "grid": grid(4, 5),
    "star": symmetric(15, [(0, k) for k in range(1, 15)]),
    "complete": symmetric(12, [(i, j) for i in range(12) for j in range(i)]),
    "bipartite": symmetric(11, [(i, j) for i in range(4) for j in range(4, 11)]),
    "tree": symmetric(31, [(k, (k - 1) // 2) for k in range(1, 31)]),
    "sparse": random_graph(40, 0.06, 0),  # with isolated nodes
    "dense": random_graph(18, 0.5, 1),
    "one edge": symmetric(2, [(0, 1)]),
}


class Counted(NamedTuple):
    wrong_pairs: int
    missing: int
    extra: int
    n_pairs: int
    n_edges: int
    recall: float
    precision: float
    margin: float


def counted(vectors: np.ndarray, signature: np.ndarray, graph: Any, threshold: float) -> Counted:
    """Compare all pairs one by one in float64, where the rounding of float32 is (rank + 1) eps |u| |v|."""
    items, threshold = vectors.astype(np.float64), float(np.float32(threshold))
    edge, (n, rank) = graph.toarray(), items.shape
    share = (rank + 1) * EPS
    missing = extra = 0
    margins = []
    for i in range(n):
        for j in range(i + 1, n):
            score = float(np.sum(items[i] * signature * items[j]))
            doubt = share / (1 - share) * float(np.linalg.norm(items[i]) * np.linalg.norm(items[j]))
            beyond = (score - threshold if edge[i, j] else threshold - score) - doubt
            margins.append(beyond)
            missing += bool(edge[i, j] and beyond <= 0)
            extra += bool(not edge[i, j] and beyond <= 0)
    n_edges = int(edge.sum()) // 2
    found = n_edges - missing
    return Counted(
        missing + extra,
        missing,
        extra,
        n * (n - 1) // 2,
        n_edges,
        found / n_edges if n_edges else 1.0,
        found / (found + extra) if found + extra else 1.0,
        min(margins),
    )
