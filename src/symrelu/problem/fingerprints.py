"""A hash of a matrix, by which a checkpoint knows its data again."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse


def fingerprint(matrix: Any) -> str | None:
    """Return a hash of a checked matrix, or None of None: equal for equal entries, dense or sparse."""
    if matrix is None:
        return None
    digest = hashlib.sha256(f"{matrix.dtype} {matrix.shape}".encode())
    step = 1024
    for first in range(0, matrix.shape[0], step):
        rows = sparse.csr_array(matrix[first : first + step])
        rows.sort_indices()
        for part in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data):
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
