"""A hash of a matrix, by which a checkpoint recognises its data."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse


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
