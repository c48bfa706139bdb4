"""Compile functions with numba, and cache the machine code if that is possible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from symrelu.kernels.one_time_warnings import warn_once

# Sums may be reordered, so that they vectorise, but NaN and infinity must propagate:
# a non-finite factor has to produce a non-finite loss.
FASTMATH = {"reassoc", "contract"}


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile ``function`` to run without the GIL, and cache the machine code if the cache is writable."""
    dispatcher = njit(nogil=True, fastmath=FASTMATH, **options)(function)
    # Without a cache directory (read-only installs), every process compiles.
    with suppress(RuntimeError, OSError):
        # This is what cache=True does. Numba uses the cache before and after compiling, never during a call.
        dispatcher._cache = ForgivingCache(function)
    return dispatcher


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, which makes no array or slice of one, into those that call it.

    Otherwise each call counts as a reference to each array that is passed. That takes 5 ns for each, and many
    times as long if several threads count references to the same array.
    """
    return compiled(function, forceinline=True, _nrt=False)


class ForgivingCache(FunctionCache):
    """Numba's cache on disk, except that its failures do not propagate: the function is compiled anyway.

    Numba discards cached code when the file of the function changes. The code of the functions that it calls is
    part of it, so here a change of any file in the same directory counts. Code for arguments of a class that is
    defined elsewhere is not cached, because it may contain functions from there.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = _directory_stamp(Path(function.__code__.co_filename).parent)
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached machine code, or None if there is none or it cannot be read."""
        if not _only_own_classes(sig):
            return None
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file can raise anything when it is unpickled
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code to the cache, or warn that this failed."""
        if not _only_own_classes(sig):
            return
        try:
            self._save_or_reset(sig, data)
        except Exception as error:
            reason = str(error).rstrip(".") or type(error).__name__
            warn_once(
                "cache",
                f"Compiled functions could not be cached in {self.cache_path}: {reason}. Results are not "
                "affected, but each process compiles them again. Free space there, or set the environment "
                "variable NUMBA_CACHE_DIR to a writable directory.",
            )

    def _save_or_reset(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            raise
        except Exception:  # a damaged index would fail in every later process too
            self.flush()
            super().save_overload(sig, data)


def _only_own_classes(types: Any) -> bool:
    """Return whether all named tuples among the types of arguments are defined in this package."""
    return all(
        kind.instance_class.__module__.startswith(f"{__package__}.") and _only_own_classes(kind.types)
        for kind in types
        if hasattr(kind, "instance_class")
    )


@lru_cache
def _directory_stamp(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, time of change and size of the Python files in a directory."""
    files = sorted(directory.glob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
