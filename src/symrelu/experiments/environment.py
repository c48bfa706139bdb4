"""The versions and the machine behind a number."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from importlib.metadata import version

from threadpoolctl import threadpool_info

import symrelu

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@lru_cache(maxsize=1)
def describe_environment() -> dict[str, str]:
    """Return what a reader needs to interpret numbers and times.

    Returns
    -------
    environment : dict of str to str
    """
    blas = [
        f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"
    ]
    return {
        "symrelu": symrelu.__version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "BLAS": ", ".join(sorted(blas)) or "unknown",
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{_processor()}, {_usable_cores()} cores",
    }


def _processor() -> str:
    """Return the model of the processor, if the system reports it."""
    # On Linux, platform.processor() returns the architecture or nothing.
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        models = []
    return models[0] if models else platform.processor() or "unknown processor"


def _usable_cores() -> int:
    # In a container or under taskset, a process may use fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
