"""The proof that vectors give back the neighbours of a graph: every pair is checked, none is sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.kernels.neighbor_counts import certain_counts, edges_of
from symrelu.kernels.threads import single_threaded_blas

# The precision in which an index is assumed to compute inner products, also of vectors stored in float16.
ARITHMETIC = np.float32


@dataclass(frozen=True)
class Certificate:
    """How many pairs of items a threshold on the inner products of their vectors classifies wrongly.

    Attributes
    ----------
    wrong_pairs : int
        Pairs of different items, each counted once, that are wrong or too close to the threshold to be certain.
    missing, extra : int
        Those among them that are edges of the graph, and those that are not.
    n_pairs, n_edges : int
        All pairs of different items, and the edges among them.
    margin : float
        The least distance of a score from the threshold on its right side, less its rounding error in float32
        arithmetic with any order of summation. Negative or zero if a pair is wrong.
    threshold : float
    """

    wrong_pairs: int
    missing: int
    extra: int
    n_pairs: int
    n_edges: int
    margin: float
    threshold: float

    @property
    def exact(self) -> bool:
        """Whether the items with a score above the threshold are exactly the neighbours, for every item."""
        return self.wrong_pairs == 0

    @property
    def recall(self) -> float:
        """The share of the edges that are found; 1 if there are none."""
        return (self.n_edges - self.missing) / self.n_edges if self.n_edges else 1.0

    @property
    def precision(self) -> float:
        """The share of edges among the pairs that are found; 1 if none is found."""
        found = self.n_edges - self.missing + self.extra
        return (self.n_edges - self.missing) / found if found else 1.0


def certify(vectors: np.ndarray, signature: np.ndarray, graph: Any, threshold: float) -> Certificate:
    """Check every pair of items.

    Parameters
    ----------
    vectors : ndarray of shape (n, rank)
        As they are stored, in float16, float32 or float64.
    signature : ndarray of shape (rank,)
        The score of items i and j is (signature * vectors[i]) . vectors[j].
    graph : csr_array of shape (n, n)
        Symmetric; its stored entries are the edges. Its diagonal is empty.
    threshold : float

    Returns
    -------
    certificate : Certificate
    """
    n, rank = vectors.shape
    items = vectors.astype(np.float64)  # exact, and products of two such numbers are nearly so
    eps = float(np.finfo(ARITHMETIC).eps)
    # For any order of summation, |computed - exact| <= rank eps / (1 - rank eps) sum |q_k v_k|, which is at
    # most this times |q| |v|. One more eps covers the rounding of the sums in float64 here.
    uncertainty = (rank + 1) * eps / (1 - (rank + 1) * eps)
    with single_threaded_blas():  # the rows are distributed over threads
        counts = certain_counts(items * signature, items, edges_of(graph), float(threshold), uncertainty)
    # Scores are symmetric: each pair was counted in both directions.
    missing, extra = counts.missing // 2, counts.extra // 2
    return Certificate(
        wrong_pairs=missing + extra,
        missing=missing,
        extra=extra,
        n_pairs=n * (n - 1) // 2,
        n_edges=graph.nnz // 2,
        margin=counts.margin,
        threshold=float(threshold),
    )
