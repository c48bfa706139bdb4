"""Small matrices, one for each row of M."""

from __future__ import annotations

from symrelu.kernels.jit import compiled


@compiled
def row_grams(indptr, indices, V, first_row, out):  # type: ignore[no-untyped-def]
    """Set out[k] to the sum of v_j v_j^T over the columns j that row ``first_row + k`` has."""
    rank = V.shape[1]
    for k in range(out.shape[0]):
        gram = out[k]
        gram[:] = 0
        for p in range(indptr[first_row + k], indptr[first_row + k + 1]):
            v = V[indices[p]]
            for a in range(rank):
                for b in range(a + 1):
                    gram[a, b] += v[a] * v[b]
        for a in range(rank):
            for b in range(a):
                gram[b, a] = gram[a, b]
