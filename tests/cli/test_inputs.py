"""Options for reading graphs."""

import re

import pytest

from symrelu.cli import app
from symrelu.cli.inputs import graph_options, read_input, reading_options


def test_options_are_those_of_the_reader():
    names = [option.name for option in graph_options()]
    assert names == [
        "source", "target", "weight", "delimiter", "header", "duplicates", "self_loops", "directed", "key",
    ]  # fmt: skip
    defaults = {option.name: option.default for option in graph_options()}
    assert reading_options(defaults | {"rank": 3}) == defaults


@pytest.mark.parametrize(
    ("given", "keyword"),
    [
        ({"weight": "none"}, None),
        ({"header": "yes"}, True),
        ({"header": "no"}, False),
        ({"directed": "sum"}, "sum"),
    ],
)
def test_words_of_the_command_line(given, keyword):
    (name,) = given
    assert reading_options(given)[name] == keyword


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"duplicates": "mean"}, "--duplicates must be one of error, sum, max, got 'mean'."),
        ({"self_loops": "yes"}, "--self-loops must be one of keep, drop, error, got 'yes'."),
        ({"header": "maybe"}, "--header must be one of auto, yes, no, got 'maybe'."),
    ],
)
def test_other_words_are_refused_before_the_file_is_read(given, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_input(tmp_path / "missing.csv", given)


def test_words_are_completed(monkeypatch, capsys):
    words = {"_SYMRELU_COMPLETE": "complete_bash", "COMP_WORDS": "symrelu fit --self-loops ", "COMP_CWORD": "3"}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        app(prog_name="symrelu")
    assert capsys.readouterr().out.split() == ["keep", "drop", "error"]
