"""How an experiment becomes a command: it registers a function that makes it from the options.

:func:`register_experiment` names the command, the docstring of the function is its help, and each parameter,
annotated with an :class:`Option`, is an option of it. The package imports all of its modules, so that a file
with such a function is all that a new command needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from symrelu.experiments.experiment import Experiment
from symrelu.validation import check_choice

MakeExperiment = Callable[..., Experiment]
Make = TypeVar("Make", bound=MakeExperiment)
Found = TypeVar("Found")


@dataclass(frozen=True)
class Option:
    """What the command line has to know of a parameter besides its type and default.

    Parameters
    ----------
    help : str
        A sentence for the user.
    minimum : int, optional
        The lowest number that is taken.
    flags : tuple of str
        How it is written; by default the name of the parameter, with hyphens.
    chosen_by_quick : bool, default=False
        Whether ``--quick`` has its own choice of it, so that the two cannot be given together.
    """

    help: str
    minimum: int | None = None
    flags: tuple[str, ...] = ()
    chosen_by_quick: bool = False


Seeds = Annotated[int | None, Option("Number of seeds, from 0 on.", minimum=1, chosen_by_quick=True)]
Quick = Annotated[bool, Option("A small version, in under two minutes.", flags=("--quick",))]
DataHome = Annotated[Path | None, Option("Folder with the data (else $SYMRELU_DATA).")]

REGISTERED: dict[str, MakeExperiment] = {}


def register_experiment(name: str) -> Callable[[Make], Make]:
    """Return a decorator that makes a function's experiment the command ``symrelu reproduce NAME``."""

    def register(make: Make) -> Make:
        if name in REGISTERED:
            owner = REGISTERED[name].__module__
            raise ValueError(f"Names of experiments must differ, but {owner} has {name!r} already. Rename one.")
        REGISTERED[name] = make
        return make

    return register


def options_of(make: MakeExperiment) -> dict[str, tuple[Any, Option]]:
    """Return type and declaration of each parameter of a function that makes an experiment."""
    hints = get_type_hints(make, include_extras=True)
    options = {}
    for name in inspect.signature(make).parameters:
        match get_args(hints.get(name)):
            case (kind, Option() as option):
                options[name] = (kind, option)
            case _:
                raise TypeError(
                    f"The parameter {name} of {make.__name__} must be annotated with a type and an Option, got "
                    f"{hints.get(name)}. Write such as {name}: Annotated[int, Option('What it does.')] = 3."
                )
    return options


def find_chosen(
    find: Callable[[str | None, Sequence[str]], tuple[tuple[Found, ...], tuple[str, ...]]],
    data: Path | None,
    names: Sequence[str],
    known: Iterable[str],
) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Return what ``find`` makes of the data sets that the user chose, after a look at what was typed.

    Parameters
    ----------
    find : callable
        Takes the folder and the names; returns the cases and a sentence for each that is missing.
    data : Path, optional
        Folder with the data; by default the one in ``SYMRELU_DATA``.
    names : sequence of str
        The sets that are wanted.
    known : iterable of str
        The sets that there are.

    Returns
    -------
    cases : tuple
        Those that were found.
    missing : tuple of str
        A sentence for each of the others.
    """
    choices = tuple(known)
    for name in names:
        check_choice("--only", name, choices)
    if data is not None and not data.is_dir():
        raise FileNotFoundError(f"The data directory {data} does not exist.")
    return find(None if data is None else str(data), names)
