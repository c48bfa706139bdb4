"""Status and History: what they say."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symrelu import Solution
from symrelu.fitted.history import History, Record, Status


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


VALUES = st.floats(allow_nan=False)
COUNTS = st.integers(0, 2**60)
RECORDS = st.lists(st.builds(Record, COUNTS, COUNTS, VALUES, VALUES, VALUES, VALUES, VALUES), max_size=8)


@given(RECORDS)
def test_records_come_back_from_their_columns(records):
    history = History.from_records(records)
    assert history.records() == records
    assert len(history) == len(records)
    for name, column in history.as_dict().items():
        assert column.tolist() == [getattr(record, name) for record in records]


def test_columns_are_the_fields_of_a_record():
    assert [field.name for field in dataclasses.fields(History)] == list(Record._fields)


@given(RECORDS.filter(len))
def test_what_is_printed_is_the_way_of_the_error(records):
    text = repr(History.from_records(records))
    assert f"{len(records)} records" in text
    assert f"{records[0].relative_error:.3g} -> {records[-1].relative_error:.3g}" in text


def test_only_tests_that_were_met_count_as_converged():
    converged = {status for status in Status if status.converged}
    assert converged == {Status.TOLERANCE, Status.GRADIENT, Status.PLATEAU}


def test_causes_differ_and_every_advice_is_given():
    assert len({status.value for status in Status}) == len({status.advice for status in Status}) == len(Status)
