"""Experiments register themselves, and declare their options."""

from typing import Annotated

import pytest
import typer
from example_experiment import Ranks, make_ranks

from symrelu import cli
from symrelu.experiments import EXPERIMENTS, real
from symrelu.experiments.registry import (
    REGISTERED,
    Option,
    Quick,
    Seeds,
    find_chosen,
    options_of,
    register_experiment,
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Leave the registry as it was."""
    before = dict(REGISTERED)
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


def test_two_experiments_cannot_have_one_name():
    with pytest.raises(ValueError, match=r"symrelu.experiments.real already has 'real'"):
        register_experiment("real")(make_ranks)
    assert REGISTERED["real"] is real.make_real


def test_an_option_must_be_declared():
    def make(quick: Quick = False, colour: str = "red"):
        raise AssertionError

    with pytest.raises(TypeError, match=r"parameter colour of make must .* an Option, got <class 'str'>"):
        cli.reproduce.add_command(typer.Typer(), "name", make)


def test_registering_changes_nothing_about_the_function():
    def make():
        return Ranks()

    assert register_experiment("another")(make) is make
    assert REGISTERED["another"] is make


def test_options_come_in_the_order_of_the_signature():
    assert options_of(make_ranks) == {
        "highest": (int, Option("The highest rank.", minimum=1, chosen_by_quick=True)),
        "seeds": Seeds.__args__ + Seeds.__metadata__,
        "quick": (bool, *Quick.__metadata__),
    }


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_declares_its_options(name):
    make = EXPERIMENTS[name]
    assert make.__doc__
    for kind, option in options_of(make).values():
        assert kind is not None
        assert option.help.endswith(".")


def test_an_option_that_is_only_annotated():
    def make(size: Annotated[int, "a size"] = 3):
        raise AssertionError

    with pytest.raises(TypeError, match="parameter size of make"):
        options_of(make)


def test_what_was_typed_is_checked_before_anything_is_looked_for(tmp_path):
    def find(folder, names):
        return (folder, *names), ()

    known = ("ORL", "PIE")
    assert find_chosen(find, None, ["PIE"], known) == ((None, "PIE"), ())
    assert find_chosen(find, tmp_path, ["PIE", "ORL"], iter(known)) == ((str(tmp_path), "PIE", "ORL"), ())
    with pytest.raises(ValueError, match="--only must be one of 'ORL', 'PIE', got 'pie'"):
        find_chosen(find, tmp_path, ["ORL", "pie"], known)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        find_chosen(find, tmp_path / "nowhere", ["ORL"], known)
