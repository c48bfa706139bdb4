"""The smallest factor whose scores above a threshold are exactly the edges of a graph.

A fit with a negative column gives the neighbours of a sparse graph back exactly, if it has enough columns. From
there the rank is lowered (rank continuation): the weakest direction of X is dropped, and the rest is fitted
again, starting from where it is. Only the side of the threshold matters, so X >= M suffices on the edges
(``support="at_least"``). A fit from scratch uses X = M: it gets closer.

An edge that stays on the wrong side is given more weight: its entry of M is doubled, which pulls its two nodes
together with twice the force. Without that, the last wrong pairs stay for thousands of steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.fit.decompose import decompose
from symrelu.fit.loop import FitProgress
from symrelu.fit.memory_check import TooLittleMemory
from symrelu.fit.narration import LineTimer, logger, narrated
from symrelu.fit.neighbor_goal import Attempt, Found, Goal
from symrelu.fit.separation import Separation, separation
from symrelu.fitted.answers import counters_for
from symrelu.fitted.canonical_form import canonical_factor
from symrelu.fitted.certificate import Certificate, certify
from symrelu.fitted.history import Status
from symrelu.kernels.neighbor_counts import edges_of
from symrelu.kernels.threads import kept_threads, single_threaded_blas
from symrelu.problem import Problem

PHASE = 100  # steps between two counts of the wrong pairs

_FIRST_PHASES = 3  # of a fit from scratch
_HOPEFUL = 0.05  # a fit from scratch with more wrong pairs than this share of the edges needs more columns
_STALLED = 0.7  # edges get more weight if a phase leaves more than this share of the wrong pairs
_LARGEST_WEIGHT = 16.0

# An attempt is given up if this many phases did not halve the number of wrong pairs.
_PATIENCE = 15

_COLUMNS_PER_DOUBLING = 1.7  # of the first fit, for each doubling of the number of nodes
_MOST_COLUMNS = 512  # of a search without a given number
_LARGEST_DROP = 3  # at most this fraction of the columns is dropped at once
_SHORTENED = 2  # with this fraction of the steps
_GROWTH = 1.5  # of the number of columns, until a fit meets the goal

_TOLERANCE = 1e-7  # relative error at which a fit has nothing left to do
_SHORTEST_TIME = 1e-3  # of a fit, in seconds


def search_neighbors(
    graph: Any,
    goal: Goal,
    *,
    n_negative: int = 1,
    random_state: Any = None,
    backend: str = "auto",
    verbose: int = 0,
    callback: Callable[[Found], bool] | None = None,
) -> Found:
    """Return the smallest vectors that meet a goal, or the best ones if none do.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric, with ones at the edges and an empty diagonal, in float32 or float64: the dtype of the fits.
    goal : Goal
    n_negative : int, default=1
        Number of columns with a minus sign. One column always stays positive.
    random_state : None, int, Generator or RandomState
        Seed of the fits from scratch.
    backend : str, default="auto"
        Of the fits. With "torch" and "cuda", pairs are counted on the device too.
    verbose : int, default=0
        1 logs the progress to the logger ``symrelu`` once per second.
    callback : callable, optional
        Called after each attempt with what has been found so far. The search ends if it returns True.

    Returns
    -------
    found : Found
        Ctrl-C, the time limit and the callback return what has been found so far.
    """
    with single_threaded_blas(), kept_threads(), narrated(verbose):
        search = _Search(graph, goal, n_negative, random_state, backend, verbose, callback)
        try:
            search.run()
        except KeyboardInterrupt:  # outside the steps of a fit, which end with Status.INTERRUPTED
            if search.best is None:
                raise
            search.status = Status.INTERRUPTED
        search.report()
    return search.found()


class _Search:
    """A running search. A factor is a U whose last columns are the negative ones."""

    def __init__(
        self,
        graph: Any,
        goal: Goal,
        n_negative: int,
        random_state: Any,
        backend: str,
        verbose: int,
        callback: Callable[[Found], bool] | None,
    ) -> None:
        self.graph = graph
        self.goal = goal
        self.n_negative = n_negative
        self.random_state = random_state
        self.backend = backend
        self.count = counters_for(backend)
        self.verbose = verbose
        self.callback = callback
        self.problem = Problem.of(graph, diagonal="ignore")
        self.edges = edges_of(graph)
        self.best: tuple[np.ndarray, np.ndarray, Certificate] | None = None
        self.attempts: list[Attempt] = []
        self.status: Status | None = None
        self.began = time.monotonic()
        self.timer = LineTimer()
        self.latest_count: tuple[int, int] | None = None  # columns and wrong pairs at the end of a phase

    def found(self) -> Found:
        """Return the best vectors of the attempts so far."""
        assert self.best is not None
        return Found(*self.best, tuple(self.attempts), self.status)

    def report(self) -> None:
        """Log what is kept."""
        if self.verbose and self.best is not None:
            reason = "the search has ended" if self.status is None else self.status.value
            vectors, _, certificate = self.best
            logger.info("%s: keeping %s, %s", reason, _columns(vectors.shape[1]), certificate)

    def run(self) -> None:
        """Add columns until the goal is met, then drop columns."""
        U = self._large_enough()
        if self.attempts[-1].succeeded:
            U = self._drop_while_met(U, self.goal.rank or 1)
        if self.goal.rank is not None and self.attempts[-1].rank != self.goal.rank:
            self._drop_to(U, self.goal.rank)

    def _large_enough(self) -> np.ndarray:
        """Return a factor that meets the goal, with more columns than it needs, or the largest to be tried."""
        n, wanted = self.problem.n, self.goal.rank
        rank = min(n, max(self._first_rank, self.n_negative + 1, wanted or 0))
        most = min(n, _MOST_COLUMNS if wanted is None else math.ceil(_GROWTH * rank))
        while True:
            U, steps = self._fitted(rank)
            if self.status is None and self._separation(U).wrong <= _HOPEFUL * self.graph.nnz / 2:
                U = self._refitted(U, self.goal.max_iter, steps)
            else:
                self._conclude(U, steps)
            if self.status is not None or self.attempts[-1].succeeded or rank >= most:
                return U
            rank = min(most, math.ceil(_GROWTH * rank))

    def _drop_while_met(self, U: np.ndarray, fewest: int) -> np.ndarray:
        """Drop columns as long as the goal is met, several at once while that is easy; return the last."""
        drop, growing, max_iter = 1, True, self.goal.max_iter
        while self.status is None and drop > 0:
            rank = max(U.shape[1] - drop, fewest)
            if rank == U.shape[1]:
                break
            lower = self._dropped(U, rank, max_iter if drop == 1 else max_iter // _SHORTENED)
            last = self.attempts[-1]
            growing = growing and last.succeeded
            if last.succeeded:
                U = lower
                if last.n_iter > PHASE:
                    drop = max(1, drop // 2)
                elif growing:
                    drop = max(1, min(2 * drop, rank // _LARGEST_DROP))
            else:
                drop //= 2  # 0 ends the search
        return U

    def _dropped(self, U: np.ndarray, rank: int, max_iter: int) -> np.ndarray:
        """Return the factor without its weakest directions, fitted again."""
        return self._refitted(_reduced(U, self._signs(U), rank, self._n_negative(rank)), max_iter)

    def _drop_to(self, U: np.ndarray, rank: int) -> None:
        """Drop columns one by one until ``rank`` are left."""
        few = min(_FIRST_PHASES * PHASE, self.goal.max_iter)
        while self.status is None and U.shape[1] > rank:
            # Once the goal was missed on the way, it is hardly met again: few steps are enough there.
            thorough = U.shape[1] == rank + 1 or self.attempts[-1].succeeded
            U = self._dropped(U, U.shape[1] - 1, self.goal.max_iter if thorough else few)

    def _fitted(self, rank: int) -> tuple[np.ndarray, int]:
        """Return a factor fitted from scratch, and the number of steps."""
        U: Any = "imputed"
        steps, last = 0, math.inf
        for _ in range(_FIRST_PHASES):
            U, made = self._phase(self.problem, rank, U, "equal", self.goal.max_iter - steps)
            steps += made
            wrong = self._separation(U).wrong
            stalled = wrong == 0 or wrong > _STALLED * last
            if self.status is not None or stalled or steps >= self.goal.max_iter:
                break
            last = wrong
        return U, steps

    def _refitted(self, U: np.ndarray, max_iter: int, steps: int = 0) -> np.ndarray:
        """Return the factor after more steps, until it meets the goal or the steps are used up."""
        weights = np.ones(self.graph.nnz, self.graph.dtype)
        problem, counts, best = self.problem, [math.inf], U
        while True:
            U, made = self._phase(problem, U.shape[1], U, "at_least", max_iter - steps)
            steps += made
            found = self._separation(U)
            # As many pairs may be missing, and about as many too much.
            enough = found.wrong <= (1 - self.goal.recall) * self.graph.nnz
            best = U if found.wrong <= min(counts) else best
            counts.append(found.wrong)
            hopeless = len(counts) > _PATIENCE + 1 and counts[-1] > counts[-1 - _PATIENCE] / 2
            # Without a step and without a wrong pair, the next phase would be the same as this one.
            ended = self.status is not None or steps >= max_iter or hopeless or made == found.wrong == 0
            if (enough or ended) and (self._conclude(best, steps, keep_trying=not ended) or ended):
                return best
            if counts[-1] > _STALLED * counts[-2]:
                weights[found.low] = np.minimum(2 * weights[found.low], _LARGEST_WEIGHT)
                problem = self._weighted(weights)

    def _phase(
        self, problem: Problem, rank: int, init: Any, support: str, max_iter: int
    ) -> tuple[np.ndarray, int]:
        """Return the factor after a few steps, at most ``max_iter``, and how many were made."""
        if max_iter <= 0:
            return init, 0
        limit = None if self.goal.max_time is None else self.goal.max_time - self._seconds
        if limit is not None and limit <= 0 and not isinstance(init, str):
            self.status = Status.MAX_TIME
            return init, 0
        try:
            solution = decompose(
                problem,
                rank,
                n_negative=self._n_negative(rank),
                support=support,
                init=init,
                random_state=self.random_state,
                # An exact fit is not the aim: the count of wrong pairs decides when to stop.
                tol=_TOLERANCE,
                gtol=0.0,
                ftol=0.0,
                max_iter=min(PHASE, max_iter),
                max_time=None if limit is None else max(limit, _SHORTEST_TIME),
                callback=self._narrate if self.verbose else None,
                backend=self.backend,
                # A phase has so many steps: none that are less exact may come before them.
                precision="high" if self.backend == "cuda" else "auto",
            )
        except TooLittleMemory as error:
            raise TooLittleMemory(error.refusal.within(self._open_settings(rank))) from None
        if solution.status in (Status.INTERRUPTED, Status.MAX_TIME):
            self.status = solution.status
        return solution.U, solution.n_iter

    def _conclude(self, U: np.ndarray, steps: int, *, keep_trying: bool = False) -> bool:
        """Certify the factor as it would be stored, and record the attempt unless it is to go on."""
        signature = self._signs(U)
        vectors = canonical_factor(U, signature).astype(self.goal.dtype)
        stored, count = vectors.astype(U.dtype), self.count
        threshold = separation(stored, signature, self.edges, count=count.other_scores).threshold
        certificate = certify(vectors, signature, self.graph, threshold, count=count.certain_counts)
        succeeded = self.goal.is_met_by(certificate)
        if keep_trying and not succeeded:
            return False
        self.attempts.append(
            Attempt(U.shape[1], steps, certificate.wrong_pairs, succeeded, round(self._seconds, 3))
        )
        if self._is_best(vectors, certificate):
            self.best = vectors, signature.astype(vectors.dtype), certificate
        if self.verbose:
            logger.info(
                "%s: %s after %d steps, %.1f s",
                _columns(U.shape[1]),
                _wrong_pairs(certificate.wrong_pairs),
                steps,
                self._seconds,
            )
        # Called even if Ctrl-C or the time limit has ended the search: each attempt is reported.
        if self.callback is not None and self.callback(self.found()) and self.status is None:
            self.status = Status.CALLBACK
        return succeeded

    def _is_best(self, vectors: np.ndarray, certificate: Certificate) -> bool:
        """Return whether vectors are better than the best so far: they meet the goal, with fewer columns."""
        if self.best is None:
            return True
        best_vectors, _, best = self.best
        ranks = vectors.shape[1], best_vectors.shape[1]
        if self.goal.rank in ranks and ranks[0] != ranks[1]:
            return ranks[0] == self.goal.rank
        met, best_met = self.goal.is_met_by(certificate), self.goal.is_met_by(best)
        if met or best_met:
            return met and (not best_met or ranks[0] < ranks[1])
        return certificate.wrong_pairs < best.wrong_pairs

    def _separation(self, U: np.ndarray) -> Separation:
        found = separation(U, self._signs(U), self.edges, count=self.count.other_scores)
        self.latest_count = U.shape[1], found.wrong
        return found

    @property
    def _first_rank(self) -> int:
        """The number of columns with which a search begins, unless more are wanted."""
        return round(_COLUMNS_PER_DOUBLING * math.log2(self.problem.n))

    def _open_settings(self, rank: int) -> set[str]:
        """Return which settings of a fit with this number of columns are left to the caller of the search."""
        return {"M", "backend"} | ({"rank"} if rank > self._first_rank else set())

    def _n_negative(self, rank: int) -> int:
        return min(self.n_negative, rank - 1)

    def _signs(self, U: np.ndarray) -> np.ndarray:
        rank = U.shape[1]
        return np.where(np.arange(rank) < rank - self._n_negative(rank), 1.0, -1.0).astype(U.dtype)

    def _weighted(self, weights: np.ndarray) -> Problem:
        graph = self.graph
        M = sparse.csr_array((weights, graph.indices, graph.indptr), shape=graph.shape)
        return Problem.of(M, diagonal="ignore")

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self.began

    def _narrate(self, progress: FitProgress) -> None:
        """Log the progress, if a line is due."""
        if not self.timer.due():
            return
        met = [attempt.rank for attempt in self.attempts if attempt.succeeded]
        rank, wrong = self.latest_count or (0, 0)
        logger.info(
            "%s: %s; %s; %.0f s",
            _columns(progress.U.shape[1]),
            f"{_wrong_pairs(wrong)} at the last count" if rank == progress.U.shape[1] else "fitting",
            f"{_columns(min(met))} {'is' if min(met) == 1 else 'are'} enough"
            if met
            else "no number of columns is known to be enough",
            self._seconds,
        )


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"


def _wrong_pairs(count: int) -> str:
    return f"{count} wrong pair{'' if count == 1 else 's'}"


def _reduced(U: np.ndarray, signature: np.ndarray, rank: int, n_negative: int) -> np.ndarray:
    """Return the strongest directions of a factor, ``n_negative`` of them with a minus sign."""
    positive = int(np.sum(signature > 0))
    # In the canonical form the positive columns come first, and those of each sign are in descending order.
    kept = [*range(rank - n_negative), *range(positive, positive + n_negative)]
    return np.ascontiguousarray(canonical_factor(U, signature)[:, kept])
