"""The command line, called in this process."""

import sys

import pytest

from symrelu import cli


def symrelu(monkeypatch, capsys, *arguments):
    """Run ``symrelu ARGUMENTS`` in this process; return exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["symrelu", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    captured = capsys.readouterr()
    return end.value.code, captured.out, captured.err
