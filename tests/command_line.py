"""The command line, called in this process."""

import sys

import pytest

from symrelu import cli
from symrelu.cli import screen


def symrelu(monkeypatch, capsys, *arguments):
    """Run ``symrelu ARGUMENTS`` in this process; return exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["symrelu", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    captured = capsys.readouterr()
    return end.value.code, captured.out, captured.err


def set_width(monkeypatch, width):
    """Let the terminal have this many columns, whatever it had when the command line was imported."""
    # Typer reads the variable; our consoles did so when they were made. Not their `width`: a console keeps
    # the width that is restored.
    monkeypatch.setenv("COLUMNS", str(width))
    for console in (screen.console, screen.errors):
        monkeypatch.setattr(console, "_width", width)
