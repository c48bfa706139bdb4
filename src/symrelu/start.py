"""Starting factors: "random" or "uniform" (scaled to M), "spectral" (leading eigenpairs), or an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from symrelu.operators.base import Operator
from symrelu.validation import check_choice, check_start

STARTS = ("random", "uniform", "spectral")

# Relative size of the noise in a spectral start. Without it, the eigenvectors of a matrix with several
# blocks are a saddle point: each lives on its own block, and no step leaves it.
_SPECTRAL_NOISE = 1e-2


def random_generator(random_state: Any) -> Any:
    """Return a generator with ``standard_normal`` from None, an integer, a Generator or a RandomState."""
    if isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        return random_state
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be None, a nonnegative integer, or a NumPy generator, got {random_state!r}."
        ) from error


def check_init(init: Any, n: int, rank: int, dtype: Any) -> Any:
    """Return the name of a start, or a starting factor as an array of its own."""
    return check_choice("init", init, STARTS) if isinstance(init, str) else check_start(init, n, rank, dtype)


def start(op: Operator, init: Any, random_state: Any = None) -> np.ndarray:
    """Return a starting factor for ``op``.

    Parameters
    ----------
    op : Operator
    init : {"random", "uniform", "spectral"} or array-like of shape (n, rank)
        An array is in the units of the operator.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    U0 : ndarray of shape (n, rank)
    """
    rng = random_generator(_own_stream(random_state))
    init = check_init(init, op.n, op.rank, op.dtype)
    if not isinstance(init, str):
        return init
    U0 = {"random": random_start, "uniform": uniform_start, "spectral": spectral_start}[init](op, rng)
    return np.ascontiguousarray(U0, dtype=op.dtype)


def _own_stream(random_state: Any) -> Any:
    """Return a seed for starts only: data made from the same integer must not be their own start."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return np.random.SeedSequence(int(random_state), spawn_key=(1,))
    return random_state


def random_start(op: Operator, rng: Any) -> np.ndarray:
    """Return normal random columns, scaled such that ||U U^T||_F = ||M||_F."""
    return _scaled(op, rng.standard_normal((op.n, op.rank)))


def uniform_start(op: Operator, rng: Any) -> np.ndarray:
    """Return uniform random columns, as methods for nonnegative factors start, at the same scale."""
    return _scaled(op, rng.random((op.n, op.rank)))


def _scaled(op: Operator, U: np.ndarray) -> np.ndarray:
    return U * np.sqrt(op.norm / np.linalg.norm(U.T @ U))


def spectral_start(op: Operator, rng: Any) -> np.ndarray:
    """Return the leading eigenvectors of M times root eigenvalue.

    Columns without a positive eigenvalue would be zero, and a zero column stays zero for ever: they get
    noise of the size of the smallest other column. The first negative column is constant, as a
    threshold that is subtracted from every pair.
    """
    negative = op.signature < 0
    eigenvalues, vectors = _leading_eigenpairs(op, int(np.sum(~negative)), rng)
    usable = eigenvalues > np.finfo(op.dtype).eps * op.norm
    columns = vectors[:, usable] * np.sqrt(eigenvalues[usable])
    smallest = np.linalg.norm(columns, axis=0).min() if columns.size else np.sqrt(op.norm)

    noise = rng.standard_normal((op.n, op.rank)) * smallest / np.sqrt(op.n)
    U0 = noise.copy()
    kept = np.flatnonzero(~negative)[: columns.shape[1]]
    U0[:, kept] = columns + _SPECTRAL_NOISE * noise[:, kept]
    if negative.any():
        mean = float(np.sum(op.matmul(np.ones((op.n, 1), op.dtype)), dtype=np.float64)) / op.n**2
        U0[:, np.flatnonzero(negative)[0]] = np.sqrt(mean / 2)
    return U0


def _leading_eigenpairs(op: Operator, k: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return up to k of the largest eigenvalues of M, falling, with their eigenvectors."""
    if k == 0:
        return np.empty(0), np.empty((op.n, 0))
    if 2 * k >= op.n:
        # A factor of this rank is itself half as large as M, and ARPACK needs k well below n.
        values, vectors = np.linalg.eigh(op.matmul(np.eye(op.n, dtype=op.dtype)).astype(np.float64))
    else:
        values, vectors = _eigsh(op, k, rng)
    order = np.argsort(-values, kind="stable")[:k]
    return values[order], vectors[:, order]


def _eigsh(op: Operator, k: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    def product(v: np.ndarray) -> np.ndarray:
        V = np.ascontiguousarray(v.reshape(op.n, -1), dtype=op.dtype)
        return op.matmul(V).astype(np.float64)

    M = LinearOperator((op.n, op.n), matvec=product, matmat=product, dtype=np.float64)
    try:
        values, vectors = eigsh(M, k=k, which="LA", v0=rng.standard_normal(op.n), tol=1e-6)
    except ArpackNoConvergence as unfinished:
        values, vectors = unfinished.eigenvalues, unfinished.eigenvectors
    except ArpackError:
        values, vectors = np.empty(0), np.empty((op.n, 0))
    return values, vectors
