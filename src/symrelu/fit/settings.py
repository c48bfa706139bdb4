"""The settings of a fit as frozen values: the model, the start, the limits, and how it is run.

Each value is validated when it is created. A field holds its default and its description, from which the
docstrings (by :func:`documented`) and the command line are built.
"""

# ruff: noqa: RUF009  (setting() returns a dataclass field, which ruff takes for a mutable default)

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from symrelu.fit.checkpoint import as_checkpoint, check_solver
from symrelu.fit.docstrings import Entry, default_of, parameters_of, read_parameters, with_parameters
from symrelu.fit.starts import STARTS, check_init
from symrelu.operators import BACKENDS, PRECISIONS, operator_class
from symrelu.problem import fingerprint
from symrelu.solvers import SOLVERS, get_solver
from symrelu.validation import (
    DIAGONAL_SETTINGS,
    SUPPORTS,
    check_callback,
    check_choice,
    check_integer,
    check_number,
    check_verbose,
    random_generator,
)

__all__ = ["TABLE", "VALUES", "Description", "Limits", "Model", "Run", "Start", "documented", "pick", "setting"]


Documented = TypeVar("Documented", bound=Callable[..., Any])


@dataclass(frozen=True)
class Description:
    """The description of a setting.

    Parameters
    ----------
    kind : str
        Its type, in the notation of numpydoc.
    text : str
        A paragraph for docstrings.
    brief : str, optional
        The help text on the command line, by default the first sentence of ``text``. A setting with an empty
        one is not an option there.
    typed : type, optional
        The type of the command-line option, if it differs from the annotation.
    flags : tuple of str
        The names of the command-line option, if they differ from the name of the field.
    """

    kind: str
    text: str
    brief: str | None = None
    typed: Any = None
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.brief is None:
            object.__setattr__(self, "brief", self.text.partition(". ")[0].rstrip(".") + ".")


def setting(default: Any = MISSING, **description: Any) -> Any:
    """Return a dataclass field with a :class:`Description` in its metadata."""
    return field(default=default, metadata={Description: Description(**description)})


def describe(values: Iterable[type]) -> dict[str, Description]:
    """Return the description of each field of these classes, by name."""
    return {entry.name: entry.metadata[Description] for value in values for entry in fields(value)}


def pick(value: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are fields of a class."""
    return {entry.name: settings[entry.name] for entry in fields(value) if entry.name in settings}


def _one_of(names: Iterable[str]) -> str:
    """Return names as a set of choices in the notation of numpydoc."""
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


def _words(names: Iterable[str]) -> str:
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}"


def check_rank(rank: Any, n: int, name: str = "rank") -> int:
    """Return the rank, validated for a matrix of size n."""
    return check_integer(name, rank, 1, n, note=" (the size of M)")


def check_zero_weight(zero_weight: Any) -> float:
    """Return the weight of the zeros, validated."""
    return check_number("zero_weight", zero_weight, 0, 1, low_included=False)


def check_auto(n_negative: str) -> str:
    """Return ``n_negative`` given as a string, which must be "auto"."""
    return check_choice("n_negative", n_negative, ("auto",), "an integer")


@dataclass(frozen=True, kw_only=True)
class Model:
    """The model that is fitted.

    The size of M also bounds the rank and the number of negative columns; :meth:`for_size` checks that.
    """

    rank: int = setting(kind="int", text="Number of columns of U, from 1 to n.", flags=("--rank", "-r"))
    n_negative: int | str = setting(
        0,
        kind='int or "auto"',
        text="Number of columns that enter X with a minus sign. 0 is the paper's model. "
        '"auto" counts the negative eigenvalues among the leading ones (by magnitude) of M with its zeros '
        "replaced by a negative number.",
        brief="Number of columns that enter X with a minus sign, or 'auto'.",
    )
    diagonal: str = setting(
        "fit",
        kind=_one_of(DIAGONAL_SETTINGS),
        text='"ignore" treats the diagonal of M as unobserved: no U U^T can fit the zero diagonal of a graph. '
        '"auto" ignores it if all its observed entries are zero, and fits it otherwise.',
        brief="'fit', 'ignore' to treat the diagonal as unobserved, or 'auto' to ignore it if it is zero.",
    )
    zero_weight: float = setting(1.0, kind="float", text="Weight in (0, 1] of the zeros of M.")
    support: str = setting(
        "equal",
        kind=_one_of(SUPPORTS),
        text='"at_least" requires only X >= M where M > 0, instead of X = M: enough if only the neighbours '
        "matter and not their similarities. Entries with X > M then count in no error.",
        brief="'equal', or 'at_least' if X >= M suffices where M > 0.",
    )
    alpha: float = setting(0.0, kind="float", text="Weight of the Tikhonov penalty on U (the paper's lambda).")

    def __post_init__(self) -> None:
        # The upper bounds depend on the size of M: see for_size.
        check_integer("rank", self.rank, 1, note=" (and at most the size of M)")
        if isinstance(self.n_negative, str):
            check_auto(self.n_negative)
        else:
            check_integer("n_negative", self.n_negative, 0, note=" or 'auto'")
        check_choice("diagonal", self.diagonal, DIAGONAL_SETTINGS)
        check_choice("support", self.support, SUPPORTS)
        _normalise(
            self, zero_weight=check_zero_weight(self.zero_weight), alpha=check_number("alpha", self.alpha)
        )

    def for_size(self, n: int) -> Model:
        """Return the model for an n x n matrix, or raise if the rank is too large or no column is positive."""
        rank, n_negative = check_rank(self.rank, n), self.n_negative
        if not isinstance(n_negative, str):
            note = " (rank - 1, since at least one column must be positive) or 'auto'"
            n_negative = check_integer("n_negative", n_negative, 0, rank - 1, note)
        return replace(self, rank=rank, n_negative=n_negative)


@dataclass(frozen=True, eq=False, kw_only=True)  # init may be an array, which has no single truth value
class Start:
    """The start of a fit."""

    init: Any = setting(
        "imputed",
        kind=f"{_one_of(sorted(STARTS))} or array of shape (n, rank)",
        text='Starting factor. "imputed" takes the leading eigenvectors of M with its zeros replaced by a '
        'negative number, "spectral" those of M itself (both by a dense eigendecomposition if the rank is '
        'n / 2 or more); "random" is normally distributed and scaled to M, "uniform" draws from [0, 1) '
        'and is scaled likewise. "multilevel", for large sparse graphs, fits smaller matrices first, in which '
        'similar items are merged; if M is small already, it is the same as "imputed".',
        brief=f"Starting factor: {_words(sorted(STARTS))}.",
        typed=str,
    )
    random_state: Any = setting(
        None,
        kind="None, int, Generator or RandomState",
        text="Seed of the start. The same seed gives the same factor.",
        typed=int | None,
        flags=("--seed",),
    )

    def __post_init__(self) -> None:
        if isinstance(self.init, str):
            check_choice("init", self.init, STARTS)
        random_generator(self.random_state)

    def for_factor(self, n: int, rank: int, dtype: Any, largest: float) -> Start:
        """Return the start, validated for the shape and dtype of the factor and the largest entry of M."""
        return replace(self, init=check_init(self.init, n, rank, dtype, largest))

    @property
    def multilevel(self) -> bool:
        """Whether smaller matrices are fitted first."""
        return isinstance(self.init, str) and self.init == "multilevel"

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint stores to recognise the start. Valid once :meth:`for_factor` was applied."""
        # A generator changes with use, and so cannot identify a start.
        seed, named = self.random_state, isinstance(self.init, str)
        seeded = isinstance(seed, (int, np.integer))
        return {
            "random_state": int(seed) if seeded else (None if seed is None else "a generator"),
            "init": self.init if named else "an array",
            "starting factor": None if named else fingerprint(self.init),
        }


@dataclass(frozen=True)
class Limits:
    """The stopping criteria. A tolerance of 0 disables its test."""

    tol: float = setting(
        1e-4,
        kind="float",
        text="Stop when relative_error <= tol. 0 disables this test; the same holds for gtol and ftol.",
        brief="Stop when the relative error is at most this.",
    )
    gtol: float = setting(
        1e-7,
        kind="float",
        text="Stop when the norm of the gradient is at most gtol (2 ||M|| + alpha) ||U||.",
        brief="Stop when the scaled norm of the gradient is at most this.",
    )
    ftol: float = setting(
        1e-8,
        kind="float",
        text="Stop when the relative change of the objective over the last 20 iterations is at most ftol.",
        brief="Stop when the relative change of the objective is at most this.",
    )
    max_iter: int = setting(1000, kind="int", text="Maximum number of steps.")
    max_time: float | None = setting(
        None,
        kind="float",
        text="Time limit for the steps in seconds. Compilation is not counted.",
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
    """How a fit is run. Names are resolved: ``solver`` is an instance, ``checkpoint`` a Checkpoint or None."""

    solver: Any = setting(
        "lbfgs",
        kind=f"{_one_of(SOLVERS)} or Solver",
        text="Name of a solver, or an instance such as ``AAPB(step_size=10)``.",
        brief=f"Solver: {_words(SOLVERS)}.",
        typed=str,
    )
    backend: str = setting(
        "auto",
        kind=_one_of(BACKENDS),
        text='How the matrix is stored. "auto" keeps a dense matrix dense and a sparse one sparse; for a large '
        'sparse one and a model with negative columns it is "active", which lists the zeros at which X can be '
        'positive and visits only these; a tensor on a GPU is fitted there, by "cuda". "torch" requires the '
        'extra ``symrelu[torch]``, "cuda" an NVIDIA GPU and ``symrelu[cuda]``, "dask" a cluster (see '
        "``client``) and ``symrelu[dask]``.",
        brief=f"How the matrix is stored: {_words(BACKENDS)}.",
    )
    precision: str = setting(
        "auto",
        kind=_one_of(PRECISIONS),
        text='Of float32 factors with backend "cuda", where many zeros of M have X > 0. "high" computes X to '
        'about 1e-6, "fast" only to about 2e-4, in a third of the time: the fit then stops at a relative error '
        'of 1e-3, and the error of its factor is computed exactly. "auto" is fast far from the end, and exact '
        "for the rest of the fit.",
        brief=f"Precision of passes on a GPU: {_words(PRECISIONS)}.",
    )
    client: Any | None = setting(
        None,
        kind="distributed.Client or str",
        text='Cluster to fit on (backend "dask"): a client, or the address of a scheduler. By default the '
        "current client. Estimators take an address only, because a client cannot be cloned.",
        brief="Fit on the cluster with this Dask scheduler (backend 'dask'), such as tcp://host:8786.",
        typed=str | None,
        flags=("--scheduler",),
    )
    callback: Any | None = setting(
        None,
        kind="callable",
        text="Called after each step with a :class:`~symrelu.fit.loop.FitProgress`. The fit stops if the "
        "callback returns True.",
        brief="",
    )
    checkpoint: Any | None = setting(
        None,
        kind="str, path-like or Checkpoint",
        text="File to which the state of the fit is written every minute (see :class:`~symrelu.Checkpoint`) "
        "and at the end. If it exists, the fit resumes from it.",
        brief="Write the state of the fit to this file every minute; resume from it if it exists.",
        typed=Path | None,
    )
    verbose: int = setting(
        0,
        kind="int",
        text="1 logs the progress to the logger ``symrelu`` once per second, 2 at each step. If logging is not "
        "configured, the lines go to stderr.",
        brief="",
    )

    def __post_init__(self) -> None:
        if check_choice("backend", self.backend, BACKENDS) != "auto":
            # Raises an ImportError that names the missing package, or says what this machine lacks.
            operator_class(self.backend).check_available()
        check_choice("precision", self.precision, PRECISIONS)
        if self.client is not None:
            if self.backend not in ("auto", "dask"):
                raise ValueError(
                    f"client= is for backend='dask', got backend={self.backend!r}. Leave one of them out."
                )
            operator_class("dask").check_client(self.client)
            _normalise(self, backend="dask")
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
    """Replace fields of a frozen dataclass by their validated values, in its ``__post_init__``."""
    for name, content in checked.items():
        object.__setattr__(value, name, content)


def values_of(keywords: Mapping[str, Any]) -> tuple[Model, Start, Limits, Run]:
    """Return the settings of a fit from its keywords; those that are no settings are left out."""
    model, start = Model(**pick(Model, keywords)), Start(**pick(Start, keywords))
    return model, start, Limits(**pick(Limits, keywords)), Run(**pick(Run, keywords))


VALUES = (Model, Start, Limits, Run)
TABLE = describe(VALUES)


def documented(thing: Documented, table: Mapping[str, Description] = TABLE) -> Documented:
    """Complete the docstring of a function or class with the descriptions of its parameters in a table.

    A parameter that the docstring leaves out gets its entry from the table, with the default of the signature.
    So does one whose type is given as ``setting``; the text below it is appended to that of the table. All
    other entries stay as they are.

    Parameters
    ----------
    thing : function or class
    table : mapping of str to Description

    Returns
    -------
    thing : function or class
        The argument, with a new docstring.
    """
    if sys.flags.optimize > 1:  # python -OO strips docstrings
        return thing
    doc, where = thing.__doc__ or "", f"The docstring of {thing.__qualname__}"
    parameters, entries = parameters_of(thing), read_parameters(doc)
    # A misspelt entry fails at import, rather than unnoticed in the documentation.
    for name in entries.keys() - parameters.keys():
        raise TypeError(f"{where} describes {name!r}, which is not a parameter.")
    # Estimators call the rank n_components, as scikit-learn does.
    shape = "(n, n_components)" if "n_components" in parameters else "(n, rank)"
    complete = []
    for name, parameter in parameters.items():
        entry = entries.get(name, Entry((name,), "setting", ()))
        if entry.kind == "setting":
            if name not in table:
                raise TypeError(f"{where} leaves {name!r} to symrelu.fit.settings, which does not describe it.")
            kind = table[name].kind.replace("(n, rank)", shape) + default_of(parameter)
            entry = Entry.of(name, kind, " ".join((table[name].text, *entry.lines)))
        complete.append(entry)
    thing.__doc__ = with_parameters(doc, complete)
    return thing


# Only now, since the docstrings of these classes are completed from the table built from them.
for _value in VALUES:
    documented(_value)
