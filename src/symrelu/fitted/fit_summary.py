"""FitSummary: how one of several fits went, for estimators that average them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symrelu.fitted.history import Status
from symrelu.fitted.solution import Solution


@dataclass(frozen=True)
class FitSummary:
    """How one of several fits went.

    Attributes
    ----------
    seed : int or None
        The ``random_state`` of the fit.
    n_iter : int
        Number of steps.
    status : Status
        Why the fit stopped.
    relative_error : float
        Relative error of this fit alone.
    """

    seed: Any
    n_iter: int
    status: Status
    relative_error: float

    @classmethod
    def of(cls, solution: Solution, seed: Any) -> FitSummary:
        """Return the summary of a solution."""
        return cls(seed, solution.n_iter, solution.status, solution.relative_error)


def stop_reason(fits: Sequence[FitSummary]) -> str:
    """Return why fits stopped, with the number of fits for each reason, the most frequent first."""
    if len(fits) == 1:
        return fits[0].status.value
    counts = Counter(fit.status for fit in fits).most_common()
    return ", ".join(f"{status.value} ({count} of {len(fits)} fits)" for status, count in counts)
