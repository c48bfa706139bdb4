"""The U-part of the alternating objective: F(W, Y) = 1/2 ||W - (Y*s) Y^T||^2, where W belongs to a factor U.

All from R(U) Y: W = (U*s) U^T + R(U) is never formed.
"""

from __future__ import annotations

from typing import Any

from symrelu.operators.base import Operator
from symrelu.solvers.base import inner


def partial_gradient(op: Operator, U: Any, Y: Any, residual_product: Any) -> Any:
    """Return grad_Y F(W, Y) = 2 [(Y*s) Y^T Y - W Y] * s, where W = (U*s) U^T + R(U) belongs to U.

    Written with the difference E = Y - U: near a solution the two large products would cancel.
    """
    E, s = Y - U, op.signature
    bracket = (E * s) @ (Y.T @ Y) + (U * s) @ (E.T @ Y) - residual_product
    return 2 * bracket * s


def rise(op: Operator, U: Any, Y: Any, residual_product: Any, alignment: float) -> float:
    """Return F(W, Y) - F(W, U) = 1/2 ||C||^2 - <R, C> with C = X(Y) - X(U), from R Y and <R, X(U)>."""
    if Y is U:
        return 0.0
    s = op.signature
    signs = s[:, None] * s
    E = Y - U
    G, H, K = U.T @ U, U.T @ E, E.T @ E
    # C = (U*s) E^T + (E*s) U^T + (E*s) E^T
    square = 2 * G * K + 2 * H * H.T + 4 * H * K + K * K
    return float(op.xp.sum(square * signs)) / 2 - (inner(op, residual_product, Y * s) - alignment)
