"""How well scores separate links from other pairs (negatives): AUC, average precision, Hits@k and MRR.

Hits@k and MRR rank each link among the negatives alone: other links do not count. If ``above`` negatives have a
larger score and ``tied`` negatives the same one, the ranks above + 1 to above + tied + 1 are equally likely,
and both take the mean over them. So no metric depends on the order of equal scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma
from sklearn.metrics import average_precision_score, roc_auc_score

from symrelu.validation import check_integer


def auc(links: Any, negatives: Any) -> float:
    """Return the probability that a link has a larger score than a negative; ties count one half.

    Parameters
    ----------
    links : array-like of shape (n_links,)
        Scores of the links.
    negatives : array-like of shape (n_negatives,)
        Scores of the other pairs.

    Returns
    -------
    auc : float
    """
    return float(roc_auc_score(*_labelled(links, negatives)))


def average_precision(links: Any, negatives: Any) -> float:
    """Return the average precision, which also depends on the ratio of links to negatives.

    Parameters
    ----------
    links, negatives : array-like
        As for :func:`auc`.

    Returns
    -------
    average_precision : float
    """
    return float(average_precision_score(*_labelled(links, negatives)))


def hits_at(links: Any, negatives: Any, k: int = 50) -> float:
    """Return the share of links that fewer than k negatives precede.

    A link counts min(1, max(0, (k - above) / (tied + 1))), the probability of a rank up to k.

    Parameters
    ----------
    links, negatives : array-like
        As for :func:`auc`.
    k : int, default=50

    Returns
    -------
    share : float
        NaN with fewer than k negatives: every link would be a hit.
    """
    check_integer("k", k, 1)
    above, tied = _counts(links, negatives)
    if len(np.asarray(negatives)) < k:
        return float("nan")
    return float(np.mean(np.clip((k - above) / (tied + 1), 0, 1)))


def mean_reciprocal_rank(links: Any, negatives: Any) -> float:
    """Return the mean of 1 / rank over the links.

    A link counts the mean of 1 / (above + 1), ..., 1 / (above + tied + 1).

    Parameters
    ----------
    links, negatives : array-like
        As for :func:`auc`.

    Returns
    -------
    mean : float
    """
    above, tied = _counts(links, negatives)
    # 1/(a + 1) + ... + 1/b = digamma(b + 1) - digamma(a + 1); without ties, one term without rounding errors.
    sums = np.where(tied > 0, digamma(above + tied + 2) - digamma(above + 1), 1 / (above + 1))
    return float(np.mean(sums / (tied + 1)))


def _labelled(links: Any, negatives: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and scores of all pairs, as scikit-learn requires."""
    scores = np.concatenate([np.asarray(links), np.asarray(negatives)])
    return np.arange(len(scores)) < len(np.asarray(links)), scores


def _counts(links: Any, negatives: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return for each link the number of negatives with a larger and with an equal score."""
    links, negatives = np.asarray(links), np.sort(np.asarray(negatives))
    up_to = np.searchsorted(negatives, links, side="right")
    return len(negatives) - up_to, up_to - np.searchsorted(negatives, links, side="left")
