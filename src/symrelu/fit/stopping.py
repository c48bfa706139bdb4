"""Where a fit stands, and whether it is at its end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from symrelu.fitted.history import Record, Status
from symrelu.operators.base import Operator
from symrelu.solvers.base import State, confirmed, square_norm

if TYPE_CHECKING:
    from symrelu.fit.settings import Limits

# The plateau test looks at the spread of the objective over so many iterations. A spread, not a fall: the
# objective of an accelerated method may rise for a while before it falls further.
PLATEAU_WINDOW = 20

# X is known up to eps ||U||^2, and so the objective up to that times the residual. What creeps below this is at
# the end of its precision, not of its way, where X is not known better than to a part of the residual, unless
# the error is one that the precision of M itself would excuse.
_ROUNDED_PART = 1e-2
_CREEPING = 0.1
_EXCUSED_ERROR = 1e3  # times eps

# A factor that shrinks to zero nears it ever more slowly: it has vanished when its square is this small next to
# M, and the objective is below that of U = 0 by no more than this part.
_SMALL = 1e-3
_NO_BETTER = 1e-5


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a fit stands: all that a loop needs to resume."""

    state: State
    best: State
    record: Record  # of the state
    recent_objectives: tuple[float, ...]
    evaluations: int
    seconds: float
    next_confirmation: int = 0

    @property
    def n_iter(self) -> int:
        """Number of steps that were made."""
        return self.record.iteration


def first_standing(state: State, record: Record) -> Standing:
    """Return where a fit stands at its start."""
    return Standing(state, state, record, (state.objective,), record.evaluations, record.seconds)


def next_standing(before: Standing, state: State, record: Record) -> Standing:
    """Return where a fit stands after a step."""
    return replace(
        before,
        state=state,
        best=state if state.objective < before.best.objective else before.best,
        record=record,
        recent_objectives=(*before.recent_objectives, state.objective)[-PLATEAU_WINDOW - 1 :],
        evaluations=record.evaluations,
        seconds=record.seconds,
    )


def judged(op: Operator, limits: Limits, now: Standing) -> tuple[Standing, Status | None]:
    """Return why a fit is at its end, or None; and where it stands, since a test may cost a pass."""
    if limits.tol and now.record.relative_error <= limits.tol:
        return now, Status.TOLERANCE
    if limits.gtol:
        now, stationary = _stationary(op, limits.gtol, now)
        if stationary:
            return now, Status.VANISHED if _has_vanished(op, now.state) else Status.GRADIENT
    if limits.ftol and len(now.recent_objectives) > PLATEAU_WINDOW:
        lowest, highest = min(now.recent_objectives), max(now.recent_objectives)
        if _is_rounded(op, now, highest - lowest):
            return now, Status.ROUNDING
        if highest - lowest <= limits.ftol * lowest:
            return now, Status.VANISHED if _has_vanished(op, now.state) else Status.PLATEAU
    if now.n_iter >= limits.max_iter:
        return now, Status.VANISHED if op.alpha > 0 and _has_vanished(op, now.state) else Status.MAX_ITER
    if limits.max_time is not None and now.seconds >= limits.max_time:
        return now, Status.MAX_TIME
    return now, None


def _stationary(op: Operator, gtol: float, now: Standing) -> tuple[Standing, bool]:
    bound = gtol * (2 * op.norm + op.alpha) * math.sqrt(square_norm(op, now.state.U))
    if not now.state.gradient_norm <= bound:
        return now, False
    if now.state.gradient_at_U:
        return now, True
    # A gradient that is not at U has to be confirmed by a pass of its own: not at every iteration.
    if now.n_iter + 1 < now.next_confirmation:
        return now, False
    start, before = time.perf_counter(), op.evaluations
    state = confirmed(op, now.state)
    now = replace(
        now,
        state=state,
        evaluations=now.evaluations + op.evaluations - before,
        seconds=now.seconds + time.perf_counter() - start,
        next_confirmation=now.n_iter + 1 + PLATEAU_WINDOW,
    )
    return now, state.gradient_norm <= bound


def _has_vanished(op: Operator, state: State) -> bool:
    """Whether the factor is small, and no better than none at all."""
    of_zero = op.norm**2 / 2
    small = square_norm(op, state.U) <= _SMALL * op.norm
    return small and state.objective >= (1 - _NO_BETTER) * of_zero


def _is_rounded(op: Operator, now: Standing, change: float) -> bool:
    """Whether a fit whose objective changed by so much lately is held up by rounding."""
    rounding, residual = op.eps * square_norm(op, now.state.U), math.sqrt(2 * now.state.latent_loss)
    return (
        rounding > _ROUNDED_PART * residual
        and change <= _CREEPING * rounding * residual
        and now.record.relative_error > _EXCUSED_ERROR * op.eps
    )
