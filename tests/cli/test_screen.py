"""What is shown on the terminal."""

import json
import logging
import os
import subprocess
import sys
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from command_line import symrelu

from symrelu import LBFGS, SymReLU
from symrelu.cli import progress, screen

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
        with progress.step_progress("x", 2) as advance:
            advance(1)
        with progress.search_progress() as verbose:
            assert verbose == 0
    assert capsys.readouterr() == ("", "Warning: shown\n")


def test_verbose_prints_the_log(capsys):
    logger = logging.getLogger("symrelu")
    before = logger.level, logger.handlers[:]
    with screen.showing(screen.Output(verbose=True)):
        assert screen.verbosity() == 1
        with progress.search_progress() as verbose:
            assert verbose == 1
            logger.info("backend='sparse' [b] was chosen\x1b")
        with progress.step_progress("x", 3) as advance:  # the log has the steps
            advance(0.5)
    assert (logger.level, logger.handlers) == before
    assert capsys.readouterr() == ("", "backend='sparse' [b] was chosen\\x1b\n")


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
    chosen = "the backend sparse" if command == "report" else "--backend sparse"  # it has no such option
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
