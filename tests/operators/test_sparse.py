"""The operator of sparse matrices."""

import numpy as np
from scipy import sparse

from symrelu.operators import SparseOperator


def test_sparse_operator_memory_is_that_of_the_entries():
    n = 20_000
    M = sparse.csr_array(sparse.diags_array(np.ones(n)))
    op = SparseOperator(M, None, signature=np.ones(2))
    held = [
        *(array for packed in op._packed() for array in packed[:4]),
        op._M.data,
        op._M.indices,
        op._M.indptr,
    ]
    assert sum(array.nbytes for array in held) < 100 * n
