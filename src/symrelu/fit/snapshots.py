"""The content of a checkpoint: the state of a fit as arrays and numbers, validated on load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.files import check_names
from symrelu.fitted.archive import HISTORY_ENTRIES, history_entries, history_of
from symrelu.fitted.history import History

# What a snapshot adds to the header of its file; STAGE is optional there, as "stage".
STAGE = ("level", "visited", "seed")
NUMBERS = ("state", "best", "evaluations", "seconds", "next_confirmation")


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
    stage: Mapping[str, int] | None = None  # level, visited and seed, if the fit has other stages as well

    def entries(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the numbers of a snapshot, for the header of a file, and its arrays, by name.

        Returns
        -------
        numbers : dict of str to JSON value
        arrays : dict of str to ndarray
        """
        state, numbers = _arrays_and_numbers(self.state)
        best, best_numbers = _arrays_and_numbers(self.best)
        arrays = {f"state_{name}": array for name, array in state.items()}
        arrays |= {f"best_{name}": array for name, array in best.items()}
        arrays |= history_entries(self.history)
        arrays |= {"signature": self.signature, "recent_objectives": self.recent_objectives}
        counts = {name: getattr(self, name) for name in ("evaluations", "seconds", "next_confirmation")}
        stage = {} if self.stage is None else {"stage": dict(self.stage)}
        return {"state": numbers, "best": best_numbers, **counts, **stage}, arrays

    @classmethod
    def of_entries(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Snapshot:
        """Return the snapshot in a file, or raise an error that the caller completes.

        Parameters
        ----------
        header : dict
            With the ``NUMBERS`` of the snapshot and the ``identity`` of its fit.
        arrays : dict of str to ndarray
            All arrays of the file, among them the header.

        Returns
        -------
        snapshot : Snapshot
        """
        states = {name for name in arrays if name.startswith(("state_", "best_"))}
        check_names(
            "it", arrays, {"checkpoint", "signature", "recent_objectives", *HISTORY_ENTRIES}, optional=states
        )
        recent = arrays["recent_objectives"]
        if recent.ndim != 1 or recent.dtype != np.float64 or not np.isfinite(recent).all():
            raise ValueError("its recent objectives are not a list of numbers")
        return cls(
            state=_fields_of("state", header, arrays),
            best=_fields_of("best", header, arrays),
            signature=_signature(header["identity"], arrays["signature"]),
            history=_history(arrays),
            recent_objectives=recent,
            evaluations=_count(header, "evaluations"),
            seconds=_seconds(header),
            next_confirmation=_count(header, "next_confirmation"),
            stage=_stage(header),
        )


def _arrays_and_numbers(values: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the numbers of a state."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in values.items() if name not in arrays}
    # json cannot write NumPy's scalars, whose item() is a Python number.
    return arrays, {name: getattr(value, "item", lambda v=value: v)() for name, value in numbers.items()}


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


def _stage(header: dict[str, Any]) -> dict[str, int] | None:
    stage = header.get("stage")
    if stage is None:
        return None
    if not isinstance(stage, dict):
        raise ValueError(f"its stage is {stage!r:.80}, not names and numbers")
    check_names("its stage", stage, set(STAGE))
    return {name: _count(stage, name) for name in STAGE}


def _count(header: dict[str, Any], name: str) -> int:
    value = header[name]
    if type(value) is not int or value < 0:  # not isinstance: JSON's true is an int
        raise ValueError(f"its {name} is {value!r}, not a count")
    return value
