"""Whether a fit fits into the memory that is available, and what to do if it does not."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from symrelu.fit.device_memory import free_on_device
from symrelu.fit.memory_model import Case, Memory, memory_of
from symrelu.fit.settings import Limits, Model, Run, Start
from symrelu.kernels.memory import available_memory, in_words
from symrelu.problem import Problem
from symrelu.solvers import LBFGS, PALM

# A fit may need less than was counted, by this factor: the tests allow as much. It is refused only beyond that.
TOLERANCE = 1.25

# Past steps of the LBFGS that a refusal suggests.
_SHORT_MEMORY = 3


class Remedy(NamedTuple):
    """A way to need less memory.

    Attributes
    ----------
    text : str
        What to use.
    changes : tuple of str
        The arguments of :func:`symrelu.decompose` that it changes, and "memory" if it is that of the solver.
    """

    text: str
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    """Why a fit is refused. As text, it has the figures and what to do.

    Attributes
    ----------
    figures : str
    remedies : tuple of Remedy
    """

    figures: str
    remedies: tuple[Remedy, ...]

    def __str__(self) -> str:
        *others, last = [remedy.text for remedy in self.remedies] or ["a machine with more memory"]
        return f"{self.figures} Use {', '.join(others)}{' or ' if others else ''}{last}."

    def within(self, settings: Collection[str]) -> Refusal:
        """Return the refusal with those remedies alone that change nothing but these settings."""
        return replace(self, remedies=tuple(one for one in self.remedies if {*one.changes} <= {*settings}))


class TooLittleMemory(MemoryError):
    """A fit is refused because it cannot fit into memory.

    Attributes
    ----------
    refusal : Refusal
        Whoever does not let users change all settings of a fit raises the error again with fewer remedies.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def check_memory_of_fit(problem: Problem, model: Model, start: Start, run: Run, limits: Limits) -> None:
    """Raise a TooLittleMemory if a fit cannot fit into the memory that is available.

    Parameters
    ----------
    problem : Problem
    model, start, run, limits
        The validated settings of the fit.
    """
    case = Case.of(problem, model, start, run, limits)
    available = available_for(case.backend)
    if available is None:
        return
    memory = memory_of(case)
    if cannot_fit(memory, available):
        raise TooLittleMemory(refusal(case, memory, available))


def cannot_fit(memory: Memory, available: int | None) -> bool:
    """Return whether a fit is refused: it needs more than is available, even if the count is too high."""
    return available is not None and memory.least > TOLERANCE * available


def refusal(case: Case, memory: Memory, available: int) -> Refusal:
    """Return why a fit is refused: the figures, and what to do."""
    parts = [
        ("M as packed takes", memory.matrix),
        ("the factor and the state of the solver", memory.factors),
        ("the tiles", memory.tiles),
        ("the start and sorting", memory.least - memory.matrix - memory.factors - memory.tiles),
    ]
    figures = (
        f"A fit of {case.n} items with rank {case.rank} needs {in_words(memory.least)} in addition to M; "
        f"{in_words(available)} are available. "
        f"{', '.join(f'{name} {in_words(size)}' for name, size in parts if size > 0)}."
    )
    return Refusal(figures, tuple(_remedies(case, available)))


def _remedies(case: Case, available: int) -> Iterator[Remedy]:
    """Yield each change with which the fit would not be refused."""
    rank = _largest_rank(case, available)
    if rank:
        yield Remedy(f"a smaller rank (at most {rank})", ("rank",))
    if case.dtype.itemsize > 4 and _fits(replace(case, dtype=np.dtype(np.float32)), available):
        yield Remedy("M in float32", ("M",))
    not_packed = case.index_bytes and case.backend in ("dense", "reference")
    if not_packed and _fits(replace(case, backend="sparse"), available):
        yield Remedy("backend='sparse'", ("backend",))
    if case.past_steps > _SHORT_MEMORY and _fits(replace(case, solver=LBFGS(_SHORT_MEMORY)), available):
        yield Remedy(f"solver=LBFGS(memory={_SHORT_MEMORY}) (fewer past steps)", ("solver", "memory"))
    if case.past_steps and _fits(replace(case, solver=PALM()), available):
        yield Remedy("solver='palm' (fewer arrays)", ("solver",))
    if case.backend != "dask":
        yield Remedy("backend='dask' on a cluster", ("backend", "client"))


def _largest_rank(case: Case, available: int) -> int:
    """Return the largest smaller rank with which the fit would not be refused; 0 if there is none."""
    ranks = range(1 + (case.n_negative if isinstance(case.n_negative, int) else 0), case.rank)
    count = bisect(ranks, False, key=lambda rank: not _fits(replace(case, rank=rank), available))
    return ranks[count - 1] if count else 0


def _fits(case: Case, available: int) -> bool:
    return not cannot_fit(memory_of(case), available)


def available_for(backend: str) -> int | None:
    """Return the bytes that a fit with a backend can take: on its device, or on the host if known."""
    return free_on_device() if backend == "cuda" else available_memory()
