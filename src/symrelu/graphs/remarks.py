"""Remarks on how a file was read: notes on harmless facts, and doubts, which become warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable


class GraphFileWarning(UserWarning):
    """A file was read by a guess, or in a way that may give another graph than its author meant."""


class Doubt(str):
    """A remark on something that may have given a wrong graph."""


def warn_of(path: object, remarks: Iterable[str], stacklevel: int = 2) -> tuple[str, ...]:
    """Warn of the doubts among remarks on a file, and return the others.

    Parameters
    ----------
    path : path-like
    remarks : iterable of str
    stacklevel : int, default=2
        As for :func:`warnings.warn`: 2 is the caller of this function.

    Returns
    -------
    notes : tuple of str
    """
    remarks = tuple(remarks)
    for doubt in remarks:
        if isinstance(doubt, Doubt):
            warnings.warn(f"{path}: {doubt}.", GraphFileWarning, stacklevel=stacklevel)
    return tuple(remark for remark in remarks if not isinstance(remark, Doubt))
