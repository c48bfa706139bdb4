"""Random held-out pairs, and how well a fit predicts them.

Rank selection samples positive pairs and zeros separately, without listing all pairs, and weights each held-out
pair by the number of pairs it represents. :func:`symrelu.metrics.random_mask` instead hides pairs regardless of
their values, and :func:`fit_without` gives all of them the same weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from symrelu.fitted.solution import Solution
from symrelu.metrics import held_out_error
from symrelu.problem import Problem

# Scores of predicting zero everywhere. A fit that is no better has learnt nothing about the held-out pairs.
BASELINES = {"error": 1.0, "auc": 0.5, "neighbors": 0.5}


def fit_without(problem: Problem, mask: Any, fit: Callable[[Problem], Solution]) -> tuple[Solution, float]:
    """Fit a problem without the masked pairs; return the solution and its relative error on them.

    Parameters
    ----------
    problem : Problem
    mask : sparse or dense bool matrix of shape (n, n)
        True where a pair is held out.
    fit : function of a Problem that returns a Solution

    Returns
    -------
    solution : Solution
    error : float
    """
    solution = fit(problem.hide(mask))
    error = held_out_error(problem, solution.U, solution.signature, mask=mask, support=solution.support)
    return solution, error


class ObservedPairs(NamedTuple):
    """The observed pairs i < j of n items, numbered row by row."""

    n: int
    positive: np.ndarray  # numbers of the observed pairs with M > 0
    values: np.ndarray  # their entries of M
    not_zero: np.ndarray  # sorted numbers of the pairs that are positive or unobserved

    @property
    def n_zeros(self) -> int:
        """Number of observed pairs that are zero."""
        return self.n * (self.n - 1) // 2 - len(self.not_zero)


class Split(NamedTuple):
    """Held-out pairs, the positive ones first. The weight is the number of pairs that each represents."""

    i: np.ndarray
    j: np.ndarray
    truth: np.ndarray
    weight: np.ndarray
    seed: int


@dataclass(frozen=True, eq=False)
class Trial:
    """A problem and its held-out pairs. The settings tried in one process share the packed matrix."""

    problem: Problem
    split: Split

    @cached_property
    def hidden(self) -> Problem:
        """The problem with the pairs of the split unobserved."""
        return self.problem.hide(self.split.i, self.split.j)

    def __getstate__(self) -> dict[str, Any]:
        """Drop the cached problem: joblib then sends M once to each process, not once for each split."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def observed_pairs(problem: Problem) -> ObservedPairs:
    """Return the pairs of a problem that can be held out."""
    n = problem.n
    i, j, values = problem.positive_pairs()
    positive = pair_numbers(i, j, n)
    order = np.argsort(positive)
    not_zero = np.union1d(positive, pair_numbers(*problem.unknown_pairs(), n))
    return ObservedPairs(n, positive[order], values[order], not_zero)


def check_pairs(pairs: ObservedPairs, scoring: str) -> None:
    """Raise if there are too few pairs to hold some out and score them."""
    if len(pairs.positive) < 2:
        raise ValueError(
            "M must have at least two observed positive pairs off the diagonal, one to fit and one to hide, "
            f"got {len(pairs.positive)}."
        )
    if scoring != "error" and not pairs.n_zeros:
        raise ValueError(
            f"scoring={scoring!r} needs zeros off the diagonal of M, got none. Use scoring='error'."
        )


def check_split(split: Split, scoring: str) -> Split:
    """Return a split, or raise if its pairs cannot be scored."""
    if scoring == "neighbors" and not np.any(_zeros_of_nodes(split)):
        raise ValueError(
            "scoring='neighbors' compares the held-out pairs of a node, but no node has both a positive "
            "pair and a zero among them. Raise zeros_per_positive or fraction, or use scoring='auc'."
        )
    return split


def random_split(pairs: ObservedPairs, fraction: float, zeros_per_positive: float, seed: int) -> Split:
    """Choose pairs to hold out at random, without repetition."""
    rng = np.random.default_rng(seed)
    positives, zeros = len(pairs.positive), pairs.n_zeros
    # At least one positive pair is held out and at least one is left to fit.
    hidden = min(max(1, round(fraction * positives)), positives - 1)
    hidden_zeros = math.ceil(min(zeros_per_positive * hidden, fraction * zeros))
    places = rng.choice(positives, hidden, replace=False)
    kth = rng.choice(zeros, hidden_zeros, replace=False) if zeros else np.empty(0, np.int64)
    i, j = pair_indices(np.concatenate([pairs.positive[places], kth_missing(pairs.not_zero, kth)]), pairs.n)
    truth = np.concatenate([pairs.values[places].astype(np.float64), np.zeros(hidden_zeros)])
    weight = np.repeat([positives / hidden, zeros / max(hidden_zeros, 1)], [hidden, hidden_zeros])
    return Split(i, j, truth, weight, seed)


def pair_numbers(i: np.ndarray, j: np.ndarray, n: int) -> np.ndarray:
    """Return the numbers of pairs i < j."""
    return _row_starts(n)[i] + j - i - 1


def _row_starts(n: int) -> np.ndarray:
    """Return the number of the first pair of each row."""
    i = np.arange(n, dtype=np.int64)
    return i * (2 * n - i - 1) // 2


def pair_indices(numbers: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return i and j of the pairs with these numbers."""
    starts = _row_starts(n)
    i = np.searchsorted(starts[:-1], numbers, side="right") - 1  # the last row has no pairs
    return i, numbers - starts[i] + i + 1


def kth_missing(numbers: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the k-th of 0, 1, 2, ... that is not among the sorted ``numbers``, in memory of their length."""
    missing_before = numbers - np.arange(len(numbers))
    return k + np.searchsorted(missing_before, k, side="right")


def _error(X: np.ndarray, split: Split, support: str = "equal") -> float:
    scale = split.truth.max()  # keeps the squares in range
    error = split.truth - np.maximum(0, X)
    if support == "at_least":  # X > M is no error where M > 0
        error = np.where(split.truth > 0, np.maximum(0, error), error)
    wrong = _weighted_square_sum(error / scale, split)
    return math.sqrt(wrong / _weighted_square_sum(split.truth / scale, split))


def _weighted_square_sum(values: np.ndarray, split: Split) -> float:
    """Estimate the sum of squares over all observed pairs i < j from the held-out ones."""
    return float(split.weight @ values**2)


def _auc(X: np.ndarray, split: Split, support: str = "equal") -> float:
    del support  # it does not change the order of the pairs
    # Without weights: the AUC does not depend on how many pairs of either class were sampled.
    return float(roc_auc_score(split.truth > 0, X))


def _neighbors(X: np.ndarray, split: Split, support: str = "equal") -> float:
    """Return how often a held-out neighbour of a node scores higher than its held-out zeros (ties: half)."""
    del support
    positive = split.truth > 0
    # Ranks in place of scores, so that one integer orders the pairs by node and then by score.
    order = np.unique(X, return_inverse=True)[1].astype(np.int64) + 1
    span = len(X) + 2
    zeros = np.sort(_at_both_nodes(split, ~positive) * span + np.tile(order[~positive], 2))
    nodes = _at_both_nodes(split, positive)
    keys = nodes * span + np.tile(order[positive], 2)
    begin, count = np.searchsorted(zeros, nodes * span), _zeros_of_nodes(split)
    below, up_to = (np.searchsorted(zeros, keys, side=side) - begin for side in ("left", "right"))
    compared = count > 0
    return float(np.mean((below + up_to)[compared] / (2 * count[compared])))


def _at_both_nodes(split: Split, chosen: np.ndarray) -> np.ndarray:
    """Return the nodes of the chosen pairs: first one of each pair, then the other."""
    return np.concatenate([split.i[chosen], split.j[chosen]]).astype(np.int64)


def _zeros_of_nodes(split: Split) -> np.ndarray:
    """Return the number of held-out zeros of both nodes of each held-out positive pair."""
    nodes = _at_both_nodes(split, split.truth > 0)
    counts = np.bincount(_at_both_nodes(split, split.truth == 0), minlength=int(nodes.max(initial=-1)) + 1)
    return counts[nodes]


# Name -> function of the predictions X for the held-out pairs.
SCORINGS = {"error": _error, "auc": _auc, "neighbors": _neighbors}
