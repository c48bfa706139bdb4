"""Selection of the rank, the number of negative columns and the penalties by held-out pairs."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import (
    BASELINES,
    SCORINGS,
    ObservedPairs,
    Trial,
    check_pairs,
    check_split,
    observed_pairs,
    random_split,
)
from symrelu.fit.loop import Callback
from symrelu.fit.narration import narrated
from symrelu.fit.rank_grid import GRID, check_axes, default_ranks, grid_of
from symrelu.fit.rank_search import RULES, Scores, next_ranks, score_text
from symrelu.fit.rank_selection import RankSelection
from symrelu.fit.search_narration import SearchNarrator
from symrelu.fit.settings import TABLE, Limits, Model, Run, Start, documented, pick
from symrelu.fitted.history import Status
from symrelu.kernels.interrupts import ctrl_c_ignored
from symrelu.kernels.one_time_warnings import warn_or_log
from symrelu.kernels.threads import single_threaded_blas
from symrelu.problem import Problem
from symrelu.validation import check_choice, check_integer, check_number, check_verbose, random_generator

__all__ = ["GRID", "LIMITS", "SETTINGS", "RankSelection", "select_rank"]

_OWN = (*GRID, "diagonal", "random_state", "verbose")  # parameters that select_rank has itself
_SINGLE_FIT_ONLY = ("callback", "checkpoint")  # of no use to many fits in several processes
# Parameters of decompose that select_rank passes on, the same for all fits.
SETTINGS = tuple(
    name for name in signature(decompose).parameters if name in TABLE and name not in (*_OWN, *_SINGLE_FIT_ONLY)
)

# Default limits of the fits, measured with the default solver: on the digits graph (signed or not, with and
# without a penalty) the choices are those of fits with twice the steps and a far lower ftol.
LIMITS = {"max_iter": 200, "ftol": 3e-3}

_STREAM = 5  # random stream: held-out pairs must be independent of data and starts made from the same seed


@documented
def select_rank(
    M: Any,
    ranks: Any | None = None,
    *,
    n_negative: Any = Model.n_negative,
    alpha: Any = Model.alpha,
    zero_weight: Any = Model.zero_weight,
    n_repeats: int = 5,
    fraction: float = 0.1,
    zeros_per_positive: float = 5.0,
    scoring: str = "error",
    rule: str = "one_standard_error",
    diagonal: str = Model.diagonal,
    mask: Any | None = None,
    random_state: Any = Start.random_state,
    n_jobs: int | None = None,
    verbose: int = Run.verbose,
    **settings: Any,
) -> RankSelection:
    r"""Choose the rank, and other settings of the model, by held-out pairs.

    Each repeat holds out a fraction of the positive pairs of M and a sample of its zeros, all off the diagonal.
    The fits treat them as unobserved, not as zero. Every setting is fitted from its own start and scored on the
    same pairs. Without ``ranks`` a search decides which ranks are worth fitting; given ranks are all fitted.
    Ctrl-C returns a choice based on the fits made so far.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n), or a graph
        Nonnegative and symmetric, as for :func:`~symrelu.decompose`, or a :class:`~symrelu.Problem`.
        Sparse input is never made dense.
    ranks : int or sequence of int, optional
        Ranks to try, counting all columns, including negative ones. By default a search from coarse to fine,
        up to the smallest of n / 4, 8 parameters per positive pair, and 128: see Notes.
    n_negative : int, "auto" or sequence of these, default=0
        Numbers of negative columns. Combinations with a rank that is not larger are left out.
    alpha : float or sequence of float, default=0.0
        Tikhonov weights.
    zero_weight : float or sequence of float, default=1.0
        Weights in (0, 1] of the zeros of M. To compare them, use ``scoring="auc"``.
    n_repeats : int, default=5
        Number of random splits, at least 2. Each setting is fitted this many times.
    fraction : float, default=0.1
        Fraction of the positive pairs that is held out, in (0, 0.9].
    zeros_per_positive : float, default=5.0
        Number of zeros held out for each held-out positive pair, but at most ``fraction`` of all zeros. A
        larger number makes the estimated error more precise, since each held-out zero represents many.
    scoring : {"error", "auc", "neighbors"}, default="error"
        "error" is the relative error of max(0, X) over all pairs off the diagonal, estimated from the held-out
        ones (see Notes). "auc" is the area under the ROC curve of X between held-out positive pairs and
        held-out zeros: for link prediction, where only the order of the pairs matters. "neighbors" compares
        only pairs of the same node, for graphs that are used to look up the neighbours of a node: it is the
        probability that a held-out neighbour of a node has a higher X than a held-out zero of that node.
    rule : {"one_standard_error", "best"}, default="one_standard_error"
        "one_standard_error" chooses the simplest setting whose mean score is within one standard error of the
        best one: the fewest columns, then the fewest negative ones, the largest alpha, the largest
        zero_weight. "best" chooses the setting with the best mean score.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry of M is unobserved. Such pairs are neither fitted nor held out.
    random_state : None, int, Generator or RandomState, optional
        Seed of the held-out pairs and of the starts. The same seed gives the same table.
    n_jobs : int, optional
        Number of fits that joblib runs in parallel; -1 uses all processors. The table does not depend on it.
        Processes take a few seconds to start: Ctrl-C during that time raises KeyboardInterrupt, since there is
        no score yet.
    verbose : int, default=0
        1 logs the progress and the best score so far to the logger ``symrelu``, at most once per second; 2 at
        each step. If logging is not configured, the lines go to stderr. The steps of fits in other processes
        are not logged, only their scores.
    **settings
        Other parameters of :func:`~symrelu.decompose`, the same for all fits: the solver, init (by name), the
        tolerances, ``max_time`` (of one fit). ``callback`` and ``checkpoint`` are not accepted. With the
        default solver, ``max_iter`` is 200 and ``ftol`` 3e-3 unless given.

    Returns
    -------
    selection : RankSelection
        ``selection.chosen`` holds the chosen setting, with ``diagonal`` and ``settings``, for
        ``decompose(M, **selection.chosen)``; pass a mask again. ``selection.plot()`` draws the scores.
        ``selection.complete`` is False after Ctrl-C. If Ctrl-C comes before the first score, it is raised.

    Notes
    -----
    The search begins with the ranks 1, 2, 3, 4, 6 and 8, and then doubles the rank until a fit is exact, or the
    rank is four times the last one that improved the score (by more than the standard error of the difference,
    with all scores on the same pairs). Then it halves the gap below the chosen rank, and below a smaller one
    that is not clearly worse, until it is at most an eighth of the rank; with ``rule="best"``, the gaps on both
    sides of the best rank. All values of the other parameters are tried at each rank. A second minimum beyond
    the end of the search, or a narrow one between two ranks, is not found; pass ``ranks`` to fit every rank of
    a range.

    The fits do not start from those of a lower rank. Such starts save few steps compared with
    ``init="imputed"``, and the scores suffer: where a fit of lower rank has overfitted, all later ones inherit
    its error.

    Let M have :math:`N_+` positive pairs and :math:`N_0` zeros, and let :math:`H_+` and :math:`H_0` be the sets
    that are held out. The error is

    .. math::

        \sqrt{\frac{\frac{N_+}{|H_+|} \sum_{H_+} (M_{ij} - \max(0, X_{ij}))^2
                    + \frac{N_0}{|H_0|} \sum_{H_0} \max(0, X_{ij})^2}
                   {\frac{N_+}{|H_+|} \sum_{H_+} M_{ij}^2}}

    With ``support="at_least"``, pairs with X > M > 0 have no error. Numerator and denominator are unbiased
    estimates of the sums over all pairs. Predicting zero has an error of 1 (1/2 for "auc" and "neighbors"); a
    UserWarning is issued if no setting does better. Fits stop at a relative error of ``tol``, so smaller
    differences carry no information: settings within ``tol`` of the best error also count as equally good.
    After Ctrl-C, settings with a single score are chosen only if no setting has more.

    If ``zero_weight`` is below 1, the fits do not minimise the error, which then says little about them; use
    "auc".

    The standard error is that of the mean over the repeats. Since all settings are scored on the same pairs,
    differences between settings are known more precisely than the means. A rule based on the standard error of
    the differences would accept gains that are certain but tiny, and so choose far more columns. The scores in
    the table allow such a rule.

    Examples
    --------
    >>> from symrelu.datasets import make_relu_gram
    >>> from symrelu import select_rank
    >>> M, _ = make_relu_gram(60, 3, shift=0.1, random_state=0)
    >>> selection = select_rank(M, [2, 3, 4, 5], n_negative=[0, 1], n_repeats=3, max_iter=50, random_state=0)
    >>> selection.chosen["rank"], selection.chosen["n_negative"]
    (4, 1)
    """
    check_choice("scoring", scoring, tuple(BASELINES))
    check_choice("rule", rule, RULES)
    check_integer("n_repeats", n_repeats, 2, note=" (one score has no standard error)")
    check_number("fraction", fraction, 0, 0.9, low_included=False)
    check_number("zeros_per_positive", zeros_per_positive, low_included=False)
    verbose = check_verbose(verbose)
    _check_n_jobs(n_jobs)
    limits = _check_settings(settings)
    rng = random_generator(random_state, _STREAM)
    problem = Problem.of(M, mask, diagonal, warn_if_distances=True)
    axes = check_axes(
        problem.n, default_ranks(problem) if ranks is None else ranks, n_negative, alpha, zero_weight
    )
    pairs = observed_pairs(problem)
    check_pairs(pairs, scoring)

    # Not rng.integers, which a RandomState does not have.
    seeds = (rng.random(n_repeats) * 2**32).astype(np.int64).tolist()
    common = {"diagonal": problem.diagonal, **settings}
    comparison = _Comparison(
        problem, pairs, fraction, zeros_per_positive, seeds, scoring, _default_limits(settings) | common, n_jobs
    )
    scores = Scores(
        n_repeats,
        lower_is_better=scoring == "error",
        # Fits stop once the relative error is below tol, so lower held-out errors do not mean a better setting.
        slack=limits.tol if scoring == "error" else 0.0,
        parameters_per_pair=problem.parameters_per_pair(1),
    )
    with narrated(verbose):
        narrator = SearchNarrator(verbose, n_repeats, partial(_summary, scores, scoring))
        complete = True
        try:
            for grid in [grid_of(*axes)] if ranks is not None else _search(scores, axes, rule):
                comparison.run(grid, scores, narrator)
        except KeyboardInterrupt:
            if not scores.n_fits:
                raise
            complete = False
        table = scores.table()
        best, simplest = ({name: table[k][name] for name in GRID} | common for k in scores.choices(table))
        chosen = best if rule == "best" else simplest
        selection = RankSelection(table, best, chosen, scoring, rule, complete)
        narrator.end(repr(selection))
    _warn_if_nothing_is_learnt(table[scores.choices(table)[0]]["mean"], scoring)
    return selection


def _warn_if_nothing_is_learnt(score: float, scoring: str) -> None:
    """Warn if the best mean score is not better than that of predicting zero."""
    baseline = BASELINES[scoring]
    if score < baseline if scoring == "error" else score > baseline:
        return
    warn_or_log(  # under python -W error, a warning would lose the scores
        f"No setting predicts held-out pairs better than zero everywhere: the best mean {scoring} is "
        f"{score:.4g}, that of zero is {baseline:g}. Do not rely on the choice; try other ranks, negative "
        "columns or a larger alpha.",
        UserWarning,
        level=logging.WARNING,
        stacklevel=3,  # the caller of select_rank
    )


def _check_n_jobs(n_jobs: Any) -> None:
    if n_jobs is None or (isinstance(n_jobs, (int, np.integer)) and n_jobs != 0):
        return
    kind = ValueError if isinstance(n_jobs, (int, np.integer)) else TypeError
    raise kind(f"n_jobs must be an integer other than 0, or None, got {n_jobs!r}.")


def _check_settings(settings: dict[str, Any]) -> Limits:
    for name in settings:
        if name not in SETTINGS:
            raise TypeError(f"select_rank passes on only {', '.join(SETTINGS)} to decompose, got {name!r}.")
    Model(rank=1, **pick(Model, settings))
    Run(**pick(Run, settings))
    init = Start(**pick(Start, settings)).init
    if not isinstance(init, str):
        raise TypeError(
            f"init must be the name of a start, got {type(init).__name__}: a factor may reveal the held-out "
            "pairs."
        )
    return Limits(**pick(Limits, settings))


def _default_limits(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the limits of the fits that are not given; solvers that make smaller steps keep their own."""
    return dict(LIMITS) if Run(**pick(Run, settings)).solver == Run().solver else {}


def _search(scores: Scores, axes: Sequence[Sequence[Any]], rule: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the settings to try next, which depend on the scores added so far."""
    ranks, *others = axes
    usable = [rank for rank in ranks if grid_of([rank], *others)]
    while following := next_ranks(scores, usable, rule):
        yield grid_of(following, *others)


def _summary(scores: Scores, scoring: str) -> str:
    """Return a text on the results so far."""
    if not scores.n_fits:
        return "no score so far"
    table = scores.table()
    row = table[scores.choices(table)[0]]
    return f"{scores.n_fits} fits done, best so far rank {row['rank']}, {scoring} {score_text(row)}"


@dataclass(frozen=True, eq=False)
class _Comparison:
    """What all fits of a selection share: the problem, its held-out pairs, and how they are fitted."""

    problem: Problem
    pairs: ObservedPairs
    fraction: float
    zeros_per_positive: float
    seeds: list[int]  # of the splits, one for each repeat
    scoring: str
    settings: dict[str, Any]
    n_jobs: int | None

    def run(self, grid: list[dict[str, Any]], scores: Scores, narrator: SearchNarrator) -> None:
        """Fit all settings of a grid on all splits; add each score as soon as it is known."""
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        with ctrl_c_ignored():
            results = parallel(self._tasks(grid, narrator))  # starts the processes
        try:
            for setting, repeat, score, converged in results:
                scores.add(setting, repeat, score, converged)
                narrator.fitted(setting, repeat, self.scoring, score)
        except BaseException:
            # joblib warns that tasks are cancelled, which is the purpose. Filters belong to the process, and a
            # fit in another thread may be changing them: if warnings are errors, this one is dropped.
            with suppress(UserWarning), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.close()
            raise

    def _tasks(self, grid: list[dict[str, Any]], narrator: SearchNarrator) -> Iterator[Any]:
        # All settings of a split in sequence, so that a process packs its matrix once. After Ctrl-C, all
        # settings then have about the same number of scores.
        for repeat, seed in enumerate(self.seeds):
            split = random_split(self.pairs, self.fraction, self.zeros_per_positive, seed)
            trial = Trial(self.problem, check_split(split, self.scoring))
            for setting in grid:
                yield delayed(_result)(trial, repeat, setting, self.settings, self.scoring, narrator)


def _result(
    trial: Trial,
    repeat: int,
    setting: dict[str, Any],
    settings: dict[str, Any],
    scoring: str,
    narrator: SearchNarrator,
) -> tuple[dict[str, Any], int, float, bool]:
    """Return the setting and the repeat, which identify a result that may come in any order, and the result."""
    callback = narrator.callback(setting, repeat)
    return setting, repeat, *_fit_and_score(trial, setting | settings, scoring, callback)


def _fit_and_score(
    trial: Trial, setting: dict[str, Any], scoring: str, callback: Callback | None = None
) -> tuple[float, bool]:
    """Fit one setting without the held-out pairs; return its score on them, and whether the fit converged."""
    split = trial.split
    solution = decompose(trial.hidden, random_state=split.seed, callback=callback, **setting)
    if solution.status is Status.INTERRUPTED:  # Ctrl-C is meant for the whole selection, not for this fit
        raise KeyboardInterrupt
    with single_threaded_blas():  # so that the digits do not depend on the number of threads
        X = solution.score_pairs(split.i, split.j).astype(np.float64)
        return SCORINGS[scoring](X, split, solution.support), solution.converged
