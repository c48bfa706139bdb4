"""The only iteration loop of the library: it runs a solver until a stopping test is met.

It depends on no model and on no particular observer. Factors are the operator's arrays; what leaves the loop
(:class:`FitProgress`, :class:`Outcome`, records) is on the host and in the units of M.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from symrelu.fit.stages import Stage
from symrelu.fit.stopping import LoopState, check_stopping, initial_loop_state, next_loop_state
from symrelu.fitted.history import Record, Status
from symrelu.operators.base import EvaluationFailed, Operator
from symrelu.solvers.base import Solver, State, check_supported, square_norm

if TYPE_CHECKING:
    from symrelu.fit.settings import Limits


@dataclass(frozen=True, eq=False)
class FitProgress:
    """What a callback receives after each step; the fit stops if the callback returns True.

    Attributes
    ----------
    record : Record
        The latest row of the history.
    U : ndarray of shape (n, rank)
        A copy of the current factor, in the units of M.
    limits : Limits
        The limits of this fit.
    signature : ndarray of shape (rank,)
        Signs of the columns.
    norm : float
        ||M|| over the observed entries.
    level : int
        0 while M itself is fitted. A start with ``init="multilevel"`` comes before that: k while the matrix is
        fitted that is left after items were merged k times. The record and the norm are then those of that
        matrix, and items that were merged have the same row of U, up to a factor.
    """

    record: Record
    U: np.ndarray
    limits: Limits
    signature: np.ndarray
    norm: float
    level: int = 0


Callback = Callable[[FitProgress], Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of the loop, from which the caller builds a Solution.

    Attributes
    ----------
    status : Status
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)
    alpha, norm, objective : float
        Tikhonov weight, ||M|| over the observed entries, and the objective at U.
    relative_error : float
        ||M - max(0, X)|| / ||M|| at U.
    n_iter, n_evaluations : int
        Number of steps, and of passes over the pairs, those of earlier stages included.
    stage : Stage
        The stage with the passes and the time of this run.
    """

    status: Status
    U: np.ndarray
    signature: np.ndarray
    alpha: float
    norm: float
    objective: float
    relative_error: float
    n_iter: int
    n_evaluations: int
    stage: Stage

    @property
    def level(self) -> int:
        """The level at which the fit was stopped before M itself was fitted; 0 if M was fitted."""
        # The factor of a smaller matrix may be all that was asked for.
        return 0 if self.status.converged else self.stage.stopped_at


class Observer:
    """An object that the loop notifies of each step; a base class whose methods do nothing."""

    def begin(self, fit: Fit) -> None:
        """Called once, at the starting factor or at the state from which a fit resumes."""

    def step(self, fit: Fit) -> bool:
        """Called after each step; return True to stop the fit."""
        return False

    def end(self, fit: Fit) -> None:
        """Called once at the end; ``fit.status`` is None if an exception ended the fit."""


def run(
    op: Operator,
    solver: Solver,
    U0: Any,
    limits: Limits,
    *,
    observers: Sequence[Observer] = (),
    exponent: int = 0,
    resume_from: LoopState | None = None,
    stage: Stage | None = None,
    stopped: Status | None = None,
) -> Outcome:
    """Run ``solver`` from ``U0`` until the fit stops.

    Parameters
    ----------
    op : Operator
        The problem, with its matrix divided by 4^exponent.
    solver : Solver
    U0 : array of shape (n, rank)
        Starting factor divided by 2^exponent, as an array of the operator.
    limits : Limits
    observers : sequence of Observer
        Notified of the start, of each step and of the end, in this order.
    exponent : int
        M was divided by 4^exponent. Records and the outcome are in the units of M again.
    resume_from : LoopState, optional
        State of an earlier run from which this one resumes; U0 is then not used.
    stage : Stage, optional
        What came before this run in the same fit, by default nothing.
    stopped : Status, optional
        Why an earlier stage ended the fit: U0 is evaluated, and no step is made.

    Returns
    -------
    outcome : Outcome
    """
    check_solver_supported(type(op), solver)
    op.warm_up()  # compile before the clock starts
    if "curvature" in (getattr(solver, "requires", None) or ()):
        op.warm_up_curvature()
    fit = Fit(op, limits, exponent, stage)
    try:
        if resume_from is None:
            fit.advance(partial(solver.init, op, U0))
        else:
            fit.resume(resume_from)
        fit.check_started()
        fit.status = fit.status or stopped
        for observer in observers:
            observer.begin(fit)
        while fit.status is None:
            fit.advance(partial(solver.step, op, fit.now.state))
            if fit.moved:  # observers never see a step that led to non-finite numbers
                fit.notify(observers)
    except KeyboardInterrupt:
        if not fit.started:  # there is no factor to return yet
            raise
        fit.status = Status.INTERRUPTED
    except EvaluationFailed as failure:  # of a cluster, for example: the factor so far is not lost
        if fit.started:
            fit.status = Status.INTERRUPTED
            failure.outcome = fit.outcome()
            _end(fit, observers)
        raise
    except BaseException:  # from a callback, for example: the checkpoint is still written
        if fit.started:
            _end(fit, observers)
        raise
    _end(fit, observers)
    return fit.outcome()


def _end(fit: Fit, observers: Sequence[Observer]) -> None:
    for observer in observers:
        with suppress(KeyboardInterrupt):  # a second Ctrl-C must not lose the result
            observer.end(fit)


def check_solver_supported(kind: type[Operator], solver: Solver) -> None:
    """Raise unless a class of operators offers what a solver requires."""
    advice = getattr(solver, "unsupported_advice", "Use another solver, or another backend.")
    check_supported(type(solver).__name__, getattr(solver, "requires", ()), kind, advice)


class Fit:
    """A running fit: the loop advances it, observers read it.

    Ctrl-C can interrupt between any two lines, and the state it leaves is written to a checkpoint. Therefore
    everything that must stay consistent is one value, ``now``, which a single assignment replaces.

    Attributes
    ----------
    op : Operator
    limits : Limits
    exponent : int
    stage : Stage
        What came before.
    status : Status, or None
        Why the fit stopped; None while it runs.
    moved : bool
        Whether the last step gave finite numbers.
    """

    def __init__(self, op: Operator, limits: Limits, exponent: int, stage: Stage | None = None) -> None:
        self.op = op
        self.limits = limits
        self.exponent = exponent
        self.stage = Stage(op.n) if stage is None else stage
        self.status: Status | None = None
        self.moved = False
        self._now: LoopState | None = None
        # The operator counts all passes made with it. This is what to add to get those of this fit: passes
        # before it was resumed, less passes that other users of the operator had made.
        self._evaluations_elsewhere = -op.evaluations

    @property
    def started(self) -> bool:
        """Whether there is a factor to return."""
        return self._now is not None

    @property
    def now(self) -> LoopState:
        """The current state of the loop."""
        assert self._now is not None
        return self._now

    @property
    def record(self) -> Record:
        """The latest row of the history."""
        return self.now.record

    def advance(self, move: Callable[[], State]) -> None:
        """Make one timed step (or the initialisation), record it and test whether to stop."""
        start = time.perf_counter()
        # No warnings: a state that is not finite ends the fit below.
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        with quiet, self.op.full_precision():
            state = move()
        seconds = time.perf_counter() - start
        # The gradient can overflow before the objective does, and no further step could be made from it.
        numbers = (state.objective, state.gradient_norm)
        self.moved = all(map(math.isfinite, numbers)) and self._is_finite(state.U)
        if not self.moved:
            self.status = Status.NON_FINITE
            return
        before = self._now
        if before is None:
            record = self._record(state, 0, self.stage.seconds + seconds)
            self._now = initial_loop_state(state, record, self._evaluations)
        else:
            record = self._record(state, before.n_iter + 1, before.seconds + seconds)
            self._now = next_loop_state(before, state, record, self._evaluations)
        self._check_stopping()

    def _is_finite(self, U: Any) -> bool:
        # The sum of squares is much faster, but can overflow.
        xp = self.op.xp
        return math.isfinite(square_norm(self.op, U)) or bool(xp.all(xp.isfinite(U)))

    def resume(self, loop_state: LoopState) -> None:
        """Continue from a saved state, and test whether the fit had already reached its end."""
        self._evaluations_elsewhere += loop_state.evaluations
        self._now = loop_state
        self._check_stopping()

    def _check_stopping(self) -> None:
        self._now, self.status = check_stopping(self.op, self.limits, self.now)

    def check_started(self) -> None:
        """Raise if the objective or its gradient is not finite at the starting factor."""
        if not self.started:
            raise FloatingPointError(
                "The objective or its gradient is not finite at the starting factor. Scale init down, or use "
                f"init='random'{', and a smaller alpha' if self.op.alpha > 1 else ''}."
            )

    def notify(self, observers: Sequence[Observer]) -> None:
        """Notify observers of a step; one may stop the fit, unless a stopping test has done so already."""
        for observer in observers:
            if observer.step(self) and self.status is None:
                self.status = Status.CALLBACK

    def progress(self) -> FitProgress:
        """Return what a callback receives."""
        k = self.exponent
        # Copies: a callback cannot change the fit.
        U = self.stage.in_units_of_M(self.stage.expanded(self.op.to_numpy(self.now.state.U)), k)
        norm = _ldexp(self.op.norm, 2 * k)
        return FitProgress(self.record, U, self.limits, self.op.signs.copy(), norm, self.stage.level)

    def outcome(self) -> Outcome:
        """Return the result of a fit that has ended."""
        assert self.status is not None
        # These two tests were met by the current factor, which may not have the lowest objective so far.
        met = self.status in (Status.TOLERANCE, Status.GRADIENT)
        state, k = (self.now.state if met else self.now.best), self.exponent
        stage = self.stage.after(self._evaluations, self.op.n, self.now.seconds)
        return Outcome(
            status=self.status,
            U=self.stage.in_units_of_M(self.op.to_numpy(state.U), k),
            signature=self.op.signs.copy(),
            alpha=_ldexp(self.op.alpha, 2 * k),
            norm=_ldexp(self.op.norm, 2 * k),
            objective=_ldexp(state.objective, 4 * k),
            relative_error=self.op.relative_error(state.loss),
            n_iter=self.now.n_iter,
            n_evaluations=stage.evaluations,
            stage=stage,
        )

    @property
    def _evaluations(self) -> int:
        """Number of passes of this run of the loop."""
        return self._evaluations_elsewhere + self.op.evaluations

    def _record(self, state: State, iteration: int, seconds: float) -> Record:
        # M is scaled by 4^k and U by 2^k, so the loss scales as M^2 and its gradient as M^2 / U.
        k = self.exponent
        return Record(
            iteration=iteration,
            evaluations=self.stage.after(self._evaluations, self.op.n).evaluations,
            seconds=seconds,
            relative_error=self.op.relative_error(state.loss),
            latent_loss=_ldexp(state.latent_loss, 4 * k),
            objective=_ldexp(state.objective, 4 * k),
            gradient_norm=_ldexp(state.gradient_norm, 3 * k),
        )


def _ldexp(value: float, exponent: int) -> float:
    """Return value * 2^exponent, or infinity if it overflows."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
