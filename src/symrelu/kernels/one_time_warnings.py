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


def warn_once(
    kind: str, message: str, category: type[Warning] = RuntimeWarning, *, stacklevel: int = 2
) -> None:
    """Issue or log a warning, unless one of the same kind has been issued in this process.

    ``stacklevel`` is that of ``warnings.warn``, relative to the caller: by default the warning points to the
    caller of the reporting function.
    """
    token = object()
    if _already_warned.setdefault(kind, token) is token:  # atomic, so that only one of two threads warns
        warn_or_log(message, category, level=logging.WARNING, stacklevel=stacklevel + 1)
