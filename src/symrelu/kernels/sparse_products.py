"""The product of a sparse matrix and a few columns, shared among threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.threads import run_tasks, slices, workers_for

# A stored entry is read from memory together with a row of V. That takes as long as this many multiplications
# in a matrix product.
_WORK_OF_AN_ENTRY = 20

_BLOCKS_PER_WORKER = 4  # their rows may have different numbers of entries


def sparse_product(M: Any, V: np.ndarray) -> np.ndarray:
    """Return M V, computed by SciPy in blocks of rows: a row does not depend on the others.

    Parameters
    ----------
    M : csr_array of shape (p, q)
    V : ndarray of shape (q, columns)

    Returns
    -------
    product : ndarray of shape (p, columns)
    """
    workers = workers_for(M.nnz * (V.shape[1] + _WORK_OF_AN_ENTRY))
    if workers == 1:
        return M @ V
    out = np.empty((M.shape[0], V.shape[1]), np.result_type(M, V))

    def multiply(rows: slice) -> None:
        begin, end = M.indptr[rows.start], M.indptr[rows.stop]
        # Views, which SciPy does not copy; M[rows] would.
        parts = M.data[begin:end], M.indices[begin:end], M.indptr[rows.start : rows.stop + 1] - begin
        out[rows] = sparse.csr_array(parts, shape=(rows.stop - rows.start, M.shape[1])) @ V

    rows_of_a_block = -(-len(out) // (workers * _BLOCKS_PER_WORKER))  # rounded up
    run_tasks(multiply, slices(len(out), rows_of_a_block), workers)
    return out
