"""The registry that turns experiments into commands.

An experiment registers a function that creates it. :func:`register_experiment` takes the name of the command;
the docstring of the function is the help text, and each parameter, annotated with an :class:`Option`, is an
option. The package imports all of its modules, so that a new command needs nothing but a module with such a
function.
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
    """What the command line needs to know about a parameter, apart from its type and default.

    Parameters
    ----------
    help : str
        The help text.
    minimum : int, optional
        The lowest value that is accepted.
    flags : tuple of str
        The flags on the command line. Defaults to the name of the parameter, with hyphens.
    chosen_by_quick : bool, default=False
        Whether ``--quick`` sets this option, so that the two cannot be combined.
    """

    help: str
    minimum: int | None = None
    flags: tuple[str, ...] = ()
    chosen_by_quick: bool = False


Seeds = Annotated[int | None, Option("Number of seeds (0, 1, 2, ...).", minimum=1, chosen_by_quick=True)]
# The flag is given explicitly, because Typer would add a --no-quick.
Quick = Annotated[bool, Option("Run a small version, in under two minutes.", flags=("--quick",))]
DataHome = Annotated[Path | None, Option("Folder with the data (default: $SYMRELU_DATA).")]

# Filled when the package imports its modules.
REGISTERED: dict[str, MakeExperiment] = {}


def register_experiment(name: str) -> Callable[[Make], Make]:
    """Return a decorator that registers a function as the command ``symrelu reproduce NAME``.

    Parameters
    ----------
    name : str
        Name of the command.

    Returns
    -------
    decorator : callable
        Registers the function that makes the experiment, and returns it unchanged.
    """

    def register(make: Make) -> Make:
        if name in REGISTERED:
            owner = REGISTERED[name].__module__
            raise ValueError(f"Names of experiments must differ, but {owner} already has {name!r}. Rename one.")
        REGISTERED[name] = make
        return make

    return register


def options_of(make: MakeExperiment) -> dict[str, tuple[Any, Option]]:
    """Return the type and the Option of each parameter of a registered function."""
    # Annotations are strings in modules that defer their evaluation; get_type_hints resolves them.
    hints = get_type_hints(make, include_extras=True)
    options = {}
    for name in inspect.signature(make).parameters:
        match get_args(hints.get(name)):
            case (kind, Option() as option):
                options[name] = (kind, option)
            case _:
                raise TypeError(
                    f"The parameter {name} of {make.__name__} must be annotated with a type and an Option, got "
                    f"{hints.get(name)}. Write for example {name}: Annotated[int, Option('What it does.')] = 3."
                )
    return options


def find_chosen(
    find: Callable[[str | None, Sequence[str]], tuple[tuple[Found, ...], tuple[str, ...]]],
    data: Path | None,
    names: Sequence[str],
    known: Iterable[str],
) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Check the names that the user chose, then look for these data sets with ``find``.

    Parameters
    ----------
    find : callable
        Takes the folder and the names; returns the cases, and a message for each set that is missing.
    data : Path, optional
        Folder that holds the data. Defaults to the folder named by ``SYMRELU_DATA``.
    names : sequence of str
        The sets to look for.
    known : iterable of str
        All valid names.

    Returns
    -------
    cases, missing : tuple
        What ``find`` returns.
    """
    choices = tuple(known)  # it may be an iterator, and is used for each name
    for name in names:
        check_choice("--only", name, choices)
    if data is not None and not data.is_dir():
        raise FileNotFoundError(f"The data directory {data} does not exist. Pass an existing one to --data.")
    return find(None if data is None else str(data), names)
