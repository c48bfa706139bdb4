"""The formulas, word for word, on n x n arrays: the oracle of the tests. Not for large matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.operators.base import Evaluation, Operator


class ReferenceOperator(Operator):
    """Every quantity of the model from its definition.

    Parameters
    ----------
    M : ndarray of shape (n, n)
    observed : ndarray of bool of shape (n, n)
        False where the entry is unknown.
    **settings
        signature, alpha and zero_weight of :class:`~symrelu.operators.base.Operator`.
    """

    def __init__(self, M: np.ndarray, observed: np.ndarray, **settings: Any) -> None:
        self._M = np.where(observed, M, M.dtype.type(0))
        self._observed = observed
        norm = np.linalg.norm(self._M.astype(np.float64))
        super().__init__(n=len(M), dtype=M.dtype, norm=float(norm), **settings)

    def matmul(self, V: np.ndarray) -> np.ndarray:
        return self._M @ V

    def imputed_matmul(self, V: np.ndarray, fill: float) -> np.ndarray:
        imputed = np.where((self._M == 0) & self._observed, self.dtype.type(fill), self._M)
        unknown = ~np.diag(self._observed)
        imputed[unknown, unknown] = self._M.max(axis=1)[unknown]
        return imputed @ V

    @property
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        rows, cols = np.nonzero(self._M > 0)
        return np.searchsorted(rows, np.arange(self.n + 1)), cols.astype(np.int32)

    def solve_rows(self, V: np.ndarray, ridge: np.ndarray, right: np.ndarray) -> np.ndarray:
        systems = [V[row > 0].T @ V[row > 0] + ridge for row in self._M]
        return np.stack([np.linalg.solve(system, b) for system, b in zip(systems, right, strict=True)])

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        M, observed, w = self._M, self._observed, self.dtype.type(self.zero_weight)
        X = (U * self.signature) @ U.T
        residual = np.where(M > 0, M - X, -w * np.maximum(0, X)) * observed
        latent = np.where(M > 0, M, np.where(observed, np.minimum(0, X) + (1 - w) * np.maximum(0, X), X))
        error = (M - np.maximum(0, X)) * observed
        squares = residual.astype(np.float64) ** 2
        hidden = np.where(observed, 0, X)
        return Evaluation(
            product=None if V is None else residual @ V,
            latent_loss=float(np.sum(np.where(M > 0, squares, squares / w)) / 2 + 0 * np.sum(hidden)),
            loss=float(np.sum(error.astype(np.float64) ** 2) / 2 + 0 * np.sum(hidden)),
            latent_norm_squared=float(np.sum(latent.astype(np.float64) ** 2)),
            alignment=float(np.sum(residual.astype(np.float64) * X)),
            active_zeros=float(np.sum((M == 0) & observed & (X > 0))),
        )
