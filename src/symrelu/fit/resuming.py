"""Conversion of a running fit to a snapshot in host arrays, and back to the operator's arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np

from symrelu.fit.checkpoint import CheckpointFile, kind_of, state_class
from symrelu.fit.loop import Fit, Observer
from symrelu.fit.observers import HistoryKeeper
from symrelu.fit.snapshots import STAGE, Snapshot
from symrelu.fit.stages import Stage
from symrelu.fit.stopping import LoopState
from symrelu.fitted.history import History
from symrelu.operators.base import Operator
from symrelu.solvers.base import Factors, Numbers, Solver, State


class CheckpointWriter(Observer):
    """Write a fit to its checkpoint at intervals, and at its end.

    Parameters
    ----------
    file : CheckpointFile
    history : HistoryKeeper
        Must be notified of each step before this observer.
    solver : Solver
    """

    def __init__(self, file: CheckpointFile, history: HistoryKeeper, solver: Solver) -> None:
        self.file = file
        self.history = history
        self.solver = solver

    def begin(self, fit: Fit) -> None:
        snapshot = self._snapshot(fit)
        check_state(type(fit.now.state), snapshot.state)
        try:  # fail now, not hours later when the file cannot be restored
            loop_state_of(snapshot, fit.op, self.solver)
        except ValueError as error:
            declared = state_class(self.solver).__name__
            raise TypeError(
                f"{type(self.solver).__name__} declares State = {declared}, which does not match its states: "
                f"{str(error).replace('its ', '', 1)}. Declare the class of its states, with their annotations."
            ) from error
        self.step(fit)

    def step(self, fit: Fit) -> bool:
        if fit.status is None and self.file.is_due():  # end() writes the final state
            self.file.write(self._snapshot(fit))
        return False

    def end(self, fit: Fit) -> None:
        # After an exception before the first step there is nothing worth saving.
        if fit.status is not None or fit.now.n_iter > 0:
            self.file.write(self._snapshot(fit))

    def _snapshot(self, fit: Fit) -> Snapshot:
        return snapshot_of(fit, self.history.history())


def snapshot_of(fit: Fit, history: History) -> Snapshot:
    """Return the current state of a fit as a snapshot.

    Parameters
    ----------
    fit : Fit
    history : History

    Returns
    -------
    snapshot : Snapshot
    """
    op, now = fit.op, fit.now
    return Snapshot(
        state={field.name: _on_host(op, getattr(now.state, field.name)) for field in fields(now.state)},
        # The best state is only returned, never continued from: the fields of a particular solver are not
        # needed.
        best={field.name: _on_host(op, getattr(now.best, field.name)) for field in fields(State)},
        signature=op.signs,
        history=history,
        recent_objectives=np.array(now.recent_objectives, np.float64),
        evaluations=now.evaluations,
        seconds=now.seconds,
        next_confirmation=now.next_confirmation,
        stage=_numbers_of(fit.stage),
    )


def _numbers_of(stage: Stage) -> dict[str, int] | None:
    """Return what a checkpoint holds of a stage: nothing, if it is the only one."""
    return {name: getattr(stage, name) for name in STAGE} if stage.level or stage.visited else None


def loop_state_of(snapshot: Snapshot, op: Operator, solver: Solver) -> LoopState:
    """Restore the loop state of a snapshot for a solver and an operator, or raise if they do not match.

    Parameters
    ----------
    snapshot : Snapshot
    op : Operator
    solver : Solver

    Returns
    -------
    loop_state : LoopState
    """
    return LoopState(
        state=restore_state(state_class(solver), snapshot.state, op),
        best=restore_state(State, snapshot.best, op),
        record=snapshot.history.records()[-1],
        recent_objectives=tuple(snapshot.recent_objectives.tolist()),
        evaluations=snapshot.evaluations,
        seconds=snapshot.seconds,
        next_confirmation=snapshot.next_confirmation,
    )


def restore_state(kind: type[State], values: Mapping[str, Any], op: Operator) -> State:
    """Return a state with the saved values as the operator's arrays, or raise if they are not valid for it.

    Parameters
    ----------
    kind : type
        Class of the state; its annotations give the types and shapes of the fields.
    values : dict
        The saved fields.
    op : Operator

    Returns
    -------
    state : State
    """
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:  # for example, a class defined in a function refers to local names
        raise ValueError(f"its annotations cannot be read ({error})") from error
    expected = {field.name: hints[field.name] for field in fields(kind)}
    if set(values) != set(expected):
        raise ValueError(f"its state has the fields {sorted(values)}, but this solver has {sorted(expected)}")
    for name, value in values.items():
        shape = getattr(expected[name], "__metadata__", (None,))[0]  # Annotated[Any, ("n", "rank")]
        if shape is not None:
            _check_array(name, value, shape, op.dtype, op)
        elif expected[name] is Numbers:
            _check_array(name, value, (None,), np.dtype(np.float64), op)
        elif expected[name] in (bool, int, float) and kind_of(value) != expected[name].__name__:
            raise ValueError(f"its {name} is {value!r}, not a number of type {expected[name].__name__}")
        elif name in ("objective", "latent_loss") and not math.isfinite(value):
            raise ValueError(f"its {name} is {value!r}, which is not finite")
    return kind(**{name: _restored(op, value, expected[name]) for name, value in values.items()})


def _check_array(name: str, value: Any, shape: tuple[Any, ...], dtype: np.dtype[Any], op: Operator) -> None:
    """Raise unless a saved value has the declared shape; an axis other than n and rank may have any length."""
    sizes = {"n": op.n, "rank": op.rank}
    wanted = tuple(sizes.get(side) for side in shape)
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(wanted):
        raise ValueError(f"its {name} is not an array of {dtype} with {len(wanted)} dimensions")
    if any(side not in (None, own) for side, own in zip(wanted, value.shape, strict=True)):
        needed = ", ".join("any" if side is None else str(side) for side in wanted)
        raise ValueError(f"its {name} has shape {value.shape}, and this fit needs ({needed})")
    if not np.isfinite(value).all():
        raise ValueError(f"its {name} has entries that are not finite")


def _on_host(op: Operator, value: Any) -> Any:
    """Convert an array of the operator to numpy; return anything else unchanged."""
    if isinstance(value, Numbers):
        return np.array(value, np.float64)
    if isinstance(value, tuple):  # of factors
        return np.array([op.to_numpy(A) for A in value], op.dtype).reshape(-1, op.n, op.rank)
    is_array = hasattr(value, "shape") and hasattr(value, "dtype") and not kind_of(value)
    return op.to_numpy(value) if is_array and not isinstance(value, np.ndarray) else value


def _restored(op: Operator, value: Any, declared: Any) -> Any:
    """Return a saved value as a state holds it: arrays of the operator, and a stack of them as a tuple."""
    if declared == Factors:
        return tuple(op.asarray(A) for A in value)
    if declared is Numbers:
        return Numbers(value.tolist())
    return _as_operator_array(op, value)


def _as_operator_array(op: Operator, value: Any) -> Any:
    """Convert a numpy array to the operator's kind; return anything else unchanged."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == op.dtype:
        return op.asarray(value)
    # asarray of the operator would convert integers and booleans to its own dtype.
    return op.xp.asarray(value, device=op.signature.device)


def check_state(kind: type[State], values: Mapping[str, Any]) -> None:
    """Raise unless a checkpoint can hold the fields of a state.

    Parameters
    ----------
    kind : type
        Class of the state.
    values : dict
        Its fields, on the host.

    Returns
    -------
    None
    """
    for name, value in values.items():
        if not (kind_of(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")):
            raise TypeError(
                f"A checkpoint can hold only arrays and numbers, but {name} of {kind.__name__} is a "
                f"{type(value).__name__}. Fit without a checkpoint, or store it in arrays."
            )
