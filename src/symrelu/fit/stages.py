"""What part of a fit a run of the loop is. Most fits are one run; a multilevel start makes others before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Stage:
    """A run of the loop as part of a fit.

    Its passes are counted in units of passes over M: a pass over a matrix of half the size counts a quarter.

    Attributes
    ----------
    n_items : int
        Number of items of M.
    level : int
        0 for M itself; k for the matrix that is left after items were merged k times.
    visited : int
        Number of pairs visited in all passes so far.
    seconds : float
        Time of all steps so far.
    seed : int
        Seed of the noise that is added between two stages.
    stopped_at : int
        If the fit was stopped while a smaller matrix than M was fitted, the level of that; otherwise 0.
    dtype : numpy.dtype, optional
        Type of M, if factors of this stage may have another one.
    expanded : callable
        Turns a factor of this stage into one with a row for each item of M.
    """

    n_items: int
    level: int = 0
    visited: int = 0
    seconds: float = 0.0
    seed: int = 0
    stopped_at: int = 0
    dtype: np.dtype[Any] | None = None
    expanded: Callable[[np.ndarray], np.ndarray] = np.asarray

    @property
    def evaluations(self) -> int:
        """Number of passes so far, in units of passes over M, rounded up."""
        return -(-self.visited // self.n_items**2)

    def in_units_of_M(self, U: np.ndarray, exponent: int) -> np.ndarray:
        """Return a copy of a factor times 2^exponent, in the type of M."""
        return np.ldexp(U if self.dtype is None else U.astype(self.dtype, copy=False), exponent)

    def after(self, passes: int, n: int, seconds: float | None = None) -> Stage:
        """Return the stage after passes over a matrix of n items, which ended at this time."""
        seconds = self.seconds if seconds is None else seconds
        return replace(self, visited=self.visited + passes * n**2, seconds=seconds)
