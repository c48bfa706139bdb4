"""Hashes of a matrix, by which a checkpoint recognises its data, and an estimator the rows it was fitted to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

_ROWS_AT_ONCE = 1024  # so that a dense matrix is never held as a sparse one
_ROW_BYTES = 16
_EMPTY_ROW = hashlib.blake2b(digest_size=_ROW_BYTES).digest()


def fingerprint(matrix: Any) -> str | None:
    """Return a hash of a checked matrix, the same for dense and sparse; None for None."""
    if matrix is None:
        return None
    digest = hashlib.sha256(f"{matrix.dtype} {matrix.shape}".encode())
    for rows, indices in _sparse_blocks(matrix):
        for part in (rows.indptr.astype(np.int64), indices, rows.data):
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class RowIndex:
    """The rows of a fitted matrix and of its mask as hashes, to recognise them without keeping the matrix.

    Attributes
    ----------
    rows : ndarray of 16 bytes each, of shape (n,)
        Hashes of the nonzeros of each row.
    masks : ndarray of 16 bytes each, of shape (n,), or None
        Hashes of the unobserved entries of each row; None if there are none.
    """

    rows: np.ndarray
    masks: np.ndarray | None

    @classmethod
    def of(cls, matrix: Any, mask: Any | None) -> RowIndex:
        """Return the index of a matrix with zeros at the masked entries, and of its mask.

        Parameters
        ----------
        matrix : csr_array or ndarray of shape (n, n)
        mask : csr_array or ndarray of bool of shape (n, n), or None

        Returns
        -------
        index : RowIndex
        """
        return cls(_row_hashes(matrix), None if mask is None else _row_hashes(mask))

    def find(self, rows: Any, mask: Any | None) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are in the index.

        Parameters
        ----------
        rows : csr_array or ndarray of shape (n_new, n)
            Zero where masked.
        mask : csr_array or ndarray of bool of shape (n_new, n), or None

        Returns
        -------
        places : ndarray of int of shape (n_new,)
            The first row of the index with the same nonzeros, -1 if there is none.
        same_mask : ndarray of bool of shape (n_new,)
            Whether the mask of that row is the same too.
        """
        # In reverse, so that the first of equal rows stays.
        first = {row: place for place, row in reversed(list(enumerate(self.rows.tolist())))}
        places = np.array([first.get(row, -1) for row in _row_hashes(rows).tolist()], np.int64)
        masks = [_EMPTY_ROW] * len(places) if mask is None else _row_hashes(mask).tolist()
        fitted = [_EMPTY_ROW] * len(self.rows) if self.masks is None else self.masks.tolist()
        same = (place >= 0 and fitted[place] == one for place, one in zip(places, masks, strict=True))
        return places, np.fromiter(same, bool, len(places))


def _row_hashes(matrix: Any) -> np.ndarray:
    """Return a hash of the nonzeros of each row, the same for dense and sparse, float32 and float64."""
    hashes = []
    for rows, indices in _sparse_blocks(matrix):
        values, ends = rows.data.astype(np.float64), rows.indptr.tolist()
        for k, end in pairwise(ends):
            content = indices[k:end].tobytes() + values[k:end].tobytes()
            hashes.append(hashlib.blake2b(content, digest_size=_ROW_BYTES).digest())
    return np.array(hashes, np.dtype((np.void, _ROW_BYTES)))


def _sparse_blocks(matrix: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield blocks of rows as csr_arrays, with their column indices as int64."""
    for first in range(0, matrix.shape[0], _ROWS_AT_ONCE):
        rows = sparse.csr_array(matrix[first : first + _ROWS_AT_ONCE])
        rows.sort_indices()
        # The index type depends on the size of the block, the hash must not.
        yield rows, rows.indices.astype(np.int64)
