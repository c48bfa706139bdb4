"""The table of commands, and when they are imported."""

import inspect
import subprocess
import sys

import pytest
from command_line import set_width, symrelu

from symrelu.cli import COMMANDS, app
from symrelu.cli.advice import flags_of
from symrelu.cli.commands import _ELSEWHERE, load_command

HEAVY = ("numpy", "scipy", "sklearn", "numba")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_has_the_first_paragraph_of_each_command(name):
    command = load_command(name)
    first, _, _ = inspect.cleandoc(command.help).partition("\n\n")
    assert first == COMMANDS[name].text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_its_examples(name, monkeypatch, capsys):
    set_width(monkeypatch, 200)
    code, out, _ = symrelu(monkeypatch, capsys, name, "--help")
    assert code == 0
    assert COMMANDS[name].text in out
    examples = [line.strip() for line in out.partition("Examples:")[2].splitlines() if line.strip()]
    assert 2 <= len(examples) <= 4
    # The first one may write what the command needs: a model, or a checkpoint.
    assert examples[0].startswith("symrelu ")
    assert all(example.startswith(f"symrelu {name}") for example in examples[1:])


def test_the_top_level_help_groups_the_commands(monkeypatch, capsys):
    set_width(monkeypatch, 200)
    code, out, _ = symrelu(monkeypatch, capsys, "--help")
    assert code == 0
    for name, (panel, text) in COMMANDS.items():
        assert text in out.partition(f" {panel} ")[2], name
    assert "Exit codes:" in out


def test_an_unknown_command_is_refused_with_a_suggestion(monkeypatch, capsys):
    code, _, err = symrelu(monkeypatch, capsys, "ft")
    assert code == 2
    assert "Did you mean 'fit'" in err


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("fit", "--start", "--init"),
        ("fit", "--iterations", "--max-iter"),
        ("fit", "--components", "--rank"),
        ("embed", "--rank", "--components"),
        ("cluster", "--n-clusters", "--clusters"),
        ("links", "--time-limit", "--max-time"),
        ("fit", "--initt", "--init"),  # close names are those of click
    ],
)
def test_an_option_with_another_name_is_refused_with_the_right_one(call, command, given, expected):
    code, _, err = call(command, "graph.csv", given, "3")
    assert code == 2
    said = " ".join(err.split())
    assert f"No such option: {given} " in said
    assert f"{expected})" in said or f"{expected}?" in said


@pytest.mark.parametrize("command", ["neighbors", "rank", "report"])
def test_an_option_of_other_commands_is_refused_with_their_names(call, command):
    code, _, err = call(command, "graph.csv", "--dry-run")
    assert code == 2
    said = " ".join(err.replace("│", " ").split())
    assert "No such option: --dry-run. It is an option of fit, embed, links and cluster." in said


def test_the_commands_that_have_an_option_are_known():
    for flag, names in _ELSEWHERE.items():
        assert set(names) == {name for name in COMMANDS if flag in flags_of(name).values()}


def test_an_option_that_resembles_none_is_refused(call):
    code, _, err = call("fit", "graph.csv", "--zzz")
    assert code == 2
    assert "No such option: --zzz" in err
    assert "Possible" not in err


def test_names_help_and_version_load_no_numerical_library():
    """One process for all, since nothing is imported that a later call could find."""
    program = f"""
import contextlib, io, os, sys
from symrelu import cli

def run(*arguments, **environment):
    sys.argv = ["symrelu", *arguments]
    os.environ.update(environment)
    out = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(out):
        cli.main()
    return out.getvalue()

assert run("--version").startswith("symrelu ")
assert "Exit codes" in run("--help")
assert "_SYMRELU_COMPLETE" in run(_SYMRELU_COMPLETE="source_bash")
names = run(_SYMRELU_COMPLETE="complete_bash", COMP_WORDS="symrelu r", COMP_CWORD="1").split()
assert names[0] == "report" and names[-1] == "reproduce", names
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_options_of_a_command_are_completed(monkeypatch, capsys):
    words = {"_SYMRELU_COMPLETE": "complete_bash", "COMP_WORDS": "symrelu fit --dia", "COMP_CWORD": "2"}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as end:
        app(prog_name="symrelu")  # from which the name of the first variable is made
    assert (end.value.code, capsys.readouterr().out.split()) == (0, ["--diagonal"])
