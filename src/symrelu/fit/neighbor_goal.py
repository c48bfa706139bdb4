"""What a search for exact neighbours aims at, what it tried, and what it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.fitted.certificate import Certificate
from symrelu.fitted.history import Status


@dataclass(frozen=True)
class Goal:
    """When vectors are good enough, and how long to search.

    Parameters
    ----------
    rank : int or None
        Number of columns, or None for the smallest number with which ``recall`` is met.
    recall : float
        Least share of the edges that are found, and of the pairs found that are edges.
    dtype : numpy.dtype
        In which the vectors are stored.
    max_iter : int
        Largest number of steps for one number of columns.
    max_time : float or None
        Seconds for the whole search.
    """

    rank: int | None = None
    recall: float = 1.0
    dtype: Any = np.float32
    max_iter: int = 3000
    max_time: float | None = None

    def is_met_by(self, certificate: Certificate) -> bool:
        """Return whether vectors with this certificate are good enough."""
        return min(certificate.recall, certificate.precision) >= self.recall


@dataclass(frozen=True)
class Attempt:
    """What was reached with one number of columns.

    Attributes
    ----------
    rank : int
        Number of columns.
    n_iter : int
        Number of steps.
    wrong_pairs : int
        Number of pairs on the wrong side of the threshold at the end.
    succeeded : bool
        Whether the goal was met.
    seconds : float
        Time since the start of the search.
    """

    rank: int
    n_iter: int
    wrong_pairs: int
    succeeded: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a search.

    Attributes
    ----------
    vectors : ndarray of shape (n, rank)
        In the dtype in which they are stored.
    signature : ndarray of shape (rank,)
    certificate : Certificate
    attempts : tuple of Attempt
        In the order in which they were made.
    status : Status or None
        Why the search ended early: Ctrl-C, the time limit or the callback.
    """

    vectors: np.ndarray
    signature: np.ndarray
    certificate: Certificate
    attempts: tuple[Attempt, ...]
    status: Status | None
