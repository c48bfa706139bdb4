"""A few leading eigenpairs by ARPACK: the same for the same seed, and what it has found where it gives up."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh


def arpack_suits(k: int, n: int) -> bool:
    """Whether k eigenpairs of an n x n matrix are few enough.

    ARPACK needs k well below n, and k vectors beyond that are themselves half as large as the matrix: there
    is then room for a dense method, which finds all of them.
    """
    return 2 * k < n


def search_vectors(n: int, rng: Any) -> tuple[np.ndarray, np.random.Generator]:
    """Return the vector that a search starts from, and the source of those it draws where eigenvalues repeat.

    ARPACK would take both from the system, and find other vectors in each run.
    """
    v0 = rng.standard_normal(n)
    return v0, np.random.default_rng(v0.view(np.uint64))


def largest_eigenpairs(
    A: Any, k: int, v0: np.ndarray, further: Any, *, by_magnitude: bool, tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return up to k of the largest eigenvalues, with their eigenvectors, as far as ARPACK finds them.

    Parameters
    ----------
    A : sparse array, ndarray or LinearOperator of shape (n, n)
        Symmetric.
    k : int
    v0, further : ndarray of shape (n,), Generator
        As :func:`search_vectors` returns them.
    by_magnitude : bool
        Whether large negative eigenvalues count as well.
    tolerance : float, default=0.0
        Relative, on the eigenvalues; zero stands for the precision of the type.

    Returns
    -------
    values : ndarray of shape (found,)
        In no particular order. There are fewer than k, or none, where ARPACK gave up, as it may where A has
        few distinct eigenvalues.
    vectors : ndarray of shape (n, found)
    """
    which = "LM" if by_magnitude else "LA"
    try:
        return eigsh(A, k=k, which=which, v0=v0.astype(A.dtype), tol=tolerance, rng=further)
    except ArpackNoConvergence as unfinished:
        return unfinished.eigenvalues, unfinished.eigenvectors
    except ArpackError:
        return np.empty(0, A.dtype), np.empty((A.shape[0], 0), A.dtype)
