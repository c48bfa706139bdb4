"""PALM and iPALM: proximal alternating linearised minimisation, the methods that the paper builds on.

W is minimised exactly, and U is updated by a proximal gradient step,

    Y      = U + b (U - U_previous),                b = momentum (k - 1) / (k + 2)
    U_next = (L Y - grad_Y F(W, Y)) / (L + alpha).

F(W, .) is a polynomial of degree four, so its gradient has no global Lipschitz constant: L is found by
backtracking on the inequality that the convergence proof requires.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from symrelu.operators.base import Operator
from symrelu.solvers.alternating import AlternatingState
from symrelu.solvers.base import check_range, inner, square_norm
from symrelu.solvers.momentum import extrapolate, extrapolation_weight

# L decreases slightly after each accepted step, and is doubled when a step is rejected.
_RELAX = 0.9
_TIGHTEN = 2.0
# Close to a minimum, rounding errors dominate the inequality, and L would grow forever. So the inequality has a
# slack, and backtracking ends when a step no longer changes U. Both are multiples of the machine precision.
_ROUNDING = 64.0
_LOST = 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class PALMState(AlternatingState):
    """State of :class:`PALM`: the estimate of L for the next step."""

    curvature: float  # L


@dataclass(frozen=True)
class PALM:
    """Proximal alternating linearised minimisation; with momentum, its inertial form iPALM.

    Without momentum the objective never increases.

    Parameters
    ----------
    momentum : float, default=0.0
        In [0, 1]: step k extrapolates with the weight ``momentum * (k - 1) / (k + 2)``.

    References
    ----------
    J. Bolte, S. Sabach, M. Teboulle, "Proximal alternating linearized minimization for nonconvex and nonsmooth
    problems", Math. Program. 146, 2014. T. Pock, S. Sabach, "Inertial proximal alternating linearized
    minimization (iPALM) for nonconvex and nonsmooth problems", SIAM J. Imaging Sci. 9, 2016.

    Examples
    --------
    >>> from symrelu import PALM
    >>> PALM(momentum=1)
    PALM(momentum=1.0)
    """

    State = PALMState
    requires = frozenset[str]()
    factors_held = 9

    momentum: float = 0.0

    def __post_init__(self) -> None:
        check_range(self, "momentum", 0, 1)

    def init(self, op: Operator, U0: Any) -> PALMState:
        """Evaluate at U0, which also serves as the previous factor."""
        state = self._evaluate(op, U0, U0, k=0, L=1.0)
        # An upper bound of the second derivative of F(W, .) near U0.
        return replace(state, curvature=6 * square_norm(op, U0) + 2 * state.latent_norm)

    def step(self, op: Operator, state: PALMState) -> PALMState:
        """Make one proximal step and evaluate once; repeat a step that was too long."""
        L = state.curvature
        while True:
            U = (L * state.extrapolated - state.partial_gradient) / (L + op.alpha)
            new = self._evaluate(op, U, state.U, state.iteration + 1, L * _RELAX)
            if _decreases(op, state, new, L):
                return new
            change = math.sqrt(square_norm(op, U - state.extrapolated) / square_norm(op, state.extrapolated))
            if change <= _LOST * op.eps:
                return new if new.objective <= state.objective else state
            L *= _TIGHTEN
            if not math.isfinite(L):  # every step overflows; the loop reports it
                return new

    def _evaluate(self, op: Operator, U: Any, previous: Any, k: int, L: float) -> PALMState:
        b = extrapolation_weight(self.momentum, k)
        Y = extrapolate(U, previous, b)
        passed = op.residual_product(U, Y)
        return PALMState.at(op, U, Y, passed, passed.product, iteration=k, curvature=L, gradient_at_U=b == 0)


def _decreases(op: Operator, old: PALMState, new: PALMState, L: float) -> bool:
    """Return whether latent_loss(U+) <= F(W, Y) + <grad F(W, Y), U+ - Y> + L/2 ||U+ - Y||^2, up to rounding."""
    change = new.U - old.extrapolated
    model = old.latent_loss + old.rise + inner(op, old.partial_gradient, change)
    slack = _ROUNDING * op.eps * (old.latent_loss + abs(old.rise))
    return new.latent_loss <= model + L / 2 * square_norm(op, change) + slack
