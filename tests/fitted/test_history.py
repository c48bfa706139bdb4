"""Status and History: what they say."""

import numpy as np
import pytest

from symrelu import Solution
from symrelu.fitted.history import History, Status


def test_every_status_has_cause_and_advice():
    for status in Status:
        assert status.value
        assert status.advice.endswith(".")


def test_history_is_data(solution):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(solution.history.as_dict())
    assert list(frame.columns) == [
        "iteration",
        "evaluations",
        "seconds",
        "relative_error",
        "latent_loss",
        "objective",
        "gradient_norm",
    ]
    assert len(frame) == len(solution.history) == 11
    assert "11 records" in repr(solution.history)
    assert repr(History.from_records([])) == "History(empty)"


def test_counts_are_integers(tmp_path, solution):  # issue 11.5
    solution.save(tmp_path / "fit.npz")
    for history in (solution.history, Solution.load(tmp_path / "fit.npz").history, History.from_records([])):
        assert history.iteration.dtype == history.evaluations.dtype == np.int64
        assert history.seconds.dtype == np.float64
    assert [type(record.iteration) for record in solution.history.records()] == [int] * 11
