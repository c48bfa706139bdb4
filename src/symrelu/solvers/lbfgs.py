"""Limited-memory BFGS, preconditioned row by row.

On entries where M or X is positive, the model is a least-squares problem in X; elsewhere it has no curvature.
With V = U * s, the second derivative with respect to row i of U alone is about

    2 (sum of v_j v_j^T over the support of row i and over its zeros with X > 0)  +  alpha,

and the rows differ widely: one with few positive entries has hardly any curvature. The first part is formed
for each row; the second is approximated by the same fraction of V^T V in all rows. A damping term is added to
it, a multiple of what the support of an average row would contribute. It is adapted as in the
Levenberg-Marquardt method: it decreases while full steps are accepted.

This neglects one part of the second derivative, -2 R. If U has more columns than it needs, V^T V has
eigenvalues far below those of R, and steps along them would be dominated by noise. The size of R is therefore
added, estimated as if R were random: its largest eigenvalue is then 2 ||R|| / sqrt(n).

If M is so dense that forming the matrices of all rows costs more than an evaluation, one matrix, 2 V^T V,
serves all rows: they are then similar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from symrelu.operators.base import Operator
from symrelu.solvers.base import Factor, Factors, State, check_count, inner, square_norm
from symrelu.solvers.line_search import cubic_minimum, majoriser

_SUFFICIENT = 1e-4  # Armijo's constant
_LEAST_CURVATURE = 1e-8  # pairs with <s, y> below this fraction of |s||y| are rounding errors
_NEGLIGIBLE = 1e-10  # fraction of the curvature that is added to keep the systems definite
_ROUNDING = 10  # times rank and eps: the fraction of the curvature that rounding may remove
_FIRST_DAMPING, _LEAST_DAMPING, _LARGEST_DAMPING = 1.0, 0.03, 1e3  # multiples of an average row's support
_RELAX, _TIGHTEN = 0.5, 4.0
_ENTRIES_WORTH = 2.0  # the systems of the rows are formed if entries * rank is at most this times n^2
_SHORTEST, _LONGEST = 0.05, 0.9  # range of an interpolated step length
_SHORTENED = 0.2  # step length if interpolation fails


@dataclass(frozen=True, eq=False, kw_only=True)
class LBFGSState(State):
    """State of :class:`LBFGS`: the gradient, and recent steps with the changes of the gradient along them."""

    gradient: Factor
    steps: Factors  # the oldest first
    changes: Factors
    damping: float
    active_zeros: float


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS with a preconditioner for each row. It never increases the objective.

    A step costs one evaluation if the full step is accepted, as it nearly always is. Otherwise a shorter step
    is tried, and then the minimum of a quartic upper bound of the objective, which cannot fail.

    Parameters
    ----------
    memory : int, default=10
        Number of past steps to keep; each takes two arrays of the size of U.

    Examples
    --------
    >>> from symrelu import LBFGS, decompose
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(200, 5, random_state=0)
    >>> decompose(M, 5, solver=LBFGS(), random_state=0).relative_error < 1e-4
    True
    """

    State = LBFGSState
    requires = frozenset({"n_positive", "solve_rows"})

    memory: int = 10

    def __post_init__(self) -> None:
        check_count(self, "memory")

    @property
    def factors_held(self) -> int:
        """Arrays of the size of U that a step holds at most."""
        return 2 * self.memory + 7

    def init(self, op: Operator, U0: Any) -> LBFGSState:
        """Evaluate at U0."""
        return _evaluate(op, U0, (), (), _FIRST_DAMPING)

    def step(self, op: Operator, state: LBFGSState) -> LBFGSState:
        """Move along the quasi-Newton direction, as far as the objective decreases."""
        D = _direction(op, state)
        slope = inner(op, state.gradient, D)
        full = _trial(op, state, D, 1.0) if slope < 0 else None
        if full is not None and _accepted(state, full, slope):
            new, damping = full, state.damping * _RELAX
        else:
            new, damping = _backtrack(op, state, D, slope, full)
        del D  # before the next two arrays are made
        damping = min(max(damping, _LEAST_DAMPING), _LARGEST_DAMPING)
        return self._with_memory(op, state, new, damping)

    def _with_memory(self, op: Operator, old: LBFGSState, new: LBFGSState, damping: float) -> LBFGSState:
        """Return the new state with the last step in its memory, if it has positive curvature."""
        steps, changes = new.steps, new.changes
        S, Y = new.U - old.U, new.gradient - old.gradient
        if inner(op, S, Y) > _LEAST_CURVATURE * math.sqrt(square_norm(op, S) * square_norm(op, Y)):
            steps, changes = (*steps, S)[-self.memory :], (*changes, Y)[-self.memory :]
        return replace(new, steps=steps, changes=changes, damping=damping)


def _evaluate(op: Operator, U: Any, steps: Factors, changes: Factors, damping: float) -> LBFGSState:
    passed = op.residual_product(U, U)
    gradient = passed.product * (-2 * op.signature)
    if op.alpha:
        gradient = op.add_scaled(gradient, op.alpha, U)
    return LBFGSState.after(
        op,
        U,
        passed,
        gradient,
        gradient=gradient,
        steps=steps,
        changes=changes,
        damping=damping,
        active_zeros=passed.active_zeros,
    )


def _trial(op: Operator, state: LBFGSState, D: Any, t: float) -> LBFGSState:
    return _evaluate(op, op.add_scaled(state.U, t, D), state.steps, state.changes, state.damping)


def _backtrack(
    op: Operator, state: LBFGSState, D: Any, slope: float, full: LBFGSState | None
) -> tuple[LBFGSState, float]:
    """Return the state after a shorter step, and the next damping.

    ``full`` is the state after the full step, which was rejected; None if D is not a descent direction.
    """
    damping = state.damping * _TIGHTEN
    if full is not None:
        fall = state.objective - full.objective
        t = cubic_minimum(fall, slope, inner(op, full.gradient, D))
        t = t if _SHORTEST <= t <= _LONGEST else _SHORTENED
        shorter = _trial(op, state, D, t)
        if _accepted(state, shorter, slope * t):
            return shorter, damping
    damping *= _TIGHTEN
    return _fallback_step(op, state, damping), damping


def _fallback_step(op: Operator, state: LBFGSState, damping: float) -> LBFGSState:
    """Clear the memory, and move to the minimum of the majoriser along the preconditioned gradient."""
    cleared = replace(state, steps=(), changes=(), damping=damping)
    D = _direction(op, cleared)
    if not -math.inf < inner(op, state.gradient, D) < 0:  # rounding errors have spoilt the systems
        D = -state.gradient
    t = majoriser(op, state.U, state.gradient, D).first_minimum()
    new = _trial(op, cleared, D, t)
    # Close to a minimum, rounding errors can make even this step an increase.
    return new if new.objective <= state.objective else cleared


def _accepted(old: LBFGSState, new: LBFGSState, slope: float) -> bool:
    """Return whether the objective decreased sufficiently (Armijo's condition; False for NaN)."""
    return new.objective <= old.objective + _SUFFICIENT * slope


def _direction(op: Operator, state: LBFGSState) -> Any:
    """Return the quasi-Newton direction, by the two-loop recursion."""
    pairs = list(zip(state.steps, state.changes, strict=True))
    Q, weights = state.gradient, []
    for S, Y in reversed(pairs):
        curvature = inner(op, S, Y)
        weight = inner(op, S, Q) / curvature
        Q = op.add_scaled(Q, -weight, Y)
        weights.append((weight, curvature))
    if pairs:
        # Scale the preconditioner to have the right curvature along the last change of the gradient.
        S, Y = pairs[-1]
        D, preconditioned_Y = precondition(op, state, Q, Y)
        along_Y = inner(op, Y, preconditioned_Y)
        scale = inner(op, S, Y) / along_Y if along_Y > 0 else 0.5  # zero if it underflows
        del preconditioned_Y
    else:
        (D,), scale = precondition(op, state, Q), 0.5
    del Q
    D = D * scale
    for (S, Y), (weight, curvature) in zip(pairs, reversed(weights), strict=True):
        D = op.add_scaled(D, weight - inner(op, Y, D) / curvature, S)
    return -D


def precondition(op: Operator, state: LBFGSState, *arrays: Any) -> tuple[Any, ...]:
    """Multiply arrays of the shape of U by twice the inverse of the approximate second derivative."""
    V = op.signed(state.U)
    gram = V.T @ V
    rank = V.shape[1]
    entries = op.n_positive
    alike = entries * rank > _ENTRIES_WORTH * op.n**2
    share = 1.0 if alike else (state.damping * entries + op.zero_weight * state.active_zeros) / op.n**2
    size = square_norm(op, V) / rank + op.norm  # of the curvature; positive even if U is zero
    neglected = 2 * math.sqrt(2 * state.latent_loss / op.n)  # the estimate of R, see the module docstring
    rounding = _ROUNDING * rank * op.eps * (1 + share) * size
    small = max(op.alpha / 2 + neglected + _NEGLIGIBLE * size, rounding)
    ridge = share * gram + small * op.xp.eye(rank, dtype=V.dtype, device=V.device)
    if alike:
        return tuple(op.xp.linalg.solve(ridge, array.T).T for array in arrays)
    return op.solve_rows(V, ridge, *arrays)
