"""M as a scipy sparse array: memory proportional to the number of entries, never n x n."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.sparse_products import sparse_product
from symrelu.kernels.tiles import PackedEntries, SparseTiles, pack_entries
from symrelu.operators.host import shared_property
from symrelu.operators.tiled import TiledOperator


class SparseOperator(TiledOperator):
    """A sparse M, compared with X tile by tile.

    Parameters
    ----------
    M : csr_array of shape (n, n)
        Canonical (sorted, no duplicates), with positive stored entries.
    unknown : csr_array of bool, or None
        True where the entry is unobserved.
    **settings
        signature, alpha, zero_weight and at_least of :class:`~symrelu.operators.base.Operator`, and tile.
    """

    def __init__(self, M: Any, unknown: Any | None = None, **settings: Any) -> None:
        if unknown is not None:
            M = sparse.csr_array(M - M.multiply(unknown))
            M.eliminate_zeros()  # a stored zero would count as an entry of the support
        self._M = M
        norm = float(np.linalg.norm(M.data.astype(np.float64, copy=False)))
        super().__init__(n=M.shape[0], dtype=M.dtype, norm=norm, unknown=unknown, **settings)

    @classmethod
    def of(cls, M: Any, unknown: Any | None, **settings: Any) -> SparseOperator:
        """Return the operator of a checked matrix and its unobserved entries."""
        return cls(sparse.csr_array(M), unknown, **settings)

    def matmul(self, V: np.ndarray) -> np.ndarray:
        return sparse_product(self._M, V)

    def row_maxima(self) -> np.ndarray:
        return self._M.max(axis=1).toarray()

    @shared_property
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        return self._M.indptr.astype(np.int64, copy=False), self._M.indices.astype(np.int32, copy=False)

    def _support_values(self) -> np.ndarray:
        return self._M.data

    def _tiles(self) -> SparseTiles:
        return SparseTiles(*self._packed(), *self._settings_of_tiles())

    def _packed(self) -> tuple[PackedEntries, PackedEntries]:
        """Return the positive and the unobserved entries, sorted by tile."""
        side, *packed = self._shared.get("packed", (None,))
        # Models of other ranks may have other tiles. Only the latest are kept: sorting takes less than a pass.
        if side != self.side:
            unknown = sparse.csr_array(self._M.shape, dtype=bool) if self._unknown is None else self._unknown
            packed = [_pack(self._M, self.side), _pack(unknown, self.side)]
            self._shared["packed"] = (self.side, *packed)
        support, hidden = packed
        return support, hidden


def _pack(matrix: Any, side: int) -> PackedEntries:
    entries = matrix.tocoo()
    rows, cols = entries.coords
    return pack_entries(rows, cols, entries.data, matrix.shape, symmetric=True, tile=side)
