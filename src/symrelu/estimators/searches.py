"""Warnings of an estimator, each shown only once in a search.

A search fits many clones of one estimator, and each of them may reach ``max_iter``. Python shows equal warnings
once, but forgets which it has shown whenever the filters change, and scikit-learn changes them for each fit.
Therefore clones are marked, and for all clones of one class fitted to matrices of one size, a process shows
each cause once. An estimator that is not a clone always warns, and so do clones if the filters show or raise
every warning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from symrelu.fitted.clusters import outliers
from symrelu.fitted.solution import Solution
from symrelu.kernels.one_time_warnings import warn_once
from symrelu.problem import Problem

_MARK = "_is_clone"

# Parameters of SymReLU with their defaults in 0.2.0 and in 0.1.0.
_CHANGED_DEFAULTS = {"n_components": (None, 8), "n_negative": ("auto", 0), "diagonal": ("auto", "fit")}

# Warnings of clones that this process has shown: class, number of items, cause.
_shown: set[tuple[str, int, str]] = set()


def mark_clone(copy: Any) -> Any:
    """Mark an estimator as a clone; the mark is an attribute, so that it survives pickling.

    Parameters
    ----------
    copy : estimator

    Returns
    -------
    copy : estimator
    """
    setattr(copy, _MARK, True)
    return copy


def warn_not_converged(estimator: Any, solution: Solution, *, stacklevel: int) -> None:
    """Warn that a fit stopped before convergence.

    Parameters
    ----------
    estimator : estimator
        It must be fitted already, so that nothing is lost if the warning is raised.
    solution : Solution
    stacklevel : int
        As for ``warnings.warn``, relative to the caller.
    """
    text = (
        f"{estimator!r} stopped before convergence: {estimator.stop_reason_}. "
        f"{solution.advice.replace('alpha', _penalty(estimator))}{_unbounded_hint(estimator, solution)} "
        "relative_error_ and history_ show how far it got."
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
        It must have ``n_features_in_``.
    text : str
    category : type of Warning
    cause : str
        Of warnings with the same cause, one is shown.
    stacklevel : int
        As for ``warnings.warn``, relative to the caller.
    """
    if getattr(estimator, _MARK, False) and not _filters_want_each(text, category):
        key = (type(estimator).__name__, estimator.n_features_in_, cause)
        if key in _shown:
            return
        _shown.add(key)
        text += " Other fits of a search may give the same warning, which is shown only once."
    warnings.warn(text, category, stacklevel=stacklevel + 1)


def warn_of_alpha(estimator: Any, problem: Problem, *, matrix: str = "X", stacklevel: int) -> None:
    """Warn that ``alpha`` was passed to an estimator with ``shrinkage``, and say what to pass instead.

    Parameters
    ----------
    estimator : estimator
        With a valid ``alpha``.
    problem : Problem
        What it is fitted to.
    matrix : str, default="X"
        Its name in the warning.
    stacklevel : int
        As for ``warnings.warn``, relative to the caller.
    """
    shrinkage = estimator.alpha / problem.alpha_of(1.0)
    text = (
        f"alpha of {type(estimator).__name__} is deprecated and will be removed in symrelu 0.3.0. Pass "
        f"shrinkage={shrinkage:.6g} instead: alpha / (2 * the largest eigenvalue of {matrix}), a number "
        "without units."
    )
    warn_once_in_a_search(estimator, text, FutureWarning, cause="alpha", stacklevel=stacklevel + 1)


def warn_of_new_defaults(estimator: Any, solution: Solution, *, stacklevel: int) -> None:
    """Say once in a process, for each default, that it chose another value than that of symrelu 0.1.0.

    Parameters
    ----------
    estimator : estimator
        With ``n_components``, ``n_negative`` and ``diagonal``.
    solution : Solution
        Its fit.
    stacklevel : int
        As for ``warnings.warn``, relative to the caller.
    """
    name, n_columns = type(estimator).__name__, solution.U.shape[1]
    # With fewer than 8 items, n_components=8 is refused: there is no earlier fit to keep.
    chosen = {
        "n_components": max(n_columns, 8),
        "n_negative": solution.n_negative,
        "diagonal": solution.diagonal,
    }
    for parameter, (default, before) in _CHANGED_DEFAULTS.items():
        value = chosen[parameter]
        if getattr(estimator, parameter) != default or value == before:
            continue
        text = (
            f"The default {parameter} of {name} changed in symrelu 0.2.0: {parameter}={default!r} chose "
            f"{value!r} for this X. Pass {parameter}={before!r} to keep the default of 0.1.0, or "
            f"{parameter}={value!r} for the same fit without this warning, which is shown only once."
        )
        warn_once(f"{parameter} of {name}", text, FutureWarning, stacklevel=stacklevel + 1)


def warn_incomplete_search(estimator: Any, found: Any, goal: Any, *, stacklevel: int) -> None:
    """Warn if a search for neighbours did not meet its goal.

    Parameters
    ----------
    estimator : estimator
        It must be fitted already, so that nothing is lost if the warning is raised.
    found : symrelu.fit.neighbor_search.Found
    goal : symrelu.fit.neighbor_search.Goal
    stacklevel : int
        As for ``warnings.warn``, relative to the caller.
    """
    certificate, rank = found.certificate, found.vectors.shape[1]
    if goal.is_met_by(certificate) and goal.rank in (None, rank):
        return
    enough = [attempt.rank for attempt in found.attempts if attempt.succeeded]
    advice = (
        f"{min(enough)} columns were enough: pass n_components={min(enough)}, or a lower recall."
        if enough
        else "Pass a larger max_iter or max_time, more columns (n_components), or a lower recall."
    )
    text = (
        f"{estimator!r} found no vectors with recall >= {goal.recall:g}"
        f"{'' if goal.rank is None else f' and {goal.rank} columns'}: the best have {certificate.wrong_pairs} "
        f"wrong pairs with {rank} columns ({estimator.stop_reason_}). {advice}"
    )
    warn_once_in_a_search(estimator, text, ConvergenceWarning, cause="neighbours", stacklevel=stacklevel + 1)


def _unbounded_hint(estimator: Any, solution: Solution) -> str:
    if solution.alpha > 0 or (solution.diagonal == "fit" and (solution.signature > 0).all()):
        return ""
    return (
        " With negative columns or an ignored diagonal the loss may have no minimum, so that no fit converges; "
        f"a small {_penalty(estimator)} > 0 ensures that it has one."
    )


def _penalty(estimator: Any) -> str:
    """Return the name of the parameter that sets the Tikhonov penalty of an estimator."""
    return "shrinkage" if "shrinkage" in estimator.get_params(deep=False) else "alpha"


def _filters_want_each(text: str, category: type[Warning]) -> bool:
    """Whether the filter for this warning applies to every occurrence, rather than the first one only."""
    # Python 3.14 can keep filters in a context variable instead of the module.
    current = getattr(warnings, "_get_filters", lambda: warnings.filters)()
    for action, message, kind, module, line in current:
        matches = message is None or message.match(text)
        # Filters for one module or line are skipped, since the module that the warning points to is not known.
        if matches and issubclass(category, kind) and module is None and line == 0:
            return action in ("always", "all", "error", "ignore")
    return False


def warn_of_clusters(estimator: Any, n_clusters: int, *, stacklevel: int) -> None:
    """Warn if there are fewer clusters than asked for, or only one with more than a few items.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``labels_``.
    n_clusters : int
        Number of clusters asked for.
    stacklevel : int
        As for ``warnings.warn``, counted from the caller.
    """
    sizes = np.sort(np.bincount(estimator.labels_))[::-1]
    if len(sizes) < n_clusters:
        text = (
            f"Only {len(sizes)} of n_clusters={n_clusters} clusters were found, because no more rows of the "
            "factor differ. Ask for fewer clusters, or use method='linkage'."
        )
    elif outliers(estimator.labels_):
        text = (
            f"{outliers(estimator.labels_)}: these are outliers rather than clusters. Ask for another number "
            "of clusters, or set the other method."
        )
    else:
        return
    warn_once_in_a_search(estimator, text, UserWarning, cause="clusters", stacklevel=stacklevel + 1)


def warn_of_selection(estimator: Any, *, stacklevel: int) -> None:
    """Warn if the number of clusters was chosen near the largest one that was allowed.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``selection_``.
    stacklevel : int
        As for ``warnings.warn``, counted from the caller.
    """
    if estimator.selection_.at_limit:
        text = (
            f"n_clusters=None chose {estimator.selection_.n_clusters}, more than half of the largest number "
            f"({estimator.selection_.most}): hidden pairs are predicted better the smaller the clusters are, "
            "as in graphs of nearest neighbours. Pass the number of clusters."
        )
        warn_once_in_a_search(estimator, text, UserWarning, cause="selection", stacklevel=stacklevel + 1)


def warn_if_edges(estimator: Any, X: Any, *, stacklevel: int) -> None:
    """Warn if what is taken for samples looks like a list of edges between numbered nodes.

    Parameters
    ----------
    estimator : estimator
    X : array-like
        Not square.
    stacklevel : int
        As for ``warnings.warn``, counted from the caller.
    """
    if not (isinstance(X, (list, tuple, np.ndarray)) or hasattr(X, "iloc")):
        return
    first = np.asarray(X.iloc[:, :2] if hasattr(X, "iloc") else X)
    if first.ndim == 2 and first.dtype.kind in "iu" and np.shape(X)[1] in (2, 3) and first.min(initial=0) >= 0:
        text = (
            f"X has {np.shape(X)[1]} columns of integers and is taken as {len(first)} samples. If it is a list "
            "of edges, pass symrelu.graphs.from_edges(X); if it holds samples, set affinity='self_tuning'."
        )
        warn_once_in_a_search(estimator, text, UserWarning, cause="edges", stacklevel=stacklevel + 1)
