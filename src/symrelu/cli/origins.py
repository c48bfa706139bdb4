"""What a checkpoint says about the command that wrote it, so that ``symrelu resume`` can repeat it.

A path is recorded twice: relative to the folder of the checkpoint, for folders that are moved or copied, and
absolute, for checkpoints that are moved alone.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from symrelu.cli.screen import note
from symrelu.cli.streams import STDOUT
from symrelu.files.block_folder import is_block_folder
from symrelu.fit.checkpoint import Checkpoint, read_origin, saved_step

_INPUTS = ("file", "mask")
_OUTPUTS = ("output", "plot")
_REPEATED = ("embed", "cluster")  # commands whose fits resume if they are given again
_OF_A_CALL = ("json", "quiet", "verbose", "dry_run")  # decided by each call
_PLAIN = (str, bool, int, float, type(None))


def origin_of(command: str, arguments: Mapping[str, Any], checkpoint: Path) -> dict[str, Any]:
    """Return the record of a command for its checkpoint.

    Parameters
    ----------
    command : str
    arguments : mapping
        All arguments of the command; the values are paths and what JSON can hold.
    checkpoint : Path

    Returns
    -------
    origin : dict
        JSON values.
    """
    folder = checkpoint.resolve().parent
    stored = {name: _stored(value, folder) for name, value in arguments.items() if name != "checkpoint"}
    return {"command": command, "arguments": stored}


def repeatable(command: str, checkpoint: Path | None) -> Checkpoint | None:
    """Return a checkpoint from which a fit resumes if the command is given again, and only then.

    Parameters
    ----------
    command : str
    checkpoint : Path or None

    Returns
    -------
    checkpoint : Checkpoint or None
    """
    return None if checkpoint is None else Checkpoint(checkpoint, origin=origin_of(command, {}, checkpoint))


def note_resuming(data: Path | str, checkpoint: str | PathLike[str] | None) -> int | None:
    """Print that a fit resumes from a checkpoint, if there is such a file, and return its step.

    Parameters
    ----------
    data : Path or str
        The name of the data.
    checkpoint : path-like or None

    Returns
    -------
    step : int or None
        The step of the matrix itself: 0 if a multilevel start has not come to it. None for a new fit.
    """
    saved = None if checkpoint is None else saved_step(checkpoint)
    if saved is None:
        return None
    step, level = saved
    where = f"step {step} of level {level} of its start" if level else f"step {step}"
    note(f"resuming the fit of {data} from {checkpoint}, at {where}")
    return 0 if level else step


def arguments_of(checkpoint: Path, command: Callable[..., Any], data: Path | None = None) -> dict[str, Any]:
    """Return the arguments to repeat the command that wrote a checkpoint.

    Parameters
    ----------
    checkpoint : Path
    command : function
        The command that is expected to have written it; its signature says which arguments there are.
    data : Path, optional
        The data, if they are not where the checkpoint says.

    Returns
    -------
    arguments : dict
        Inputs exist, and the folders of outputs too.
    """
    origin = read_origin(checkpoint)
    if origin is None:
        raise ValueError(
            f"The checkpoint {checkpoint} must name its data, as those of 'symrelu fit --checkpoint' do, but "
            "it was written from Python. Resume there, with decompose(..., checkpoint=...)."
        )
    stored = origin.get("arguments")
    if origin.get("command") in _REPEATED:
        raise ValueError(
            f"The checkpoint {checkpoint} must be that of 'symrelu {command.__name__}', but 'symrelu "
            f"{origin['command']}' wrote it. Give that command again, with the same --checkpoint: it resumes."
        )
    if origin.get("command") != command.__name__ or not isinstance(stored, dict):
        raise _damaged(checkpoint, f"it is not that of 'symrelu {command.__name__}'")
    parameters = inspect.signature(command).parameters
    known = {name: p for name, p in parameters.items() if name not in (*_OF_A_CALL, "checkpoint")}
    if set(stored) != set(known):
        raise _damaged(checkpoint, "its arguments are not those of the command")
    folder = checkpoint.resolve().parent
    arguments: dict[str, Any] = {"checkpoint": checkpoint}
    for name, value in stored.items():
        if name == "file" and data is not None:
            arguments[name] = data
        elif name == "output" and value == str(STDOUT):
            arguments[name] = STDOUT
        elif isinstance(value, dict):
            arguments[name] = _found(name, _candidates(checkpoint, value, folder), checkpoint)
        elif isinstance(value, _PLAIN):
            arguments[name] = value
        else:
            raise _damaged(checkpoint, f"its argument {name} is {value!r:.80}")
    return arguments


def _stored(value: Any, folder: Path) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number; an infinite time is no limit, and other settings are refused
    if not isinstance(value, Path):
        return value
    if value == STDOUT:
        return str(value)
    absolute = value.resolve()
    record = {"absolute": str(absolute)}
    try:
        return record | {"relative": os.path.relpath(absolute, folder)}
    except ValueError:  # on another drive of Windows
        return record


def _candidates(checkpoint: Path, record: dict[str, Any], folder: Path) -> list[Path]:
    """Return where a recorded file may be, the most likely place first."""
    absolute, relative = record.get("absolute"), record.get("relative", "")
    if not isinstance(absolute, str) or not absolute or not isinstance(relative, str):
        raise _damaged(checkpoint, f"it has the path {record!r:.80}")
    if "\0" in absolute + relative:
        raise _damaged(checkpoint, "one of its paths has a zero byte")
    # If the checkpoint was not moved, both are the same. In a copy of its folder, both may exist, and the
    # originals must stay as they are.
    near = [Path(os.path.normpath(folder / relative))] if relative else []
    return [*near, Path(absolute)]


def _found(name: str, candidates: list[Path], checkpoint: Path) -> Path:
    if name in _OUTPUTS:
        return next((path for path in candidates if path.parent.is_dir()), candidates[0])
    for path in candidates:
        if path.is_file() or is_block_folder(path):
            return path
    places = " or ".join(dict.fromkeys(map(str, candidates)))
    what, advice = ("data", ", or pass --data FILE") if name == "file" else (name, "")
    raise FileNotFoundError(
        f"The checkpoint {checkpoint} must find the {what} of its fit, but there is no file {places}. Move it "
        f"back{advice}."
    )


def _damaged(checkpoint: Path, reason: str) -> ValueError:
    return ValueError(
        f"The record of its command in the checkpoint {checkpoint} cannot be used: {reason}. Repeat the "
        "command that wrote it, with the same --checkpoint."
    )
