"""Trouble that costs time but changes no result: it is told once in a process, and ends no fit."""

from __future__ import annotations

import logging
import warnings

_told: dict[str, object] = {}


def warn_once(kind: str, message: str) -> None:
    """Issue a RuntimeWarning, the first one of its kind in this process.

    Where filters make it an error, the logger ``symrelu`` gets the message instead: the result is right, and
    hours of work may be behind it.
    """
    mine = object()
    if _told.setdefault(kind, mine) is mine:  # one step, so that of two threads only one tells
        try:
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:
            logging.getLogger("symrelu").warning(message)
