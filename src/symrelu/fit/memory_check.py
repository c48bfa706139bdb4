"""Whether a fit fits into the memory that is available, and what to do if it does not."""

from __future__ import annotations

from symrelu.fit.device_memory import free_on_device
from symrelu.fit.memory_model import Case, Memory, memory_of
from symrelu.fit.settings import Limits, Model, Run, Start
from symrelu.kernels.memory import available_memory, in_words
from symrelu.problem import Problem

# A fit may need less than was counted, by this factor: the tests allow as much. It is refused only beyond that.
TOLERANCE = 1.25

# Past steps of the LBFGS that a refusal suggests.
_SHORT_MEMORY = 3


def check_memory_of_fit(problem: Problem, model: Model, start: Start, run: Run, limits: Limits) -> None:
    """Raise a MemoryError if a fit cannot fit into the memory that is available.

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
        raise MemoryError(refusal(case, memory, available))


def cannot_fit(memory: Memory, available: int | None) -> bool:
    """Return whether a fit is refused: it needs more than is available, even if the count is too high."""
    return available is not None and memory.least > TOLERANCE * available


def refusal(case: Case, memory: Memory, available: int) -> str:
    """Return why a fit is refused: the figures, and what to do."""
    remedies = ["a smaller rank"]
    if case.dtype.itemsize > 4:
        remedies.append("M in float32")
    if case.index_bytes and case.backend in ("dense", "reference"):
        remedies.append("backend='sparse'")
    if memory.factors > memory.least / 2 and case.past_steps:
        short = [f"solver=LBFGS(memory={_SHORT_MEMORY})"] * (case.past_steps > _SHORT_MEMORY)
        remedies.append(" or ".join([*short, "solver='palm'"]) + " (fewer arrays)")
    if case.backend != "dask":
        remedies.append("backend='dask' on a cluster")
    return (
        f"A fit of {case.n} items with rank {case.rank} needs {in_words(memory.least)} in addition to M; "
        f"{in_words(available)} are available. M as packed takes {in_words(memory.matrix)}, the factor and the "
        f"state of the solver {in_words(memory.factors)}, the tiles {in_words(memory.tiles)}. "
        f"Use {', '.join(remedies[:-1])}{' or ' if len(remedies) > 1 else ''}{remedies[-1]}."
    )


def available_for(backend: str) -> int | None:
    """Return the bytes that a fit with a backend can take: on its device, or on the host if known."""
    return free_on_device() if backend == "cuda" else available_memory()
