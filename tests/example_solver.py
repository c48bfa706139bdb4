"""The solver of docs/extending.rst."""

import math
from dataclasses import dataclass
from typing import Any

from symrelu.operators import Operator
from symrelu.solvers.base import Factor, State, check_range, objective, square_norm


@dataclass(frozen=True, eq=False, kw_only=True)
class DescentState(State):
    gradient: Factor


@dataclass(frozen=True)
class Descent:
    """Gradient descent.

    Parameters
    ----------
    rate : float, default=0.5
        Length of a step, in units of 1 / (4 ||M|| + alpha).
    """

    State = DescentState
    requires = frozenset()

    rate: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "rate", 0, 1, low_included=False)

    def init(self, op: Operator, U0: Any) -> DescentState:
        passed = op.residual_product(U0, U0)  # one evaluation
        gradient = op.alpha * U0 - 2 * passed.product * op.signature
        return DescentState(
            U=U0,
            objective=objective(op, U0, passed.latent_loss),
            gradient_norm=math.sqrt(square_norm(op, gradient)),
            latent_loss=passed.latent_loss,
            loss=passed.loss,
            latent_norm=passed.latent_norm,
            gradient=gradient,
        )

    def step(self, op: Operator, state: DescentState) -> DescentState:
        return self.init(op, state.U - self.rate / (4 * op.norm + op.alpha) * state.gradient)
