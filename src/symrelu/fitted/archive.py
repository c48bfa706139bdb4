"""The npz file of a Solution: arrays and JSON, no pickle. Everything is validated on load."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from symrelu.files import check_names, read_header, read_npz
from symrelu.fitted.history import COUNTS, History, Status
from symrelu.fitted.logistic import Logistic
from symrelu.fitted.models import FittedModel, Linear, SymmetricReLU, TwoFactor
from symrelu.validation import DIAGONALS, SUPPORTS, check_choice, check_integer, check_number

if TYPE_CHECKING:
    from symrelu.fitted.solution import Solution

FORMAT = "symrelu.Solution"
FORMAT_VERSION = 1

# The history is stored one entry per column: entry -> column.
HISTORY_ENTRIES = {f"history_{field.name}": field.name for field in fields(History)}


def arrays_of(solution: Solution) -> dict[str, np.ndarray]:
    """Return the entries of the file of a solution, by name.

    Parameters
    ----------
    solution : Solution

    Returns
    -------
    arrays : dict of str to ndarray
    """
    numbers = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "alpha": solution.alpha,
        "status": solution.status.name,
        "n_iter": solution.n_iter,
        "n_evaluations": solution.n_evaluations,
        "relative_error": solution.relative_error,
        "norm": solution.norm,
        "objective": solution.objective,
        "solver": solution.solver,
        "diagonal": solution.diagonal,
        "zero_weight": solution.zero_weight,
        "support": solution.support,
        "relu": solution.model.relu,
        "level": solution.level,
    }
    numbers = {name: value for name, value in numbers.items() if _ADDED_LATER.get(name) != value}
    arrays = {"solution": np.array(json.dumps(numbers)), "U": solution.U, "signature": solution.signature}
    arrays |= history_entries(solution.history)
    return arrays | ({"V": solution.model.V} if hasattr(solution.model, "V") else {})


def read_solution(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the fields of the Solution in a file, or raise a ValueError that says why it is not one.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    fields : dict of str to object
    """
    arrays = read_npz(path, "Solution")
    if "solution" not in arrays:
        raise ValueError(f"{path} is not a saved Solution: it has no entry 'solution'.")
    try:
        return solution_fields(arrays)
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{path} is not a Solution this version can read: {reason}.") from error


def solution_fields(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the fields of the Solution in an archive, or raise an error that the caller completes.

    Parameters
    ----------
    arrays : dict of str to ndarray
        The entries that :func:`arrays_of` returned, and no others.

    Returns
    -------
    fields : dict of str to object
    """
    numbers = read_header(arrays, "solution")
    if numbers.pop("format", None) != FORMAT:
        raise ValueError("its format is not " + FORMAT)
    version = numbers.pop("version", None)
    if version != FORMAT_VERSION:
        raise ValueError(f"its version is {version}, this release reads {FORMAT_VERSION}")
    numbers = _ADDED_LATER | numbers
    check_names("its header", numbers, set(_CHECKS))
    check_names("it", arrays, {"solution", "U", "signature", *HISTORY_ENTRIES}, optional=("V",))
    header = {name: check(name, numbers[name]) for name, check in _CHECKS.items()}
    of_model = {name: header.pop(name) for name in ("alpha", "zero_weight", "support", "relu")}
    model = _model(arrays, **of_model)
    # Models other than SymmetricReLU have none of these settings: the header must hold the neutral values.
    for name, value in of_model.items():
        if _model_settings(model)[name] != value:
            raise ValueError(f"{name} = {value} does not match the model {type(model).__name__}")
    if not np.array_equal(model.signature, arrays["signature"]):
        raise ValueError("signature must be all ones for a model with two factors")
    return {"model": model, "history": history_of(arrays), **header}


def _model(
    arrays: dict[str, np.ndarray], alpha: float, zero_weight: float, support: str, relu: bool
) -> FittedModel:
    U, signature = _factor("U", arrays["U"]), _floats("signature", arrays["signature"])
    if "V" in arrays:
        return (TwoFactor if relu else Logistic)(U, _factor("V", arrays["V"]))
    return SymmetricReLU(U, signature, alpha, zero_weight, support) if relu else Linear(U, signature)


def _model_settings(model: FittedModel) -> dict[str, Any]:
    """Return the settings of a model that are in the header of its file."""
    return {
        "alpha": getattr(model, "alpha", 0.0),
        "zero_weight": getattr(model, "zero_weight", 1.0),
        "support": getattr(model, "support", "equal"),
        "relu": model.relu,
    }


def _factor(name: str, array: np.ndarray) -> np.ndarray:
    array = _floats(name, array)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


def _floats(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of float32 or float64 in native byte order."""
    dtype = array.dtype.newbyteorder("=")  # a file from a machine with the other byte order is valid
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must hold float32 or float64, got {array.dtype}")
    return array.astype(dtype, copy=False)


def history_entries(history: History) -> dict[str, np.ndarray]:
    """Return a history as entries of an archive, which :func:`history_of` reads.

    Parameters
    ----------
    history : History

    Returns
    -------
    arrays : dict of str to ndarray
    """
    return {entry: getattr(history, name) for entry, name in HISTORY_ENTRIES.items()}


def history_of(arrays: Mapping[str, np.ndarray]) -> History:
    """Return the history in an archive, or raise an error that the caller completes.

    Parameters
    ----------
    arrays : dict of str to ndarray

    Returns
    -------
    history : History
    """
    columns = {name: arrays[entry] for entry, name in HISTORY_ENTRIES.items()}
    shapes = {column.shape for column in columns.values()}
    if len(shapes) != 1 or len(shapes.pop()) != 1:
        raise ValueError("its history is not a table: the columns must have the same length")
    return History(**{name: _column(name, column) for name, column in columns.items()})


def _column(name: str, column: np.ndarray) -> np.ndarray:
    return _counts(name, column) if name in COUNTS else _nonnegative_floats(name, column)


def _counts(name: str, column: np.ndarray) -> np.ndarray:
    """Return a column of counts as integers; 0.1.0 stored them as floats."""
    if column.dtype.kind not in "iuf":
        raise TypeError(f"history_{name} must hold integers, got {column.dtype}")
    # Up to 2^53 a float64 holds every integer exactly.
    whole = (column >= 0) & (column < 2**53) & (column == np.floor(column))
    if not whole.all():
        raise ValueError(f"history_{name} must hold whole numbers >= 0, got {column[~whole][0]}")
    return column.astype(np.int64)


def _nonnegative_floats(name: str, column: np.ndarray) -> np.ndarray:
    """Return a column of floats >= 0; those in the units of M may be infinite, and a gradient NaN."""
    column = _floats(f"history_{name}", column)
    finite = name in ("seconds", "relative_error")
    allowed = (column >= 0) & (np.isfinite(column) | (not finite))
    if name == "gradient_norm":  # inf - inf in the last step of a fit that diverged
        allowed |= np.isnan(column)
    if not allowed.all():
        wanted = "finite numbers >= 0" if finite else "numbers >= 0"
        raise ValueError(f"history_{name} must hold {wanted}, got {column[~allowed][0]}")
    return column


def _status(name: str, value: Any) -> Status:
    return Status[check_choice(name, value, tuple(Status.__members__))]


def _count(name: str, value: Any) -> int:
    return check_integer(name, value, 0, 2**63 - 1)  # the range of the int64 columns of a history


def _norm(name: str, value: Any) -> float:
    """Check a number in the units of M. It may be infinite, if it exceeded the range of floats."""
    return math.inf if value == math.inf else check_number(name, value)


def _objective(name: str, value: Any) -> float:
    """Return an objective, which rounding in ``canonicalize`` can make slightly negative."""
    return math.inf if value == math.inf else check_number(name, value, -math.inf)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r}")
    return value


def _diagonal(name: str, value: Any) -> str:
    return check_choice(name, value, DIAGONALS)


def _support(name: str, value: Any) -> str:
    return check_choice(name, value, SUPPORTS)


def _weight(name: str, value: Any) -> float:
    return check_number(name, value, 0, 1, low_included=False)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, got {value!r}")
    return value


# Field of the header -> function that validates it.
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "alpha": check_number,
    "status": _status,
    "n_iter": _count,
    "n_evaluations": _count,
    "relative_error": check_number,
    "norm": _norm,
    "objective": _objective,
    "solver": _text,
    "diagonal": _diagonal,
    "zero_weight": _weight,
    "support": _support,
    "relu": _flag,
    "level": _count,
}

# Fields that files of 0.1 do not have, with the value that holds for them. A field with this value is not
# written, so that 0.1 can read the file.
_ADDED_LATER = {"support": "equal", "level": 0}
