"""The truncated eigendecomposition: the best approximation of M itself by a matrix of that rank."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from symrelu.start import random_generator
from symrelu.validation import check_integer, check_similarity


class TruncatedEigen(NamedTuple):
    """Result of :func:`truncated_eigen`: M ~ (U * signature) U^T.

    Attributes
    ----------
    U : ndarray of shape (n, rank)
        Eigenvectors times root of the magnitude of their eigenvalues.
    signature : ndarray of shape (rank,)
        Signs of the eigenvalues.
    relative_error : float
        ||M - (U * signature) U^T|| / ||M||, without a ReLU.
    """

    U: np.ndarray
    signature: np.ndarray
    relative_error: float


def truncated_eigen(M: Any, rank: int, *, random_state: Any = 0) -> TruncatedEigen:
    """Return the eigenpairs of largest magnitude, the best linear approximation of that rank.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
    rank : int
        Number of eigenpairs, from 1 to n.
    random_state : None, int, Generator or RandomState
        Seed of ARPACK's first vector.

    Returns
    -------
    result : TruncatedEigen

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.baselines import truncated_eigen
    >>> round(truncated_eigen(np.diag([3.0, 4.0]), rank=1).relative_error, 12)
    0.6
    """
    M = check_similarity(M)
    n = M.shape[0]
    check_integer("rank", rank, 1, n, note=" (the size of M)")
    if 2 * rank >= n:
        values, vectors = np.linalg.eigh(M.toarray() if sparse.issparse(M) else M)
    else:
        v0 = random_generator(random_state).standard_normal(n).astype(M.dtype)
        values, vectors = eigsh(M, k=rank, which="LM", v0=v0)
    leading = np.argsort(-np.abs(values), kind="stable")[:rank]
    values, vectors = values[leading], vectors[:, leading]
    total = float(np.sum(np.square(M.data if sparse.issparse(M) else M, dtype=np.float64)))
    left = max(0.0, 1 - float(np.sum(np.square(values, dtype=np.float64))) / total)
    return TruncatedEigen(vectors * np.sqrt(np.abs(values)), np.where(values < 0, -1.0, 1.0), math.sqrt(left))
