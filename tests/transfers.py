"""What a piece of work reads from torch tensors on the host; on a GPU, each of these waits for the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from symrelu.solvers import LBFGS

# Of a tensor on the CPU these do not reach the dispatcher.
METHODS = ("tolist", "numpy", "cpu")


class Watch(TorchDispatchMode):
    """Remember single numbers that are read, by float() for example, counts of an unknown size, and copies."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, int]] = []
        self.inside = False  # of a method that has been noted

    def note(self, name: str, tensor: Any) -> None:
        if not self.inside:
            self.found.append((name, tensor.numel()))

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name == "_local_scalar_dense":
            self.note("a number", args[0])
        elif counts_first(name, args, kwargs or {}):
            self.note("a count", torch.zeros(1))  # the size of the result
        elif name in ("_to_copy", "copy_") and crosses(args, made):
            self.note(name, made)
        return made


def counts_first(name: str, args: tuple[Any, ...], settings: dict[str, Any]) -> bool:
    """Return whether an operation on a GPU asks it for a count, by which the host allocates the result."""
    if name == "index":
        return any(is_choice(index) for index in args[1])
    if name == "repeat_interleave":
        return settings.get("output_size") is None
    return name in ("nonzero", "bincount")


def is_choice(index: Any) -> bool:
    return index is not None and index.dtype == torch.bool


def crosses(args: tuple[Any, ...], made: Any) -> bool:
    """Return whether a copy is on the host, and what it was made from is not."""
    return made.device.type == "cpu" and any(
        isinstance(each, torch.Tensor) and each.device.type != "cpu" for each in args
    )


def transfers(work: Callable[[], Any]) -> list[tuple[str, int]]:
    """Return the kind and the number of elements of each transfer to the host, in their order."""
    watch = Watch()

    def watched(name: str, method: Any) -> Any:
        def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            watch.note(name, tensor)
            before, watch.inside = watch.inside, True
            try:
                return method(tensor, *args, **kwargs)
            finally:
                watch.inside = before

        return call

    with pytest.MonkeyPatch.context() as patch, watch:
        for name in METHODS:
            patch.setattr(torch.Tensor, name, watched(name, getattr(torch.Tensor, name)))
        work()
    return watch.found


def of_a_step(op: Any, U0: Any, monkeypatch: Any) -> list[tuple[str, int]]:
    """Return the transfers of a full step of LBFGS, after two that fill its memory; it may move no arrays."""
    solver = LBFGS()
    state = solver.init(op, op.asarray(U0))
    for _ in range(2):
        state = solver.step(op, state)
    before = op.evaluations
    with monkeypatch.context() as patch:
        for name in ("asarray", "to_numpy"):
            patch.setattr(op, name, lambda *_, name=name: pytest.fail(f"{name} was called"))
        found = transfers(lambda: solver.step(op, state))
    assert op.evaluations == before + 1, "a step that was shortened reads more"
    return found
