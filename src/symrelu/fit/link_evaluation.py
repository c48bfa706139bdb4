"""Hide links of a graph, draw pairs without a link to compare them with, and score the predictions for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.fit.holdout import ObservedPairs, kth_missing, observed_pairs, pair_indices, pair_numbers
from symrelu.fit.link_metrics import auc, average_precision, hits_at, mean_reciprocal_rank
from symrelu.fit.rank_selection import frame_of_records
from symrelu.plots.link_plots import plot_link_metrics
from symrelu.problem import Problem
from symrelu.validation import random_generator

# Pairs without a link are listed if there are at most this many per link, and drawn by rejection otherwise.
_LISTED_PER_LINK = 4
_MOST_ROUNDS = 1000
_STREAM = 4  # random stream of hidden pairs: independent of the starts with the same seed


@dataclass(frozen=True)
class LinkMetrics:
    """Scores of the hidden links of one split, or their means.

    Attributes
    ----------
    auc_uniform : float
        Probability that a hidden link has a larger score than a pair drawn uniformly from those without a link;
        ties count one half.
    auc_degree : float
        The same for pairs that are drawn in proportion to the product of the numbers of links of both nodes.
        These are harder, because nodes with many links are in most hidden links too. All further metrics use
        them.
    average_precision : float
        Average precision on the hidden links and as many negatives.
    hits_at_50 : float
        Share of the hidden links that fewer than 50 negatives precede. NaN with fewer than 50 negatives.
    mrr : float
        Mean of 1 / rank, where a hidden link is ranked among the negatives alone. Ties take the mean over all
        orders, here and in ``hits_at_50``.
    """

    auc_uniform: float
    auc_degree: float
    average_precision: float
    hits_at_50: float
    mrr: float


METRICS = tuple(field.name for field in fields(LinkMetrics))


@dataclass(frozen=True, eq=False)
class LinkEvaluation:
    """The result of :meth:`symrelu.LinkPredictor.evaluate`.

    Attributes
    ----------
    splits : tuple of LinkMetrics
        The metrics of each split.
    n_hidden : int
        Number of links that were hidden in each split, and of negatives of either kind.
    n_links : int
        Number of links of the graph.
    """

    splits: tuple[LinkMetrics, ...]
    n_hidden: int
    n_links: int

    @property
    def mean(self) -> LinkMetrics:
        """The mean of each metric over the splits."""
        return LinkMetrics(*(float(np.mean(self._values(name))) for name in METRICS))

    def _values(self, name: str) -> list[float]:
        return [getattr(split, name) for split in self.splits]

    def records(self) -> list[dict[str, Any]]:
        """Return the metrics of each split, for a data frame or a CSV file.

        Returns
        -------
        records : list of dict
            One for each split, with ``split``, ``n_hidden`` and the metrics.
        """
        return [
            {"split": k, "n_hidden": self.n_hidden, **asdict(metrics)} for k, metrics in enumerate(self.splits)
        ]

    def to_frame(self) -> Any:
        """Return :meth:`records` as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
        """
        return frame_of_records(self.records())

    def plot(self, ax: Any | None = None) -> Any:
        """Plot the metrics of each split, and their means.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new pyplot figure by default.

        Returns
        -------
        ax : matplotlib Axes
        """
        return plot_link_metrics(self, ax)

    def __repr__(self) -> str:
        mean = self.mean
        return (
            f"LinkEvaluation(auc_uniform={mean.auc_uniform:.3f}, auc_degree={mean.auc_degree:.3f}; "
            f"{len(self.splits)} splits, {self.n_hidden} of {self.n_links} links hidden)"
        )

    def __str__(self) -> str:
        hidden = f"{self.n_hidden} of {self.n_links} links hidden"
        lines = [f"{hidden}, {len(self.splits)} splits: mean (lowest to highest)"]
        for name, label in _LABELS.items():
            values = self._values(name)
            if np.isnan(values).any():
                text = "not defined with fewer than 50 negatives"
            else:
                text = f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
            lines.append(f"  {label:<38} {text}")
        return "\n".join(lines)


_LABELS = {
    "auc_uniform": "AUC, uniform negatives",
    "auc_degree": "AUC, negatives drawn by degree",
    "average_precision": "average precision, drawn by degree",
    "hits_at_50": "Hits@50, drawn by degree",
    "mrr": "MRR, drawn by degree",
}


class LinkSplit(NamedTuple):
    """A training graph, and arrays of shape (2, n_hidden): hidden links and negatives of both kinds."""

    train: Any
    links: np.ndarray
    uniform: np.ndarray
    by_degree: np.ndarray


def split_generator(random_state: Any) -> Any:
    """Return the generator of the splits for a seed, so that several predictors can be given the same ones.

    Parameters
    ----------
    random_state : None, int, Generator or RandomState

    Returns
    -------
    rng : Generator
    """
    rng = random_generator(random_state, _STREAM)
    if isinstance(rng, np.random.RandomState):  # it would list all pairs to draw some of them
        rng = np.random.default_rng(int(rng.random() * 2**53))
    return rng


def link_splits(problem: Problem, fraction: float, n_splits: int, rng: Any) -> Iterator[LinkSplit]:
    """Yield training graphs without some of their links, which become zeros, and pairs to score.

    A predictor does not know which zeros are hidden links: the other zeros are in the same position.

    Parameters
    ----------
    problem : Problem
        The graph, with its diagonal ignored.
    fraction : float
        Share of the links to hide, in (0, 0.99].
    n_splits : int
    rng : Generator

    Yields
    ------
    split : LinkSplit
    """
    pairs = observed_pairs(problem)
    count = check_graph(pairs, fraction)
    sample_by_degree = _sampler_by_degree(pairs)
    for _ in range(n_splits):
        places = rng.permutation(len(pairs.positive))
        hidden, kept = places[:count], np.sort(places[count:])
        # With fewer pairs than needed, pairs repeat.
        uniform = rng.choice(pairs.n_zeros, count, replace=count > pairs.n_zeros)
        yield LinkSplit(
            _graph_of(pairs, kept, problem),
            np.stack(pair_indices(pairs.positive[hidden], pairs.n)),
            np.stack(pair_indices(kth_missing(pairs.not_zero, uniform), pairs.n)),
            np.stack(pair_indices(sample_by_degree(count, rng), pairs.n)),
        )


def check_graph(pairs: ObservedPairs, fraction: float) -> int:
    """Return how many links to hide, or raise if there are too few links or negatives.

    Parameters
    ----------
    pairs : ObservedPairs
    fraction : float

    Returns
    -------
    count : int
    """
    n_links = len(pairs.positive)
    count = round(fraction * n_links)
    if not 1 <= count < n_links:
        raise ValueError(
            f"Hiding fraction={fraction:g} of the links must hide at least one and leave at least one, got a "
            f"graph with {n_links} links. Choose another fraction, or a graph with more links."
        )
    if not pairs.n_zeros:
        raise ValueError(
            "The graph must have pairs without a link to compare hidden links with, but it is complete: all of "
            f"its {n_links} observed pairs are links. Leave out weak links, or choose another graph."
        )
    return count


def evaluate_scores(score_pairs: Callable[[Any, Any], np.ndarray], split: LinkSplit) -> LinkMetrics:
    """Return the metrics of a predictor that was fitted to the training graph of a split.

    Parameters
    ----------
    score_pairs : function of i and j that returns the scores of pairs
    split : LinkSplit

    Returns
    -------
    metrics : LinkMetrics
    """
    links, uniform, by_degree = (score_pairs(*pairs) for pairs in (split.links, split.uniform, split.by_degree))
    return LinkMetrics(
        auc_uniform=auc(links, uniform),
        auc_degree=auc(links, by_degree),
        average_precision=average_precision(links, by_degree),
        hits_at_50=hits_at(links, by_degree, 50),
        mrr=mean_reciprocal_rank(links, by_degree),
    )


def _graph_of(pairs: ObservedPairs, kept: np.ndarray, problem: Problem) -> Any:
    """Return the graph with only the kept links, with their weights."""
    i, j = pair_indices(pairs.positive[kept], pairs.n)
    half = sparse.csr_array((pairs.values[kept], (i, j)), shape=(pairs.n, pairs.n))
    graph = sparse.csr_array(half + half.T)
    return graph if problem.is_sparse else graph.toarray()


def _sampler_by_degree(pairs: ObservedPairs) -> Callable[[int, Any], np.ndarray]:
    """Return a function that draws numbers of pairs without a link, with repetition.

    A pair is drawn in proportion to the product of the numbers of links of its nodes.
    """
    n = pairs.n
    degrees = np.bincount(np.concatenate(pair_indices(pairs.positive, n)), minlength=n).astype(np.float64)
    if pairs.n_zeros <= _LISTED_PER_LINK * len(pairs.positive):
        numbers = kth_missing(pairs.not_zero, np.arange(pairs.n_zeros))
        i, j = pair_indices(numbers, n)
        weights = degrees[i] * degrees[j]
        if not weights.any():
            raise _no_negatives_by_degree()
        return lambda count, rng: numbers[rng.choice(len(numbers), count, p=weights / weights.sum())]

    def sample(count: int, rng: Any) -> np.ndarray:
        drawn, total = [], 0
        for _ in range(_MOST_ROUNDS):
            i, j = np.sort(rng.choice(n, (2, 2 * count), p=degrees / degrees.sum()), axis=0)
            numbers = pair_numbers(i, j, n)[i < j]
            places = np.searchsorted(pairs.not_zero, numbers)
            known = pairs.not_zero[np.minimum(places, len(pairs.not_zero) - 1)] == numbers
            drawn.append(numbers[~known])
            total += len(drawn[-1])
            if total >= count:
                return np.concatenate(drawn)[:count]
        raise _no_negatives_by_degree()

    return sample


def _no_negatives_by_degree() -> ValueError:
    return ValueError(
        "Negatives are drawn from pairs of linked nodes without a link between them, but there are too few: "
        "nearly all nodes that have a link are linked with each other. Choose another graph."
    )
