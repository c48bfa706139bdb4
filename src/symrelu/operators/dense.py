"""M as an n x n array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from symrelu.kernels.threads import run_tasks, slices, workers_for
from symrelu.kernels.tiles import TILE, DenseTiles
from symrelu.operators.host import shared_property
from symrelu.operators.tiled import TiledOperator

# M is nonnegative, so a negative number can mark an unobserved entry.
UNKNOWN = -1.0

# An entry of M is read from memory, which takes as long as this many multiplications in a matrix product.
_WORK_OF_AN_ENTRY = 5


class DenseOperator(TiledOperator):
    """A dense M, compared with X tile by tile.

    Parameters
    ----------
    M : C-contiguous ndarray of shape (n, n)
        Not copied if everything is observed, else copied once.
    unknown : csr_array of bool, ndarray of bool, or None
        True where the entry is unobserved.
    **settings
        signature, alpha, zero_weight and at_least of :class:`~symrelu.operators.base.Operator`, and tile.
    """

    holds_all_pairs = True

    def __init__(self, M: np.ndarray, unknown: Any | None = None, **settings: Any) -> None:
        unknown = None if unknown is None else csr_array(unknown)
        self._coded = M if unknown is None else _mark_unknown(M, unknown)
        # In blocks of rows, because a copy in float64 would take another n x n array.
        norm = sum(_positive_square_sum(self._coded[rows]) for rows in slices(len(M), TILE)) ** 0.5
        super().__init__(n=len(M), dtype=M.dtype, norm=norm, unknown=unknown, **settings)

    @classmethod
    def of(cls, M: Any, unknown: Any | None, **settings: Any) -> DenseOperator:
        """Return the operator of a checked matrix and its unobserved entries."""
        return cls(M if isinstance(M, np.ndarray) else M.toarray(), unknown, **settings)

    def matmul(self, V: np.ndarray) -> np.ndarray:
        if self.n <= TILE:
            return self._known(slice(None)) @ V
        out = np.empty((self.n, V.shape[1]), self.dtype)

        # In blocks that do not depend on the number of threads, because the last digits depend on them.
        def multiply(rows: slice) -> None:
            out[rows] = self._known(rows) @ V

        work = self.n**2 * (V.shape[1] + _WORK_OF_AN_ENTRY)
        run_tasks(multiply, slices(self.n, TILE), workers_for(work))
        return out

    def _known(self, rows: slice) -> np.ndarray:
        """Return rows of M with zeros in place of the unobserved entries."""
        block = self._coded[rows]
        return block if self._unknown is None else np.maximum(0, block)

    def row_maxima(self) -> np.ndarray:
        return np.maximum(0, self._coded.max(axis=1))

    @shared_property
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        # In blocks of rows, because comparing all of M at once would take n x n booleans.
        blocks = slices(self.n, TILE)
        parts = [np.nonzero(self._coded[rows] > 0) for rows in blocks]
        sizes = [rows.stop - rows.start for rows in blocks]
        counts = [np.bincount(rows, minlength=size) for (rows, _), size in zip(parts, sizes, strict=True)]
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return indptr, np.concatenate([cols.astype(np.int32) for _, cols in parts])

    def _support_values(self) -> np.ndarray:
        indptr, indices = self.support
        return self._coded[np.repeat(np.arange(self.n), np.diff(indptr)), indices]

    def _tiles(self) -> DenseTiles:
        return DenseTiles(self._coded, *self._settings_of_tiles())


def _mark_unknown(M: np.ndarray, unknown: Any) -> np.ndarray:
    coded = M.copy()
    coded[unknown.nonzero()] = UNKNOWN
    return coded


def _positive_square_sum(block: np.ndarray) -> float:
    positive = np.maximum(block, 0).astype(np.float64, copy=False)
    return float(np.sum(np.square(positive, out=positive)))
