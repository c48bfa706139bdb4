"""M as an n x n array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from symrelu.kernels.tiles import DenseTiles
from symrelu.operators.host import shared_property
from symrelu.operators.tiled import TiledOperator

# M is nonnegative, so a negative number can mark an unobserved entry.
UNKNOWN = -1.0


class DenseOperator(TiledOperator):
    """A dense M, compared with X tile by tile.

    Parameters
    ----------
    M : C-contiguous ndarray of shape (n, n)
        Not copied if everything is observed, else copied once.
    unknown : csr_array of bool, ndarray of bool, or None
        True where the entry is unobserved.
    **settings
        signature, alpha and zero_weight of :class:`~symrelu.operators.base.Operator`, and tile.
    """

    holds_all_pairs = True

    def __init__(self, M: np.ndarray, unknown: Any | None = None, **settings: Any) -> None:
        unknown = None if unknown is None else csr_array(unknown)
        self._coded = M if unknown is None else _mark_unknown(M, unknown)
        # Row by row, so that the float64 copy of a float32 M is one row, not n x n.
        observed_squares = (float(_positive_square_sum(row)) for row in self._coded)
        norm = sum(observed_squares) ** 0.5
        super().__init__(n=len(M), dtype=M.dtype, norm=norm, unknown=unknown, **settings)

    @classmethod
    def of(cls, M: Any, unknown: Any | None, **settings: Any) -> DenseOperator:
        """Return the operator of a checked matrix and its unobserved entries."""
        return cls(M if isinstance(M, np.ndarray) else M.toarray(), unknown, **settings)

    def matmul(self, V: np.ndarray) -> np.ndarray:
        if self._unknown is None:
            return self._coded @ V
        # In blocks of rows, because clipping the marked entries at once would take another n x n array.
        starts = range(0, self.n, self.tile)
        return np.concatenate([np.maximum(0, self._coded[k : k + self.tile]) @ V for k in starts])

    def row_maxima(self) -> np.ndarray:
        return np.maximum(0, self._coded.max(axis=1))

    @shared_property
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        # In blocks of rows, because comparing all of M at once would take n x n booleans.
        starts = range(0, self.n, self.tile)
        parts = [np.nonzero(self._coded[k : k + self.tile] > 0) for k in starts]
        sizes = [min(self.tile, self.n - k) for k in starts]
        counts = [np.bincount(rows, minlength=size) for (rows, _), size in zip(parts, sizes, strict=True)]
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return indptr, np.concatenate([cols.astype(np.int32) for _, cols in parts])

    def _tiles(self) -> DenseTiles:
        # The weight in the dtype of M: with a Python float, the kernel would compute in float64.
        return DenseTiles(self._coded, self.dtype.type(self.zero_weight))


def _mark_unknown(M: np.ndarray, unknown: Any) -> np.ndarray:
    coded = M.copy()
    coded[unknown.nonzero()] = UNKNOWN
    return coded


def _positive_square_sum(row: np.ndarray) -> float:
    positive = np.maximum(row, 0).astype(np.float64, copy=False)
    return float(positive @ positive)
