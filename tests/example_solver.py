"""The solver of docs/extending.rst."""

from dataclasses import dataclass
from typing import Any

from symrelu.operators.base import Operator
from symrelu.solvers.base import Factor, State, check_range


@dataclass(frozen=True, eq=False, kw_only=True)
class DescentState(State):
    """The state of gradient descent."""

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
    requires = frozenset[str]()

    rate: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "rate", 0, 1, low_included=False)

    def init(self, op: Operator, U0: Any) -> DescentState:
        """Evaluate at U0."""
        passed = op.residual_product(U0, U0)  # one evaluation
        gradient = op.alpha * U0 - 2 * passed.product * op.signature
        return DescentState.after(op, U0, passed, gradient, gradient=gradient)

    def step(self, op: Operator, state: DescentState) -> DescentState:
        """Move against the gradient, and evaluate at the new factor."""
        return self.init(op, state.U - self.rate / (4 * op.norm + op.alpha) * state.gradient)
