"""What is shown on the terminal."""

import io as streams
import os
import subprocess
import sys

import pytest
from command_line import symrelu
from rich.console import Console

from symrelu.cli import screen

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
    assert (code, err) == (0, "")
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
