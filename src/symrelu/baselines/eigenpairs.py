"""The truncated eigendecomposition: the best approximation of M itself by a matrix of given rank.

The Krylov space of one vector contains one direction of each eigenspace, so ARPACK finds further copies of a
repeated eigenvalue only through rounding errors, or not at all; and a normalised graph with six components has
six eigenvalues equal to one. The orthogonal complement of the eigenvectors found so far is therefore searched
from a new random vector, until it contains no larger eigenvalue (deflation).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from symrelu.baselines.linear import LinearModelOperator
from symrelu.fit.settings import check_rank
from symrelu.fitted.history import History, Record, Status
from symrelu.fitted.models import Linear
from symrelu.fitted.solution import Solution
from symrelu.kernels.arpack import arpack_applicable, largest_eigenpairs, search_vectors
from symrelu.kernels.threads import single_threaded_blas
from symrelu.problem import complete
from symrelu.validation import as_array, random_generator

_ROUNDING = 100  # times eps: relative difference of eigenvalues that rounding errors can cause
_ACCURACY = 1e-8  # of eigenvectors, relative to the largest eigenvalue; eigenvalues have twice the digits
_BASIS = 40  # vectors of a Krylov space; a restart keeps the better half
_MOST_RESTARTS = 500


def truncated_eigen(M: Any, rank: int, *, positive: bool = False, random_state: Any = 0) -> Solution:
    """Return the eigenpairs of largest magnitude, the best linear approximation of given rank.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
    rank : int
        Number of eigenpairs, from 1 to n.
    positive : bool, default=False
        Keep the largest positive eigenvalues instead: the best approximation by a positive semidefinite
        matrix, so no U U^T of this rank has a lower error.
    random_state : None, int, Generator or RandomState
        Seed of the starting vectors of the eigensolver.

    Returns
    -------
    solution : Solution
        ``relative_error`` is ||M - X|| / ||M||, without a ReLU. The signature may contain both signs. The
        status is ``GRADIENT``, since this is a stationary point of 1/2 ||M - X||^2.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.baselines import truncated_eigen
    >>> round(truncated_eigen(np.diag([3.0, 4.0]), rank=1).relative_error, 12)
    0.6
    """
    begin = time.perf_counter()
    problem = complete(M)
    check_rank(rank, problem.n)
    M, k = problem.scaled, problem.exponent
    with single_threaded_blas():  # so that the digits do not depend on the number of threads
        values, vectors = _eigenpairs(M, rank, positive, random_state)
        size = np.maximum(_size(values, positive), 0)
        leading = np.argsort(-size, kind="stable")[:rank]
        U = np.ascontiguousarray(vectors[:, leading] * np.sqrt(size[leading]))
        signature = np.where((values[leading] < 0) & (size[leading] > 0), -1.0, 1.0)
        op = LinearModelOperator(M, signature)
        loss = op.loss(U).loss
    error = op.relative_error(loss)
    with np.errstate(over="ignore"):  # infinite beyond the range of floats, as in every history
        loss, norm = float(np.ldexp(loss, 4 * k)), float(np.ldexp(op.norm, 2 * k))
    record = Record(0, op.evaluations, time.perf_counter() - begin, error, loss, loss, 0.0)
    return Solution(
        model=Linear(np.ldexp(U, k), op.signature),
        status=Status.GRADIENT,
        n_iter=0,
        n_evaluations=op.evaluations,
        relative_error=error,
        norm=norm,
        objective=loss,
        history=History.from_records([record]),
        solver="truncated_eigen",
    )


def _size(values: np.ndarray, positive: bool) -> np.ndarray:
    """Return the values by which eigenvalues are ranked."""
    return values if positive else np.abs(values)


def _eigenpairs(M: Any, rank: int, positive: bool, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenpairs, or all of them if ``rank`` is too large for a Krylov method."""
    n = M.shape[0]
    if not arpack_applicable(rank, n):
        return np.linalg.eigh(as_array(M))
    v0, further = search_vectors(n, random_generator(random_state))
    values, vectors = largest_eigenpairs(M, rank, v0, further, by_magnitude=not positive)
    for _ in range(rank):  # each round finds at least one missed pair, or ends
        scale = float(np.abs(values).max(initial=0))
        # With fewer pairs than requested, every further one has been missed.
        smallest = max(0.0, _size(values, positive).min()) if len(values) == rank else -np.inf
        new_values, new_vectors = _largest_orthogonal_to(M, vectors, positive, scale, further)
        missed = _size(new_values, positive) > smallest + _ROUNDING * np.finfo(M.dtype).eps * scale
        if not missed.any():
            break
        values, vectors = _ritz_pairs(M, np.hstack([vectors, new_vectors[:, missed]]))
        leading = np.argsort(-_size(values, positive), kind="stable")[:rank]
        values, vectors = values[leading], vectors[:, leading]
    return values, vectors


def _largest_orthogonal_to(
    M: Any, known: np.ndarray, positive: bool, scale: float, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenpair of M orthogonal to the known ones, and others that have converged too.

    This is the Lanczos method with full orthogonalisation, restarted with its best Ritz vectors. ``scale`` is
    an estimate of the largest eigenvalue in magnitude. If the method does not converge, the best Ritz pair is
    returned nevertheless: its value is a Rayleigh quotient of M.
    """
    n, dtype = M.shape[0], M.dtype
    side = min(_BASIS, n - known.shape[1])
    Q, H = np.empty((n, side), dtype, order="F"), np.zeros((side, side))
    accuracy = max(_ACCURACY, _ROUNDING * np.finfo(dtype).eps)
    q, kept = _orthogonal_part(known, rng.standard_normal(n).astype(dtype)), 0
    for _ in range(_MOST_RESTARTS):
        for j in range(kept, side):
            Q[:, j] = q / np.linalg.norm(q)
            basis = Q[:, : j + 1]
            product = _orthogonal_part(known, M @ Q[:, j])
            H[: j + 1, j] = H[j, : j + 1] = basis.T @ product
            q = _orthogonal_part(basis, product)
            scale, left = max(scale, float(np.linalg.norm(product))), float(np.linalg.norm(q))
            if left <= accuracy * scale:  # the rest is rounding errors: the basis is invariant
                break
        values, Y = np.linalg.eigh(H[: j + 1, : j + 1])
        order = np.argsort(-_size(values, positive), kind="stable")
        values, Y = values[order], Y[:, order]
        vectors = basis @ Y.astype(dtype)
        # left * |last component| is the residual norm of a Ritz pair.
        converged = left * np.abs(Y[-1]) <= accuracy * scale
        if converged[0]:
            break
        kept = side // 2
        Q[:, :kept] = vectors[:, :kept]
        H[:kept, :kept] = np.diag(values[:kept])
    converged[0] = True
    return values[converged], vectors[:, converged]


def _orthogonal_part(basis: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return v minus its projection on the basis (twice, since the first one leaves rounding errors)."""
    for _ in range(2):
        v = v - basis @ (basis.T @ v)
    return v


def _ritz_pairs(M: Any, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Ritz pairs of M in the span of the vectors."""
    basis = np.linalg.qr(vectors)[0]
    values, Y = np.linalg.eigh(basis.T @ (M @ basis))
    return values, basis @ Y
