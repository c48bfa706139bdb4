"""The only loop of the library: it moves a solver until a test is met or a limit is reached.

It knows no model and none of its observers by name. Factors are the operator's arrays; what leaves the loop
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

from symrelu.fit.stopping import Standing, first_standing, judged, next_standing
from symrelu.fitted.history import Record, Status
from symrelu.operators.base import Operator
from symrelu.solvers.base import Solver, State, check_offers

if TYPE_CHECKING:
    from symrelu.fit.settings import Limits


@dataclass(frozen=True, eq=False)
class FitProgress:
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


Callback = Callable[[FitProgress], Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a loop ends with.

    Attributes
    ----------
    status : Status
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)
    alpha, norm, objective : float
        Tikhonov weight, ||M|| over the observed entries, and the objective at U.
    relative_error : float
        At U.
    n_iter, n_evaluations : int
        Steps, and passes over the pairs, that were made.
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


class Observer:
    """Someone who is told how a fit goes; a base class whose methods do nothing."""

    def begin(self, fit: Fit) -> None:
        """Called once, at the starting factor or where a resumed fit stands."""

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
    standing: Standing | None = None,
) -> Outcome:
    """Run ``solver`` from ``U0`` and return what it came to.

    Parameters
    ----------
    op : Operator
        The problem, its matrix divided by 4^exponent.
    solver : Solver
    U0 : array of shape (n, rank)
        Starting factor, divided by 2^exponent: an array of the operator.
    limits : Limits
    observers : sequence of Observer
        Told of the start, of each step and of the end, in this order.
    exponent : int
        What was taken out of M: all that is given back is in the units of M.
    standing : Standing, optional
        Where an earlier run stood: this one resumes from there, and U0 is not used.

    Returns
    -------
    outcome : Outcome
    """
    check_solver_offered(type(op), solver)
    op.warm_up()
    fit = Fit(op, limits, exponent)
    try:
        if standing is None:
            fit.advance(partial(solver.init, op, U0))
        else:
            fit.resume(standing)
        fit.check_begun()
        for observer in observers:
            observer.begin(fit)
        while fit.status is None:
            fit.advance(partial(solver.step, op, fit.now.state))
            if fit.moved:
                fit.tell(observers)
    except KeyboardInterrupt:
        if not fit.begun:
            raise
        fit.status = Status.INTERRUPTED
    except BaseException:  # of an observer, say: what was reached is not lost with it
        if fit.begun:
            _end(fit, observers)
        raise
    _end(fit, observers)
    return fit.outcome()


def _end(fit: Fit, observers: Sequence[Observer]) -> None:
    for observer in observers:
        with suppress(KeyboardInterrupt):  # an impatient second Ctrl-C must not cost the result
            observer.end(fit)


def check_solver_offered(kind: type[Operator], solver: Solver) -> None:
    """Raise unless a kind of operator offers what a solver asks of it."""
    otherwise = getattr(solver, "otherwise", "Use another solver, or another backend.")
    check_offers(type(solver).__name__, getattr(solver, "requires", ()), kind, otherwise)


class Fit:
    """A fit on its way: the loop moves it, observers look at it.

    Ctrl-C can come between any two lines, and what it leaves is written to a checkpoint. So all that belongs
    together is one value, ``now``, and changes by one assignment.

    Attributes
    ----------
    op : Operator
    limits : Limits
    exponent : int
    status : Status, or None
        Why it has ended, if it has.
    moved : bool
        Whether the last move led to finite numbers.
    """

    def __init__(self, op: Operator, limits: Limits, exponent: int) -> None:
        self.op = op
        self.limits = limits
        self.exponent = exponent
        self.status: Status | None = None
        self.moved = False
        self._now: Standing | None = None
        # Those of this fit before it was resumed, less those that others made on this operator.
        self._evaluations_elsewhere = -op.evaluations

    @property
    def begun(self) -> bool:
        """Whether there is a factor to return."""
        return self._now is not None

    @property
    def now(self) -> Standing:
        """Where it stands."""
        assert self._now is not None
        return self._now

    @property
    def record(self) -> Record:
        """The newest line of the history."""
        return self.now.record

    def advance(self, move: Callable[[], State]) -> None:
        """Make one timed move, record it and judge whether it was the last one."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # noticed below
            state = move()
        seconds = time.perf_counter() - start
        numbers = (state.objective, state.gradient_norm)  # the gradient overflows first, and nothing leads on
        xp = self.op.xp
        self.moved = all(map(math.isfinite, numbers)) and bool(xp.all(xp.isfinite(state.U)))
        if not self.moved:
            self.status = Status.NON_FINITE
            return
        before = self._now
        if before is None:
            self._now = first_standing(state, self._record(state, 0, seconds))
        else:
            record = self._record(state, before.n_iter + 1, before.seconds + seconds)
            self._now = next_standing(before, state, record)
        self._judge()

    def resume(self, standing: Standing) -> None:
        """Take up a fit where it was left, and judge whether it had come to its end."""
        self._evaluations_elsewhere += standing.evaluations
        self._now = standing
        self._judge()

    def _judge(self) -> None:
        self._now, self.status = judged(self.op, self.limits, self.now)

    def check_begun(self) -> None:
        """Raise if there is no finite number at the start."""
        if not self.begun:
            raise FloatingPointError(
                "The objective or its gradient is not finite at the starting factor. Scale init down, or use "
                f"init='random'{', and a smaller alpha' if self.op.alpha > 1 else ''}."
            )

    def tell(self, observers: Sequence[Observer]) -> None:
        """Let observers look at a step: each may want to stop, but a test that was met goes before."""
        for observer in observers:
            if observer.step(self) and self.status is None:
                self.status = Status.CALLBACK

    def progress(self) -> FitProgress:
        """Return what a callback gets."""
        k = self.exponent
        U = np.ldexp(self.op.to_numpy(self.now.state.U), k)
        return FitProgress(self.record, U, self.limits, self.op.signs.copy(), _ldexp(self.op.norm, 2 * k))

    def outcome(self) -> Outcome:
        """Return what it came to. It must have ended."""
        assert self.status is not None
        # A test that was met was met by the current factor; a limit ends with the best one.
        met = self.status in (Status.TOLERANCE, Status.GRADIENT)
        state, k = (self.now.state if met else self.now.best), self.exponent
        return Outcome(
            status=self.status,
            U=np.ldexp(self.op.to_numpy(state.U), k),
            signature=self.op.signs.copy(),
            alpha=_ldexp(self.op.alpha, 2 * k),
            norm=_ldexp(self.op.norm, 2 * k),
            objective=_ldexp(state.objective, 4 * k),
            relative_error=self.op.relative_error(state.loss),
            n_iter=self.now.n_iter,
            n_evaluations=self._evaluations,
        )

    @property
    def _evaluations(self) -> int:
        return self._evaluations_elsewhere + self.op.evaluations

    def _record(self, state: State, iteration: int, seconds: float) -> Record:
        k = self.exponent
        return Record(
            iteration=iteration,
            evaluations=self._evaluations,
            seconds=seconds,
            relative_error=self.op.relative_error(state.loss),
            latent_loss=_ldexp(state.latent_loss, 4 * k),
            objective=_ldexp(state.objective, 4 * k),
            gradient_norm=_ldexp(state.gradient_norm, 3 * k),
        )


def _ldexp(value: float, exponent: int) -> float:
    """Return value * 2^exponent; beyond the range of floats, infinity."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
