"""A few leading eigenpairs by ARPACK: reproducible, with partial results if it does not converge."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence

from symrelu.kernels.seeded_eigsh import seeded_eigsh


def arpack_applicable(k: int, n: int) -> bool:
    """Return whether k eigenpairs of an n x n matrix are few enough for ARPACK.

    ARPACK needs k well below n. Above n / 2, the vectors alone take half the memory of the matrix, so there is
    room for a dense method, which finds all eigenpairs.
    """
    return 2 * k < n


def search_vectors(n: int, rng: Any) -> tuple[np.ndarray, np.random.Generator]:
    """Return the starting vector, and the generator of restart vectors, which repeated eigenvalues require.

    ARPACK would seed both from the system and return different vectors in each run.
    """
    v0 = rng.standard_normal(n)
    # Seeded by the bits of v0, so that a legacy RandomState works too and is not advanced any further.
    return v0, np.random.default_rng(v0.view(np.uint64))


def largest_eigenpairs(
    A: Any, k: int, v0: np.ndarray, further: Any, *, by_magnitude: bool, tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return up to k of the largest eigenvalues, with their eigenvectors.

    Parameters
    ----------
    A : sparse array, ndarray or LinearOperator of shape (n, n)
        Symmetric.
    k : int
    v0, further : ndarray of shape (n,), Generator
        As :func:`search_vectors` returns them.
    by_magnitude : bool
        Whether to rank eigenvalues by absolute value, so that large negative ones count too.
    tolerance : float, default=0.0
        Relative accuracy of the eigenvalues; 0 means machine precision.

    Returns
    -------
    values : ndarray of shape (found,)
        In no particular order. Fewer than k, possibly none, if ARPACK did not converge, which happens when A
        has few distinct eigenvalues.
    vectors : ndarray of shape (n, found)
    """
    which = "LM" if by_magnitude else "LA"
    try:
        return seeded_eigsh(A, k, which, v0.astype(A.dtype), tolerance, further)
    except ArpackNoConvergence as unfinished:
        return unfinished.eigenvalues, unfinished.eigenvectors
    except ArpackError:  # it failed before any pair converged
        return np.empty(0, A.dtype), np.empty((A.shape[0], 0), A.dtype)


def largest_eigenvalue(A: Any) -> float:
    """Return the largest eigenvalue of a symmetric matrix without negative entries.

    Parameters
    ----------
    A : csr_array or ndarray of shape (n, n)
        In float32 or float64.

    Returns
    -------
    value : float
        The same number in each call, accurate to about eight digits (five in float32).
    """
    n = A.shape[0]
    if not arpack_applicable(1, n):
        return float(np.linalg.eigvalsh(A @ np.eye(n))[-1])  # the product makes a sparse A dense
    v0, further = search_vectors(n, np.random.default_rng(0))
    # The error of an eigenvalue is of the order of the square of this tolerance.
    tolerance = float(np.sqrt(np.finfo(A.dtype).eps))
    values, _ = largest_eigenpairs(A, 1, v0, further, by_magnitude=False, tolerance=tolerance)
    return float(values[0]) if len(values) else _perron_value(A)


def _perron_value(A: Any, steps: int = 300) -> float:
    """Return the largest eigenvalue of a nonnegative matrix by the power method, for when ARPACK fails.

    A positive vector is never orthogonal to an eigenvector of the largest eigenvalue, which has no negative
    entries. The shift separates that eigenvalue from minus itself, which a bipartite graph has too.
    """
    v = np.full(A.shape[0], 1 / np.sqrt(A.shape[0]))
    value = 0.0
    for _ in range(steps):
        product = A @ v
        value = float(v @ product)
        v = product + value * v
        v /= np.linalg.norm(v)
    return value
