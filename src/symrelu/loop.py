"""The only loop of the library: it moves a solver until a test is met or a limit is reached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from symrelu.checkpoint import CheckpointFile, Snapshot, check_state, restored
from symrelu.operators.base import Operator
from symrelu.settings import Limits as Limits  # which has this path too
from symrelu.solution import History, Record, Solution, Status
from symrelu.solvers.base import Solver, State, square_norm

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
class Progress:
    """What a callback gets after each step; returning True from it stops the fit.

    Attributes
    ----------
    record : Record
        The newest line of the history.
    U : ndarray of shape (n, rank)
        The current factor, in the units of M. A copy.
    limits : Limits
        The limits of this fit.
    signature : ndarray of shape (rank,)
        Signs of the columns.
    norm : float
        ||M|| over the observed entries.
    """

    record: Record
    U: np.ndarray
    limits: Limits
    signature: np.ndarray
    norm: float


Callback = Callable[[Progress], Any]


def run(
    op: Operator,
    solver: Solver,
    U0: Any,
    limits: Limits,
    *,
    callback: Callback | None = None,
    exponent: int = 0,
    checkpoint: CheckpointFile | None = None,
    snapshot: Snapshot | None = None,
    tell: Callable[[Record], None] | None = None,
) -> Solution:
    """Run ``solver`` from ``U0`` and return the solution.

    Parameters
    ----------
    op : Operator
        The problem, its matrix divided by 4^exponent.
    solver : Solver
    U0 : ndarray of shape (n, rank)
        Starting factor, divided by 2^exponent.
    limits : Limits
    callback : callable, optional
        Called with a :class:`Progress` after each step; returning True stops the fit.
    exponent : int
        What was taken out of M: history and factor are given back in the units of M.
    checkpoint : CheckpointFile, optional
        Written from time to time, and at the end.
    snapshot : Snapshot, optional
        Where an earlier run had come to: this one goes on from there.
    tell : callable, optional
        Called with the newest :class:`~symrelu.solution.Record` after each step.
    """
    op.warm_up()
    journey = _Journey(op, limits, exponent)
    status: Status | None = None
    try:
        if snapshot is None:
            status = journey.advance(partial(solver.init, op, U0))
            if checkpoint is not None and journey.moved:
                check_state(journey.now.state)
        else:
            assert checkpoint is not None
            with checkpoint.refusing():
                status = journey.resume(snapshot, solver)
        while status is None:
            if checkpoint is not None and checkpoint.is_due():
                checkpoint.write(journey.snapshot())
            status = journey.advance(partial(solver.step, op, journey.now.state))
            if tell is not None and journey.moved:
                tell(journey.record)
            if callback is not None and journey.moved:
                asked_to_stop = bool(callback(journey.progress()))
                status = Status.CALLBACK if asked_to_stop and status is None else status
    except KeyboardInterrupt:
        if not journey.begun:
            raise
        status = Status.INTERRUPTED
    except BaseException:  # of a callback, say: what was reached is not lost with it
        if checkpoint is not None and journey.begun and journey.now.n_records > 1:
            checkpoint.write(journey.snapshot())
        raise
    if checkpoint is not None and journey.begun:
        with suppress(KeyboardInterrupt):  # an impatient second Ctrl-C must not cost the result
            checkpoint.write(journey.snapshot())
    return journey.solution(status, solver)


@dataclass(frozen=True, eq=False)
class _Standing:
    """Where a fit stands."""

    state: State
    best: State
    n_records: int
    recent_objectives: tuple[float, ...]
    evaluations: int
    seconds: float
    next_confirmation: int


class _Journey:
    """What the loop knows of the way so far.

    Ctrl-C can come between any two lines, and what it leaves is written to a checkpoint. So all that belongs
    together is one value, ``now``, and changes by one assignment; later records than its last do not count.
    """

    def __init__(self, op: Operator, limits: Limits, exponent: int) -> None:
        self.op = op
        self.limits = limits
        self.exponent = exponent
        self.records: list[Record] = []
        self._now: _Standing | None = None
        self.moved = False

    @property
    def begun(self) -> bool:
        """Whether there is a factor to return."""
        return self._now is not None

    @property
    def now(self) -> _Standing:
        assert self._now is not None
        return self._now

    @property
    def record(self) -> Record:
        """The newest line of the history."""
        return self.records[self.now.n_records - 1]

    @property
    def history(self) -> History:
        return History.from_records(self.records[: self.now.n_records])

    def advance(self, move: Callable[[], State]) -> Status | None:
        """Make one timed move, record it and say whether it was the last one."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # noticed below
            state = move()
        seconds = time.perf_counter() - start
        numbers = (state.objective, state.gradient_norm)  # the gradient overflows first, and nothing leads on
        self.moved = all(map(math.isfinite, numbers)) and bool(self.op.xp.isfinite(state.U).all())
        if not self.moved:
            return Status.NON_FINITE
        self._now = self._following(state, seconds)
        return self._status()

    def _following(self, state: State, seconds: float) -> _Standing:
        """Record a new state, which took that long, and return where the fit then stands."""
        before = self._now or _Standing(state, state, 0, (), 0, 0.0, 0)
        evaluations, seconds = self.op.evaluations, before.seconds + seconds
        self.records[before.n_records :] = [self._record(state, before.n_records, evaluations, seconds)]
        return replace(
            before,
            state=state,
            best=state if state.objective < before.best.objective else before.best,
            n_records=before.n_records + 1,
            recent_objectives=(*before.recent_objectives, state.objective)[-PLATEAU_WINDOW - 1 :],
            evaluations=evaluations,
            seconds=seconds,
        )

    def progress(self) -> Progress:
        """Return what a callback gets."""
        k = self.exponent
        U = np.ldexp(self.now.state.U, k)
        return Progress(self.record, U, self.limits, self.op.signature.copy(), _ldexp(self.op.norm, 2 * k))

    def snapshot(self) -> Snapshot:
        """Return all that :meth:`resume` needs."""
        now = self.now
        return Snapshot(
            state={field.name: getattr(now.state, field.name) for field in fields(now.state)},
            best={field.name: getattr(now.best, field.name) for field in fields(State)},
            signature=self.op.signature,
            history=self.history,
            recent_objectives=np.array(now.recent_objectives, np.float64),
            evaluations=now.evaluations,
            seconds=now.seconds,
            next_confirmation=now.next_confirmation,
        )

    def resume(self, snapshot: Snapshot, solver: Solver) -> Status | None:
        """Take up a journey where it was left, and say whether it had come to its end."""
        # The solver is asked for a state, so that the saved one can be held against it.
        U = snapshot.state["U"]
        if not isinstance(U, np.ndarray) or U.shape != (self.op.n, self.op.rank) or U.dtype != self.op.dtype:
            raise ValueError(f"its U is not an array of {self.op.dtype} of shape {(self.op.n, self.op.rank)}")
        example = solver.init(self.op, U)
        base = State(**{field.name: getattr(example, field.name) for field in fields(State)})
        self.records = snapshot.history.records()
        self.op.evaluations = snapshot.evaluations
        self._now = _Standing(
            state=restored(example, snapshot.state),
            best=restored(base, snapshot.best),
            n_records=len(self.records),
            recent_objectives=tuple(snapshot.recent_objectives.tolist()),
            evaluations=snapshot.evaluations,
            seconds=snapshot.seconds,
            next_confirmation=snapshot.next_confirmation,
        )
        return self._status()

    def _record(self, state: State, iteration: int, evaluations: int, seconds: float) -> Record:
        k = self.exponent
        return Record(
            iteration=iteration,
            evaluations=evaluations,
            seconds=seconds,
            relative_error=self.op.relative_error(state.loss),
            latent_loss=_ldexp(state.latent_loss, 4 * k),
            objective=_ldexp(state.objective, 4 * k),
            gradient_norm=_ldexp(state.gradient_norm, 3 * k),
        )

    def _status(self) -> Status | None:
        limits = self.limits
        if limits.tol and self.record.relative_error <= limits.tol:
            return Status.TOLERANCE
        if limits.gtol and self._is_stationary():
            return Status.VANISHED if self._has_vanished() else Status.GRADIENT
        if limits.ftol and len(self.now.recent_objectives) > PLATEAU_WINDOW:
            lowest, highest = min(self.now.recent_objectives), max(self.now.recent_objectives)
            if self._is_rounded(highest - lowest):
                return Status.ROUNDING
            if highest - lowest <= limits.ftol * lowest:
                return Status.VANISHED if self._has_vanished() else Status.PLATEAU
        if self.now.n_records > limits.max_iter:
            return Status.VANISHED if self.op.alpha > 0 and self._has_vanished() else Status.MAX_ITER
        if limits.max_time is not None and self.now.seconds >= limits.max_time:
            return Status.MAX_TIME
        return None

    def _is_stationary(self) -> bool:
        op, now = self.op, self.now
        bound = self.limits.gtol * (2 * op.norm + op.alpha) * math.sqrt(square_norm(op, now.state.U))
        if not now.state.gradient_norm <= bound:
            return False
        if now.state.gradient_at_U:
            return True
        # A gradient that is not at U has to be confirmed by a pass of its own: not at every iteration.
        if now.n_records < now.next_confirmation:
            return False
        start = time.perf_counter()
        product = op.residual_product(now.state.U, now.state.U).product
        norm = math.sqrt(square_norm(op, op.alpha * now.state.U - 2 * product * op.signature))
        self._now = replace(
            now,
            state=replace(now.state, gradient_norm=norm, gradient_at_U=True),
            evaluations=op.evaluations,
            seconds=now.seconds + time.perf_counter() - start,
            next_confirmation=now.n_records + PLATEAU_WINDOW,
        )
        return norm <= bound

    def _has_vanished(self) -> bool:
        """Whether the factor is small, and no better than none at all."""
        of_zero, state = self.op.norm**2 / 2, self.now.state
        small = square_norm(self.op, state.U) <= _SMALL * self.op.norm
        return small and state.objective >= (1 - _NO_BETTER) * of_zero

    def _is_rounded(self, change: float) -> bool:
        """Whether a fit whose objective changed by so much lately is held up by rounding."""
        op, state = self.op, self.now.state
        eps = float(np.finfo(op.dtype).eps)
        rounding, residual = eps * square_norm(op, state.U), math.sqrt(2 * state.latent_loss)
        return (
            rounding > _ROUNDED_PART * residual
            and change <= _CREEPING * rounding * residual
            and self.record.relative_error > _EXCUSED_ERROR * eps
        )

    def solution(self, status: Status, solver: Solver) -> Solution:
        if not self.begun:
            raise FloatingPointError(
                "The objective or its gradient is not finite at the starting factor. Scale init down, or use "
                f"init='random'{', and a smaller alpha' if self.op.alpha > 1 else ''}."
            )
        # A test that was met was met by the current factor; a limit ends with the best one.
        met = status in (Status.TOLERANCE, Status.GRADIENT)
        state, k = (self.now.state if met else self.now.best), self.exponent
        return Solution(
            U=np.ldexp(state.U, k),
            signature=self.op.signature.copy(),
            alpha=_ldexp(self.op.alpha, 2 * k),
            status=status,
            n_iter=self.now.n_records - 1,
            n_evaluations=self.op.evaluations,
            relative_error=self.op.relative_error(state.loss),
            norm=_ldexp(self.op.norm, 2 * k),
            objective=_ldexp(state.objective, 4 * k),
            history=self.history,
            solver=repr(solver),
        )


def _ldexp(value: float, exponent: int) -> float:
    """Return value * 2^exponent; beyond the range of floats, infinity."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
