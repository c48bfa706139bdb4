"""Selection of the rank, the number of negative columns and the penalties by held-out pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import BASELINES, SCORINGS, Trial, check_pairs, observed_pairs, random_split
from symrelu.fit.rank_selection import GRID, RankSelection
from symrelu.fit.settings import (
    TABLE,
    Limits,
    Model,
    Run,
    Start,
    check_auto,
    check_rank,
    check_zero_weight,
    documented,
    pick,
)
from symrelu.fitted.history import Status
from symrelu.kernels.threads import single_threaded_blas
from symrelu.problem import Problem
from symrelu.validation import (
    check_choice,
    check_integer,
    check_number,
    random_generator,
)

__all__ = ["GRID", "SETTINGS", "RankSelection", "select_rank"]

_OWN = (*GRID, "diagonal", "random_state")  # parameters that select_rank has itself
_SINGLE_FIT_ONLY = ("callback", "checkpoint", "verbose")  # of no use to many fits in several processes
# Parameters of decompose that select_rank passes on, the same for all fits.
SETTINGS = tuple(
    name for name in signature(decompose).parameters if name in TABLE and name not in (*_OWN, *_SINGLE_FIT_ONLY)
)
RULES = ("one_standard_error", "best")

_STREAM = 5  # random stream: held-out pairs must be independent of data and starts made from the same seed

# Bounds of the default ranks. Nearest-neighbour graphs were predicted best with up to 10 parameters per
# positive pair, since their zeros are data too. A factor with n / 4 columns has half as many parameters as
# there are pairs.
_PARAMETERS_PER_PAIR = 8
_ITEMS_PER_RANK = 4
_LARGEST_RANK = 128


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
    **settings: Any,
) -> RankSelection:
    r"""Choose the rank, and other settings of the model, by held-out pairs.

    Each repeat holds out a fraction of the positive pairs of M and a sample of its zeros, all off the diagonal.
    The fits treat them as unobserved, not as zero. Every setting of the grid is fitted from scratch and scored
    on the same pairs.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n), or a graph
        Nonnegative and symmetric, as for :func:`~symrelu.decompose`, or a :class:`~symrelu.Problem`.
        Sparse input is never made dense.
    ranks : int or sequence of int, optional
        Ranks to try, counting all columns, including negative ones. By default 1, 2, 3, 4, 6, 8, 12, ... up to
        the smallest of n / 4, 8 parameters per positive pair, and 128.
    n_negative : int, "auto" or sequence of these, default=0
        Numbers of negative columns. Combinations with a rank that is not larger are left out.
    alpha : float or sequence of float, default=0.0
        Tikhonov weights.
    zero_weight : float or sequence of float, default=1.0
        Weights in (0, 1] of the zeros of M. To compare them, use ``scoring="auc"``.
    n_repeats : int, default=5
        Number of random splits, at least 2. The number of fits is the size of the grid times this.
    fraction : float, default=0.1
        Fraction of the positive pairs that is held out, in (0, 0.9].
    zeros_per_positive : float, default=5.0
        Number of zeros held out for each held-out positive pair, but at most ``fraction`` of all zeros. A
        larger number makes the estimated error more precise, since each held-out zero represents many.
    scoring : {"error", "auc"}, default="error"
        "error" is the relative error of max(0, X) over all pairs off the diagonal, estimated from the held-out
        ones (see Notes). "auc" is the area under the ROC curve of X between held-out positive pairs and
        held-out zeros: for link prediction, where only the order of the pairs matters.
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
    **settings
        Other parameters of :func:`~symrelu.decompose`, the same for all fits: the solver, init (by name), the
        tolerances, ``max_time`` (of one fit). ``callback``, ``checkpoint`` and ``verbose`` are not accepted.

    Returns
    -------
    selection : RankSelection
        ``selection.chosen`` holds the chosen setting, with ``diagonal`` and ``settings``, for
        ``decompose(M, **selection.chosen)``; pass a mask again. ``selection.plot()`` draws the scores.

    Notes
    -----
    Let M have :math:`N_+` positive pairs and :math:`N_0` zeros, and let :math:`H_+` and :math:`H_0` be the sets
    that are held out. The error is

    .. math::

        \sqrt{\frac{\frac{N_+}{|H_+|} \sum_{H_+} (M_{ij} - \max(0, X_{ij}))^2
                    + \frac{N_0}{|H_0|} \sum_{H_0} \max(0, X_{ij})^2}
                   {\frac{N_+}{|H_+|} \sum_{H_+} M_{ij}^2}}

    Numerator and denominator are unbiased estimates of the sums over all pairs. Predicting zero has an error
    of 1. Fits stop at a relative error of ``tol``, so smaller differences carry no information: settings within
    ``tol`` of the best error also count as equally good.

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
    >>> M, _ = make_relu_gram(80, 3, shift=0.1, random_state=0)
    >>> selection = select_rank(M, ranks=[2, 3, 4, 5], n_negative=[0, 1], max_iter=100, random_state=0)
    >>> selection.chosen["rank"], selection.chosen["n_negative"]
    (4, 1)
    """
    check_choice("scoring", scoring, tuple(BASELINES))
    check_choice("rule", rule, RULES)
    check_integer("n_repeats", n_repeats, 2, note=" (one score has no standard error)")
    check_number("fraction", fraction, 0, 0.9, low_included=False)
    check_number("zeros_per_positive", zeros_per_positive, low_included=False)
    _check_n_jobs(n_jobs)
    limits = _check_settings(settings)
    rng = random_generator(random_state, _STREAM)
    problem = Problem.of(M, mask, diagonal, warn_if_distances=True)
    grid = _grid(problem, ranks, n_negative, alpha, zero_weight)
    pairs = observed_pairs(problem)
    check_pairs(pairs, scoring)

    # Not rng.integers, which a RandomState does not have.
    seeds = (rng.random(n_repeats) * 2**32).astype(np.int64).tolist()
    trials = (Trial(problem, random_split(pairs, fraction, zeros_per_positive, seed)) for seed in seeds)
    common = {"diagonal": problem.diagonal, **settings}
    # All settings of a trial in sequence, so that a process packs its matrix once.
    tasks = ((trial, setting | common, scoring) for trial in trials for setting in grid)
    results = Parallel(n_jobs=n_jobs)(itertools.starmap(delayed(_fit_and_score), tasks))
    table = _table(grid, results, problem.parameters_per_pair(1))
    # Fits stop once the relative error is below tol, so lower held-out errors do not mean a better setting.
    slack = limits.tol if scoring == "error" else 0.0
    best, simplest = _choices(table, lower_is_better=scoring == "error", slack=slack)
    chosen = best if rule == "best" else simplest
    return RankSelection(table, grid[best] | common, grid[chosen] | common, scoring, rule)


def _check_n_jobs(n_jobs: Any) -> None:
    if n_jobs is None or (isinstance(n_jobs, (int, np.integer)) and n_jobs != 0):
        return
    kind = ValueError if isinstance(n_jobs, (int, np.integer)) else TypeError
    raise kind(f"n_jobs must be an integer other than 0, or None, got {n_jobs!r}.")


def _check_settings(settings: dict[str, Any]) -> Limits:
    for name in settings:
        if name not in SETTINGS:
            raise TypeError(f"select_rank passes on only {', '.join(SETTINGS)} to decompose, got {name!r}.")
    Run(**pick(Run, settings))
    init = Start(**pick(Start, settings)).init
    if not isinstance(init, str):
        raise TypeError(
            f"init must be the name of a start, got {type(init).__name__}: a factor may reveal the held-out "
            "pairs."
        )
    return Limits(**pick(Limits, settings))


def _grid(problem: Problem, ranks: Any, n_negative: Any, alpha: Any, zero_weight: Any) -> list[dict[str, Any]]:
    """Return the settings to try, the simplest first."""
    n = problem.n

    def check_n_negative(value: Any) -> Any:
        if isinstance(value, str):
            return check_auto(value)
        return check_integer("n_negative", value, 0, max(n - 1, 0), " (n - 1) or 'auto'")

    axes = (
        _values(
            "ranks", _default_ranks(problem) if ranks is None else ranks, partial(check_rank, n=n, name="ranks")
        ),
        _values("n_negative", n_negative, check_n_negative),
        _values("alpha", alpha, partial(check_number, "alpha")),
        _values("zero_weight", zero_weight, check_zero_weight),
    )
    grid = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*axes)]
    grid = [s for s in grid if isinstance(s["n_negative"], str) or s["n_negative"] < s["rank"]]
    if not grid:
        raise ValueError(
            f"ranks must have one larger than n_negative, got ranks {axes[0]} and n_negative {axes[1]}: "
            "at least one column must be positive."
        )
    return sorted(grid, key=_complexity)


def _values(name: str, given: Any, check: Callable[[Any], Any]) -> list[Any]:
    """Return the distinct values of one axis of the grid, each validated."""
    values = list(given) if hasattr(given, "__iter__") and not isinstance(given, str) else [given]
    if not values:
        raise ValueError(f"{name} must have at least one value, got none.")
    return list(dict.fromkeys(check(value) for value in values))


def _default_ranks(problem: Problem) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, ... up to the bounds."""
    n = problem.n
    determined = int(_PARAMETERS_PER_PAIR / problem.parameters_per_pair(1))
    bound = min(n // _ITEMS_PER_RANK, determined, _LARGEST_RANK)
    bound = min(n, max(2, bound))
    powers = [2**k for k in range(_LARGEST_RANK.bit_length())]
    return sorted(r for r in {*powers, *(3 * power for power in powers)} if r <= bound)


def _complexity(setting: dict[str, Any]) -> tuple[Any, ...]:
    """Return a sort key: fewer columns, fewer negative ones ("auto" last), stronger penalties first."""
    negative = setting["n_negative"]
    known = (1, 0) if isinstance(negative, str) else (0, negative)
    return setting["rank"], known, -setting["alpha"], -setting["zero_weight"]


def _fit_and_score(trial: Trial, setting: dict[str, Any], scoring: str) -> tuple[float, bool]:
    """Fit one setting without the held-out pairs; return its score on them, and whether the fit converged."""
    split = trial.split
    solution = decompose(trial.hidden, random_state=split.seed, **setting)
    if solution.status is Status.INTERRUPTED:  # Ctrl-C is meant for the whole selection, not for this fit
        raise KeyboardInterrupt
    with single_threaded_blas():  # so that the digits do not depend on the number of threads
        X = solution.score_pairs(split.i, split.j).astype(np.float64)
        return SCORINGS[scoring](X, split), solution.converged


def _table(
    grid: list[dict[str, Any]], results: list[tuple[float, bool]], per_pair: float
) -> list[dict[str, Any]]:
    """Return one record for each setting; ``results`` lists all settings of the first repeat, then the next."""
    repeats = len(results) // len(grid)
    table = []
    for k, setting in enumerate(grid):
        scores, converged = zip(*results[k :: len(grid)], strict=True)
        record = {
            "mean": float(np.mean(scores)),
            "standard_error": float(np.std(scores, ddof=1) / math.sqrt(repeats)),
            "scores": list(scores),
            "converged": sum(converged),
            "parameters_per_pair": per_pair * setting["rank"],
        }
        table.append(setting | record)
    return table


def _choices(table: list[dict[str, Any]], *, lower_is_better: bool, slack: float = 0.0) -> tuple[int, int]:
    """Return the index of the best row, and of the first one within a standard error (or ``slack``) of it."""
    sign = 1 if lower_is_better else -1
    means = [sign * row["mean"] for row in table]
    best = int(np.argmin(means))
    limit = means[best] + max(table[best]["standard_error"], slack)
    return best, next(k for k, mean in enumerate(means) if mean <= limit)
