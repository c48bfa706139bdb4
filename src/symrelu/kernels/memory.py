"""How much memory there is, and work in parts that fit into scikit-learn's ``working_memory``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import sklearn
from sklearn.utils import gen_batches


def working_memory() -> float:
    """Return how many bytes temporary arrays may take."""
    return float(sklearn.get_config()["working_memory"] * 2**20)


def batches(count: int, bytes_each: int) -> Iterator[slice]:
    """Return slices of ``count`` that fit into the working memory, of one thing at least."""
    return gen_batches(count, max(1, int(working_memory() // bytes_each))) if count else iter(())


def available_memory() -> int | None:
    """Return the free physical memory in bytes, or None where the system does not tell."""
    with suppress(OSError, StopIteration, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
