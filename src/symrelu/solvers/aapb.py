"""NSMD-AAPB: the accelerated alternating partial Bregman method of the paper (its Algorithm 1).

With W the latent matrix that belongs to U (never formed), the kernel psi and its gradient

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

# The paper asks for D_psi(U, Y) <= (a - e) / (1 + step_size) D_psi(U_previous, U) with 1 > a > e > 0 and
# shrinks b by 0.9 until it holds; a - e = 0.99 is our choice.
_SAFEGUARD_CONSTANT = 0.99
_SHRINK = 0.9
_NEGLIGIBLE_MOMENTUM = 1e-12

# An adaptive step grows a little after each success, and is halved when it was too long.
_LENGTHEN = 1.1
_SHORTEN = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class AAPBState(AlternatingState):
    """State of :class:`AAPB` before step ``iteration``."""

    momentum: float  # b, after the safeguard
    bregman_distance: float  # D_psi(U_previous, U) with the kernel of the previous step
    step_size: float  # of the next step


@dataclass(frozen=True)
class AAPB:
    """Accelerated alternating partial Bregman method (NSMD-AAPB).

    One step costs one evaluation, two with the safeguard; an adaptive step that was too long costs another.
    With ``momentum=0`` it is the paper's APB and never raises the objective for ``step_size <= 1``. The
    gradient norm it reports is that at the extrapolated point, with the latent matrix of the current one: its
    pass gives no other.

    Parameters
    ----------
    step_size : float or "adaptive", default=1.0
        The paper's eta, a number (the theory allows up to 1) or "adaptive". The paper's tables are reproduced
        by 10, which the theory does not cover: it runs away on some small or dense matrices, larger steps on
        most.
        "adaptive" takes as long a step as the inequality behind the theory allows, tested after each step:
        nothing has to be known, and nothing runs away.
    momentum : float, default=1.0
        In [0, 1]: step k extrapolates by ``momentum * (k - 1) / (k + 2)``. The paper's beta.
    safeguard : bool, default=False
        Shrink the extrapolation until the condition of the paper's convergence theorem holds. The price:
        a pass twice as wide (it counts as two evaluations) and less momentum, so more steps.

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
        """Evaluate at U0, which is also its own predecessor."""
        step_size = 1.0 if isinstance(self.step_size, str) else self.step_size
        return self._evaluate(op, U0, U0, iteration=0, previous_latent_norm=0.0, step_size=step_size)

    def step(self, op: Operator, state: AAPBState) -> AAPBState:
        """Make one Bregman step and evaluate once; an adaptive step that was too long is made again."""
        eta = state.step_size
        while True:
            U = self._moved(op, state, eta)
            next_step = eta * _LENGTHEN if isinstance(self.step_size, str) else eta
            new = self._evaluate(op, U, state.U, state.iteration + 1, state.latent_norm, next_step)
            # Up to 1 the theory promises the inequality; a fixed step is the user's responsibility.
            if not isinstance(self.step_size, str) or eta <= 1 or _descends(op, state, new, eta):
                return new
            eta = max(1.0, eta * _SHORTEN)

    def _moved(self, op: Operator, state: AAPBState, eta: float) -> Any:
        """Return the minimum of alpha/2 ||U||^2 + <grad F(W, Y), U> + D_psi(U, Y) / eta."""
        Y = state.extrapolated
        factor = 6 * square_norm(op, Y) + 2 * state.latent_norm
        G = factor * Y - eta * state.partial_gradient
        t = positive_root(op.alpha * eta + 2 * state.latent_norm, math.sqrt(square_norm(op, G)))
        return G / t

    def _evaluate(
        self,
        op: Operator,
        U: Any,
        previous: Any,
        iteration: int,
        previous_latent_norm: float,
        step_size: float,
    ) -> AAPBState:
        """Choose the extrapolated point Y of the coming step and make the pass at U that it needs."""
        b = extrapolation_weight(self.momentum, iteration)
        change = U - previous
        uu, ud, dd = square_norm(op, U), inner(op, U, change), square_norm(op, change)
        distance = bregman_distance(previous_latent_norm, uu, -ud, dd)
        if self.safeguard and b > 0:
            # ||W|| at U is known only after the pass, so the pass serves every b.
            rank = U.shape[1]
            passed = op.residual_product(U, op.xp.concat([U, change], axis=1))
            b = _safeguarded(b, step_size, passed.latent_norm, uu, ud, dd, distance)
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


def _safeguarded(
    b: float, step_size: float, latent_norm: float, uu: float, ud: float, dd: float, distance: float
) -> float:
    """Shrink b until D_psi(U, Y) is small against ``distance``; scalars suffice, as Y = U + b D."""
    bound = _SAFEGUARD_CONSTANT / (1 + step_size) * distance
    while b > _NEGLIGIBLE_MOMENTUM:
        extrapolated_square = uu + 2 * b * ud + b * b * dd
        p, q = -b * (ud + b * dd), b * b * dd
        if bregman_distance(latent_norm, extrapolated_square, p, q) <= bound:
            return b
        b *= _SHRINK
    return 0.0


def _descends(op: Operator, old: AAPBState, new: AAPBState, eta: float) -> bool:
    """Whether latent_loss(U+) <= F(W, Y) + <grad F(W, Y), U+ - Y> + D_psi(U+, Y) / eta.

    This is what the proof needs of a step. The left side is below F(W, U+), and the pass that gave it is
    the one that the next step needs.
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

    psi(A) - psi(B) - <grad psi(B), A - B> in this form does not cancel.
    """
    return (latent_norm + 3 * bb) * q + 1.5 * (2 * p + q) ** 2
