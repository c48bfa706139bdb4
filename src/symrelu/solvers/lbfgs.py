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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import Any, NamedTuple

from symrelu.operators.base import Operator
from symrelu.solvers.base import Factor, Factors, Numbers, State, check_count, inner, square_norm
from symrelu.solvers.line_search import cubic_minimum, majoriser

_SUFFICIENT = 1e-4  # Armijo's constant
_LEAST_CURVATURE = 1e-8  # pairs with <s, y> below this fraction of |s||y| are rounding errors
_NEGLIGIBLE = 1e-10  # fraction of the curvature that is added to keep the systems definite
_ROUNDING = 10  # times rank and eps: the fraction of the curvature that rounding may remove
_FIRST_DAMPING, _LEAST_DAMPING, _LARGEST_DAMPING = 1.0, 0.03, 1e3  # multiples of an average row's support
_RELAX, _TIGHTEN = 0.5, 4.0
ENTRIES_WORTH = 2.0  # the systems of the rows are formed if entries * rank is at most this times n^2
_SHORTEST, _LONGEST = 0.05, 0.9  # range of an interpolated step length
_SHORTENED = 0.2  # step length if interpolation fails


@dataclass(frozen=True, eq=False, kw_only=True)
class LBFGSState(State):
    """State of :class:`LBFGS`: the gradient, and recent steps with the changes of the gradient along them."""

    gradient: Factor
    steps: Factors  # the oldest first
    changes: Factors
    products: Numbers  # <steps[i], changes[j]> for all i and j, row after row; only those with i <= j are used
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
        return _evaluate(op, U0, _Memory(), _FIRST_DAMPING)

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
        S, Y = op.add_scaled(new.U, -1.0, old.U), op.add_scaled(new.gradient, -1.0, old.gradient)
        steps, changes = (*new.steps, S)[-self.memory :], (*new.changes, Y)[-self.memory :]
        *along_Y, square_of_Y = op.inner_each(Y, (*steps, Y))
        if not along_Y[-1] > _LEAST_CURVATURE * math.sqrt(square_norm(op, S) * square_of_Y):
            return replace(new, damping=damping)
        memory = _Memory(steps, changes, _extended(new.products, along_Y))
        return replace(new, **memory._asdict(), damping=damping)


def _extended(products: Numbers, column: Sequence[float]) -> Numbers:
    """Return the table of products with one more row and column; the first ones go if it is long enough."""
    before, now = math.isqrt(len(products)), len(column)
    first = before - (now - 1)
    rows = (products[i * before + first : (i + 1) * before] for i in range(first, before))
    last = (0.0,) * (now - 1)  # those of the new step and earlier changes are not used
    return Numbers(number for row, end in zip((*rows, last), column, strict=True) for number in (*row, end))


class _Memory(NamedTuple):
    """The fields of a state that hold past steps; those of a state without any are the defaults."""

    steps: Factors = ()
    changes: Factors = ()
    products: Numbers = Numbers()

    @classmethod
    def of(cls, state: LBFGSState) -> _Memory:
        return cls(state.steps, state.changes, state.products)


def _evaluate(op: Operator, U: Any, memory: _Memory, damping: float) -> LBFGSState:
    passed = op.residual_product(U, U)
    gradient = op.scale_columns(passed.product, -2 * op.signature)
    if op.alpha:
        gradient = op.add_scaled(gradient, op.alpha, U)
    return LBFGSState.after(
        op,
        U,
        passed,
        gradient,
        gradient=gradient,
        damping=damping,
        active_zeros=passed.active_zeros,
        **memory._asdict(),
    )


def _trial(op: Operator, state: LBFGSState, D: Any, t: float) -> LBFGSState:
    return _evaluate(op, op.add_scaled(state.U, t, D), _Memory.of(state), state.damping)


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
    cleared = replace(state, **_Memory()._asdict(), damping=damping)
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
    """Return the quasi-Newton direction, by the two-loop recursion.

    Its loops need only inner products. Those of the steps and changes among themselves are known, so all
    others are computed in one go, and so are the sums: each loop reads the memory twice.
    """
    count = len(state.steps)
    if not count:
        (D,) = precondition(op, state, state.gradient)
        return op.combined(-0.5, D, (), ())
    products = [state.products[i * count : (i + 1) * count] for i in range(count)]
    weights, along = [0.0] * count, op.inner_each(state.gradient, state.steps)
    for i in reversed(range(count)):
        known = sum(map(mul, products[i][i + 1 :], weights[i + 1 :]))
        weights[i] = (along[i] - known) / products[i][i]
    Q = op.combined(1.0, state.gradient, [-weight for weight in weights], state.changes)
    # Scale the preconditioner to have the right curvature along the last change of the gradient.
    Y = state.changes[-1]
    D, preconditioned_Y = precondition(op, state, Q, Y)
    along_Y = inner(op, Y, preconditioned_Y)
    scale = products[-1][-1] / along_Y if along_Y > 0 else 0.5  # zero if it underflows
    del Q, preconditioned_Y
    along, corrections = op.inner_each(D, state.changes), list[float]()
    for i, column in enumerate(zip(*products, strict=True)):
        known = sum(map(mul, column, corrections))  # of the steps before this one
        corrections.append(weights[i] - (scale * along[i] + known) / column[i])
    return op.combined(-scale, D, [-correction for correction in corrections], state.steps)


def precondition(op: Operator, state: LBFGSState, *arrays: Any) -> tuple[Any, ...]:
    """Multiply arrays of the shape of U by twice the inverse of the approximate second derivative."""
    V = op.signed(state.U)
    gram = op.gram(V)
    rank = V.shape[1]
    entries = op.n_positive
    alike = entries * rank > ENTRIES_WORTH * op.n**2
    share = 1.0 if alike else (state.damping * entries + op.zero_weight * state.active_zeros) / op.n**2
    size = square_norm(op, V) / rank + op.norm  # of the curvature; positive even if U is zero
    neglected = 2 * math.sqrt(2 * state.latent_loss / op.n)  # the estimate of R, see the module docstring
    rounding = _ROUNDING * rank * op.eps * (1 + share) * size
    small = max(op.alpha / 2 + neglected + _NEGLIGIBLE * size, rounding)
    ridge = share * gram + small * op.xp.eye(rank, dtype=V.dtype, device=V.device)
    if alike:
        return tuple(op.xp.linalg.solve(ridge, array.T).T for array in arrays)
    return op.solve_rows(V, ridge, *arrays)
