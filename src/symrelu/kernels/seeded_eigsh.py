"""``eigsh`` whose result depends only on its arguments, for every supported version of SciPy.

If the matrix has few distinct eigenvalues, ARPACK exhausts the space of its start and draws a random vector.
From SciPy 1.17 on, ``eigsh`` takes a generator for that. In earlier versions, ARPACK has a random state of its
own that cannot be set, but it counts how often it is used. If it was, the same method runs in NumPy, where the
vectors come from the generator. Remove this module when the lower bound reaches SciPy 1.17.
"""

from __future__ import annotations

import inspect
import threading
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

TAKES_A_GENERATOR = "rng" in inspect.signature(eigsh).parameters
_LOCK = threading.Lock()  # the counter belongs to the last call, of any thread


def seeded_eigsh(
    A: Any, k: int, which: str, v0: np.ndarray, tol: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return k eigenpairs as ``eigsh`` does, with all random numbers from v0 and the generator.

    Parameters
    ----------
    A, k, v0, tol
        As for ``scipy.sparse.linalg.eigsh``; v0 has the dtype of A.
    which : {"LM", "LA"}
    rng : Generator

    Returns
    -------
    values : ndarray of shape (k,)
        In ascending order.
    vectors : ndarray of shape (n, k)

    Raises
    ------
    ArpackNoConvergence
        With the pairs that did converge.
    """
    if TAKES_A_GENERATOR:
        return eigsh(A, k=k, which=which, v0=v0, tol=tol, rng=rng)
    return _eigsh_without_generator(A, k, which, v0, tol, rng)


def _eigsh_without_generator(
    A: Any, k: int, which: str, v0: np.ndarray, tol: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    from scipy.sparse.linalg._eigen.arpack import _arpack  # final: later versions take a generator

    with _LOCK:
        try:
            pairs = eigsh(A, k=k, which=which, v0=v0, tol=tol)
        except ArpackError:
            if not _arpack.timing.nrstrt:
                raise
        else:
            if not _arpack.timing.nrstrt:
                return pairs
    return lanczos(A, k, which, v0, tol, rng)


def lanczos(
    A: Any, k: int, which: str, v0: np.ndarray, tol: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return k eigenpairs by the Lanczos method with thick restarts and full orthogonalisation.

    Parameters and result are those of :func:`seeded_eigsh`. The memory is that of ARPACK: max(2 k, 19) + 2
    vectors.
    """
    n, dtype = len(v0), v0.dtype
    m = min(n, max(2 * k + 1, 20))
    accuracy = max(tol, float(np.finfo(dtype).eps))
    basis, projected, kept = np.zeros((m + 1, n), dtype), np.zeros((m, m), dtype), 0
    basis[0] = v0 / np.linalg.norm(v0)
    previous = np.full(k, np.nan)
    for _ in range(10 * n):  # the limit of eigsh
        rest, restarted = _extend(A, basis, projected, kept, rng)
        values, combinations = np.linalg.eigh(projected)
        best = np.argsort(np.abs(values) if which == "LM" else values, kind="stable")[::-1]
        found = values[best[:k]]
        error = accuracy * float(np.abs(values).max())
        done = rest * np.abs(combinations[-1, best[:k]]) <= error
        # Exhausted spaces have no residual, but a new random vector may still lead to larger eigenvalues.
        settled = not restarted or m == n or np.abs(found - previous).max() <= 10 * n**0.5 * error
        if done.all() and settled:
            ascending = best[:k][np.argsort(found, kind="stable")]
            return values[ascending], basis[:m].T @ combinations[:, ascending]
        previous, kept = found, k + (m - k) // 2
        basis[: kept + 1] = np.vstack([combinations[:, best[:kept]].T @ basis[:m], basis[m]])
        projected[:] = 0
        projected[range(kept), range(kept)] = values[best[:kept]]
    pairs = best[:k][done]
    raise ArpackNoConvergence("no convergence", values[pairs], basis[:m].T @ combinations[:, pairs])


def _extend(
    A: Any, basis: np.ndarray, projected: np.ndarray, kept: int, rng: np.random.Generator
) -> tuple[float, bool]:
    """Fill the basis from its row ``kept`` on, and the projection of A on it.

    Returns the coupling to the last row, which is no part of the projection, and whether a row is random.
    """
    m, n = len(projected), basis.shape[1]
    negligible = 10 * float(np.finfo(basis.dtype).eps) * n**0.5
    coupling, restarted = 0.0, False
    for j in range(kept, m):
        product = A @ basis[j]
        size = float(np.linalg.norm(product))
        rest, projection = _orthogonalised(product, basis[: j + 1])
        projected[j, : j + 1] = projected[: j + 1, j] = projection
        coupling = float(np.linalg.norm(rest))
        if coupling <= negligible * size:
            coupling, restarted = 0.0, True
            if j + 1 == n:  # the basis is complete
                break
            rest, _ = _orthogonalised(np.asarray(rng.standard_normal(n), basis.dtype), basis[: j + 1])
        basis[j + 1] = rest / np.linalg.norm(rest)
    return coupling, restarted


def _orthogonalised(vector: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what is orthogonal to the rows, and the coefficients of the rest; twice, because of rounding."""
    first = rows @ vector
    vector = vector - first @ rows
    second = rows @ vector
    return vector - second @ rows, first + second
