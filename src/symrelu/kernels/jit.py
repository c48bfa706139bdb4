"""How the compiled functions of the library are compiled, and what happens where they cannot be cached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

from symrelu.kernels.trouble import warn_once

# Sums may be reordered (so that they vectorise), but NaN and infinity keep their meaning:
# a non-finite factor has to show up as a non-finite loss.
FASTMATH = {"reassoc", "contract"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` without the GIL, and cache the machine code where a cache can be written."""
    dispatcher = njit(nogil=True, fastmath=FASTMATH)(function)
    # Without a folder for the cache (read-only installs) every process compiles.
    with suppress(RuntimeError, OSError):
        # As cache=True does it. Numba asks the cache before and after it compiles, never in a call.
        dispatcher._cache = ForgivingCache(function)
    return dispatcher


class ForgivingCache(FunctionCache):
    """Numba's cache on disk, whose failures end no call: the function has been compiled, or will be."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached machine code, or None where there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file can raise anything when it is unpickled
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code to the cache, or warn that it cannot be."""
        try:
            self._save_or_begin_anew(sig, data)
        except Exception as error:
            reason = str(error).rstrip(".") or type(error).__name__
            warn_once(
                "cache",
                f"Compiled functions could not be cached in {self.cache_path}: {reason}. Nothing is lost but "
                "time: each process compiles them again. Make room there, or set the environment variable "
                "NUMBA_CACHE_DIR to a folder that can be written.",
            )

    def _save_or_begin_anew(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            raise
        except Exception:  # the index is damaged, and would be so in every later process
            self.flush()
            super().save_overload(sig, data)
