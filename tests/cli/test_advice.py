"""Messages of the library in words of the command line."""

import ast
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from problems_of_size import CASE

import symrelu
from symrelu import Status, SymReLU
from symrelu.cli import commands
from symrelu.cli.advice import (
    advice_of,
    current_flags,
    flags_of,
    following,
    for_command_line,
    refusal_in_options,
    stopped_early,
)
from symrelu.cli.inputs import graph_options
from symrelu.fit import memory_check
from symrelu.fit.memory_check import refusal
from symrelu.fit.memory_model import memory_of

FLAGS = {
    "file": "--file",
    "rank": "--rank",
    "max_iter": "--max-iter",
    "random_state": "--seed",
    "duplicates": "--duplicates",
    "directed": "--directed",
    "weight": "--weight",
    "mask": "--mask",
    "alpha": "--alpha",
    "self_loops": "--self-loops",
    "header": "--header",
    "clusters": "--clusters",
    "affinity": "--affinity",
    "momentum": "--momentum",
}
ROOT = Path(symrelu.__file__).parent
COMMANDS = [name for name in commands.COMMANDS if name != "reproduce"]


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_status_has_advice_in_options_of_each_command(status, command):
    flags = set(flags_of(command).values())
    advice = advice_of(status, flags)
    assert advice.endswith(".")
    assert set(re.findall(r"--[a-z-]+", advice)) <= flags | {"--solver"}
    assert not re.search(r"\b[a-z]\w*=|\w_\w|(?<!--)\binit\b", advice)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_refusal_names_what_each_command_has(command, monkeypatch):
    monkeypatch.setattr(memory_check, "_fits", lambda *_: True)  # every remedy is enough
    flags = flags_of(command)
    case = replace(CASE, rank=400, backend="dense")
    text = str(refusal_in_options(refusal(case, memory_of(case), 1000), flags))
    assert set(re.findall(r"--[a-z-]+", text)) <= set(flags.values())
    assert not re.search(r"\b[a-z]\w*=|\bLBFGS\b", text)
    assert ("dask" in text) == ("client" in flags and "backend" in flags)
    assert ("399 or less" in text) == bool({"rank", "ranks", "n_components"} & set(flags))


@pytest.mark.parametrize("status", [Status.MAX_ITER, Status.MAX_TIME, Status.INTERRUPTED])
def test_a_fit_with_a_checkpoint_can_be_resumed(status):
    flags = flags_of("fit").values()
    assert "With --checkpoint FILE" in advice_of(status, flags)
    advice = advice_of(status, flags, resumes=True)
    assert "It can be resumed from its checkpoint" in advice
    assert "--checkpoint" not in advice
    assert "checkpoint" not in advice_of(Status.PLATEAU, flags, resumes=True)


@pytest.mark.parametrize("status", [Status.GRADIENT, Status.PLATEAU])
def test_a_signed_fit_is_not_told_to_be_signed(status):
    flags = flags_of("fit").values()
    assert "or --diagonal ignore --n-negative 1." in advice_of(status, flags)
    assert "pass a larger --rank or another --seed or --init." in advice_of(status, flags, signed=True)


def test_a_limit_counts_all_runs():
    flags = flags_of("resume").values()
    advice = advice_of(Status.MAX_TIME, flags, resumes=True, used=29.267)
    assert "with a larger --max-time, which counts the seconds of all runs: 29.27 so far." in advice
    advice = advice_of(Status.MAX_ITER, flags, resumes=True, used=1500)
    assert "with a larger --max-iter, which counts the steps of all runs: 1500 so far." in advice


@pytest.mark.parametrize(
    ("called", "status", "words"),
    [
        ("fit g.csv -r 3 --max-time 1", Status.MAX_TIME, "resume my.ckpt --max-time 60"),
        ("fit g.csv -r 3", Status.INTERRUPTED, "resume my.ckpt"),
        ("resume my.ckpt --max-iter 9 --json", Status.MAX_ITER, "resume my.ckpt --max-iter 60 --json"),
        ("embed g.csv", Status.MAX_ITER, "embed g.csv --max-iter 60"),
        ("embed g.csv --max-time=1 -o v.csv", Status.MAX_TIME, "embed g.csv --max-time 60 -o v.csv"),
        ("embed g.csv --max-time 1 -o v.csv", Status.INTERRUPTED, "embed g.csv --max-time 1 -o v.csv"),
        ("cluster -o c.csv -- -g.csv", Status.MAX_TIME, "cluster -o c.csv --max-time 60 -- -g.csv"),
    ],
)
def test_the_command_that_resumes(called, status, words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["symrelu", *called.split()])
    assert following(status, Path("my.ckpt"), used=29.3) == ["symrelu", *words.split()]
    assert following(status, None, used=29.3) is None
    assert following(Status.PLATEAU, Path("my.ckpt")) is None


@pytest.mark.parametrize(
    ("status", "max_iter", "expected"),
    [
        (Status.MAX_TIME, None, True),
        (Status.NON_FINITE, 20, True),
        (Status.GRADIENT, None, False),
        (Status.ROUNDING, None, False),
        (Status.MAX_ITER, None, False),
        (Status.MAX_ITER, 20, False),
        (Status.MAX_ITER, 19, True),
    ],
)
def test_what_ends_a_fit_early(status, max_iter, expected):
    assert stopped_early(status, max_iter, 20) is expected


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('Pass duplicates="sum" to add the weights.', "Pass --duplicates sum to add the weights."),
        ("Pass duplicates='max', or 'sum'.", "Pass --duplicates max, or 'sum'."),
        ("n_clusters=None chose 10.", "--clusters auto chose 10."),
        ("n_clusters must be from 1 to 9 or None, got 0.", "--clusters must be from 1 to 9 or 'auto', got 0."),
        ("Pass weight=None to ignore them.", "Pass --weight none to ignore them."),
        ("Pass header=False if it is an edge", "Pass --header no if it is an edge"),
        ("or mark it as unobserved with mask=.", "or mark it as unobserved with --mask."),
        ("Pass the right name: weight=...", "Pass the right name: --weight"),
        ("Pass weight= to choose another column", "Pass --weight to choose another column"),
        ("Raise max_iter, or lower it.", "Raise --max-iter, or lower it."),
        ("max_iter must be an integer.", "--max-iter must be an integer."),
        ("rank must be an integer, got 0.", "--rank must be an integer, got 0."),
        ("written with rank=3, this fit has rank=4.", "written with --rank 3, this fit has --rank 4."),
        ("try another random_state.", "try another --seed."),
        ("n_components=7 is too many", "--rank 7 is too many"),
        ("n_clusters=7 is too many", "--clusters 7 is too many"),
        ("pass SymReLU(affinity='self_tuning'); or", "pass --affinity self_tuning; or"),
        ("choose one: from_edges(edges, weight=...).", "choose one: --weight."),
        ("alpha=1e-3 helps", "--alpha 1e-3 helps"),
        ("Pass alpha=0.05.", "Pass --alpha 0.05."),
        ("Pass self_loops='two words'.", "Pass --self-loops 'two words'."),
    ],
)
def test_arguments_become_options(message, words):
    assert for_command_line(message, FLAGS) == words


@pytest.mark.parametrize(
    "message",
    [
        "The file max_iter.csv does not exist.",
        "The file data/max_iter does not exist.",
        "The file max_iter-2.csv does not exist.",
        "'max_iter' is not one of the 5 names of nodes.",
        "The rank of the matrix must be known: the weight is 3.",
        "max_iter_ is an attribute",
        "AAPB(momentum=...) must be in [0, 1], got 2.",
        "Pass tau=3.",
        "model.max_iter",
    ],
)
def test_what_is_no_argument_stays(message):
    assert for_command_line(message, FLAGS) == message


def test_the_advice_in_a_warning_is_that_of_the_command_line():
    for status in Status:
        warning = (
            f"{SymReLU(3, max_iter=5, solver='lbfgs')!r} stopped before convergence: max_iter was reached. "
            f"{status.advice.replace('alpha', 'shrinkage')} relative_error_ and history_ show how far it got."
        )
        words = for_command_line(warning, flags_of("fit"))
        assert words.startswith("The fit stopped before convergence: --max-iter was reached. ")
        assert words.endswith(advice_of(status, flags_of("fit").values()))


@pytest.mark.parametrize("file", ["rank=3.csv", "my max_iter.csv", "a/rank=3"])
def test_files_that_the_user_has_named_keep_their_names(file, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["symrelu", "fit", file, "--rank", "3"])
    words = for_command_line(f"The file {file} does not exist: pass rank=3, max_iter=4.", FLAGS)
    assert words == f"The file {file} does not exist: pass --rank 3, --max-iter 4."


def test_the_options_are_those_of_the_command_that_was_called(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["symrelu", "--quiet", "fit", "a.csv"])
    assert current_flags() == flags_of("fit")
    assert current_flags()["random_state"] == "--seed"
    assert "file" not in current_flags()
    for argv in (["symrelu"], ["symrelu", "no such"], ["pytest", "-q"]):
        monkeypatch.setattr(sys, "argv", argv)
        assert current_flags() == {}


def texts_of(path):
    """Yield the texts in a file of code, with X in place of what is filled in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


READING = [path for package in ("graphs", "files") for path in sorted((ROOT / package).glob("*.py"))]
ARGUMENT = re.compile(rf"\b({'|'.join(option.name for option in graph_options())})=")


@pytest.mark.parametrize("path", READING, ids=lambda path: path.stem)
def test_no_message_of_reading_names_an_argument_of_python(path):
    """Every text is tried, also those that are not shown by the command line."""
    for text in texts_of(path):
        words = for_command_line(text, flags_of("embed"))
        assert not ARGUMENT.search(words), words
        assert not re.search(r"\w\([^)]*--", words), words  # no option inside a call


def test_some_messages_of_reading_name_arguments():
    found = {path.stem for path in READING for text in texts_of(path) if ARGUMENT.search(text)}
    assert {"edge_files", "pairs", "reading"} <= found
