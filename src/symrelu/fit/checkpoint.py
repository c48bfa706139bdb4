"""Checkpoints: the whole state of a fit in one file, written atomically and validated on load.

The file is an npz archive of plain arrays and one line of JSON. Nothing in it is unpickled or executed, and
everything is checked against the fit that resumes from it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import symrelu
from symrelu.files import check_names, check_output, read_header, read_npz, without_objects, write_atomically
from symrelu.fitted.archive import HISTORY_ENTRIES, history_entries, history_of
from symrelu.fitted.history import History
from symrelu.kernels.one_time_warnings import warn_or_log
from symrelu.solvers.base import Solver, State
from symrelu.validation import check_number

FORMAT = "symrelu.Checkpoint"
FORMAT_VERSION = 1
# Parts of an identity that are hashes: an error message names them but cannot show them.
HASHED = ("matrix", "mask", "starting factor")

# The exact keys of the header: a file with other keys is rejected.
_HEADER = {
    "format",
    "version",
    "symrelu",
    "identity",
    "state",
    "best",
    "evaluations",
    "seconds",
    "next_confirmation",
}


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written; the fit continues, and the previous checkpoint is kept.

    If warnings are errors (``python -W error``), the message is logged as an error of the logger ``symrelu``
    instead, so that a failed checkpoint never ends the fit.
    """


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a fit saves its state, so that it can resume after it was killed.

    Parameters
    ----------
    path : str or path-like
        A file. If it exists, the fit resumes from it, or raises an error if the file belongs to another matrix,
        to other settings or to another minor version of symrelu. Limits and tolerances may differ.
    every : float, default=60.0
        Seconds between two writes; 0 writes after each step. The final state is always written.

    Examples
    --------
    >>> from symrelu import Checkpoint
    >>> Checkpoint("fit.ckpt", every=300)
    Checkpoint(path='fit.ckpt', every=300.0)
    """

    path: str | PathLike[str]
    every: float = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, PathLike)):
            raise TypeError(f"Checkpoint(path=...) must be the name of a file, got {type(self.path).__name__}.")
        object.__setattr__(self, "every", check_number("Checkpoint(every=...)", self.every))


def as_checkpoint(checkpoint: Any) -> Checkpoint | None:
    """Convert what a user passed to a :class:`Checkpoint` whose file can be written, or to None."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, Checkpoint):
        if not isinstance(checkpoint, (str, PathLike)):
            raise TypeError(
                "checkpoint must be the name of a file, a symrelu.Checkpoint or None, "
                f"got {type(checkpoint).__name__}."
            )
        checkpoint = Checkpoint(checkpoint)
    # Resolve links and the working directory now: either may change before the first write.
    return Checkpoint(check_output(checkpoint.path), checkpoint.every)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything a loop needs to resume, on the host."""

    state: Mapping[str, Any]  # the fields of the solver's state
    best: Mapping[str, Any]  # the fields that the states of all solvers have
    signature: np.ndarray
    history: History
    recent_objectives: np.ndarray
    evaluations: int
    seconds: float
    next_confirmation: int


class CheckpointFile:
    """The checkpoint file of one fit.

    Parameters
    ----------
    checkpoint : Checkpoint
    identity : dict
        What distinguishes this fit from others, as JSON values. A file with a different identity is rejected.
    """

    def __init__(self, checkpoint: Checkpoint, identity: dict[str, Any]) -> None:
        self.path = Path(checkpoint.path)
        # Unique to this path, so that read() deletes no temporary file of another checkpoint or output.
        name = hashlib.sha256(os.fsencode(self.path.name)).hexdigest()
        self.prefix = f".symrelu-checkpoint-{name[:16]}"
        self.every = checkpoint.every
        self.identity = identity
        self.written = time.monotonic()
        self.failed = False  # whether the user was warned already

    def read(self) -> Snapshot | None:
        """Return the saved snapshot, or None if there is no file; raise if the file is not of this fit."""
        unfinished = f"{self.prefix}-{'[0-9a-f]' * 16}.part"  # see write_atomically
        for left_by_a_killed_fit in self.path.parent.glob(unfinished):
            left_by_a_killed_fit.unlink(missing_ok=True)
        if not self.path.exists():
            return None
        with self.explaining_errors():
            arrays = read_npz(self.path, "checkpoint")
            header = _checked_header(arrays)
            _check_identity(header["identity"], self.identity)
            return _snapshot(header, arrays)

    @contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """Turn any error in the content into a ValueError that names the file and says what to do."""
        try:
            yield
        # Anything that damaged or foreign content can raise while it is interpreted.
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            advice = (
                "Delete the file to start again, or pass another file."
                if _is_checkpoint(self.path)
                else "Pass another file. If this one was a checkpoint, delete it to start again."
            )
            raise ValueError(
                f"The fit cannot resume from the checkpoint {self.path}: {reason}. {advice}"
            ) from error

    def is_due(self) -> bool:
        """Whether enough time has passed since the last write."""
        return time.monotonic() - self.written >= self.every

    def write(self, snapshot: Snapshot) -> None:
        """Replace the previous snapshot. If that fails, warn once and keep the previous one."""
        self.written = time.monotonic()  # before the attempt: a full disk is not tried again at every step
        state, numbers = _arrays_and_numbers(snapshot.state)
        best, best_numbers = _arrays_and_numbers(snapshot.best)
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "symrelu": symrelu.__version__,
            "identity": self.identity,
            "state": numbers,
            "best": best_numbers,
            "evaluations": snapshot.evaluations,
            "seconds": snapshot.seconds,
            "next_confirmation": snapshot.next_confirmation,
        }
        arrays: dict[str, Any] = {f"state_{name}": array for name, array in state.items()}
        arrays |= {f"best_{name}": array for name, array in best.items()}
        arrays |= history_entries(snapshot.history)
        arrays |= {"signature": snapshot.signature, "recent_objectives": snapshot.recent_objectives}
        try:
            with write_atomically(self.path, self.prefix) as file:
                np.savez(file, **without_objects(checkpoint=np.array(json.dumps(header)), **arrays))
        except Exception as error:  # no failure to write, of any kind, may cost hours of fitting
            if not self.failed:
                self.failed = True
                reason = str(error).rstrip(".") or type(error).__name__
                warn_or_log(  # under python -W error, a warning would end the fit
                    f"The checkpoint {self.path} could not be written: {reason}. The fit continues; the "
                    "previous checkpoint is kept.",
                    CheckpointWarning,
                    level=logging.ERROR,
                    stacklevel=2,
                )


def check_solver(solver: Solver) -> None:
    """Raise if a checkpoint could not resume a fit by this solver.

    Parameters
    ----------
    solver : Solver

    Returns
    -------
    None
    """
    if " object at 0x" in repr(solver):
        raise ValueError(
            f"A checkpoint needs a solver whose repr shows its settings, got {solver!r}. Make it a dataclass."
        )
    state_class(solver)


def state_class(solver: Solver) -> type[State]:
    """Return the state class that a solver declares, or raise if it declares none.

    Parameters
    ----------
    solver : Solver

    Returns
    -------
    state_class : type
    """
    declared = getattr(solver, "State", None)
    if not (isinstance(declared, type) and issubclass(declared, State)):
        raise TypeError(
            f"A checkpoint needs a solver that declares the class of its states, but {type(solver).__name__} "
            "does not: write State = <that class> next to its settings, or fit without a checkpoint."
        )
    return declared


def kind_of(value: Any) -> str:
    """Return which kind of number a value is, or an empty string.

    Parameters
    ----------
    value : object

    Returns
    -------
    kind : {"bool", "int", "float", ""}
    """
    if isinstance(value, (bool, np.bool_)):  # before int, since bool is a subclass of it
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    return "float" if isinstance(value, (float, np.floating)) else ""


def _arrays_and_numbers(values: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the numbers of a state."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in values.items() if name not in arrays}
    # json cannot write NumPy's scalars, whose item() is a Python number.
    return arrays, {name: getattr(value, "item", lambda v=value: v)() for name, value in numbers.items()}


def saved_rank(checkpoint: Checkpoint | None) -> int | None:
    """Return the rank of the fit that wrote a checkpoint, or None if the file does not exist."""
    if checkpoint is None or not Path(checkpoint.path).exists():
        return None
    with CheckpointFile(checkpoint, {}).explaining_errors():
        # The full identity is checked later, when the fit that has this rank reads the file.
        rank = _checked_header(read_npz(checkpoint.path, "checkpoint"))["identity"]["rank"]
        if type(rank) is not int:
            raise ValueError(f"its rank is {rank!r}")
        return rank


def _checked_header(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    header = read_header(arrays, "checkpoint") if "checkpoint" in arrays else {}
    if header.get("format") != FORMAT:
        raise ValueError("it is not a checkpoint")
    _check_version(header.get("symrelu", "0.1"))  # 0.1 did not store its version
    if header.get("version") != FORMAT_VERSION:
        raise ValueError(f"its version is {header.get('version')!r}, this release reads {FORMAT_VERSION}")
    check_names("its header", header, _HEADER)
    if not isinstance(header["identity"], dict):
        raise ValueError("it does not say which fit wrote it")
    return header


def _is_checkpoint(path: Path) -> bool:
    """Whether a file claims to be a symrelu checkpoint, of any version and fit."""
    try:
        return read_header(read_npz(path, "checkpoint"), "checkpoint").get("format") == FORMAT
    except Exception:  # a damaged file can fail to load in any way
        return False


def _check_version(written_by: Any) -> None:
    """Raise unless the same minor version wrote a checkpoint: another one may iterate differently."""
    if not isinstance(written_by, str) or _minor(written_by) != _minor(symrelu.__version__):
        raise ValueError(
            f"it was written by symrelu {written_by}, and this is symrelu {symrelu.__version__}: a fit "
            "can resume only with the minor version that started it"
        )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _check_identity(saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        if name not in saved or saved[name] != value:
            if name in HASHED:
                raise ValueError(f"it was written for another {name}")
            raise ValueError(f"it was written with {name}={saved.get(name)!r}, this fit has {name}={value!r}")


def _snapshot(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Snapshot:
    states = {name for name in arrays if name.startswith(("state_", "best_"))}
    check_names(
        "it", arrays, {"checkpoint", "signature", "recent_objectives", *HISTORY_ENTRIES}, optional=states
    )
    recent = arrays["recent_objectives"]
    if recent.ndim != 1 or recent.dtype != np.float64 or not np.isfinite(recent).all():
        raise ValueError("its recent objectives are not a list of numbers")
    return Snapshot(
        state=_fields_of("state", header, arrays),
        best=_fields_of("best", header, arrays),
        signature=_signature(header["identity"], arrays["signature"]),
        history=_history(arrays),
        recent_objectives=recent,
        evaluations=_count(header, "evaluations"),
        seconds=_seconds(header),
        next_confirmation=_count(header, "next_confirmation"),
    )


def _fields_of(owner: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Collect the fields of a state: arrays are entries of the file, numbers are in its header."""
    numbers, prefix = header[owner], f"{owner}_"
    if not isinstance(numbers, dict):
        raise ValueError(f"its {owner} is {numbers!r}, not names and numbers")
    found = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return found | numbers


def _signature(identity: dict[str, Any], signature: np.ndarray) -> np.ndarray:
    if signature.shape != (identity["rank"],) or not np.isin(signature, (-1, 1)).all():
        raise ValueError("its signature is not a sign for each column")
    # "auto" was resolved by the fit that wrote the file, so any number is valid.
    if identity["n_negative"] not in ("auto", int(np.sum(signature < 0))):
        raise ValueError("its signature has a different number of negative columns")
    return signature


def _history(arrays: dict[str, np.ndarray]) -> History:
    history = history_of(arrays)
    if len(history) == 0 or not np.array_equal(history.iteration, np.arange(len(history))):
        raise ValueError("its history does not have a row for each step")
    return history


def _seconds(header: dict[str, Any]) -> float:
    seconds = header["seconds"]
    if type(seconds) is not float or not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"its seconds are {seconds!r}")
    return seconds


def _count(header: dict[str, Any], name: str) -> int:
    value = header[name]
    if type(value) is not int or value < 0:  # not isinstance: JSON's true is an int
        raise ValueError(f"its {name} is {value!r}, not a count")
    return value
