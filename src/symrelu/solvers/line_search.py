"""Step lengths along a direction D from U."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from symrelu.operators.base import Operator
from symrelu.solvers.base import inner, square_norm

_BISECTIONS = 60  # more than the 53 bits of a double


class Quartic(NamedTuple):
    """f(t) = linear t + square t^2 + cube t^3 + fourth t^4, with linear < 0."""

    linear: float
    square: float
    cube: float
    fourth: float

    def slope(self, t: float) -> float:
        """Return f'(t)."""
        return self.linear + t * (2 * self.square + t * (3 * self.cube + t * 4 * self.fourth))

    def first_minimum(self) -> float:
        """Return the first t > 0 at which f stops decreasing, by bisection; inf if it never does."""
        low, high = 0.0, 1.0
        while self.slope(high) < 0:
            low, high = high, 2 * high
            if not math.isfinite(self.slope(high)):
                return math.inf
        while self.slope(high / 2) > 0 and high > low:
            high /= 2
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.slope(middle) < 0 else (low, middle)
        return low or high  # never 0: the step must move


def majoriser(op: Operator, U: Any, gradient: Any, D: Any) -> Quartic:
    """Return F(W, U + t D) + alpha/2 ||U + t D||^2 minus its value at t = 0, for the W that is optimal for U.

    It is an upper bound of the objective (minus its value at U), with equality at t = 0, since W is not optimal
    at other points. So its minimum decreases the objective without a trial. It costs one evaluation, R(U) D.

    With A = (U*s) D^T + (D*s) U^T and B = (D*s) D^T, W - X(t) is R - t A - t^2 B.
    """
    s = op.signature
    signs = s[:, None] * s
    G, C, E = (U.T @ U) * signs, U.T @ D, (D.T @ D) * signs
    square_A = 2 * float(op.xp.sum(G * (D.T @ D))) + 2 * float(op.xp.sum(C * C.T * signs))
    product_AB = 2 * float(op.xp.sum(C * E))
    square_B = float(op.xp.sum(E * (D.T @ D)))
    residual_B = inner(op, op.frozen(U)(D), D * s)
    return Quartic(
        linear=inner(op, gradient, D),
        square=square_A / 2 - residual_B + op.alpha / 2 * square_norm(op, D),
        cube=product_AB,
        fourth=square_B / 2,
    )


def cubic_minimum(fall: float, slope: float, slope_at_one: float) -> float:
    """Return the minimiser of the cubic with f(0) = 0, f(1) = -fall and the given slopes; NaN without one."""
    # The usual formula of cubic interpolation (Nocedal and Wright, Numerical Optimization, section 3.5).
    d = slope + slope_at_one + 3 * fall
    under_root = d * d - slope * slope_at_one
    if not (math.isfinite(under_root) and under_root >= 0):
        return math.nan
    root = math.sqrt(under_root)
    below = slope_at_one - slope + 2 * root
    return 1 - (slope_at_one + root - d) / below if below else math.nan
