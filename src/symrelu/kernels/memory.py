"""Available memory, and batches of work that fit into scikit-learn's ``working_memory``."""

from __future__ import annotations

import os
from contextlib import suppress

from symrelu.kernels.threads import slices


def working_memory() -> float:
    """Return the number of bytes that temporary arrays may take."""
    import sklearn  # not at the top: it takes longer to import than all the rest

    return float(sklearn.get_config()["working_memory"] * 2**20)


def batches(count: int, bytes_each: int) -> list[slice]:
    """Return slices of ``range(count)`` that fit into the working memory, each with at least one item."""
    return slices(count, max(1, int(working_memory() // bytes_each)))


def rows_per_worker(bytes_each: int, most: int) -> tuple[int, int]:
    """Return how many rows a worker may hold at once, up to ``most``, and how many workers have room to do so.

    The first number does not depend on the number of threads: BLAS may round a row differently in a larger
    block.
    """
    fitting = working_memory() / bytes_each
    rows = int(min(max(1, fitting), most))
    return rows, max(1, int(fitting / rows))


def available_memory() -> int | None:
    """Return the available physical memory in bytes, or None if the system does not report it."""
    # Linux reports what can be allocated without swapping; elsewhere the total is the best bound there is.
    with suppress(OSError, StopIteration, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
