"""The progress that commands show."""

import io as streams
import logging
import re
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from symrelu import SymReLU
from symrelu.cli import progress, screen
from symrelu.datasets import make_relu_gram


@pytest.mark.parametrize(
    ("name", "shown"),
    [(":smile:.npz", ":smile:.npz"), ("[red]a[].npz", "[red]a[].npz"), ("\x1b[31m\n.npz", r"\x1b[31m\n.npz")],
)
def test_names_in_the_progress_bar(name, shown, terminal):
    with progress.fit_progress(name, 1):
        pass
    assert shown in terminal.getvalue()


def step(error, level=0):
    return SimpleNamespace(record=SimpleNamespace(relative_error=error), level=level)


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    clock = iter([104.0, 114.0, 115.0, 130.0])  # when the steps end
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.fit_progress("a[b]c.npz", 10) as callback:
        for error in (0.5, 0.25, 0.125, 0.1):
            callback(step(error))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "a[b]c.npz: step 2 of at most 10, relative error 0.25, at most 0:01:20 left",
        "a[b]c.npz: step 4 of at most 10, relative error 0.1, at most 0:00:52 left",
    ]


def test_progress_of_a_fit_that_resumes_begins_where_it_was(terminal, monkeypatch, capsys):
    with progress.fit_progress("x", 10, 7) as callback:
        callback(step(0.5))
    assert "8/10" in terminal.getvalue()
    clock = iter([104.0, 115.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    lines = progress._Lines("x", 10, 7)
    for error in (0.5, 0.25):
        lines.advance(error)
    assert "x: step 9 of at most 10, relative error 0.25, at most 0:00:11 left" in terminal.getvalue()


def test_lines_of_smaller_matrices_name_their_level_and_count_no_steps(monkeypatch, capsys):
    clock = iter([90.0, 101.0, 104.0, 115.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.fit_progress("x", 10) as callback:
        for error, level in ((0.5, 2), (0.4, 1), (0.3, 0), (0.2, 0)):
            callback(step(error, level))
    assert capsys.readouterr().err.splitlines() == [
        "x: level 1 of the start, relative error 0.4",
        "x: step 2 of at most 10, relative error 0.2, at most 0:01:28 left",
    ]


@pytest.fixture
def terminal(monkeypatch):
    """A terminal as stderr; return what it has received."""
    received = streams.StringIO()
    console = Console(file=received, force_terminal=True, width=200, color_system=None, emoji=False)
    monkeypatch.setattr(screen, "errors", console)
    monkeypatch.setenv("TERM", "xterm")
    return received


def test_progress_on_a_terminal_is_a_bar(terminal, capsys):
    with progress.fit_progress("graph.npz", 10) as callback:
        callback(step(0.123456))
    assert "1/10 relative error 0.1235" in terminal.getvalue()
    assert re.search(r"at most \S*-:--:--", re.sub(r"\x1b\[[\d;?]*\w", "", terminal.getvalue()))
    assert capsys.readouterr() == ("", "")


def test_a_bar_names_the_level_of_a_smaller_matrix(terminal):
    with progress.fit_progress("graph.npz", 10) as callback:
        callback(step(0.3, level=2))
    assert "0/10 relative error 0.3 at level 2" in terminal.getvalue()


def test_messages_of_a_search_replace_one_another(terminal):
    logger = logging.getLogger("symrelu")
    with progress.search_progress() as verbose:
        assert verbose == 1
        logger.warning("rank 4 [of 8]")
    assert "rank 4 [of 8]" in terminal.getvalue()
    with progress.search_progress():
        logger.warning("backend='active' was chosen. Pass backend='sparse' to visit all pairs.")
    assert "the backend active was chosen." in terminal.getvalue()  # no command is running that has --backend
    assert "Pass backend" not in terminal.getvalue()
    assert not logger.handlers


def test_a_search_without_a_terminal_prints_a_line_now_and_then(monkeypatch, capsys):
    clock = iter([100.0, 104.0, 111.0, 111.0])
    with progress.search_progress():
        monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
        (handler,) = logging.getLogger("symrelu").handlers
        handler.shown = 100.0
        for text in ("", "first", "second"):
            handler.emit(logging.makeLogRecord({"msg": text}))
    assert capsys.readouterr() == ("", "second\n")


@pytest.mark.parametrize("shown", [lambda: progress.fit_progress("x", 3), progress.search_progress])
def test_compilation_takes_the_place_of_a_step(shown, terminal, monkeypatch):
    @contextmanager
    def compiling(began):
        began()
        yield

    monkeypatch.setattr("symrelu.cli.progress.noticing_compilation", compiling)
    with shown():
        pass
    assert "compiling, at the first run only" in terminal.getvalue()


def test_the_log_is_above_the_bar(terminal):
    with screen.showing(screen.Output(verbose=True)), progress.fit_progress("graph.npz", 10) as callback:
        logging.getLogger("symrelu").info("a line")
        callback(step(0.5))
    assert "a line\n" in terminal.getvalue()
    assert "1/10 relative error 0.5" in terminal.getvalue()


class Estimator:
    """What the progress needs of an estimator that has no callbacks, as with scikit-learn before 1.9."""

    n_jobs = None
    verbose = 0

    def set_callbacks(self, *callbacks):
        raise ImportError("set_callbacks needs scikit-learn 1.9 or newer")

    def set_params(self, verbose):
        self.verbose = verbose


def test_an_estimator_without_callbacks_logs_its_progress():
    estimator = Estimator()
    with progress.estimator_progress(estimator, "x"):
        assert estimator.verbose == 1
    assert estimator.verbose == 0


def test_the_steps_of_an_estimator_are_shown(terminal):
    pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")
    M, _ = make_relu_gram(30, 2, random_state=0)
    estimator = SymReLU(2, max_iter=3, random_state=0, n_negative=0)
    with progress.estimator_progress(estimator, "x"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(M)
    assert "3/3 relative error" in terminal.getvalue()
    assert not hasattr(estimator, "_skl_callbacks")
