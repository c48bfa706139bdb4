"""The model without the ReLU, M ~ X, which the baselines fit and are evaluated by."""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.operators.base import Evaluation
from symrelu.operators.host import HostOperator
from symrelu.validation import stored


class LinearModelOperator(HostOperator):
    """The model M ~ X = (U * signature) U^T, with the residual M - X everywhere.

    An evaluation is a product with M. It costs as much as M has entries, not all pairs.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
    signature : array-like of shape (rank,)
    """

    def __init__(self, M: Any, signature: Any) -> None:
        norm = float(np.linalg.norm(stored(M).astype(np.float64, copy=False)))
        super().__init__(n=M.shape[0], dtype=M.dtype, norm=norm, signature=signature)
        self._M = M

    def matmul(self, V: np.ndarray) -> np.ndarray:
        self.evaluations += 1
        return self._M @ V

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        product = None if V is None else self._M @ V - self.signed(U) @ (U.T @ V)
        loss = self.loss_from_product(U, self._M @ U)
        return Evaluation(product, latent_loss=loss, loss=loss, latent_norm_squared=self.norm**2)

    def loss_from_product(self, U: np.ndarray, product: np.ndarray) -> float:
        """Return 1/2 ||M - X||^2 from M U."""
        # The expansion of the square cancels near an exact fit, which these models do not reach.
        A = self.signed(U)
        return half_square_distance(self.norm, product, A, A.T @ A, U.T @ U)


def half_square_distance(
    norm: float, product: np.ndarray, A: np.ndarray, left_gram: np.ndarray, right_gram: np.ndarray
) -> float:
    """Return 1/2 ||M - A B^T||^2 from ||M||, M B, A, A^T A and B^T B."""
    inner = float(np.sum(product * A, dtype=np.float64))
    square = float(np.sum(left_gram * right_gram, dtype=np.float64))
    # Near an exact fit, rounding errors can make the expansion slightly negative.
    return max(0.0, norm**2 - 2 * inner + square) / 2
