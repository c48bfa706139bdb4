"""The truncated eigendecomposition: the best approximation of M itself by a matrix of that rank."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from symrelu.baselines.linear import LinearModelOperator
from symrelu.kernels.threads import single_threaded_blas
from symrelu.solution import History, Record, Solution, Status
from symrelu.validation import check_integer, check_similarity, random_generator, scale_exponent, scaled


def truncated_eigen(M: Any, rank: int, *, positive: bool = False, random_state: Any = 0) -> Solution:
    """Return the eigenpairs of largest magnitude, the best linear approximation of that rank.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
    rank : int
        Number of eigenpairs, from 1 to n.
    positive : bool, default=False
        Keep the largest eigenvalues instead, as far as they are positive: the best approximation by a
        positive semidefinite matrix, so that no U U^T of that rank has a lower error.
    random_state : None, int, Generator or RandomState
        Seed of ARPACK's first vector.

    Returns
    -------
    solution : Solution
        ``relative_error`` is ||M - X|| / ||M||, without a ReLU. The columns may have either sign. It is a
        stationary point of 1/2 ||M - X||^2, which is the status it is given.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.baselines import truncated_eigen
    >>> round(truncated_eigen(np.diag([3.0, 4.0]), rank=1).relative_error, 12)
    0.6
    """
    begin = time.perf_counter()
    M = check_similarity(M)
    check_integer("rank", rank, 1, M.shape[0], note=" (the size of M)")
    k = scale_exponent(M)
    M = scaled(M, k)
    with single_threaded_blas():  # the same digits on any number of threads
        values, vectors = _eigenpairs(M, rank, "LA" if positive else "LM", random_state)
        size = np.maximum(values, 0) if positive else np.abs(values)
        leading = np.argsort(-size, kind="stable")[:rank]
        U = np.ascontiguousarray(vectors[:, leading] * np.sqrt(size[leading]))
        signature = np.where((values[leading] < 0) & (size[leading] > 0), -1.0, 1.0)
        op = LinearModelOperator(M, signature)
        loss = op.loss(U).loss
    error = op.relative_error(loss)
    loss = loss * 16.0**k
    record = Record(0, op.evaluations, time.perf_counter() - begin, error, loss, loss, 0.0)
    return Solution(
        U=np.ldexp(U, k),
        signature=op.signature,
        alpha=0.0,
        status=Status.GRADIENT,
        n_iter=0,
        n_evaluations=op.evaluations,
        relative_error=error,
        norm=op.norm * 4.0**k,
        objective=loss,
        history=History.from_records([record]),
        solver="truncated_eigen",
        relu=False,
    )


def _eigenpairs(M: Any, rank: int, which: str, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return at least the asked eigenpairs: all of them where ARPACK would not do."""
    n = M.shape[0]
    if 2 * rank >= n:
        values, vectors = np.linalg.eigh(M.toarray() if sparse.issparse(M) else M)
    else:
        v0 = random_generator(random_state).standard_normal(n)
        further = np.random.default_rng(v0.view(np.uint64))  # vectors that it draws where eigenvalues repeat
        values, vectors = eigsh(M, k=rank, which=which, v0=v0.astype(M.dtype), rng=further)
    return values, vectors
