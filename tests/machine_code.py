"""What numba has compiled, to test that a fit compiles nothing while its clock runs."""

from __future__ import annotations

import sys
from typing import Any


def _values() -> dict[str, Any]:
    """Return what the modules of kernels and operators have, by its names."""
    places = ("symrelu.kernels.", "symrelu.operators.")
    modules = [module for name, module in sys.modules.items() if name.startswith(places)]
    return {f"{module.__name__}.{key}": value for module in modules for key, value in vars(module).items()}


def forget() -> None:
    """Let this process begin again: functions are loaded from the cache on disk, or compiled, when called."""
    for value in _values().values():
        if hasattr(value, "_reset_overloads"):
            value._reset_overloads()
        elif hasattr(value, "cache_clear") and "compile" in value.__name__:  # functions that do so once
            value.cache_clear()


def present() -> dict[str, list[Any]]:
    """Return the types of arguments for which there is machine code, for each function."""
    return {name: list(value.signatures) for name, value in _values().items() if hasattr(value, "signatures")}
