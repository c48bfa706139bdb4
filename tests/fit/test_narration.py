"""What a fit says, and where."""

import logging
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from fresh_imports import run_programs

from symrelu import decompose
from symrelu.fit.narration import LineTimer, Narrator, narrated
from symrelu.fit.stages import Stage

M = np.eye(6) + 1


def test_silent_by_default(caplog):
    with caplog.at_level(logging.DEBUG, "symrelu"):  # numba logs what it compiles
        decompose(M, 2, random_state=0)
    assert not caplog.records


def test_each_step_and_the_end(caplog):
    decompose(M, 2, random_state=0, max_iter=1)  # compiles
    with caplog.at_level(logging.INFO, "symrelu"):
        solution = decompose(M, 2, random_state=0, verbose=2, max_iter=3, tol=0, gtol=0, ftol=0)
    chosen, *lines = [record.getMessage() for record in caplog.records]
    assert chosen == "backend='dense' was chosen: M is a dense array."
    assert [line.split(":")[0] for line in lines[:-1]] == ["step 1", "step 2", "step 3"]
    assert f"relative error {solution.history.relative_error[1]:.4g}" in lines[0]
    assert lines[-1].startswith("max_iter was reached after 3 steps (")
    assert all(record.name == "symrelu" and record.levelno == logging.INFO for record in caplog.records)


def test_a_resumed_fit_says_where_it_resumes(caplog, tmp_path):
    path = tmp_path / "fit.ckpt"
    first = decompose(M, 2, random_state=0, max_iter=3, tol=0, checkpoint=path)
    with caplog.at_level(logging.INFO, "symrelu"):
        decompose(M, 2, random_state=0, max_iter=5, tol=0, checkpoint=path, verbose=1, backend="dense")
    where = f"resuming from the checkpoint {path} at step 3: relative error {first.relative_error:.4g}"
    assert caplog.records[0].getMessage().startswith(where)


@pytest.mark.parametrize("verbose", [0, 1])
def test_compilation_is_announced(verbose, caplog, monkeypatch):
    @contextmanager
    def compiling(began):
        began()
        yield

    monkeypatch.setattr("symrelu.fit.narration.noticing_compilation", compiling)
    with caplog.at_level(logging.INFO, "symrelu"):
        decompose(M, 2, random_state=0, max_iter=1, verbose=verbose)
    assert any(record.getMessage().startswith("compiling: ") for record in caplog.records) is bool(verbose)


def test_a_line_is_due_each_second(monkeypatch):
    now = [5.0]
    monkeypatch.setattr("symrelu.fit.narration.time.monotonic", lambda: now[0])
    timer = LineTimer()
    due = []
    for now[0] in (5.0, 5.9, 6.0, 6.1, 6.9, 7.5, 8.4, 8.5):
        due.append(timer.due())
    assert due == [False, False, True, False, False, True, False, True]


def test_a_line_a_second(caplog, monkeypatch):
    now = iter(np.arange(0, 10, 0.4))
    monkeypatch.setattr("symrelu.fit.narration.time.monotonic", lambda: next(now))
    narrator = Narrator(1)
    fit = SimpleNamespace(record=decompose(M, 1, random_state=0).history.records()[0], stage=Stage(6))
    with caplog.at_level(logging.INFO, "symrelu"):
        for _ in range(9):  # 0.4 to 3.6 seconds
            narrator.step(fit)
    assert len(caplog.records) == 3


PROGRAM = """
import sys, logging, numpy as np
{before}
from symrelu import decompose
decompose(np.eye(6) + 1, 2, random_state=0, verbose=2, max_iter=2)
assert len(logging.getLogger("symrelu").handlers) == {handlers}
assert logging.getLogger("symrelu").level == logging.NOTSET
"""


BEFORE = {  # and what is shown then
    "rich": ("", True),
    "logging set up": ("logging.basicConfig(level=logging.INFO, format='mine %(message)s')", "mine step 1"),
    # The root is left at WARNING.
    "logging set to warnings": ("logging.basicConfig(format='mine %(message)s')", "mine step 1"),
    "silenced": ("logging.getLogger('symrelu').addHandler(logging.NullHandler())", False),
    # As if rich were not installed. This is the last one, since it stays so.
    "no rich": ("sys.modules['rich.console'] = None", True),
}


@pytest.fixture(scope="module")
def told():
    return run_programs(
        {
            name: PROGRAM.format(before=before, handlers=int("Null" in before))
            for name, (before, _) in BEFORE.items()
        }
    )


@pytest.mark.parametrize("name", BEFORE)
def test_lines_go_to_stderr_unless_logging_is_set_up(name, told):
    (_, shown), result = BEFORE[name], told[name]
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert ("step 1: relative error" in result.stderr) == bool(shown)
    if isinstance(shown, str):
        assert shown in result.stderr


def test_the_logger_is_left_as_it_was():
    logger = logging.getLogger("symrelu")
    before = logger.handlers[:], logger.level
    with narrated(1):
        pass
    assert (logger.handlers, logger.level) == before


@pytest.mark.parametrize("leaves_first", [0, 1])
@pytest.mark.parametrize("level", [logging.NOTSET, logging.WARNING, logging.DEBUG])
def test_fits_that_overlap_leave_the_logger_as_it_was(leaves_first, level, monkeypatch):
    """issue 11.12: the second one restored what the first one had set."""
    logger = logging.getLogger("symrelu")
    monkeypatch.setattr(logger, "propagate", False)  # as where logging is not set up
    monkeypatch.setattr(logger, "handlers", [])
    logger.setLevel(level)
    try:
        fits = [narrated(1), narrated(2)]
        for fit in fits:
            fit.__enter__()
        assert len(logger.handlers) == 1
        assert logger.isEnabledFor(logging.INFO)
        fits.pop(leaves_first).__exit__(None, None, None)
        assert len(logger.handlers) == 1
        assert logger.isEnabledFor(logging.INFO)
        fits.pop().__exit__(None, None, None)
        assert logger.handlers == []
        assert logger.level == level
    finally:
        logger.setLevel(logging.NOTSET)


def test_a_fit_that_never_left_is_forgotten():
    logger = logging.getLogger("symrelu")
    before = logger.handlers[:], logger.level
    fit = narrated(1)
    fit.__enter__()
    del fit
    assert (logger.handlers, logger.level) == before


@pytest.mark.parametrize(("verbose", "error"), [(-1, ValueError), (1.5, TypeError), ("yes", TypeError)])
def test_bad_verbose(verbose, error):
    with pytest.raises(error, match="verbose must be an integer of at least 0"):
        decompose(M, 2, verbose=verbose)


def test_true_is_one():
    assert decompose(M, 2, verbose=True, random_state=0).converged


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (1, "rank 2 and negative columns: a pass visits only pairs that matter. Pass"),
        (0, "and n_negative='auto', which found no negative columns: most pairs matter"),
    ],
)
def test_why_a_backend_was_chosen(found, text, monkeypatch, caplog):
    monkeypatch.setattr("symrelu.fit.decompose.backend_of", lambda *_: "active")
    monkeypatch.setattr("symrelu.fit.decompose.count_negative", lambda *_: found)
    with caplog.at_level(logging.INFO, "symrelu"):
        decompose(np.eye(20), 2, n_negative="auto", max_iter=1, verbose=1)
    assert text in caplog.text
