"""LinkScores: the model of :class:`symrelu.LinkPredictor`, whose scores always increase with the degrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from symrelu.fitted.models import OneFactor, check_exclude, largest
from symrelu.kernels.memory import batches
from symrelu.kernels.scores import pair_scores, smooth_block
from symrelu.validation import check_integer, check_items, check_number

__all__ = ["LinkScores"]


@dataclass(frozen=True, eq=False, repr=False)
class LinkScores(OneFactor):
    r"""Score pairs by :math:`\sqrt{D_i D_j} \, (X_{ij} + \sqrt{X_{ij}^2 + \sigma^2}) / 2`.

    The fraction is a smooth version of max(0, X). It is about X if X is well above :math:`\sigma`, and about
    :math:`\sigma^2 / (4 |X|)` if X is well below :math:`-\sigma`. All scores are positive, and increase with X
    and with both degrees.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
        Factor of the normalised graph.
    signature : ndarray of shape (rank,)
        Signs of its columns, +1 or -1.
    root_degrees : ndarray of shape (n,)
        Square roots of the regularised degrees D.
    smoothing : float
        The width :math:`\sigma` > 0 of the transition around X = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.fitted import LinkScores
    >>> U = np.array([[1.0, 1.0], [2.0, 0.5], [0.0, 3.0]])
    >>> model = LinkScores(U, np.array([1.0, -1.0]), root_degrees=np.ones(3), smoothing=0.1)
    >>> model.score_pairs(0, [1, 2]).round(4)  # X is 1.5 and -3
    array([1.5017, 0.0008])
    """

    root_degrees: np.ndarray
    smoothing: float

    formula: ClassVar[str] = "M ~ sqrt(D_i D_j) (X + sqrt(X^2 + smoothing^2)) / 2"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.root_degrees.shape != self.U.shape[:1]:
            raise ValueError(
                f"root_degrees must have one entry for each of the {len(self.U)} rows of U, got shape "
                f"{self.root_degrees.shape}."
            )
        check_number("smoothing", self.smoothing, low_included=False)

    @property
    def scoring(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Two factors and scales, from which scores are computed."""
        return *self._factors, self._scales

    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        """Return the scores of pairs.

        Parameters
        ----------
        i, j : array-like of int
            Indices of nodes, with shapes that broadcast.

        Returns
        -------
        scores : ndarray
        """
        i, j = np.broadcast_arrays(check_items("i", i, self.n), check_items("j", j, self.n))
        return pair_scores(*self._factors, i.ravel(), j.ravel(), self._scales).reshape(i.shape)

    def reconstruct(self, rows: Any) -> np.ndarray:
        """Return the scores of some nodes with all nodes.

        Parameters
        ----------
        rows : array-like of int

        Returns
        -------
        scores : ndarray of shape (len(rows), n)
        """
        rows = check_items("rows", rows, self.n)
        return self._block(rows.ravel(), slice(None)).reshape(*rows.shape, self.n)

    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return for each node the k other nodes with the largest scores.

        Parameters
        ----------
        nodes : array-like of int
        k : int
        exclude : sparse or dense matrix of shape (n, n), optional
            Pairs with a nonzero entry are left out.

        Returns
        -------
        items : ndarray of int of shape (len(nodes), k)
            In descending order of score; ties go to the lower index. -1 if there are fewer than k.
        scores : ndarray of shape (len(nodes), k)
            Their scores; minus infinity if there are fewer than k.
        """
        return super().top_k(nodes, k, exclude=exclude)

    def top_links(self, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the k pairs with the largest scores.

        Parameters
        ----------
        k : int
        exclude : sparse or dense matrix of shape (n, n), optional
            Pairs with a nonzero entry, in either direction, are left out.

        Returns
        -------
        pairs : ndarray of int of shape (k, 2)
            In descending order of score; ties go to the lower indices. The lower index of a pair comes first.
            Fewer than k rows if there are fewer pairs.
        scores : ndarray of shape (k,)
            Their scores.
        """
        excluded, n = check_links(k, exclude, self.n), self.n
        pairs, scores = np.empty((0, 2), np.int64), np.empty(0, self.dtype)
        # Peak memory is five times the block: the scores, the better ones, their places, and copies to sort.
        for batch in batches(n - 1, 5 * n * self.dtype.itemsize):
            first = batch.start
            block = self._block(batch, slice(first, None))
            block[np.arange(n - first) <= np.arange(len(block))[:, None]] = -np.inf  # only pairs i < j
            if excluded is not None:
                block[excluded[batch, first:].nonzero()] = -np.inf
            # Pairs are visited in the order of their indices, so a score equal to the k-th best loses the tie.
            better = np.flatnonzero(block > (scores[-1] if len(scores) == k else -np.inf))
            better = better[largest(block.ravel()[better], k)]
            new = first + np.stack(np.divmod(better, block.shape[1]), axis=1)
            scores = np.concatenate([scores, block.ravel()[better]])
            best = largest(scores, k)
            pairs, scores = np.concatenate([pairs, new])[best], scores[best]
        return pairs, scores

    def _block(self, rows: Any, columns: slice) -> np.ndarray:
        """Return a block of the scores."""
        left, right = self._factors
        block = left[rows] @ right[columns].T
        smooth_block(block, self._scales[rows], self._scales[columns])
        return block

    # In these units the smoothing is 1, as the kernels require.
    @cached_property
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        left = self.U / np.sqrt(self.smoothing, dtype=self.dtype)
        return left, left * self.signature

    @cached_property
    def _scales(self) -> np.ndarray:
        return self.root_degrees * np.sqrt(self.smoothing, dtype=self.root_degrees.dtype)


def check_links(k: Any, exclude: Any | None, n: int) -> Any | None:
    """Return the pairs to leave out of a ``top_links`` query, in both directions, validated."""
    check_integer("k", k, 1)
    if exclude is None:
        return None
    excluded = check_exclude(exclude, n).astype(bool)
    return sparse.csr_array(excluded + excluded.T)
