"""Choose the number of clusters of a graph by the likelihood of hidden pairs.

Some pairs are hidden, a factor is fitted to the others, and its items are put into k clusters. Under a block
model with degrees, the rate of a pair is the product of the degrees of its items times a number for the pair of
clusters, both counted in the graph that is left. The score is the mean logarithm of the share that the hidden
links have in the rates of all hidden pairs. Too few clusters mix groups, and too many follow the noise of the
graph that is left: both lower it. Of the numbers that are not clearly worse than the best, the smallest is
taken.

This finds groups whose members have links to the same others. In a graph of nearest neighbours there are none
smaller than a whole class but larger than a few items: the score rises up to the largest number, and
:attr:`ClusterSelection.at_limit` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.fit.averaging import mean_solution
from symrelu.fit.cluster_methods import ClusterMethod, Prepared
from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import Split, observed_pairs, random_split
from symrelu.fit.narration import LineTimer, logger, narrated
from symrelu.fit.rank_selection import frame_of_records
from symrelu.fitted.clusters import Clusters
from symrelu.fitted.history import Status
from symrelu.fitted.models import SymmetricReLU
from symrelu.problem import Problem

FRACTION = 0.1  # of the links that are hidden
ZEROS_PER_LINK = 10.0  # hidden pairs without a link for each hidden link
REPEATS = 5
_MOST_FITS = 2  # averaged for a trial: fewer than for the result, since only the number is wanted
_STARTS = 3  # of k-means
_FIRST_LIMIT = 16  # numbers of clusters that are tried at first; doubled while the best is in the upper half
_PER_OCTAVE = 8  # numbers tried between a limit and its double


def most_clusters(n: int) -> int:
    """Return the largest number of clusters of n items that is tried."""
    return min(n, max(2, int(2 * np.sqrt(n))))


def largest_choice(columns: Callable[[int], int], n: int, n_init: int) -> tuple[int, int]:
    """Return the largest number of columns, and of fits, that a choice can take.

    Parameters
    ----------
    columns : callable
        As in :class:`SharedFits`.
    n : int
        Number of items.
    n_init : int
        Number of fits that are averaged for the result.
    """
    ranks = {columns(_shared(number)) for number in range(1, most_clusters(n) + 1)}
    return max(ranks), REPEATS * min(n_init, _MOST_FITS) * len(ranks)


def _shared(n_clusters: int) -> int:
    """Return the number of clusters whose factor serves this one too: the next power of two."""
    return int(2 ** (n_clusters - 1).bit_length())


class Score(NamedTuple):
    """Scores of a number of clusters, one for each repeat."""

    n_clusters: int
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the repeats."""
        return float(np.mean(self.values))

    def is_close_to(self, best: Score) -> bool:
        """Whether the score is lower than another one by at most the standard error of the difference."""
        lower = np.subtract(best.values, self.values)
        return float(lower.mean()) <= float(np.std(lower, ddof=1)) / math.sqrt(len(lower))


@dataclass(frozen=True, repr=False)
class ClusterSelection:
    """The scores of all numbers of clusters that were tried.

    Attributes
    ----------
    scores : tuple of Score
        In the order of the numbers.
    most : int
        Largest number of clusters that was allowed.
    n_out_of_time : int
        Number of fits behind the scores that ``max_time`` ended.
    """

    scores: tuple[Score, ...]
    most: int
    n_out_of_time: int = 0

    @property
    def n_clusters(self) -> int:
        """The smallest number whose score is not clearly below the best one."""
        best = max(self.scores, key=lambda score: (score.mean, -score.n_clusters))
        return min(score.n_clusters for score in self.scores if score == best or score.is_close_to(best))

    @property
    def at_limit(self) -> bool:
        """Whether more than half of the largest number was chosen, so that there may be no such groups."""
        return self.most > 2 and 2 * self.n_clusters > self.most

    def __repr__(self) -> str:
        return f"ClusterSelection(n_clusters={self.n_clusters}, {len(self.scores)} numbers tried)"

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each number, for a data frame: the number, the mean score, and each score."""
        return [
            {"n_clusters": score.n_clusters, "mean": score.mean}
            | {f"score_{k}": value for k, value in enumerate(score.values)}
            for score in self.scores
        ]

    def to_frame(self) -> Any:
        """Return :meth:`records` as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
        """
        return frame_of_records(self.records())


@dataclass(frozen=True, eq=False)
class SharedFits:
    """Clusters of one problem by one method, whose fits are shared by several numbers of clusters.

    Attributes
    ----------
    method : ClusterMethod
    data : Prepared
        From ``method.prepare``.
    columns : callable
        Number of columns of a factor, from the number of clusters.
    settings : callable
        Number of fits to average, and their settings, from the data and the number of columns.
    seed : int
        Of the fits and of k-means.
    statuses : list of Status
        Why the fits so far stopped.
    """

    method: ClusterMethod
    data: Prepared
    columns: Callable[[int], int]
    settings: Callable[[Prepared, int], tuple[int, dict[str, Any]]]
    seed: int
    statuses: list[Status] = field(default_factory=list, init=False)
    _formed: dict[int, Callable[[int], Clusters]] = field(default_factory=dict, init=False, repr=False)

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return the clusters of all items."""
        rank = self.columns(_shared(n_clusters))
        if rank not in self._formed:
            self._formed[rank] = self._form(rank)
        return self._formed[rank](n_clusters).labels

    def _form(self, rank: int) -> Callable[[int], Clusters]:
        n_init, settings = self.settings(self.data, rank)
        problem = self.data.problem
        settings = settings | {"checkpoint": None, "verbose": 0}
        seeds = np.random.SeedSequence(self.seed).generate_state(min(n_init, _MOST_FITS))
        fits = [decompose(problem, rank, **settings | {"random_state": int(seed)}) for seed in seeds]
        if any(fit.status is Status.INTERRUPTED for fit in fits):
            raise KeyboardInterrupt  # no number can be chosen from fits that were cut short
        self.statuses.extend(fit.status for fit in fits)
        fit = fits[0] if len(fits) == 1 else mean_solution(fits, problem, settings["backend"])
        assert isinstance(fit.model, SymmetricReLU)
        return self.method.cluster(fit.model, self.data.linked, seed=self.seed, n_starts=_STARTS)


def select_n_clusters(
    problem: Problem,
    fits: Callable[[Problem, int], SharedFits],
    *,
    most: int,
    rng: np.random.Generator,
    verbose: int = 0,
) -> ClusterSelection:
    """Score numbers of clusters by hidden pairs.

    All numbers up to 16 are tried; if the best is above 8, some up to 32, and so on. Then those next to the
    best one are tried.

    Parameters
    ----------
    problem : Problem
        With an ignored diagonal.
    fits : callable
        The fits for a problem with hidden pairs and the number of the repeat.
    most : int
        Largest number of clusters.
    rng : numpy Generator
        Chooses the hidden pairs.
    verbose : int, default=0
        With 1, a line is logged for each number of clusters, at most one a second.

    Returns
    -------
    selection : ClusterSelection
    """
    pairs = observed_pairs(problem)
    if len(pairs.positive) < 2:
        raise ValueError(
            "n_clusters=None hides pairs and requires at least two observed positive pairs off the diagonal, "
            f"got {len(pairs.positive)}. Pass the number of clusters."
        )
    trials = []
    for repeat in range(REPEATS):
        split = random_split(pairs, FRACTION, ZEROS_PER_LINK, int(rng.integers(2**31)))
        left = problem.hide(split.i, split.j)
        trials.append(_Trial(sparse.csr_array(left.scaled), split, fits(left, repeat)))
    by_number: dict[int, Score] = {}
    timer = LineTimer()
    limit, tried = _FIRST_LIMIT, list(range(1, min(_FIRST_LIMIT, most) + 1))
    with narrated(verbose):
        while tried:
            for number in tried:
                by_number[number] = score = _score(trials, number)
                if verbose and timer.due():
                    logger.info("%d clusters: score of hidden pairs %.4f", number, score.mean)
            best = max(by_number.values(), key=lambda score: score.mean).n_clusters
            if 2 * best > limit and limit < most:
                step, limit = limit // _PER_OCTAVE, 2 * limit
                tried = sorted({*range(limit // 2 + step, min(limit, most) + 1, step), min(limit, most)})
            else:
                tried = _untried_around(best, by_number)
    out_of_time = sum(trial.fits.statuses.count(Status.MAX_TIME) for trial in trials)
    return ClusterSelection(tuple(by_number[number] for number in sorted(by_number)), most, out_of_time)


class _Trial(NamedTuple):
    left: Any  # csr_array without the hidden pairs
    split: Split
    fits: SharedFits


def _score(trials: Sequence[_Trial], number: int) -> Score:
    values = (hidden_likelihood(trial.left, trial.fits.labels(number), trial.split) for trial in trials)
    return Score(number, tuple(values))


def _untried_around(best: int, tried: Any) -> list[int]:
    """Return the middle of the larger gap on either side of the best number, if there is one."""
    below = max((number for number in tried if number < best), default=best)
    above = min((number for number in tried if number > best), default=best)
    low, high = max((below, best), (best, above), key=lambda gap: gap[1] - gap[0])
    return [(low + high) // 2] if high - low > 1 else []


def hidden_likelihood(left: Any, labels: np.ndarray, split: Split) -> float:
    """Return the mean logarithm of the share that hidden links have in the rates of all hidden pairs.

    Parameters
    ----------
    left : csr_array of shape (n, n)
        The graph without the hidden pairs, and without a diagonal.
    labels : ndarray of int of shape (n,)
        Clusters from 0 on.
    split : Split
        The hidden pairs.

    Returns
    -------
    score : float
        It does not depend on the units of the weights.
    """
    n, k = len(labels), int(labels.max()) + 1
    # A node without a link that is left would have rate zero, and infinite surprise; it gets a small degree.
    degrees = left.sum(axis=1, dtype=np.float64)
    mean = degrees.mean()
    degrees = degrees + 0.1 * mean
    inside = sparse.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, k))
    found = (inside.T @ left @ inside).toarray()
    of_clusters = np.bincount(labels, degrees, k)
    expected = np.outer(of_clusters, of_clusters) / degrees.sum()
    unit = float(left.data.mean())  # one more link in all blocks, so that none has rate zero
    ratio = (found + unit) / (expected + unit)
    rates = degrees[split.i] * degrees[split.j] * ratio[labels[split.i], labels[split.j]]
    rates = rates / (split.weight @ rates)
    links = split.weight * split.truth
    return float(links @ np.log(rates, where=split.truth > 0, out=np.zeros(len(rates))) / links.sum())
