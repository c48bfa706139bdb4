"""The objective as a function of Y for a fixed latent matrix: F(W, Y) = 1/2 ||W - (Y*s) Y^T||^2.

W = (U*s) U^T + R(U) is the latent matrix that is optimal for U. It is never formed: R(U) Y is sufficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from symrelu.operators.base import Evaluation, Operator
from symrelu.solvers.base import Factor, State, inner


@dataclass(frozen=True, eq=False, kw_only=True)
class AlternatingState(State):
    """State before step ``iteration`` of a solver that fixes W at U and steps from an extrapolated point Y."""

    iteration: int
    extrapolated: Factor  # Y
    partial_gradient: Factor  # grad_Y F(W, Y)
    rise: float  # F(W, Y) - F(W, U)

    @classmethod
    def at(cls, op: Operator, U: Any, Y: Any, passed: Evaluation, product: Any, /, **further: Any) -> Self:
        """Return the state after a pass at U, where ``product`` is R(U) Y."""
        gradient = partial_gradient(op, U, Y, product)
        return cls.after(
            op,
            U,
            passed,
            gradient + op.alpha * Y,
            extrapolated=Y,
            partial_gradient=gradient,
            rise=rise(op, U, Y, product, passed.alignment),
            **further,
        )


def partial_gradient(op: Operator, U: Any, Y: Any, residual_product: Any) -> Any:
    """Return grad_Y F(W, Y) = 2 [(Y*s) Y^T Y - W Y] * s for W = (U*s) U^T + R(U).

    It is computed from the difference E = Y - U, because the two large products cancel near a solution.
    """
    E, s = Y - U, op.signature
    bracket = (E * s) @ (Y.T @ Y) + (U * s) @ (E.T @ Y) - residual_product
    return 2 * bracket * s


def rise(op: Operator, U: Any, Y: Any, residual_product: Any, alignment: float) -> float:
    """Return F(W, Y) - F(W, U) = 1/2 ||C||^2 - <R, C> with C = X(Y) - X(U), given R Y and <R, X(U)>."""
    if Y is U:
        return 0.0
    s = op.signature
    signs = s[:, None] * s
    E = Y - U
    G, H, K = U.T @ U, U.T @ E, E.T @ E
    # ||C||^2 from rank x rank matrices, where C = (U*s) E^T + (E*s) U^T + (E*s) E^T.
    square = 2 * G * K + 2 * H * H.T + 4 * H * K + K * K
    return float(op.xp.sum(square * signs)) / 2 - (inner(op, residual_product, Y * s) - alignment)
