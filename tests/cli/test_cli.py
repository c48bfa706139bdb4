"""The command line as a whole."""

import importlib
import re
import sys

import pytest
from command_line import symrelu


def test_help_names_the_commands(monkeypatch, capsys):
    code, out, _ = symrelu(monkeypatch, capsys, "--help")
    assert code == 0
    commands = set(re.findall(r"^\W*(\w+) {2,}", out, flags=re.MULTILINE))
    assert {"demo", "fit", "reproduce"} <= commands


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_the_command_line_says_what_it_needs(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "symrelu.cli")
    with pytest.raises(SystemExit, match=r"needs typer and rich: pip install 'symrelu\[cli\]'\."):
        importlib.import_module("symrelu.cli")
