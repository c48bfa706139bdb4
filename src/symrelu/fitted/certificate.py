"""The proof that vectors give back the neighbours of a graph: every pair is checked, none is sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.kernels.neighbor_counts import PairCounts, Uncertainty, certain_counts, edges_of
from symrelu.kernels.threads import single_threaded_blas
from symrelu.plots.cards import card

# The precision in which an index is assumed to compute inner products, also of vectors stored in float16.
ARITHMETIC = np.float32


@dataclass(frozen=True)
class Certificate:
    """How many pairs of items a threshold on the inner products of their vectors classifies wrongly.

    All pairs of different items are counted, each once. A pair also counts as wrong if its score is so close to
    the threshold that rounding in float32 could put it on the other side.

    Attributes
    ----------
    wrong_pairs : int
        Number of wrong pairs, ``missing + extra``.
    missing, extra : int
        Wrong pairs that are edges of the graph, and wrong pairs that are not.
    n_pairs, n_edges : int
        Number of pairs, and of edges among them.
    margin : float
        The smallest distance of a score from the threshold on its right side, less its rounding error in
        float32 arithmetic with any order of summation. Positive exactly if no pair is wrong.
    threshold : float
        A number that float32 represents exactly. Pairs with a score above it are found.

    See Also
    --------
    symrelu.NeighborEmbedding : Finds such vectors.
    """

    wrong_pairs: int
    missing: int
    extra: int
    n_pairs: int
    n_edges: int
    margin: float
    threshold: float

    def __str__(self) -> str:
        if self.exact:
            return f"exact: 0 wrong of {self.n_pairs} pairs, {self.n_edges} edges, margin {self.margin:.3g}"
        return (
            f"not exact: {self.wrong_pairs} wrong of {self.n_pairs} pairs ({self.missing} of {self.n_edges} "
            f"edges missing, {self.extra} other pairs found)"
        )

    def _repr_html_(self) -> str:
        """The card that notebooks show."""
        rows = [
            ("wrong pairs", f"{self.wrong_pairs:,} of {self.n_pairs:,}"),
            ("edges missing", f"{self.missing:,} of {self.n_edges:,}"),
            ("other pairs found", f"{self.extra:,}"),
            ("recall, precision", f"{self.recall:.6g}, {self.precision:.6g}"),
            ("threshold", f"{self.threshold:.6g}"),
            ("margin", f"{self.margin:.3g}"),
        ]
        note = "Every pair was checked, rounding in float32 included."
        return card(f"Certificate: {'exact' if self.exact else 'not exact'}", rows, note=note)

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


def certify(
    vectors: np.ndarray,
    signature: np.ndarray,
    graph: Any,
    threshold: float,
    *,
    count: Callable[..., PairCounts] = certain_counts,
) -> Certificate:
    """Check every pair of items.

    Parameters
    ----------
    vectors : ndarray of shape (n, rank)
        As they are stored, in float16 or float32.
    signature : ndarray of shape (rank,)
        The score of items i and j is (signature * vectors[i]) . vectors[j].
    graph : csr_array of shape (n, n)
        Symmetric; its stored entries are the edges. Its diagonal is empty.
    threshold : float
        Rounded to float32, in which an index compares.
    count : callable
        Compares the scores, like :func:`symrelu.kernels.neighbor_counts.certain_counts`.

    Returns
    -------
    certificate : Certificate
        Pairs of a vector with NaN or infinity are wrong.
    """
    n, rank = vectors.shape
    items = vectors.astype(np.float64)  # exact, and products of two such numbers are too
    threshold = float(ARITHMETIC(threshold))
    with single_threaded_blas(), np.errstate(invalid="ignore"):  # the rows are distributed over threads
        counts = count(
            items * signature.astype(np.float64),
            items,
            edges_of(graph.sorted_indices()),
            threshold,
            rounding_of_sums(rank),
        )
    return Certificate(
        wrong_pairs=counts.missing + counts.extra,
        missing=counts.missing,
        extra=counts.extra,
        n_pairs=n * (n - 1) // 2,
        n_edges=graph.nnz // 2,
        margin=counts.margin,
        threshold=threshold,
    )


def rounding_of_sums(terms: int) -> Uncertainty:
    """Return how far an inner product in float32 may be from the exact one, for any order of summation.

    Parameters
    ----------
    terms : int

    Returns
    -------
    uncertainty : Uncertainty
    """
    limits = np.finfo(ARITHMETIC)
    # |computed - exact| <= terms u / (1 - terms u) sum |q_k v_k| with u = eps / 2, and the sum is at most
    # |q| |v|. eps in place of u, and one more term, cover the rounding in float64 here.
    share = (terms + 1) * float(limits.eps)
    # Each product, and each sum on processors that flush to zero, may lose a number below ``tiny``. Partial
    # sums are below twice |q| |v|.
    return Uncertainty(share / (1 - share), 2 * terms * float(limits.tiny), float(limits.max) / 2)
