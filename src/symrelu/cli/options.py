"""Generated options, from settings, solvers and the parameters of estimators.

Typer reads the signature of a command. Here the signature is generated, so that a new setting with a ``brief``
description and a new field of a solver become options automatically.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import typer

from symrelu.cli.screen import Output, output_options, showing
from symrelu.fit.docstrings import read_parameters
from symrelu.fit.settings import TABLE, VALUES, Description
from symrelu.solvers import SOLVERS, get_solver

Command = TypeVar("Command", bound=Callable[..., Any])

_FITTING, _SOLVERS = "How it is fitted", "Options of one solver"  # panels of a help text
# Parameters of estimators that most users of a command set; the others have their own panel.
_MAIN = ("n_components", "n_clusters", "recall", "method", "shrinkage", "dtype", "random_state", "max_time")
# Where a command differs from Python: the same command, given again, has the same result.
_DEFAULTS = {"random_state": 0}


def with_options(options: Iterable[inspect.Parameter], *, fits: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options in place of its ``**keywords``.

    Its own options come first, then these, and those of :func:`symrelu.cli.screen.output_options` last. The
    command does not receive the last ones: the functions of that module follow them.
    """

    def decorate(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters.values()
        parameters = [
            p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in own if p.kind is not p.VAR_KEYWORD
        ]
        parameters += options
        parameters += (p for p in output_options(fits=fits) if p not in parameters)
        parameters.sort(key=lambda p: p.default is not p.empty)  # required ones first; stable otherwise

        @functools.wraps(command)
        def run(*, json: bool = False, quiet: bool = False, verbose: bool = False, **given: Any) -> Any:
            with showing(Output(json, quiet, verbose)):
                return command(**given)

        # Typer reads both of them.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run  # type: ignore[return-value]

    return decorate


def flag_of(name: str) -> str:
    """Return the flag by which a parameter is given on the command line."""
    return f"--{name.replace('_', '-')}"


def refuse_unused(file: Path, given: Mapping[str, Any], options: Iterable[inspect.Parameter]) -> None:
    """Raise if an option was given that has no effect, because a file holds a model that is already fitted.

    Parameters
    ----------
    file : Path
    given : mapping
        The options of the command.
    options : iterable of Parameter
        Those that have no effect; the ones that have their defaults are not counted.
    """
    unused = [flag_of_option(one) for one in options if given.get(one.name, one.default) != one.default]
    if unused:
        raise ValueError(
            f"{', '.join(unused)} must be left out, because {file} is a saved model, which is neither read as "
            "a graph nor fitted again. Or pass the file of the graph."
        )


def flag_of_option(option: inspect.Parameter) -> str:
    """Return the flag of an option that was made here."""
    declared = get_args(option.annotation)[1]
    # Inside Annotated, what Typer calls the default is the first flag.
    flags = [declared.default, *(declared.param_decls or ())]
    return next((flag for flag in flags if str(flag).startswith("--")), flag_of(option.name))


def fit_options(values: Iterable[type] = VALUES, *, solvers: bool = True) -> list[inspect.Parameter]:
    """Return the options for the fields of these classes; those of all solvers follow ``--solver`` if asked."""
    options = []
    for value in values:
        hints = get_type_hints(value)
        for entry in fields(value):
            description: Description = entry.metadata[Description]
            if description.brief:
                default = inspect.Parameter.empty if entry.default is MISSING else entry.default
                default = _DEFAULTS.get(entry.name, default)
                kind = description.typed or hints[entry.name]
                options.append(option(entry.name, kind, default, description.brief, description.flags))
            if entry.name == "solver" and solvers:
                options.extend(_solver_options())
            if entry.name == "client":
                options.append(workers_option())
    return options


class Own(NamedTuple):
    """An option for a parameter of an estimator that is not described as a setting, or differs from it.

    Attributes
    ----------
    flag : str
    kind : type or union of types
    text : str
        The help text.
    default : object
        The default of the command, if it differs from that of the estimator.
    """

    flag: str
    kind: Any
    text: str
    default: Any = MISSING


def estimator_options(estimator: type, own: Mapping[str, Own]) -> list[inspect.Parameter]:
    """Return the options for parameters of an estimator: settings with a ``brief`` text, and those given."""
    settings = {entry.name: entry for entry in fit_options(solvers=False)}
    del settings["alpha"]  # estimators have shrinkage in place of it
    settings["checkpoint"] = _checkpoint_option()
    options = []
    parameters = dict(inspect.signature(estimator).parameters)
    if "client" in parameters:  # no parameter of the estimator, but whoever has --scheduler has --workers
        parameters["workers"] = workers_option()
    for name, parameter in parameters.items():
        if name in own:
            flag, kind, text, default = own[name]
            default = parameter.default if default is MISSING else default
            found = option(name, kind, default, text, (flag,))
        elif name in settings:
            found = _with_default(settings[name], _DEFAULTS.get(name, parameter.default))
        else:
            continue
        get_args(found.annotation)[1].rich_help_panel = None if name in _MAIN else _FITTING
        options.append(found)
    return sorted(options, key=lambda found: found.name not in _MAIN)


def _checkpoint_option() -> inspect.Parameter:
    """Return ``--checkpoint`` of commands other than ``fit``, which ``symrelu resume`` does not repeat."""
    text = (
        "Write the state of the fit to this file every minute; the same command, given again, resumes from it."
    )
    return option("checkpoint", Path, None, text)


def workers_option() -> inspect.Parameter:
    """Return ``--workers``: see :func:`symrelu.cli.local_workers.running_workers`."""
    text = "Fit on so many workers of this machine (backend 'dask'), started for this command."
    return option("workers", int, None, text)


def _with_default(setting: inspect.Parameter, default: Any) -> inspect.Parameter:
    """Return an option with another default, which may be None."""
    kind, declared = get_args(setting.annotation)
    return setting.replace(
        default=default, annotation=Annotated[kind | None if default is None else kind, declared]
    )


def estimator_settings(estimator: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options of a command that are parameters of an estimator."""
    return _with_finite_time(
        {name: given[name] for name in inspect.signature(estimator).parameters if name in given}
    )


def _with_finite_time(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in which an infinite time, which is no limit, is None as in Python."""
    return settings | ({"max_time": None} if settings.get("max_time") == math.inf else {})


def chosen_settings(given: Mapping[str, Any], table: Mapping[str, Description] = TABLE) -> dict[str, Any]:
    """Convert those options of a command that are in a table of settings, by default of all settings."""
    owners = _solvers_by_option()
    settings = _with_finite_time({name: value for name, value in given.items() if name in table})
    own = {name: given[name] for name in owners if given[name] is not None}
    return settings | {"solver": _chosen_solver(settings["solver"], own)}


def option(
    name: str, kind: Any, default: Any, text: str, flags: tuple[str, ...] = (), **declared: Any
) -> inspect.Parameter:
    """Return an option of a command; ``kind`` may be a union of types, and ``declared`` is for Typer."""
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
            typed | None if default is None else typed,
            typer.Option(*flags, help=text, **(mixed | declared)),
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
    for name, names in _solvers_by_option().items():
        method = SOLVERS[names[0]]
        entry = read_parameters(method.__doc__ or "").get(name)
        sentence = "" if entry is None else entry.first_sentence.replace('"', "'") + ". "
        text = f"({_join_names(names)} only) {sentence}{_defaults(name, names)}"
        # The default is None, so that chosen_settings can tell which options were given.
        options.append(option(name, get_type_hints(method)[name], None, text, rich_help_panel=_SOLVERS))
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
