"""What is shown on the terminal."""

import io as streams
import json
import logging
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import symrelu
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from symrelu import LBFGS, SymReLU
from symrelu.cli import screen
from symrelu.datasets import make_relu_gram

PNG = b"\x89PNG"

NAMES = {  # and what the terminal gets to see of them
    "a$_{$b.npz": "a$_{$b.npz",
    "unclosed $.npz": "unclosed $.npz",
    ":smile:.npz": ":smile:.npz",
    "[red]a[/].npz".replace("/", ""): "[red]a[].npz",
    "\x1b]0;title\x07\x1b[31m.npz": r"\x1b]0;title\x07\x1b[31m.npz",
    "two\nlines\r.npz": r"two\nlines\r.npz",
    "\u202eright to left.npz": r"\u202eright to left.npz",
    "back\\slash\\[b].npz": "back\\slash\\[b].npz",
    "\N{GRINNING FACE}.npz": "\N{GRINNING FACE}.npz",
    os.fsdecode(b"\xff.npz"): r"\udcff.npz",
}


@pytest.mark.parametrize("name", NAMES, ids=NAMES.values())
def test_names_reach_terminal_and_picture_as_they_are(tmp_path, matrix_file, monkeypatch, capsys, name):
    """issue 11.13: they are neither markup, nor emoji, nor formulas, nor commands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(matrix_file.read_bytes())
    output = f"out {name}"
    fit = ("fit", name, "--rank", 2, "-o", output, "--max-iter", 1)
    code, out, err = symrelu(monkeypatch, capsys, *fit, "--plot", "p.png")
    assert (code, "Warning" in err) == (0, False)
    assert f"out {NAMES[name]}" in out.replace("\n" + " " * 20, "")
    assert (tmp_path / "p.png").read_bytes()[:4] == PNG
    (tmp_path / name).unlink()
    code, _, err = symrelu(monkeypatch, capsys, *fit)
    assert (code, err) == (2, f"Error: The file {NAMES[name]} does not exist.\n")


@pytest.mark.parametrize("name", NAMES, ids=NAMES.values())
def test_names_in_the_progress_bar(monkeypatch, name):
    terminal = streams.StringIO()
    console = Console(file=terminal, force_terminal=True, width=200, color_system=None, emoji=False)
    monkeypatch.setattr(screen, "errors", console)
    with screen.fit_progress(name, 1):
        pass
    assert NAMES[name] in terminal.getvalue()


def test_letters_that_the_terminal_does_not_know(tmp_path, no_data):
    program = """
from dataclasses import replace
from symrelu import cli
from symrelu.experiments import real
real.LIMITS = replace(real.LIMITS, max_iter=1)
cli.main()
"""
    command = [sys.executable, "-c", program, "reproduce", "real", "-o", str(tmp_path)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "SYMRELU_DATA": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "10 of 10 fits are stored" in result.stdout


class Colour(Enum):
    DEEP_RED = 1


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (1.5, 1.5),
        (float("nan"), None),
        (float("inf"), None),
        (np.float32(0.5), 0.5),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.array([[1.0, np.nan]]), [[1.0, None]]),
        ({3: (True, None, "a")}, {"3": [True, None, "a"]}),
        (Path("a") / "b", os.path.join("a", "b")),
        (Colour.DEEP_RED, "deep_red"),
        (LBFGS(memory=3), "LBFGS(memory=3)"),
    ],
)
def test_values_of_the_json_object(value, plain, capsys):
    with screen.showing(screen.Output(json=True)):
        screen.report({"value": value}, [("not", "shown")])
    found = json.loads(capsys.readouterr().out)
    assert found["value"] == plain
    assert type(found["value"]) is type(plain)


def test_notes_and_warnings_are_in_the_json_object_and_on_stderr(capsys):
    with screen.showing(screen.Output(json=True)):
        screen.note("12 self loops are on the diagonal")
        screen.show_warning("It is late.")
        screen.report({"seconds": 7})
    out, err = capsys.readouterr()
    found = {"seconds": 7, "notes": ["12 self loops are on the diagonal"], "warnings": ["It is late."]}
    assert json.loads(out) == found
    assert err == "Note: 12 self loops are on the diagonal\nWarning: It is late.\n"


def test_what_is_shown_without_json(capsys):
    screen.report(
        {"a": 1}, "Prose, " * 20, [("first", 1), ("[second]", "[red]b")], screen.message_text("File:", "x" * 90)
    )
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert [line.split() for line in lines[-3:]] == [
        ["first", "1"],
        ["[second]", "[red]b"],
        ["File:", "x" * 90],
    ]


def test_quiet_leaves_warnings(capsys):
    with screen.showing(screen.Output(quiet=True)):
        screen.note("not shown")
        screen.show_warning("shown")
        screen.report({"a": 1}, [("a", 1)])
        with screen.fit_progress("x", 2) as callback:
            callback(step(1))
        with screen.search_progress() as verbose:
            assert verbose == 0
    assert capsys.readouterr() == ("", "Warning: shown\n")


def step(error, level=0):
    return SimpleNamespace(record=SimpleNamespace(relative_error=error), level=level)


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    clock = iter([104.0, 114.0, 115.0, 130.0])  # when the steps end
    monkeypatch.setattr(screen.time, "monotonic", lambda: next(clock))
    with screen.fit_progress("a[b]c.npz", 10) as callback:
        for error in (0.5, 0.25, 0.125, 0.1):
            callback(step(error))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "a[b]c.npz: step 2 of at most 10, relative error 0.25, at most 0:01:20 left",
        "a[b]c.npz: step 4 of at most 10, relative error 0.1, at most 0:00:52 left",
    ]


def test_lines_of_smaller_matrices_name_their_level_and_count_no_steps(monkeypatch, capsys):
    clock = iter([90.0, 101.0, 104.0, 115.0])
    monkeypatch.setattr(screen.time, "monotonic", lambda: next(clock))
    with screen.fit_progress("x", 10) as callback:
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
    with screen.fit_progress("graph.npz", 10) as callback:
        callback(step(0.123456))
    assert "1/10 relative error 0.1235" in terminal.getvalue()
    assert capsys.readouterr() == ("", "")


def test_a_bar_names_the_level_of_a_smaller_matrix(terminal):
    with screen.fit_progress("graph.npz", 10) as callback:
        callback(step(0.3, level=2))
    assert "0/10 relative error 0.3 at level 2" in terminal.getvalue()


def test_messages_of_a_search_replace_one_another(terminal):
    logger = logging.getLogger("symrelu")
    with screen.search_progress() as verbose:
        assert verbose == 1
        logger.warning("rank 4 [of 8]")
    assert "rank 4 [of 8]" in terminal.getvalue()
    assert not logger.handlers


def test_a_search_without_a_terminal_prints_a_line_now_and_then(monkeypatch, capsys):
    clock = iter([100.0, 104.0, 111.0, 111.0])
    with screen.search_progress():
        monkeypatch.setattr(screen.time, "monotonic", lambda: next(clock))
        (handler,) = logging.getLogger("symrelu").handlers
        handler.shown = 100.0
        for text in ("", "first", "second"):
            handler.emit(logging.makeLogRecord({"msg": text}))
    assert capsys.readouterr() == ("", "second\n")


@pytest.mark.parametrize("shown", [lambda: screen.fit_progress("x", 3), screen.search_progress])
def test_compilation_takes_the_place_of_a_step(shown, terminal, monkeypatch):
    @contextmanager
    def compiling(began):
        began()
        yield

    monkeypatch.setattr("symrelu.kernels.compilation.noticing_compilation", compiling)
    with shown():
        pass
    assert "compiling, at the first run only" in terminal.getvalue()


def test_verbose_prints_the_log(capsys):
    logger = logging.getLogger("symrelu")
    before = logger.level, logger.handlers[:]
    with screen.showing(screen.Output(verbose=True)):
        assert screen.verbosity() == 1
        with screen.search_progress() as verbose:
            assert verbose == 1
            logger.info("backend='sparse' [b] was chosen\x1b")
        with screen.fit_progress("x", 3) as callback:  # the log has the steps
            callback(step(0.5))
    assert (logger.level, logger.handlers) == before
    assert capsys.readouterr() == ("", "backend='sparse' [b] was chosen\\x1b\n")


def test_the_log_is_above_the_bar(terminal):
    with screen.showing(screen.Output(verbose=True)), screen.fit_progress("graph.npz", 10) as callback:
        logging.getLogger("symrelu").info("a line")
        callback(step(0.5))
    assert "a line\n" in terminal.getvalue()
    assert "1/10 relative error 0.5" in terminal.getvalue()


COMMANDS = {
    "fit": ["--rank", 3, "--max-iter", 3, "-o", "out.npz"],
    "embed": ["--components", 3, "--max-iter", 3, "--model", "out.npz"],
    "cluster": ["--clusters", 3, "--max-iter", 3],
    "links": ["--n-init", 1, "--max-iter", 3, "--model", "out.npz"],
    "report": ["--clusters", 3, "--max-iter", 3, "--no-hidden", "-o", "page.html"],
    "evaluate": ["--splits", 1, "--n-init", 1, "--max-iter", 3],
}


@pytest.mark.filterwarnings("ignore")  # of clusters of one node each
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_fit_name_the_backend_if_asked(command, matrix_file, call):
    code, out, err = call(command, matrix_file, *COMMANDS[command], "--json")
    assert (code, "was chosen" in err) == (0, False)
    code, again, err = call(command, matrix_file, *COMMANDS[command], "--json", "-v")
    chosen = "backend='sparse'" if command == "report" else "--backend sparse"  # it has no such option
    assert (code, f"{chosen} was chosen for 60 items" in err) == (0, True)
    assert "--max-iter was reached" in err
    assert json.loads(again).keys() == json.loads(out).keys()


def test_a_model_does_not_depend_on_what_was_shown(matrix_file, call):
    contents = []
    for shown in ([], ["--verbose"], ["--quiet"]):
        assert call("embed", matrix_file, *COMMANDS["embed"], *shown)[0] == 0
        contents.append(SymReLU.load("out.npz").get_params())
    assert contents[0] == contents[1] == contents[2]


def test_verbose_and_quiet_exclude_each_other(matrix_file, call):
    code, out, err = call("fit", matrix_file, *COMMANDS["fit"], "-v", "--quiet")
    assert (code, out) == (2, "")
    assert "--quiet and --verbose ask for different things. Pass one of them." in err


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
    with screen.estimator_progress(estimator, "x"):
        assert estimator.verbose == 1
    assert estimator.verbose == 0


def test_the_steps_of_an_estimator_are_shown(terminal):
    pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")
    M, _ = make_relu_gram(30, 2, random_state=0)
    estimator = SymReLU(2, max_iter=3, random_state=0, n_negative=0)
    with screen.estimator_progress(estimator, "x"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(M)
    assert "3/3 relative error" in terminal.getvalue()
    assert not hasattr(estimator, "_skl_callbacks")
