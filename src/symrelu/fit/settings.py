"""The settings of a fit as values: what is fitted, from where, for how long, and how.

Each is frozen and checked where it is made. A field holds its default and what there is to say of it: the
docstrings (by :func:`documented`), the command line and the checkpoints take from here what they need.
"""

# ruff: noqa: RUF009  (setting() is a field)

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from symrelu.fit.checkpoint import as_checkpoint, check_solver
from symrelu.fit.docstrings import Entry, read_parameters, with_parameters
from symrelu.fit.starts import STARTS, check_init
from symrelu.operators import BACKENDS, operator_class
from symrelu.problem import fingerprint
from symrelu.solvers import SOLVERS, get_solver
from symrelu.validation import (
    check_callback,
    check_choice,
    check_integer,
    check_number,
    check_verbose,
    random_generator,
)

__all__ = ["TABLE", "VALUES", "Description", "Limits", "Model", "Run", "Start", "documented", "pick", "setting"]

DIAGONALS = ("fit", "ignore")

Documented = TypeVar("Documented", bound=Callable[..., Any])


@dataclass(frozen=True)
class Description:
    """What there is to say of a setting.

    Parameters
    ----------
    kind : str
        Its type, as numpydoc writes it.
    text : str
        A paragraph for docstrings.
    brief : str
        A sentence for the command line; without one, a setting is no option there.
    typed : type, optional
        What can be typed there, where the annotation does not tell.
    flags : tuple of str
        Its names there, where they are others than its own.
    """

    kind: str
    text: str
    brief: str = ""
    typed: Any = None
    flags: tuple[str, ...] = ()


def setting(default: Any = MISSING, **description: Any) -> Any:
    """Return the field of a setting, with its :class:`Description`."""
    return field(default=default, metadata={Description: Description(**description)})


def describe(values: Iterable[type]) -> dict[str, Description]:
    """Return what there is to say of each field of some values."""
    return {entry.name: entry.metadata[Description] for value in values for entry in fields(value)}


def pick(value: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the settings that are fields of a value."""
    return {entry.name: settings[entry.name] for entry in fields(value) if entry.name in settings}


def _one_of(names: Iterable[str]) -> str:
    """Return names as numpydoc writes a choice."""
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


def _words(names: Iterable[str]) -> str:
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}"


def check_rank(rank: Any, n: int, name: str = "rank") -> int:
    """Return the number of columns of a factor, for a matrix of size n."""
    return check_integer(name, rank, 1, n, note=" (the size of M)")


def check_zero_weight(zero_weight: Any) -> float:
    """Return the weight of the zeros."""
    return check_number("zero_weight", zero_weight, 0, 1, low_included=False)


def check_auto(n_negative: str) -> str:
    """Return the one word that may stand for a number of negative columns."""
    return check_choice("n_negative", n_negative, ("auto",), "an integer")


@dataclass(frozen=True, kw_only=True)
class Model:
    """What is fitted.

    Rank and number of negative columns are also bounded by the size of M: :meth:`for_size` looks at that.
    """

    rank: int = setting(
        kind="int",
        text="Number of columns of U, from 1 to n.",
        brief="Columns of U.",
        flags=("--rank", "-r"),
    )
    n_negative: int | str = setting(
        0,
        kind='int or "auto"',
        text="How many columns enter X with a minus sign. 0 is the paper's model. "
        '"auto" counts the negative ones among the leading eigenvalues of M with a negative number in place of '
        "its zeros.",
        brief="Columns that enter X with a minus sign, or 'auto'.",
    )
    diagonal: str = setting(
        "fit",
        kind=_one_of(DIAGONALS),
        text='"ignore" takes the diagonal of M as unknown: no U U^T can fit the zero diagonal of a graph.',
        brief="'fit', or 'ignore' to take it as unknown.",
    )
    zero_weight: float = setting(
        1.0,
        kind="float",
        text="Weight in (0, 1] of the zeros of M.",
        brief="Weight of the zeros, in (0, 1].",
    )
    alpha: float = setting(
        0.0,
        kind="float",
        text="Tikhonov weight (the paper's lambda).",
        brief="Tikhonov weight.",
    )

    def __post_init__(self) -> None:
        check_integer("rank", self.rank, 1, note=" (and at most the size of M)")
        if isinstance(self.n_negative, str):
            check_auto(self.n_negative)
        else:
            check_integer("n_negative", self.n_negative, 0, note=" or 'auto'")
        check_choice("diagonal", self.diagonal, DIAGONALS)
        _normalise(
            self, zero_weight=check_zero_weight(self.zero_weight), alpha=check_number("alpha", self.alpha)
        )

    def for_size(self, n: int) -> Model:
        """Return the model of an n x n matrix, or raise if the factor would be too wide, or all negative."""
        rank, n_negative = check_rank(self.rank, n), self.n_negative
        if not isinstance(n_negative, str):
            note = " (rank - 1, since one column at least must be positive) or 'auto'"
            n_negative = check_integer("n_negative", n_negative, 0, rank - 1, note)
        return replace(self, rank=rank, n_negative=n_negative)


@dataclass(frozen=True, eq=False, kw_only=True)
class Start:
    """Where a fit begins."""

    init: Any = setting(
        "imputed",
        kind=f"{_one_of(sorted(STARTS))} or array of shape (n, rank)",
        text='Starting factor. "imputed" takes the leading eigenvectors of M with a negative number in place '
        'of its zeros, "spectral" those of M (at a rank of n / 2 or more, where U is as large as M, by a dense '
        'eigendecomposition); "random" is normal and scaled to M, "uniform" the same from numbers in [0, 1).',
        brief=f"{_words(sorted(STARTS))}.",
        typed=str,
    )
    random_state: Any = setting(
        None,
        kind="None, int, Generator or RandomState",
        text="Seed of the start. The same seed gives the same factor.",
        brief="Seed of the start.",
        typed=int | None,
        flags=("--seed",),
    )

    def __post_init__(self) -> None:
        if isinstance(self.init, str):
            check_choice("init", self.init, STARTS)
        random_generator(self.random_state)

    def for_factor(self, n: int, rank: int, dtype: Any, largest: float) -> Start:
        """Return the start of a factor of that shape and type, for a matrix with that largest entry."""
        return replace(self, init=check_init(self.init, n, rank, dtype, largest))

    @property
    def identity(self) -> dict[str, Any]:
        """By what a checkpoint knows the start again, once it is one of a factor."""
        seed, named = self.random_state, isinstance(self.init, str)
        seeded = isinstance(seed, (int, np.integer))
        return {
            "random_state": int(seed) if seeded else (None if seed is None else "a generator"),
            "init": self.init if named else "an array",
            "starting factor": None if named else fingerprint(self.init),
        }


@dataclass(frozen=True)
class Limits:
    """When to stop. A tolerance of 0 switches its test off."""

    tol: float = setting(
        1e-4,
        kind="float",
        text="Stop when relative_error <= tol. 0 switches this test off, as those of gtol and ftol.",
        brief="Stop at this relative error.",
    )
    gtol: float = setting(
        1e-7,
        kind="float",
        text="Stop when the norm of the gradient is at most gtol (2 ||M|| + alpha) ||U||.",
        brief="Stop at this scaled gradient.",
    )
    ftol: float = setting(
        1e-8,
        kind="float",
        text="Stop when the objective changed by at most ftol times itself over the last 20 iterations.",
        brief="Stop when the objective changes less than this.",
    )
    max_iter: int = setting(
        1000,
        kind="int",
        text="Largest number of steps.",
        brief="Largest number of steps.",
    )
    max_time: float | None = setting(
        None,
        kind="float",
        text="Seconds the steps may take. Compiling is not counted.",
        brief="Seconds the steps may take.",
    )

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            name: check_number(name, getattr(self, name)) for name in ("tol", "gtol", "ftol")
        }
        checked["max_iter"] = check_integer("max_iter", self.max_iter, 1)
        if self.max_time is not None:
            checked["max_time"] = check_number("max_time", self.max_time, low_included=False)
        _normalise(self, **checked)


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """How a fit is made. The solver is an instance, and the checkpoint one that can be written, or None."""

    solver: Any = setting(
        "lbfgs",
        kind=f"{_one_of(SOLVERS)} or Solver",
        text="A name, or an instance such as ``AAPB(step_size=10)``.",
        brief=f"{_words(SOLVERS)}.",
        typed=str,
    )
    backend: str = setting(
        "auto",
        kind=_one_of(BACKENDS),
        text='How the matrix is held. "auto" keeps it as it came. "torch" needs the extra ``symrelu[torch]``.',
        brief=f"How the matrix is held: {_words(BACKENDS)}.",
    )
    callback: Any | None = setting(
        None,
        kind="callable",
        text="Called after each step with a :class:`~symrelu.fit.loop.FitProgress`; True stops the fit.",
    )
    checkpoint: Any | None = setting(
        None,
        kind="str, path-like or Checkpoint",
        text="A file to which the state of the fit is written every minute (see :class:`~symrelu.Checkpoint`) "
        "and at the end. If it exists, the fit goes on from it.",
        brief="Write the state of the fit here every minute; if the file is there, go on from it.",
        typed=Path | None,
    )
    verbose: int = setting(
        0,
        kind="int",
        text="1 tells the logger ``symrelu`` of the fit once a second, 2 at each step. Where logging is not "
        "set up the lines go to stderr.",
    )

    def __post_init__(self) -> None:
        if check_choice("backend", self.backend, BACKENDS) != "auto":
            operator_class(self.backend)  # which names what is missing for it
        check_callback(self.callback)
        _normalise(
            self,
            solver=get_solver(self.solver),
            checkpoint=as_checkpoint(self.checkpoint),
            verbose=check_verbose(self.verbose),
        )
        if self.checkpoint is not None:
            check_solver(self.solver)


def _normalise(value: Any, **checked: Any) -> None:
    """Put what was checked in place of what was given, while a frozen value is being made."""
    for name, content in checked.items():
        object.__setattr__(value, name, content)


VALUES = (Model, Start, Limits, Run)
TABLE = describe(VALUES)


def documented(thing: Documented, table: Mapping[str, Description] = TABLE) -> Documented:
    """Complete the docstring of a function or class by what the table says of its parameters.

    A parameter that the docstring leaves out gets its entry from the table, with the default of the signature.
    So does one whose kind is given as ``setting``, and the sentences below it go on the paragraph of the table.
    All others stay as they are.

    Parameters
    ----------
    thing : function or class
    table : mapping of str to Description

    Returns
    -------
    thing : function or class
        The same one.
    """
    if sys.flags.optimize > 1:  # there are no docstrings
        return thing
    doc, where = thing.__doc__ or "", f"The docstring of {thing.__qualname__}"
    parameters, entries = _parameters(thing), read_parameters(doc)
    for name in entries.keys() - parameters.keys():
        raise TypeError(f"{where} describes {name!r}, which is no parameter.")
    # Estimators call the rank n_components.
    shape = "(n, n_components)" if "n_components" in parameters else "(n, rank)"
    complete = []
    for name, parameter in parameters.items():
        entry = entries.get(name, Entry((name,), "setting", ()))
        if entry.kind == "setting":
            if name not in table:
                raise TypeError(f"{where} leaves {name!r} to symrelu.fit.settings, which does not describe it.")
            kind = table[name].kind.replace("(n, rank)", shape) + _default(parameter.default)
            entry = Entry.of(name, kind, " ".join((table[name].text, *entry.lines)))
        complete.append(entry)
    thing.__doc__ = with_parameters(doc, complete)
    return thing


def _parameters(thing: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters by the names that a docstring gives them."""
    parameters = inspect.signature(thing).parameters.values()
    return {("**" if p.kind is p.VAR_KEYWORD else "") + p.name: p for p in parameters}


def _default(value: Any) -> str:
    """Return what numpydoc adds to a type: the default, if there is one."""
    if value is inspect.Parameter.empty:
        return ""
    if value is None:
        return ", optional"
    if isinstance(value, str):
        return f', default="{value}"'
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        return f", default={np.format_float_scientific(value, trim='-', exp_digits=1)}"
    return f", default={value!r}"


for _value in VALUES:
    documented(_value)
