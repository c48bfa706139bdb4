"""Warnings that never become errors, because the result is correct and may have taken hours."""

from __future__ import annotations

import logging
import warnings

_already_warned: dict[str, object] = {}


def warn_or_log(message: str, category: type[Warning], *, level: int, stacklevel: int) -> None:
    """Issue a warning; if filters turn it into an error, log its message to the logger ``symrelu`` instead.

    ``stacklevel`` is that of ``warnings.warn``, relative to the caller.
    """
    try:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    except category:
        logging.getLogger("symrelu").log(level, message)


def warn_once(kind: str, message: str) -> None:
    """Issue or log a RuntimeWarning, unless one of the same kind has been issued in this process."""
    token = object()
    if _already_warned.setdefault(kind, token) is token:  # atomic, so that only one of two threads warns
        warn_or_log(message, RuntimeWarning, level=logging.WARNING, stacklevel=3)
