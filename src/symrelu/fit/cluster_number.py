"""Choose the number of clusters of a graph by the likelihood of hidden pairs.

Some pairs are hidden, a factor is fitted to the others, and its items are put into k clusters. Under a block
model with degrees, the rate of a pair is the product of the degrees of its items times a number for the pair of
clusters, both counted in the graph that is left. The score is the mean logarithm of the share that the hidden
links have in the rates of all hidden pairs. Too few clusters mix groups, and too many follow the noise of the
graph that is left: both lower it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.fit.averaging import mean_solution
from symrelu.fit.cluster_methods import ClusterMethod
from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import Split, observed_pairs, random_split
from symrelu.fitted.clusters import Clusters
from symrelu.fitted.models import SymmetricReLU
from symrelu.problem import Problem

FRACTION = 0.1  # of the links that are hidden
ZEROS_PER_LINK = 10.0  # hidden pairs without a link for each hidden link
REPEATS = 3
_MOST_FITS = 2  # averaged for a trial: fewer than for the result, since only the number is wanted
_FIRST_LIMIT = 16  # numbers of clusters that are tried at first; doubled while the best is in the upper half
_PER_OCTAVE = 8  # numbers tried between a limit and its double


class Score(NamedTuple):
    """Score of a number of clusters under a method: its mean over the repeats, and the standard error."""

    method: str
    n_clusters: int
    mean: float
    standard_error: float


@dataclass(frozen=True)
class ClusterSelection:
    """The scores of all numbers of clusters that were tried.

    Attributes
    ----------
    scores : tuple of Score
        In the order of the methods and of the numbers.
    """

    scores: tuple[Score, ...]

    @property
    def best(self) -> Score:
        """The highest score; of equal ones the one with fewer clusters."""
        return max(self.scores, key=lambda score: (score.mean, -score.n_clusters))

    def records(self) -> list[dict[str, Any]]:
        """Return the scores as dictionaries, one for each row of a table."""
        return [score._asdict() for score in self.scores]


@dataclass(frozen=True, eq=False)
class SharedFits:
    """Clusters of one problem by one method, whose fits are shared by several numbers of clusters.

    Attributes
    ----------
    method : ClusterMethod
    problem : Problem
        As ``method.prepare`` returns it.
    columns : callable
        Number of columns of a factor, from the number of clusters.
    settings : callable
        Number of fits to average, and their settings, from the problem and the number of columns.
    seed : int
        Of the fits and of k-means.
    """

    method: ClusterMethod
    problem: Problem
    columns: Callable[[int], int]
    settings: Callable[[Problem, int], tuple[int, dict[str, Any]]]
    seed: int
    _formed: dict[int, Callable[[int], Clusters]] = field(default_factory=dict, init=False, repr=False)

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return the clusters of all items."""
        # One factor serves all numbers up to the next power of two.
        rank = self.columns(2 ** (n_clusters - 1).bit_length())
        if rank not in self._formed:
            self._formed[rank] = self._form(rank)
        return self._formed[rank](n_clusters).labels

    def _form(self, rank: int) -> Callable[[int], Clusters]:
        n_init, settings = self.settings(self.problem, rank)
        settings = settings | {"checkpoint": None, "max_time": None}
        seeds = np.random.SeedSequence(self.seed).generate_state(min(n_init, _MOST_FITS))
        fits = [decompose(self.problem, rank, **settings | {"random_state": int(seed)}) for seed in seeds]
        fit = fits[0] if len(fits) == 1 else mean_solution(fits, self.problem, settings["backend"])
        assert isinstance(fit.model, SymmetricReLU)
        return self.method.cluster(fit.model, seed=self.seed, n_fits=len(fits))


def select_n_clusters(
    problem: Problem,
    partitions: Callable[[Problem, int], Sequence[SharedFits]],
    *,
    most: int,
    rng: np.random.Generator,
) -> ClusterSelection:
    """Score numbers of clusters by hidden pairs.

    All numbers up to 16 are tried; if the best is above 8, some up to 32, and so on. Then those next to the
    best one are tried.

    Parameters
    ----------
    problem : Problem
        With an ignored diagonal.
    partitions : callable
        The fits of each method, from a problem with hidden pairs and the number of the repeat.
    most : int
        Largest number of clusters.
    rng : numpy Generator
        Chooses the hidden pairs.

    Returns
    -------
    selection : ClusterSelection
    """
    pairs = observed_pairs(problem)
    trials = []
    for repeat in range(REPEATS):
        split = random_split(pairs, FRACTION, ZEROS_PER_LINK, int(rng.integers(2**31)))
        left = problem.hide(split.i, split.j)
        trials.append(_Trial(sparse.csr_array(left.scaled), split, partitions(left, repeat)))
    scores: list[Score] = []
    for k in range(len(trials[0].partitions)):
        by_number: dict[int, Score] = {}
        limit, tried = _FIRST_LIMIT, range(1, min(_FIRST_LIMIT, most) + 1)
        while tried:
            by_number |= {number: _score(trials, k, number) for number in tried}
            best = max(by_number.values(), key=lambda score: score.mean).n_clusters
            if 2 * best > limit and limit < most:
                step, limit = limit // _PER_OCTAVE, 2 * limit
                tried = range(limit // 2 + step, min(limit, most) + 1, step)
            else:
                tried = _untried_around(best, by_number)
        scores += (by_number[number] for number in sorted(by_number))
    return ClusterSelection(tuple(scores))


class _Trial(NamedTuple):
    left: Any  # csr_array without the hidden pairs
    split: Split
    partitions: Sequence[SharedFits]


def _score(trials: Sequence[_Trial], method: int, number: int) -> Score:
    values = []
    for trial in trials:
        labels = trial.partitions[method].labels(number)
        values.append(hidden_likelihood(trial.left, labels, trial.split))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Score(trials[0].partitions[method].method.name, number, float(np.mean(values)), error)


def _untried_around(best: int, tried: Any) -> range:
    """Return the middle of the larger gap on either side of the best number, if there is one."""
    below = max((number for number in tried if number < best), default=best)
    above = min((number for number in tried if number > best), default=best)
    low, high = max((below, best), (best, above), key=lambda gap: gap[1] - gap[0])
    middle = (low + high) // 2
    return range(middle, middle + 1) if high - low > 1 else range(0)


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
