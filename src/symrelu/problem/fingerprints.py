"""Hashes of a matrix, by which a checkpoint recognises its data, and an estimator the rows it was fitted to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files import check_names

_ROW_BYTES = 16
_EMPTY_ROW = hashlib.blake2b(digest_size=_ROW_BYTES).digest()


def fingerprint(matrix: Any) -> str | None:
    """Return a hash of a checked matrix, the same for dense and sparse; None for None."""
    if matrix is None:
        return None
    digest = hashlib.sha256(f"{matrix.dtype} {matrix.shape}".encode())
    step = 1024  # rows at a time, so that a dense matrix is never held as a sparse one
    for first in range(0, matrix.shape[0], step):
        rows = sparse.csr_array(matrix[first : first + step])
        rows.sort_indices()
        # The index type depends on the size of the block, the hash must not.
        for part in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data):
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class RowIndex:
    """The rows of a fitted matrix and of its mask as hashes, to recognise them without keeping the matrix.

    For fits that ignore the diagonal: a row is recognised with its own entry, the one on the diagonal, and also
    if that is zero or masked.

    Attributes
    ----------
    rows : ndarray of 16 bytes each, of shape (n,)
        Hashes of the nonzeros of each row.
    without_own : ndarray of 16 bytes each, of shape (n,)
        The same without the own entry of each row.
    masks : ndarray of 16 bytes each, of shape (n,), or None
        Hashes of the unobserved entries of each row, without its own; None if there are none.
    """

    rows: np.ndarray
    without_own: np.ndarray
    masks: np.ndarray | None

    def entries(self) -> dict[str, np.ndarray]:
        """Return the hashes as entries of an archive, which :meth:`of_entries` reads."""
        entries = {"rows": self.rows}
        if self.without_own is not self.rows:
            entries["without_own"] = self.without_own
        if self.masks is not None:
            entries["masks"] = self.masks
        return {name: hashes.view(np.uint8).reshape(-1, _ROW_BYTES) for name, hashes in entries.items()}

    @classmethod
    def of_entries(cls, entries: dict[str, np.ndarray], n: int) -> RowIndex:
        """Return the index of n rows in an archive, or raise an error that the caller completes."""
        check_names("its row index", entries, {"rows"}, {"without_own", "masks"})
        hashes = {name: _hashes_of_bytes(name, array, n) for name, array in entries.items()}
        return cls(hashes["rows"], hashes.get("without_own", hashes["rows"]), hashes.get("masks"))

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
        rows, own = _row_hashes(matrix), np.arange(matrix.shape[0])
        without_own = _row_hashes(matrix, own) if matrix.diagonal().any() else rows
        return cls(rows, without_own, None if mask is None else _row_hashes(mask, own))

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
            The first row of the index with the same nonzeros; if there is none, the first that has them without
            its own entry; otherwise -1.
        same_mask : ndarray of bool of shape (n_new,)
            Whether the mask of that row is the same too, except for its own entry.
        """
        first = _first_places(self.without_own) | _first_places(self.rows)
        places = np.array([first.get(row, -1) for row in _row_hashes(rows).tolist()], np.int64)
        masks = [_EMPTY_ROW] * len(places) if mask is None else _row_hashes(mask, places).tolist()
        fitted = [_EMPTY_ROW] * len(self.rows) if self.masks is None else self.masks.tolist()
        same = (place >= 0 and fitted[place] == one for place, one in zip(places, masks, strict=True))
        return places, np.fromiter(same, bool, len(places))


def _hashes_of_bytes(name: str, array: np.ndarray, n: int) -> np.ndarray:
    if array.dtype != np.uint8 or array.shape != (n, _ROW_BYTES):
        raise ValueError(f"{name} of its row index must be {_ROW_BYTES} bytes for each of its {n} rows")
    return np.ascontiguousarray(array).view(np.dtype((np.void, _ROW_BYTES))).ravel()


def _first_places(hashes: np.ndarray) -> dict[bytes, int]:
    """Return where each hash is found first."""
    return {one: place for place, one in reversed(list(enumerate(hashes.tolist())))}


def _row_hashes(matrix: Any, left_out: np.ndarray | None = None) -> np.ndarray:
    """Return a hash of the nonzeros of each row, the same for dense and sparse, float32 and float64.

    ``left_out`` has a column for each row whose entry is taken as zero, or -1.
    """
    hashes = []
    for row, (columns, values) in enumerate(_nonzeros_of_rows(matrix)):
        if left_out is not None:
            kept = columns != left_out[row]
            columns, values = columns[kept], values[kept]
        entries = columns.astype(np.int64).tobytes() + values.astype(np.float64).tobytes()
        hashes.append(hashlib.blake2b(entries, digest_size=_ROW_BYTES).digest())
    return np.array(hashes, np.dtype((np.void, _ROW_BYTES)))


def _nonzeros_of_rows(matrix: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the columns, in ascending order, and the values of the nonzeros of each row."""
    if sparse.issparse(matrix):
        rows = sparse.csr_array(matrix).sorted_indices()
        for begin, end in pairwise(rows.indptr.tolist()):
            yield rows.indices[begin:end], rows.data[begin:end]
    else:  # much faster than by way of a sparse matrix, if most entries are positive
        for row in matrix:
            columns = np.flatnonzero(row)
            yield columns, row[columns]
