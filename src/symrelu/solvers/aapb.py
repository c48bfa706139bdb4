"""NSMD-AAPB: the accelerated alternating partial Bregman method of the paper (its Algorithm 1).

With W the latent matrix that is optimal for U (never formed), the kernel psi and its gradient

    psi(U) = 3/2 ||U||^4 + ||W|| ||U||^2,     grad psi(U) = (6 ||U||^2 + 2 ||W||) U,

one step is

    Y      = U + b (U - U_previous),                b = momentum (k - 1) / (k + 2)
    G      = grad psi(Y) - step_size grad_Y F(W, Y)
    t      = the positive root of t^3 - (alpha step_size + 2 ||W||) t^2 - 6 ||G||^2 = 0
    U_next = G / t

Paper -> here: eta -> step_size, beta -> momentum, lambda -> alpha, U-bar -> Y (state.extrapolated).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from symrelu.operators.base import Operator
from symrelu.solvers.alternating import AlternatingState
from symrelu.solvers.base import check_range, inner, square_norm
from symrelu.solvers.cubic import positive_root
from symrelu.solvers.momentum import extrapolate, extrapolation_weight

# The paper requires D_psi(U, Y) <= (a - e) / (1 + step_size) D_psi(U_previous, U) with 1 > a > e > 0 and
# multiplies b by 0.9 until this holds. It leaves a - e open; 0.99 is close to its upper bound.
_SAFEGUARD_CONSTANT = 0.99
_SHRINK = 0.9
_NEGLIGIBLE_MOMENTUM = 1e-12

# An adaptive step size grows slightly after each accepted step, and is halved when a step is rejected.
_LENGTHEN = 1.1
_SHORTEN = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class AAPBState(AlternatingState):
    """State of :class:`AAPB`: the choices made for the next step."""

    momentum: float  # b, after the safeguard
    bregman_distance: float  # D_psi(U_previous, U) with the kernel of the previous step
    step_size: float  # of the next step


@dataclass(frozen=True)
class AAPB:
    """Accelerated alternating partial Bregman method (NSMD-AAPB).

    One step costs one evaluation, two with the safeguard; each rejected adaptive step costs one more. With
    ``momentum=0`` it is the paper's APB, which never increases the objective for ``step_size <= 1``. The
    gradient norm that it reports is taken at the extrapolated point with the latent matrix of the current one,
    because its single pass yields no other.

    Parameters
    ----------
    step_size : float or "adaptive", default=1.0
        The paper's eta, a number (the theory covers up to 1) or "adaptive". The paper's tables are reproduced
        by 10, which diverges on some small or dense matrices; larger values diverge on most. "adaptive" takes
        the longest steps for which the inequality behind the theory holds, checked after each step: it needs no
        tuning and does not diverge.
    momentum : float, default=1.0
        The paper's beta, in [0, 1]: step k extrapolates with the weight ``momentum * (k - 1) / (k + 2)``.
    safeguard : bool, default=False
        Whether to shrink the extrapolation until the condition of the paper's convergence theorem holds. This
        costs a pass with twice as many columns (counted as two evaluations), and more steps, since there is
        less momentum.

    References
    ----------
    Q. Wang, "An Efficient Alternating Algorithm for ReLU-based Symmetric Matrix Decomposition", 2025.

    Examples
    --------
    >>> from symrelu import AAPB
    >>> AAPB(step_size=10, momentum=0.95)
    AAPB(step_size=10.0, momentum=0.95, safeguard=False)
    """

    State = AAPBState
    requires = frozenset[str]()
    factors_held = 12

    step_size: float | str = 1.0
    momentum: float = 1.0
    safeguard: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.step_size, str):
            check_range(self, "step_size", 0, math.inf, low_included=False)
        elif self.step_size != "adaptive":
            raise ValueError(
                f"AAPB(step_size=...) must be a positive number or 'adaptive', got {self.step_size!r}."
            )
        check_range(self, "momentum", 0, 1)
        if not isinstance(self.safeguard, bool):
            raise TypeError(f"AAPB(safeguard=...) must be True or False, got {self.safeguard!r}.")

    def init(self, op: Operator, U0: Any) -> AAPBState:
        """Evaluate at U0, which also serves as the previous factor."""
        step_size = 1.0 if isinstance(self.step_size, str) else self.step_size
        return self._evaluate(op, U0, U0, iteration=0, previous_latent_norm=0.0, step_size=step_size)

    def step(self, op: Operator, state: AAPBState) -> AAPBState:
        """Make one Bregman step and evaluate once; repeat an adaptive step that was too long."""
        eta = state.step_size
        while True:
            U = _bregman_step(op, state, eta)
            next_step = eta * _LENGTHEN if isinstance(self.step_size, str) else eta
            new = self._evaluate(op, U, state.U, state.iteration + 1, state.latent_norm, next_step)
            # Up to 1 the theory guarantees the inequality; a fixed step size is the user's responsibility.
            if not isinstance(self.step_size, str) or eta <= 1 or _decreases(op, state, new, eta):
                return new
            eta = max(1.0, eta * _SHORTEN)

    def _evaluate(
        self,
        op: Operator,
        U: Any,
        previous: Any,
        iteration: int,
        previous_latent_norm: float,
        step_size: float,
    ) -> AAPBState:
        """Choose the extrapolated point Y of the next step and make the pass at U that it needs."""
        b = extrapolation_weight(self.momentum, iteration)
        change = U - previous
        uu, ud, dd = square_norm(op, U), inner(op, U, change), square_norm(op, change)
        distance = bregman_distance(previous_latent_norm, uu, -ud, dd)
        if self.safeguard and b > 0:
            # b depends on ||W|| at U, which this pass computes: so it yields R U and R D, and R Y for every b.
            rank = U.shape[1]
            passed = op.residual_product(U, op.xp.concat([U, change], axis=1))
            b = _safeguarded_weight(b, step_size, passed.latent_norm, uu, ud, dd, distance)
            product = passed.product[:, :rank] + b * passed.product[:, rank:]
            Y = U + b * change
        else:
            Y = extrapolate(U, previous, b)
            passed = op.residual_product(U, Y)
            product = passed.product
        return AAPBState.at(
            op,
            U,
            Y,
            passed,
            product,
            gradient_at_U=b == 0,
            iteration=iteration,
            momentum=b,
            bregman_distance=distance,
            step_size=step_size,
        )


def _bregman_step(op: Operator, state: AAPBState, eta: float) -> Any:
    """Return the minimiser of alpha/2 ||U||^2 + <grad F(W, Y), U> + D_psi(U, Y) / eta."""
    Y = state.extrapolated
    factor = 6 * square_norm(op, Y) + 2 * state.latent_norm
    G = factor * Y - eta * state.partial_gradient
    t = positive_root(op.alpha * eta + 2 * state.latent_norm, math.sqrt(square_norm(op, G)))
    return G / t


def _safeguarded_weight(
    b: float, step_size: float, latent_norm: float, uu: float, ud: float, dd: float, distance: float
) -> float:
    """Shrink b until D_psi(U, Y) is small relative to ``distance``; scalars suffice, since Y = U + b D."""
    bound = _SAFEGUARD_CONSTANT / (1 + step_size) * distance
    while b > _NEGLIGIBLE_MOMENTUM:
        extrapolated_square = uu + 2 * b * ud + b * b * dd
        p, q = -b * (ud + b * dd), b * b * dd
        if bregman_distance(latent_norm, extrapolated_square, p, q) <= bound:
            return b
        b *= _SHRINK
    return 0.0


def _decreases(op: Operator, old: AAPBState, new: AAPBState, eta: float) -> bool:
    """Return whether latent_loss(U+) <= F(W, Y) + <grad F(W, Y), U+ - Y> + D_psi(U+, Y) / eta.

    The convergence proof requires this inequality with F(W, U+) on the left, which is at least latent_loss(U+).
    The latent loss costs nothing extra: it comes from the pass that the next step needs anyway.
    """
    Y = old.extrapolated
    change = new.U - Y
    distance = bregman_distance(
        old.latent_norm, square_norm(op, Y), inner(op, Y, change), square_norm(op, change)
    )
    model = old.latent_loss + old.rise + inner(op, old.partial_gradient, change) + distance / eta
    return new.latent_loss <= model


def bregman_distance(latent_norm: float, bb: float, p: float, q: float) -> float:
    """Return D_psi(A, B) from ||W||, ||B||^2, p = <B, A - B> and q = ||A - B||^2.

    Unlike psi(A) - psi(B) - <grad psi(B), A - B>, this form does not suffer from cancellation.
    """
    return (latent_norm + 3 * bb) * q + 1.5 * (2 * p + q) ** 2
