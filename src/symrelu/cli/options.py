"""Generated options: from settings and solvers for ``fit``, from experiments for ``reproduce``.

Typer reads the signature of a command. Here the signature is generated, so that a new setting with a ``brief``
description, a new field of a solver and a new parameter of an experiment become options automatically.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from symrelu.experiments.registry import MakeExperiment, options_of
from symrelu.fit.docstrings import read_parameters
from symrelu.fit.settings import VALUES, Description
from symrelu.solvers import SOLVERS, get_solver

Command = TypeVar("Command", bound=Callable[..., Any])


def with_options(options: Iterable[inspect.Parameter]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options in place of its ``**keywords``.

    They come before its own options, and required ones come first.
    """

    def decorate(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters.values()
        parameters = list(options)
        parameters += (
            p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in own if p.kind is not p.VAR_KEYWORD
        )
        parameters.sort(key=lambda p: p.default is not p.empty)  # stable, so that the order is kept otherwise
        # Typer reads both of them.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def flag_of(name: str) -> str:
    """Return the flag by which a parameter is given on the command line."""
    return f"--{name.replace('_', '-')}"


def fit_options(values: Iterable[type] = VALUES) -> list[inspect.Parameter]:
    """Return the options for the fields of these classes; those of all solvers follow ``--solver``."""
    options = []
    for value in values:
        hints = get_type_hints(value)
        for entry in fields(value):
            description: Description = entry.metadata[Description]
            if description.brief:
                default = inspect.Parameter.empty if entry.default is MISSING else entry.default
                kind = description.typed or hints[entry.name]
                options.append(_option(entry.name, kind, default, description.brief, description.flags))
            if entry.name == "solver":
                options.extend(_solver_options())
    return options


def chosen_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the options of the command to settings of :func:`symrelu.decompose`."""
    owners = _solvers_by_option()
    settings = {name: value for name, value in given.items() if name not in owners}
    own = {name: given[name] for name in owners if given[name] is not None}
    return settings | {"solver": _chosen_solver(settings["solver"], own)}


def experiment_options(make: MakeExperiment) -> list[inspect.Parameter]:
    """Return the options for the parameters of an experiment."""
    parameters = inspect.signature(make).parameters
    options = []
    for name, (kind, declared) in options_of(make).items():
        option = typer.Option(*declared.flags, help=declared.help, min=declared.minimum)
        options.append(
            parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])
        )
    return options


def _option(name: str, kind: Any, default: Any, text: str, flags: tuple[str, ...] = ()) -> inspect.Parameter:
    typed, *others = (one for one in get_args(kind) or (kind,) if one is not NoneType)
    mixed: dict[str, Any] = {}
    if others:  # Typer does not support unions of types
        names = "|".join(one.__name__ for one in (typed, *others))
        typed, mixed = str, {"parser": _number_or_word, "metavar": f"<{names}>"}
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[
            typed | None if default is None else typed, typer.Option(*flags, help=text, **mixed)
        ],
    )


def _number_or_word(text: Any) -> Any:
    """Parse an option that may be a number or a word; Typer also passes the default, which is kept."""
    for kind in (int, float) if isinstance(text, str) else ():
        with suppress(ValueError):
            return kind(text)
    return text


def _solvers_by_option() -> dict[str, list[str]]:
    """Return for each option of a solver the names of the solvers that have it."""
    owners: dict[str, list[str]] = {}
    for name, method in SOLVERS.items():
        for entry in fields(method):
            owners.setdefault(entry.name, []).append(name)
    return owners


def _solver_options() -> list[inspect.Parameter]:
    options = []
    for option, names in _solvers_by_option().items():
        method = SOLVERS[names[0]]
        entry = read_parameters(method.__doc__ or "").get(option)
        sentence = "" if entry is None else entry.first_sentence.replace('"', "'") + ". "
        text = f"({_join_names(names)} only) {sentence}{_defaults(option, names)}"
        # The default is None, so that chosen_settings can tell which options were given.
        options.append(_option(option, get_type_hints(method)[option], None, text))
    return options


def _defaults(option: str, names: list[str]) -> str:
    """Return a sentence on the default of an option, which may differ between solvers."""
    owners: dict[Any, list[str]] = {}
    for name in names:
        owners.setdefault(getattr(SOLVERS[name](), option), []).append(name)
    if len(owners) == 1:
        return f"Default: {next(iter(owners))}."
    return "Default: " + ", ".join(f"{value} ({_join_names(which)})" for value, which in owners.items()) + "."


def _join_names(names: list[str], word: str = "and") -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _chosen_solver(name: str, options: Mapping[str, Any]) -> Any:
    """Return the solver with the given options; raise if it does not have one of them."""
    method = get_solver(name)
    for option in options:
        owners = _solvers_by_option()[option]
        if name not in owners:
            raise ValueError(
                f"{flag_of(option)} is not an option of the solver {name!r}. "
                f"Leave it out, or pass --solver {_join_names(owners, 'or')}."
            )
    return type(method)(**options)
