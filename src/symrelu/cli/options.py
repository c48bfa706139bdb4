"""Options that are made, not written: of settings and solvers for ``fit``, of experiments for ``reproduce``.

Typer reads the signature of a command. Here it is made, so that a new setting with a brief description, a new
field of a solver, and a new parameter of an experiment become options by themselves.
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

    They come before its own, and what is required before all else.
    """

    def decorate(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters.values()
        parameters = list(options)
        parameters += (
            p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in own if p.kind is not p.VAR_KEYWORD
        )
        parameters.sort(key=lambda p: p.default is not p.empty)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def flag_of(name: str) -> str:
    """Return the flag by which a parameter is given on the command line."""
    return f"--{name.replace('_', '-')}"


def fit_options(values: Iterable[type] = VALUES) -> list[inspect.Parameter]:
    """Return the options for the fields of some values; behind the name of a solver, those of all solvers."""
    options = []
    for value in values:
        hints = get_type_hints(value)
        for entry in fields(value):
            told: Description = entry.metadata[Description]
            if told.brief:
                default = inspect.Parameter.empty if entry.default is MISSING else entry.default
                options.append(
                    _option(entry.name, told.typed or hints[entry.name], default, told.brief, told.flags)
                )
            if entry.name == "solver":
                options.extend(_solver_options())
    return options


def chosen_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options of a command say as settings of :func:`symrelu.decompose`."""
    owners = _owners()
    settings = {name: value for name, value in given.items() if name not in owners}
    own = {name: given[name] for name in owners if given[name] is not None}
    return settings | {"solver": _chosen_solver(settings["solver"], own)}


def experiment_options(make: MakeExperiment) -> list[inspect.Parameter]:
    """Return the options that an experiment is made from."""
    parameters = inspect.signature(make).parameters
    options = []
    for name, (kind, told) in options_of(make).items():
        option = typer.Option(*told.flags, help=told.help, min=told.minimum)
        options.append(
            parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])
        )
    return options


def _option(name: str, kind: Any, default: Any, text: str, flags: tuple[str, ...] = ()) -> inspect.Parameter:
    typed, *others = (one for one in get_args(kind) or (kind,) if one is not NoneType)
    mixed: dict[str, Any] = {}
    if others:
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
    """Return an option that may be a number or a word; a default stays what it is."""
    for kind in (int, float) if isinstance(text, str) else ():
        with suppress(ValueError):
            return kind(text)
    return text


def _owners() -> dict[str, list[str]]:
    """Return which solvers have an option, for each option of theirs."""
    owners: dict[str, list[str]] = {}
    for name, method in SOLVERS.items():
        for entry in fields(method):
            owners.setdefault(entry.name, []).append(name)
    return owners


def _solver_options() -> list[inspect.Parameter]:
    options = []
    for option, names in _owners().items():
        method = SOLVERS[names[0]]
        entry = read_parameters(method.__doc__ or "").get(option)
        sentence = "" if entry is None else entry.first_sentence.replace('"', "'") + ". "
        text = f"({_listed(names)} only) {sentence}{_defaults(option, names)}"
        options.append(_option(option, get_type_hints(method)[option], None, text))
    return options


def _defaults(option: str, names: list[str]) -> str:
    """Return what an option of some solvers is if it is not given."""
    owners: dict[Any, list[str]] = {}
    for name in names:
        owners.setdefault(getattr(SOLVERS[name](), option), []).append(name)
    if len(owners) == 1:
        return f"By default {next(iter(owners))}."
    return "By default " + ", ".join(f"{value} ({_listed(which)})" for value, which in owners.items()) + "."


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _chosen_solver(name: str, options: Mapping[str, Any]) -> Any:
    """Return the solver of that name with the options that were given, which must be its own."""
    method = get_solver(name)
    for option in options:
        owners = _owners()[option]
        if name not in owners:
            raise ValueError(
                f"{flag_of(option)} is no option of the solver {name!r}. "
                f"Leave it out, or pass --solver {' or '.join(owners)}."
            )
    return type(method)(**options)
