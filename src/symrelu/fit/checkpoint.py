"""Checkpoints: the whole state of a fit in one file, written atomically and validated on load.

The file is an npz archive of plain arrays and one line of JSON. Nothing in it is unpickled or executed, and
everything is checked against the fit that resumes from it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import symrelu
from symrelu.files import check_names, check_output, read_header, read_npz, without_objects, write_atomically
from symrelu.fit.snapshots import NUMBERS, Snapshot
from symrelu.kernels.one_time_warnings import warn_or_log
from symrelu.solvers.base import Solver, State
from symrelu.validation import check_number

FORMAT = "symrelu.Checkpoint"
FORMAT_VERSION = 1
# Parts of an identity that are hashes: an error message names them but cannot show them.
HASHED = ("matrix", "mask", "starting factor")

# The keys of the header: a file with other keys is rejected.
_HEADER = {"format", "version", "symrelu", "identity", *NUMBERS}
_OPTIONAL = {"origin", "stage"}

# Entry of another file of this library -> what the file is. The first one that is found decides.
_OTHER_FILES = {
    "model": "the model of an estimator",
    "neighbor_vectors": "a model of neighbors",
    "solution": "a saved Solution",
}

_FIRST_AFTER = 2.0  # seconds: a fit that is killed soon should not have to begin again


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
        Seconds between two writes; 0 writes after each step. The first one is made after two seconds, if this
        is more, and the final state is always written.
    origin : dict, optional
        Where the fit comes from, such as the path of its data, as JSON values. It is stored in the file, where
        :func:`symrelu.fit.checkpoint.read_origin` finds it, and does not decide whether a fit can resume. By
        default a fit that resumes keeps the one in the file.

    Examples
    --------
    >>> from symrelu import Checkpoint
    >>> Checkpoint("fit.ckpt", every=300)
    Checkpoint(path='fit.ckpt', every=300.0)
    """

    path: str | PathLike[str]
    every: float = 60.0
    origin: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, PathLike)):
            raise TypeError(f"Checkpoint(path=...) must be the name of a file, got {type(self.path).__name__}.")
        object.__setattr__(self, "every", check_number("Checkpoint(every=...)", self.every))
        if self.origin is not None:
            object.__setattr__(self, "origin", _as_json("Checkpoint(origin=...)", self.origin))


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
    return replace(checkpoint, path=check_output(checkpoint.path))


def read_origin(path: str | PathLike[str]) -> dict[str, Any] | None:
    """Return the ``origin`` of the :class:`Checkpoint` that wrote a file.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    origin : dict or None
        None if the fit had no origin. It comes from the file: validate what is used.
    """
    with CheckpointFile(Checkpoint(path), {}).explaining_errors():
        return _checked_header(read_npz(path, "checkpoint")).get("origin")


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
        self.origin = checkpoint.origin
        self.written = time.monotonic()
        self.first = True
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
            self.origin = header.get("origin") if self.origin is None else self.origin
            return Snapshot.of_entries(header, arrays)

    @contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """Turn any error in the content into a ValueError that names the file and says what to do."""
        try:
            yield
        # Anything that damaged or foreign content can raise while it is interpreted.
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise ValueError(
                f"The fit cannot resume from the checkpoint {self.path}: {reason}. {_advice(self.path, error)}"
            ) from error

    def is_due(self) -> bool:
        """Whether enough time has passed since the last write."""
        wait = min(self.every, _FIRST_AFTER) if self.first else self.every
        return time.monotonic() - self.written >= wait

    def write(self, snapshot: Snapshot) -> None:
        """Replace the previous snapshot. If that fails, warn once and keep the previous one."""
        self.written = time.monotonic()  # before the attempt: a full disk is not tried again at every step
        self.first = False
        numbers, arrays = snapshot.entries()
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "symrelu": symrelu.__version__,
            "identity": self.identity,
            **numbers,
        } | ({} if self.origin is None else {"origin": self.origin})
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


def _as_json(name: str, record: Any) -> dict[str, Any]:
    """Return a copy of a record as JSON would give it back, or raise if JSON cannot hold it."""
    if not isinstance(record, Mapping):
        raise TypeError(f"{name} must be a dict, got {type(record).__name__}.")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(record), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold JSON values only: {error}. Convert paths to str.") from error
    return copy


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


def saved_step(path: str | PathLike[str]) -> tuple[int, int] | None:
    """Return how far the fit in a checkpoint has come.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    step, level : int
        The level is that of a smaller matrix of a multilevel start, otherwise 0. None if there is no file.
    """
    if not Path(path).exists():
        return None
    with CheckpointFile(Checkpoint(path), {}).explaining_errors():
        arrays = read_npz(path, "checkpoint")
        snapshot = Snapshot.of_entries(_checked_header(arrays), arrays)
        return len(snapshot.history) - 1, (snapshot.stage or {}).get("level", 0)


def _checked_header(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    header = read_header(arrays, "checkpoint") if "checkpoint" in arrays else {}
    if header.get("format") != FORMAT:
        what = next((f", but {kind}" for entry, kind in _OTHER_FILES.items() if entry in arrays), "")
        raise _NoCheckpoint(f"it is not a checkpoint{what}", other=bool(what))
    _check_version(header.get("symrelu", "0.1"))  # 0.1 did not store its version
    if header.get("version") != FORMAT_VERSION:
        raise ValueError(f"its version is {header.get('version')!r}, this release reads {FORMAT_VERSION}")
    check_names("its header", header, _HEADER, _OPTIONAL)
    if not isinstance(header["identity"], dict):
        raise ValueError("it does not say which fit wrote it")
    if not isinstance(header.get("origin"), dict | None):
        raise ValueError(f"its origin must be a JSON object, got {header['origin']!r:.80}")
    return header


class _NoCheckpoint(ValueError):
    """A file that is no checkpoint, but perhaps another file of this library."""

    def __init__(self, message: str, *, other: bool) -> None:
        super().__init__(message)
        self.other = other


def _advice(path: Path, error: Exception) -> str:
    """Return what to do about a file that a fit cannot resume from. A file of another kind is not deleted."""
    if isinstance(error, _NoCheckpoint) and error.other:
        return "Pass another file."
    if _is_checkpoint(path):
        return "Delete the file to start again, or pass another file."
    return "Pass another file. If this one was a checkpoint, delete it to start again."


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


class DifferentFit(ValueError):
    """A checkpoint that another fit wrote.

    Attributes
    ----------
    part : str
        What differs: a setting, or one of ``HASHED``.
    """

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


def _check_identity(saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        if name not in saved or saved[name] != value:
            if name in HASHED:
                raise DifferentFit(name, f"it was written for another {name}")
            difference = f"it was written with {name}={saved.get(name)!r}, this fit has {name}={value!r}"
            raise DifferentFit(name, difference)
