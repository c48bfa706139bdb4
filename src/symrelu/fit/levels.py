"""The multilevel start: fit a small matrix that resembles M, then larger ones, and at last M itself.

Many evaluations of a fit of a large graph are spent before its factor has the right shape. That shape is found
at less cost in smaller matrices, in which similar items are merged (``problem/coarsening.py``). The smallest
one is fitted from the imputed start, with the solver of the fit; its factor is the start of the next larger
one, in which merged items begin with the same row, and so on. Every fit goes through :func:`fit_levels`;
without a multilevel start, M is the only level.

If an operator has passes that are faster and less exact, smaller matrices are fitted with these. Without
smaller ones, M itself is, far from the end: level 1 is then M as well, a *draft*.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from symrelu.fit.checkpoint import CheckpointFile
from symrelu.fit.loop import Observer, Outcome, run
from symrelu.fit.observers import HistoryKeeper
from symrelu.fit.resuming import CheckpointWriter
from symrelu.fit.settings import Limits
from symrelu.fit.stages import Stage
from symrelu.fit.stopping import LoopState
from symrelu.fitted.history import Status
from symrelu.kernels.scores import pair_scores
from symrelu.operators import EvaluationFailed, Operator
from symrelu.problem import Problem
from symrelu.problem.coarsening import Level, coarse_levels
from symrelu.solvers import Solver
from symrelu.validation import random_generator

# A matrix is made smaller if it has more items than this, and more than so many times the rank.
FEWEST_ITEMS = 1000
_ITEMS_PER_COLUMN = 8

# The smaller matrices are fitted loosely, because they only resemble M, and only while the objective falls
# quickly: by a sixth in 20 steps. With 20 steps at most, a graph of blobs of 16000 points takes a quarter less
# time, but one of 50000 needs half as many evaluations again. These limits do not depend on those of the fit,
# so that a fit that resumes with other limits goes the same way.
_LOOSE = Limits(tol=0.05, ftol=0.2, max_iter=50)

# Items that were merged would move together for ever without noise, of this size relative to the factor.
_NOISE = 1e-2
_STREAM = 2  # random stream of the noise: see symrelu.fit.starts

_STOPPED = (Status.MAX_TIME, Status.CALLBACK, Status.INTERRUPTED)  # these end the fit, not only a level


def fewest_items(rank: int) -> int:
    """Return how many items a matrix must exceed for a multilevel start to make it smaller."""
    return max(FEWEST_ITEMS, _ITEMS_PER_COLUMN * rank)


@dataclass(frozen=True, eq=False)
class Levels:
    """The matrices of a fit: M is level 0, and each further one has about half of the items, or is a draft.

    Parameters
    ----------
    problem : Problem
    op : Operator
        That of M.
    backend : str
        The representation of all matrices.
    multilevel : bool
        Whether there are smaller matrices than M.
    precision : {"auto", "high", "fast"}
        As for a fit.
    """

    problem: Problem
    op: Operator
    backend: str
    multilevel: bool
    precision: str = "auto"

    @cached_property
    def coarse(self) -> list[Level]:
        """The smaller matrices."""
        return coarse_levels(self.problem, self.fewest) if self.multilevel else []

    @property
    def fewest(self) -> int:
        """Only a matrix of more items than this is made smaller."""
        return fewest_items(self.op.rank)

    @cached_property
    def drafts(self) -> int:
        """The number of levels, zero or one, that are M itself with passes that are less exact."""
        wanted = self.precision == "fast" or (self.precision == "auto" and not self.coarse)
        return int(wanted and self.op.approximate() is not self.op)

    @property
    def depth(self) -> int:
        """The number of the level with which a fit begins."""
        return self.drafts + len(self.coarse)

    def limits(self, level: int, limits: Limits) -> Limits:
        """Return the limits of a level of a fit with these limits."""
        if level == 0:
            return limits
        if level > self.drafts or self.precision != "fast":
            return replace(_LOOSE, max_time=limits.max_time)
        floor = self.op.approximate().noise_floor
        return replace(limits, tol=max(limits.tol, floor), ftol=max(limits.ftol, floor**2))

    def operator(self, level: int) -> Operator:
        """Return the operator of a level; those of others than M itself need not be exact."""
        if level <= self.drafts:
            return self.op.approximate() if level else self.op
        problem = self._problem(level)
        op = problem.operator(
            self.op.signs,
            alpha=problem.scaled_alpha(self.op.alpha),
            zero_weight=self.op.zero_weight,
            support="at_least" if self.op.at_least else "equal",
            backend=self.backend,
        )
        return op if self.precision == "high" else op.approximate()

    def exponent(self, level: int) -> int:
        """Return the k for which the operator of a level is in the units of M / 4^k."""
        # The smaller problems are in the units of the scaled M.
        return self.problem.exponent + (self._problem(level).exponent if level > self.drafts else 0)

    def first_stage(self, random_state: Any) -> Stage:
        """Return the stage with which a fit begins: the smallest matrix."""
        if not self.coarse:
            return self.next_stage(self._stage(), self.depth)
        seed = int(random_generator(random_state, _STREAM).random() * 2**53)
        return self.next_stage(self._stage(seed=seed), self.depth)

    def saved_stage(self, level: int = 0, visited: int = 0, seed: int = 0) -> Stage:
        """Return the stage of a checkpoint, or raise an error that the caller completes."""
        if level and level > self.depth:
            raise ValueError(f"its level is {level}, and this fit has {self.depth}")
        return self.next_stage(self._stage(visited=visited, seed=seed), level)

    def _stage(self, visited: int = 0, seed: int = 0) -> Stage:
        return Stage(self.problem.n, visited=visited, seed=seed, dtype=self.problem.dtype)

    def next_stage(self, stage: Stage, level: int) -> Stage:
        """Return the stage of a level that follows another stage."""
        expanded = partial(self._spread, level=level, to=0) if level > self.drafts else np.asarray
        return replace(stage, level=level, expanded=expanded)

    def start_from(self, outcome: Outcome, level: int) -> Any:
        """Return a starting factor of a level, from the outcome of a smaller one.

        Items that were merged get the same row, up to noise. The factor is scaled such that X is as close as
        possible to the positive entries: between two groups, M has zeros as well, so that X is too small.
        """
        if outcome.stage.level <= self.drafts:  # of M itself: the factor is that of the draft
            return self.operator(level).asarray(np.ldexp(outcome.U, -self.exponent(level)))
        U = self._spread(np.ldexp(outcome.U, -self.exponent(level)), outcome.stage.level, level)
        noise = np.random.default_rng([outcome.stage.seed, level]).standard_normal(U.shape)
        U += (_NOISE * np.linalg.norm(U) / np.sqrt(U.size) * noise).astype(U.dtype)
        return self.operator(level).asarray(np.ascontiguousarray(U * self._scale(U, level)))

    def _scale(self, U: np.ndarray, level: int) -> float:
        """Return the number t for which t^2 X is closest to the positive entries of a level."""
        problem = self._problem(level)
        i, j, values = problem.positive_pairs()
        X = pair_scores(U * self.op.signs, U, i, j).astype(np.float64)
        along = float(X @ np.ldexp(values.astype(np.float64), -2 * problem.exponent))
        return math.sqrt(along / float(X @ X)) if along > 0 else 1.0

    def _spread(self, U: np.ndarray, level: int, to: int) -> np.ndarray:
        """Return the factor of a larger level in which all items of a group have the same row of X."""
        rows = np.arange(self._problem(to).n)
        for coarser in self.coarse[max(0, to - self.drafts) : max(0, level - self.drafts)]:
            rows = coarser.groups[rows]
        shares = self._sizes(to) / self._sizes(level)[rows]
        return U[rows] * np.sqrt(shares)[:, None].astype(U.dtype)

    def _problem(self, level: int) -> Problem:
        return self._coarser(level).problem if level > self.drafts else self.problem

    def _sizes(self, level: int) -> np.ndarray:
        """Return the number of items of M in each group of a level."""
        return self._coarser(level).sizes if level > self.drafts else np.ones(self.problem.n)

    def _coarser(self, level: int) -> Level:
        return self.coarse[level - self.drafts - 1]


class Beginning(NamedTuple):
    """Where a fit begins or resumes: a stage, and a starting factor or a saved state with its history."""

    stage: Stage
    U0: Any | None
    loop_state: LoopState | None
    history: HistoryKeeper


def fit_levels(
    levels: Levels,
    beginning: Beginning,
    solver: Solver,
    limits: Limits,
    observers: Sequence[Observer],
    file: CheckpointFile | None,
) -> tuple[Outcome, HistoryKeeper]:
    """Run the loop at each level, down to M itself.

    Parameters
    ----------
    levels : Levels
    beginning : Beginning
    solver : Solver
    limits : Limits
        Those of the fit of M. Its time limit includes the other levels.
    observers : sequence of Observer
        Notified of the steps of all levels.
    file : CheckpointFile or None

    Returns
    -------
    outcome : Outcome
        That of M. If the fit was stopped before, its factor comes from the last level that was reached.
    history : HistoryKeeper
        The history of the outcome; its counts and times include the other levels.

    Notes
    -----
    Ctrl-C before a level has a factor ends the fit with that of the level before. An EvaluationFailed gets the
    outcome and the history of the last level with a factor, with a row for each item of M. So does a second
    Ctrl-C before that factor is evaluated for M: its error and its history remain those of the level.
    """
    if levels.depth:
        levels.op.warm_up()  # smaller matrices do not need all that is compiled, and the clock would run later
    stage, U0, loop_state, history = beginning
    outcome: Outcome | None = None
    kept = history  # that of the outcome
    while True:
        try:
            if outcome is not None:
                stage = levels.next_stage(outcome.stage, stage.level - 1)
                U0 = levels.start_from(outcome, stage.level)
            # The history must have the step before the checkpoint saves it.
            writers = [] if file is None else [CheckpointWriter(file, history, solver)]
            outcome = run(
                levels.operator(stage.level),
                solver,
                U0,
                levels.limits(stage.level, limits),
                observers=[history, *observers, *writers],
                exponent=levels.exponent(stage.level),
                resume_from=loop_state,
                stage=stage,
            )
            kept = history
        except KeyboardInterrupt:  # this level has no factor yet
            if outcome is None:
                raise
            outcome = replace(outcome, status=Status.INTERRUPTED)
        except EvaluationFailed as failure:
            if failure.outcome is not None:
                outcome, kept = failure.outcome, history
            _keep_factor(failure, levels, outcome, kept)
            raise
        if outcome.stage.level == 0:
            return outcome, history
        history, loop_state = HistoryKeeper(), None
        if outcome.status in _STOPPED or (levels.precision == "fast" and stage.level <= levels.drafts):
            try:
                return _ended_early(levels, outcome, solver, limits, [history, *observers]), history
            except KeyboardInterrupt:
                return _unevaluated(levels, outcome), kept
            except EvaluationFailed as failure:
                _keep_factor(failure, levels, outcome, kept)
                raise


def _keep_factor(
    failure: EvaluationFailed, levels: Levels, outcome: Outcome | None, history: HistoryKeeper
) -> None:
    """Let a failure have the outcome of the last level with a factor, if there is one."""
    if outcome is not None:
        failure.outcome, failure.history = _unevaluated(levels, outcome), history


def _unevaluated(levels: Levels, outcome: Outcome) -> Outcome:
    """Return the outcome of a level with a row for each item of M, without a pass over M."""
    stage = outcome.stage
    stopped_at = stage.level if stage.level > levels.drafts else 0
    return replace(
        outcome,
        status=Status.INTERRUPTED,
        U=stage.expanded(outcome.U),
        stage=replace(stage, stopped_at=stopped_at),
    )


def _ended_early(
    levels: Levels, outcome: Outcome, solver: Solver, limits: Limits, observers: Sequence[Observer]
) -> Outcome:
    """Return the outcome for M of a fit that was stopped at another level, or whose last level is a draft.

    It costs a pass, and another one to scale the factor of a smaller matrix. The checkpoint keeps the other
    level, from which a fit resumes as if it had not stopped.
    """
    U0, stage = levels.start_from(outcome, 0), levels.next_stage(outcome.stage, 0)
    if outcome.stage.level > levels.drafts:
        U0, stage = _scaled(levels.op, U0, replace(stage, stopped_at=outcome.stage.level))
    # A draft that has reached its noise floor can still be above the tolerance of the fit.
    limited = outcome.status is Status.TOLERANCE
    return run(
        levels.op,
        solver,
        U0,
        limits,
        observers=observers,
        exponent=levels.exponent(0),
        stage=stage,
        stopped=Status.ROUNDING if limited else outcome.status,
    )


def _scaled(op: Operator, U: Any, stage: Stage) -> tuple[Any, Stage]:
    """Return a factor scaled to M, and the stage after the pass that this takes.

    If the pass does not end, by a second Ctrl-C for example, the factor is not scaled: that is no reason to
    lose it. An operator that has failed will say so in the next pass.
    """
    op.warm_up()  # compile before the clock starts
    start, before = time.perf_counter(), op.evaluations
    with suppress(KeyboardInterrupt, EvaluationFailed):
        U = _closest_multiple(op, U)
    seconds = stage.seconds + time.perf_counter() - start
    return U, stage.after(op.evaluations - before, op.n, seconds)


def _closest_multiple(op: Operator, U: Any) -> Any:
    """Return t U with the t >= 0 for which t^2 X has the lowest loss, so that it is no worse than U = 0.

    For a factor t U, the latent loss is 1/2 ||M||^2 - t^2 <M, X> + t^4 / 2 ||X||^2, where <M, X> is over the
    support, and ||X||^2 over the support and, weighted, over the zeros with X > 0. The latent loss and the
    alignment of one pass give both. With ``at_least`` this is an upper bound: X counts as M where it is larger.
    """
    passed = op.loss(U)
    square = op.norm**2 - 2 * (passed.latent_loss + passed.alignment)
    along = passed.alignment + square
    # The relative error counts zeros with weight 1. Twice the loss is an upper bound for their squares.
    square += (1 - op.zero_weight) * 2 * passed.loss
    return U * (math.sqrt(max(0.0, along) / square) if square > 0 else 1.0)
