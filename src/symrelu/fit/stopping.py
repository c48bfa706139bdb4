"""The state of the loop, and the stopping tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from symrelu.fitted.history import Record, Status
from symrelu.operators.base import Operator
from symrelu.solvers.base import State, confirmed, square_norm

if TYPE_CHECKING:
    from symrelu.fit.settings import Limits

# Number of iterations over which the plateau test measures the spread of the objective. The spread rather than
# the decrease, because the objective of an accelerated method may rise for a while before it decreases further.
PLATEAU_WINDOW = 20

# Rounding errors in X are of the order eps ||U||^2, and those in the objective of that order times the norm of
# the residual. A fit is limited by rounding if X is uncertain by more than this part of the residual, the
# objective changes by less than a tenth of its own rounding error, and the relative error is too large to be
# explained by the precision of M itself.
_ROUNDING_FRACTION = 1e-2
_NO_PROGRESS = 0.1
_ERROR_FLOOR = 1e3  # in units of eps

# A factor that shrinks to zero converges ever more slowly. It counts as zero once ||U||^2 is this small
# relative to ||M|| and the objective is lower than that of U = 0 by no more than the second fraction.
_SMALL = 1e-3
_NO_BETTER = 1e-5


@dataclass(frozen=True, eq=False)
class LoopState:
    """Everything the loop needs to continue: the solver's state, the best state so far, and counters."""

    state: State
    best: State
    record: Record  # the row of the history that describes ``state``
    recent_objectives: tuple[float, ...]
    evaluations: int  # passes of this run of the loop; the record may count those of earlier ones as well
    seconds: float
    next_confirmation: int = 0

    @property
    def n_iter(self) -> int:
        """Number of steps made so far."""
        return self.record.iteration


def initial_loop_state(state: State, record: Record, evaluations: int) -> LoopState:
    """Return the state of the loop at the starting factor."""
    return LoopState(state, state, record, (state.objective,), evaluations, record.seconds)


def next_loop_state(before: LoopState, state: State, record: Record, evaluations: int) -> LoopState:
    """Return the state of the loop after a step."""
    return replace(
        before,
        state=state,
        best=state if state.objective < before.best.objective else before.best,
        record=record,
        # A spread over PLATEAU_WINDOW steps needs one value more.
        recent_objectives=(*before.recent_objectives, state.objective)[-PLATEAU_WINDOW - 1 :],
        evaluations=evaluations,
        seconds=record.seconds,
    )


def check_stopping(op: Operator, limits: Limits, now: LoopState) -> tuple[LoopState, Status | None]:
    """Return the state, which a test that costs a pass updates, and why the fit should stop, or None."""
    square = cache(lambda: square_norm(op, now.state.U))
    if limits.tol and now.record.relative_error <= limits.tol:
        return now, Status.TOLERANCE
    if limits.gtol:
        now, stationary = _check_stationarity(op, limits.gtol, now, square)
        if stationary:
            return now, Status.VANISHED if _has_vanished(op, now.state) else Status.GRADIENT
    if limits.ftol and len(now.recent_objectives) > PLATEAU_WINDOW:
        lowest, highest = min(now.recent_objectives), max(now.recent_objectives)
        if _is_limited_by_rounding(op, now, highest - lowest, square()):  # first, since it looks like a plateau
            return now, Status.ROUNDING
        if highest - lowest <= limits.ftol * lowest:
            return now, Status.VANISHED if _has_vanished(op, now.state) else Status.PLATEAU
    if now.n_iter >= limits.max_iter:
        return now, Status.VANISHED if op.alpha > 0 and _has_vanished(op, now.state) else Status.MAX_ITER
    if limits.max_time is not None and now.seconds >= limits.max_time:
        return now, Status.MAX_TIME
    return now, None


def _check_stationarity(
    op: Operator, gtol: float, now: LoopState, square: Callable[[], float]
) -> tuple[LoopState, bool]:
    bound = gtol * (2 * op.norm + op.alpha) * math.sqrt(square())
    if not now.state.gradient_norm <= bound:  # rather than >, so that NaN is not stationary
        return now, False
    if now.state.gradient_at_U:
        return now, True
    # The solver's gradient is at another point than U (AAPB). Confirming it costs a pass, so not every time.
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
    """Whether the factor is small and its objective no better than that of U = 0."""
    of_zero = op.norm**2 / 2
    small = square_norm(op, state.U) <= _SMALL * op.norm
    return small and state.objective >= (1 - _NO_BETTER) * of_zero


def _is_limited_by_rounding(op: Operator, now: LoopState, change: float, square: float) -> bool:
    """Whether rounding hides further progress, given the recent change of the objective and ||U||^2."""
    rounding, residual = op.eps * square, math.sqrt(2 * now.state.latent_loss)
    return (
        rounding > _ROUNDING_FRACTION * residual
        and change <= _NO_PROGRESS * rounding * residual
        and now.record.relative_error > _ERROR_FLOOR * op.eps
    )
