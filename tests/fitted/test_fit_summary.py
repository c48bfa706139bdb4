"""Summaries of several fits, and why these stopped."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from symrelu import Status, decompose
from symrelu.fitted.fit_summary import FitSummary, stop_reason


def test_a_summary_holds_numbers_of_its_fit():
    solution = decompose(np.eye(4), 2, max_iter=3, random_state=7)
    summary = FitSummary.of(solution, 7)
    assert summary == FitSummary(7, solution.n_iter, solution.status, solution.relative_error)
    with pytest.raises(FrozenInstanceError):
        summary.seed = 8


@pytest.mark.parametrize(
    ("statuses", "reason"),
    [
        ([Status.MAX_ITER], "max_iter was reached"),
        ([Status.MAX_ITER] * 2, "max_iter was reached (2 of 2 fits)"),
        (
            [Status.GRADIENT, Status.MAX_ITER, Status.MAX_ITER],
            "max_iter was reached (2 of 3 fits), the gradient fell below gtol (1 of 3 fits)",
        ),
    ],
)
def test_reasons_are_counted(statuses, reason):
    assert stop_reason([FitSummary(0, 1, status, 0.5) for status in statuses]) == reason
