"""SymANLS: symmetric NMF that solves each least-squares problem exactly, by block principal pivoting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.baselines.coupled import CoupledSolver

# After this many exchanges without progress, a row switches to exchanging one variable at a time, which
# cannot cycle (Kim and Park, 2011).
_PATIENCE = 3
_BATCH_BYTES = 4e6  # size of the systems solved at once; small, so that little padding is needed


@dataclass(frozen=True)
class SymANLS(CoupledSolver):
    """Symmetric NMF that minimises the coupled objective over one factor at a time, exactly.

    Parameters
    ----------
    coupling : float, default=0.66
        Weight of ||U - V||^2 / 2.

    Notes
    -----
    Each row is a nonnegative least-squares problem, solved by block principal pivoting (Kim and Park, 2011).

    References
    ----------
    D. Kuang, S. Yun, H. Park, "SymNMF: nonnegative low-rank approximation of a similarity matrix for graph
    clustering", J. Glob. Optim. 62, 2015. J. Kim, H. Park, "Fast nonnegative matrix factorization: an
    active-set-like method and comparisons", SIAM J. Sci. Comput. 33, 2011.
    """

    def _update(self, gram: Any, target: Any, factor: Any) -> Any:
        return nonnegative_solve(gram, target, factor > 0)


def nonnegative_solve(gram: np.ndarray, target: np.ndarray, passive: np.ndarray) -> np.ndarray:
    """Return X >= 0 that minimises 1/2 <X gram, X> - <target, X>, by block principal pivoting.

    All rows pivot at once. Each has its own set of passive (free) variables; these must be nonnegative, and the
    slopes of the others too. Rows that violate this exchange the violating variables between the two sets.

    Parameters
    ----------
    gram : ndarray of shape (rank, rank)
        Symmetric positive definite.
    target : ndarray of shape (n, rank)
    passive : ndarray of bool of shape (n, rank)
        The initial sets of free variables.

    Returns
    -------
    X : ndarray of shape (n, rank)
    """
    n, rank = target.shape
    # Violations within rounding errors are ignored: exchanging them back and forth would never end.
    slack = 10 * np.finfo(target.dtype).eps * (np.abs(gram).max() + np.abs(target).max(axis=1, keepdims=True))
    passive = passive.copy()
    X, slope = _solve_passive(gram, target, passive)
    fewest = np.full(n, rank + 1)
    patience = np.full(n, _PATIENCE)
    for _ in range(_max_exchanges(rank)):
        wrong = (passive & (-slack > X)) | (~passive & (slope < -slack))
        count = wrong.sum(axis=1)
        rows = np.flatnonzero(count)
        if rows.size == 0:
            break
        better = count[rows] < fewest[rows]
        fewest[rows[better]] = count[rows[better]]
        patience[rows[better]] = _PATIENCE
        patience[rows[~better]] -= 1
        # Exchanging only the violating variable of largest index guarantees termination.
        single = rows[patience[rows] < 0]
        last = rank - 1 - np.argmax(wrong[single, ::-1], axis=1)
        wrong[single] = False
        wrong[single, last] = True
        passive[rows] ^= wrong[rows]
        X[rows], slope[rows] = _solve_passive(gram, target[rows], passive[rows])
    return np.maximum(X, 0)


def _max_exchanges(rank: int) -> int:
    return 50 + 10 * rank


def _solve_passive(gram: np.ndarray, target: np.ndarray, passive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve each row for its passive variables, with the others zero; return X and the slopes."""
    X = np.zeros_like(target)
    count = passive.sum(axis=1)
    # Rows with a similar number of passive variables share a batch, padded to the largest of its systems.
    remaining = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    while remaining.size:
        k = int(count[remaining[0]])
        rows, remaining = np.split(remaining, [max(1, int(_BATCH_BYTES / (k * k * target.itemsize)))])
        variables = np.argsort(~passive[rows], axis=1, kind="stable")[:, :k]  # the passive ones first
        # A row with fewer is padded by variables that rows of the identity hold at zero.
        free = np.take_along_axis(passive[rows], variables, axis=1)
        systems = np.where(
            free[:, :, None] & free[:, None, :],
            gram[variables[:, :, None], variables[:, None, :]],
            np.eye(k, dtype=target.dtype),
        )
        right = np.where(free, target[rows[:, None], variables], 0)
        X[rows[:, None], variables] = np.linalg.solve(systems, right[:, :, None])[:, :, 0]
    return X, np.where(passive, 0, X @ gram - target)
