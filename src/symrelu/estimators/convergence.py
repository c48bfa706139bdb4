"""The warning of a fit that a limit ended: once for an estimator and all its clones.

A search fits many clones of one estimator, and each of them may end at ``max_iter``. Python shows equal
warnings once, but forgets what it has shown whenever the filters change, and scikit-learn changes them for
each fit. So clones carry the mark of their original. Filters that ask for every warning, or to raise them, get
each.
"""

from __future__ import annotations

import uuid
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from symrelu.solution import Solution

_MARK = "_clones_mark"

# What this process has shown: marks of estimators with the causes. A mark is 32 letters, whatever was fitted.
_shown: set[tuple[str, str]] = set()


def mark_clone(original: Any, copy: Any) -> None:
    """Give a clone the mark of its original, which holds in other processes too.

    Parameters
    ----------
    original, copy : estimator
    """
    setattr(copy, _MARK, original.__dict__.setdefault(_MARK, uuid.uuid4().hex))


def warn_of_end(estimator: Any, solution: Solution, *, stacklevel: int) -> None:
    """Warn that a fit stopped before convergence. The text tells the cause alone: equal causes, equal texts.

    Parameters
    ----------
    estimator : estimator
        As fitted: nothing is lost if the warning is raised.
    solution : Solution
    stacklevel : int
        As for ``warnings.warn``, seen from the caller.
    """
    text = (
        f"{type(estimator).__name__} stopped before convergence: {solution.status.value}. "
        f"{solution.status.advice}{_hint(solution)} relative_error_ and history_ tell how far it came."
    )
    mark = getattr(estimator, _MARK, None)
    if mark is not None and not _filters_want_each(text):
        if (mark, text) in _shown:
            return
        _shown.add((mark, text))
        text += " Other clones of this estimator may have stopped so too: converged_ tells, this is shown once."
    warnings.warn(text, ConvergenceWarning, stacklevel=stacklevel + 1)


def _hint(solution: Solution) -> str:
    if solution.alpha > 0 or (solution.diagonal == "fit" and (solution.signature > 0).all()):
        return ""
    return (
        " With negative columns or an ignored diagonal the loss need not have a minimum, and steps go on for "
        "ever; a small alpha > 0 gives it one."
    )


def _filters_want_each(text: str) -> bool:
    """Whether the filter for this warning shows, raises or ignores every one, rather than the first."""
    current = getattr(warnings, "_get_filters", lambda: warnings.filters)()
    for action, message, category, _, _ in current:
        matches = message is None or message.match(text)
        if matches and issubclass(ConvergenceWarning, category):
            return action in ("always", "all", "error", "ignore")
    return False
