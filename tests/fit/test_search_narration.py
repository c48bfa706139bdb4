"""What a search says, and how often."""

import logging
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from symrelu.fit.search_narration import SearchNarrator

SETTING = {"rank": 5, "n_negative": 0}
PROGRESS = SimpleNamespace(record=SimpleNamespace(iteration=3, relative_error=0.25))


@pytest.fixture
def lines(caplog):
    with caplog.at_level(logging.INFO, "symrelu"):
        yield lambda: [record.getMessage() for record in caplog.records]


def test_each_step_and_score(lines):
    narrator = SearchNarrator(2, 4, lambda: "nothing so far")
    narrator.callback(SETTING, 0)(PROGRESS)
    narrator.fitted(SETTING | {"n_negative": "auto"}, 3, "auc", 0.875)
    narrator.end("done")
    assert lines() == [
        "rank 5, repeat 1 of 4: step 3, relative error 0.25; nothing so far",
        "rank 5, auto negative, repeat 4 of 4: auc 0.875; nothing so far",
        "done",
    ]


def test_a_line_a_second(lines, monkeypatch):
    now = iter(np.arange(0, 10, 0.4))
    monkeypatch.setattr("symrelu.fit.narration.time.monotonic", lambda: next(now))
    narrator = SearchNarrator(1, 2)
    step = narrator.callback(SETTING, 0)
    for _ in range(4):  # 0.4 to 3.2 seconds
        step(PROGRESS)
        narrator.fitted(SETTING, 0, "error", 0.5)
    assert len(lines()) == 2


def test_silence(lines):
    narrator = SearchNarrator(0, 2, lambda: pytest.fail("no one asked"))
    assert narrator.callback(SETTING, 0) is None
    narrator.fitted(SETTING, 0, "error", 0.5)
    narrator.end("done")
    assert not lines()


def test_other_processes_are_silent(lines):
    there = pickle.loads(pickle.dumps(SearchNarrator(2, 7, lambda: "a function that cannot be pickled")))
    assert (there.verbose, there.n_repeats) == (0, 7)
    assert there.callback(SETTING, 0) is None
