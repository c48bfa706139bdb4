"""How the compiled functions of the library are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

# Sums may be reordered (so that they vectorise), but NaN and infinity keep their meaning:
# a non-finite factor has to show up as a non-finite loss.
FASTMATH = {"reassoc", "contract"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` without the GIL, and cache the machine code where a cache can be written."""
    try:
        return njit(nogil=True, cache=True, fastmath=FASTMATH)(function)
    except RuntimeError:  # no writable cache folder (read-only installs): compile in every process
        return njit(nogil=True, fastmath=FASTMATH)(function)
