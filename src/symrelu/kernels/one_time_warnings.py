"""Warnings about problems that cost time but change no result: issued once per process, never as errors."""

from __future__ import annotations

import logging
import warnings

_already_warned: dict[str, object] = {}


def warn_once(kind: str, message: str) -> None:
    """Issue a RuntimeWarning, unless one of the same kind has been issued in this process.

    If filters turn warnings into errors, the message goes to the logger ``symrelu`` instead: the result is
    correct, and may have taken hours.
    """
    token = object()
    if _already_warned.setdefault(kind, token) is token:  # atomic, so that only one of two threads warns
        try:
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:
            logging.getLogger("symrelu").warning(message)
