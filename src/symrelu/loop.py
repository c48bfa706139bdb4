"""The only loop of the library: it moves a solver until a test is met or a limit is reached."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from symrelu.checkpoint import CheckpointFile, Snapshot, check_state, restored
from symrelu.operators.base import Operator
from symrelu.solution import History, Record, Solution, Status
from symrelu.solvers.base import Solver, State, square_norm
from symrelu.validation import check_integer, check_number

# The plateau test looks at the spread of the objective over so many iterations. A spread, not a fall: the
# objective of an accelerated method may rise for a while before it falls further.
PLATEAU_WINDOW = 20


@dataclass(frozen=True)
class Limits:
    """When to stop. A tolerance of 0 switches its test off.

    Parameters
    ----------
    tol : float
        Stop when relative_error <= tol.
    gtol : float
        Stop when ||gradient|| <= gtol (2 ||M|| + alpha) ||U||.
    ftol : float
        Stop when the objective changed by at most ftol times itself over the last 20 iterations.
    max_iter : int
        Largest number of steps.
    max_time : float or None
        Seconds that the steps may take.
    """

    tol: float = 1e-4
    gtol: float = 1e-7
    ftol: float = 1e-8
    max_iter: int = 1000
    max_time: float | None = None

    def __post_init__(self) -> None:
        for name in ("tol", "gtol", "ftol"):
            check_number(name, getattr(self, name))
        check_integer("max_iter", self.max_iter, 1)
        if self.max_time is not None:
            check_number("max_time", self.max_time, low_included=False)


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
                check_state(journey.state)
        else:
            assert checkpoint is not None
            with checkpoint.refusing():
                status = journey.resume(snapshot, solver)
        while status is None:
            if checkpoint is not None and checkpoint.is_due():
                checkpoint.write(journey.snapshot())
            status = journey.advance(partial(solver.step, op, journey.state))
            if tell is not None and journey.moved:
                tell(journey.records[-1])
            if callback is not None and journey.moved:
                asked_to_stop = bool(callback(journey.progress()))
                status = Status.CALLBACK if asked_to_stop and status is None else status
    except KeyboardInterrupt:
        if journey.best is None:
            raise
        status = Status.INTERRUPTED
    except BaseException:  # of a callback, say: what was reached is not lost with it
        if checkpoint is not None and len(journey.records) > 1:
            checkpoint.write(journey.snapshot())
        raise
    if checkpoint is not None and journey.best is not None:
        with suppress(KeyboardInterrupt):  # an impatient second Ctrl-C must not cost the result
            checkpoint.write(journey.snapshot())
    return journey.solution(status, solver)


class _Journey:
    """What the loop knows of the way so far."""

    def __init__(self, op: Operator, limits: Limits, exponent: int) -> None:
        self.op = op
        self.limits = limits
        self.exponent = exponent
        self.records: list[Record] = []
        self.state: State = None  # type: ignore[assignment]  # set by the first advance
        self.best: State | None = None
        self.recent_objectives: deque[float] = deque(maxlen=PLATEAU_WINDOW + 1)
        self.seconds = 0.0
        self.moved = False
        # A gradient that is not at U has to be confirmed by a pass of its own: not at every iteration.
        self.next_confirmation = 0

    def advance(self, move: Callable[[], State]) -> Status | None:
        """Make one timed move, record it and say whether it was the last one."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # noticed below
            state = move()
        self.seconds += time.perf_counter() - start
        self.moved = math.isfinite(state.objective) and bool(self.op.xp.isfinite(state.U).all())
        if not self.moved:
            return Status.NON_FINITE
        self.state = state
        self.records.append(self._record(state))
        if self.best is None or state.objective < self.best.objective:
            self.best = state
        self.recent_objectives.append(state.objective)
        return self._status()

    def progress(self) -> Progress:
        """Return what a callback gets."""
        k = self.exponent
        U = np.ldexp(self.state.U, k)
        return Progress(self.records[-1], U, self.limits, self.op.signature.copy(), _ldexp(self.op.norm, 2 * k))

    def snapshot(self) -> Snapshot:
        """Return all that :meth:`resume` needs."""
        assert self.best is not None
        return Snapshot(
            state={field.name: getattr(self.state, field.name) for field in fields(self.state)},
            best={field.name: getattr(self.best, field.name) for field in fields(State)},
            signature=self.op.signature,
            history=History.from_records(self.records),
            recent_objectives=np.array(self.recent_objectives, np.float64),
            evaluations=self.op.evaluations,
            seconds=self.seconds,
            next_confirmation=self.next_confirmation,
        )

    def resume(self, snapshot: Snapshot, solver: Solver) -> Status | None:
        """Take up a journey where it was left, and say whether it had come to its end."""
        # The solver is asked for a state, so that the saved one can be held against it.
        U = snapshot.state["U"]
        if not isinstance(U, np.ndarray) or U.shape != (self.op.n, self.op.rank) or U.dtype != self.op.dtype:
            raise ValueError(f"its U is not an array of {self.op.dtype} of shape {(self.op.n, self.op.rank)}")
        example = solver.init(self.op, U)
        self.state = restored(example, snapshot.state)
        base = State(**{field.name: getattr(example, field.name) for field in fields(State)})
        self.best = restored(base, snapshot.best)
        self.records = snapshot.history.records()
        self.recent_objectives.extend(snapshot.recent_objectives.tolist())
        self.op.evaluations = snapshot.evaluations
        self.seconds = snapshot.seconds
        self.next_confirmation = snapshot.next_confirmation
        return self._status()

    def _record(self, state: State) -> Record:
        k = self.exponent
        return Record(
            iteration=len(self.records),
            evaluations=self.op.evaluations,
            seconds=self.seconds,
            relative_error=self.op.relative_error(state.loss),
            latent_loss=_ldexp(state.latent_loss, 4 * k),
            objective=_ldexp(state.objective, 4 * k),
            gradient_norm=_ldexp(state.gradient_norm, 3 * k),
        )

    def _status(self) -> Status | None:
        limits = self.limits
        if limits.tol and self.records[-1].relative_error <= limits.tol:
            return Status.TOLERANCE
        if limits.gtol and self._is_stationary():
            return Status.GRADIENT
        if limits.ftol and len(self.recent_objectives) > PLATEAU_WINDOW:
            lowest, highest = min(self.recent_objectives), max(self.recent_objectives)
            if highest - lowest <= limits.ftol * lowest:
                return Status.PLATEAU
        if len(self.records) > limits.max_iter:
            return Status.MAX_ITER
        if limits.max_time is not None and self.seconds >= limits.max_time:
            return Status.MAX_TIME
        return None

    def _is_stationary(self) -> bool:
        op, state = self.op, self.state
        bound = self.limits.gtol * (2 * op.norm + op.alpha) * math.sqrt(square_norm(op, state.U))
        if not state.gradient_norm <= bound:
            return False
        if state.gradient_at_U:
            return True
        if len(self.records) < self.next_confirmation:
            return False
        self.next_confirmation = len(self.records) + PLATEAU_WINDOW
        start = time.perf_counter()
        product = op.residual_product(state.U, state.U).product
        norm = math.sqrt(square_norm(op, op.alpha * state.U - 2 * product * op.signature))
        self.seconds += time.perf_counter() - start
        return norm <= bound

    def solution(self, status: Status, solver: Solver) -> Solution:
        if self.best is None:
            raise FloatingPointError(
                "The starting factor has a non-finite objective. Scale init down, or use init='random'."
            )
        # A test that was met was met by the current factor; a limit ends with the best one.
        met = status in (Status.TOLERANCE, Status.GRADIENT)
        state, k = (self.state if met else self.best), self.exponent
        return Solution(
            U=np.ldexp(state.U, k),
            signature=self.op.signature.copy(),
            alpha=_ldexp(self.op.alpha, 2 * k),
            status=status,
            n_iter=len(self.records) - 1,
            n_evaluations=self.op.evaluations,
            relative_error=self.op.relative_error(state.loss),
            norm=_ldexp(self.op.norm, 2 * k),
            objective=_ldexp(state.objective, 4 * k),
            history=History.from_records(self.records),
            solver=repr(solver),
        )


def _ldexp(value: float, exponent: int) -> float:
    """Return value * 2^exponent; beyond the range of floats, infinity."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
