"""Warnings of an estimator, of which a search shows each once.

A search fits many clones of one estimator, and each of them may end at ``max_iter``. Python shows equal
warnings once, but forgets what it has shown whenever the filters change, and scikit-learn changes them for
each fit. So clones know that they are, and of those of one class fitted to matrices of one size, a process
shows each cause once. An estimator that is no clone always warns, and filters that ask for every warning, or to
raise them, get each.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from symrelu.fitted.solution import Solution

_MARK = "_is_clone"

# What this process has shown of clones: class, number of items, cause.
_shown: set[tuple[str, int, str]] = set()


def mark_clone(copy: Any) -> Any:
    """Return a clone that knows that it is one, also after it was sent to another process.

    Parameters
    ----------
    copy : estimator

    Returns
    -------
    copy : estimator
    """
    setattr(copy, _MARK, True)
    return copy


def warn_of_end(estimator: Any, solution: Solution, *, stacklevel: int) -> None:
    """Warn that a fit stopped before convergence.

    Parameters
    ----------
    estimator : estimator
        As fitted: nothing is lost if the warning is raised.
    solution : Solution
    stacklevel : int
        As for ``warnings.warn``, seen from the caller.
    """
    text = (
        f"{estimator!r} stopped before convergence: {solution.status.value}. "
        f"{solution.status.advice}{_hint(solution)} relative_error_ and history_ tell how far it came."
    )
    warn_once_in_a_search(
        estimator, text, ConvergenceWarning, cause=solution.status.name, stacklevel=stacklevel + 1
    )


def warn_once_in_a_search(
    estimator: Any, text: str, category: type[Warning], *, cause: str, stacklevel: int
) -> None:
    """Warn, unless another clone of the same search has warned for the same cause.

    Parameters
    ----------
    estimator : estimator
        It has ``n_features_in_``.
    text : str
    category : type of Warning
    cause : str
        What warnings have in common of which one is enough.
    stacklevel : int
        As for ``warnings.warn``, seen from the caller.
    """
    if getattr(estimator, _MARK, False) and not _filters_want_each(text, category):
        key = (type(estimator).__name__, estimator.n_features_in_, cause)
        if key in _shown:
            return
        _shown.add(key)
        text += " Other fits of a search may give the same warning: it is shown once."
    warnings.warn(text, category, stacklevel=stacklevel + 1)


def _hint(solution: Solution) -> str:
    if solution.alpha > 0 or (solution.diagonal == "fit" and (solution.signature > 0).all()):
        return ""
    return (
        " With negative columns or an ignored diagonal the loss need not have a minimum, and steps go on for "
        "ever; a small alpha > 0 gives it one."
    )


def _filters_want_each(text: str, category: type[Warning]) -> bool:
    """Whether the filter for this warning shows, raises or ignores every one, rather than the first."""
    current = getattr(warnings, "_get_filters", lambda: warnings.filters)()
    for action, message, kind, module, line in current:
        matches = message is None or message.match(text)
        if matches and issubclass(category, kind) and module is None and line == 0:
            return action in ("always", "all", "error", "ignore")
    return False
