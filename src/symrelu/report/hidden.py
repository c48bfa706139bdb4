"""How well pairs are predicted that a fit has not seen: a second fit without some of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from symrelu.estimators import NeighborEmbedding
from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import SCORINGS, check_pairs, observed_pairs, random_split
from symrelu.fitted.history import Status
from symrelu.fitted.models import SymmetricReLU
from symrelu.fitted.solution import Solution
from symrelu.problem import Problem
from symrelu.report.views import View

_ZEROS_PER_LINK = 5.0


@dataclass(frozen=True)
class HiddenPairs:
    """What a second fit, without some pairs, predicted for them.

    Attributes
    ----------
    links, others : int
        Numbers of hidden pairs with M > 0 and with M = 0.
    auc : float
        How often a hidden link has a higher score than another hidden pair. 0.5 is chance.
    error : float or None
        Relative error on the hidden pairs, each weighted by how many it stands for; predicting zero gives 1.
        None for models that do not aim at the values of M.
    """

    links: int
    others: int
    auc: float
    error: float | None


def why_not_hidden(model: Any, problem: Problem) -> str:
    """Return why no pairs can be hidden for a second fit, or an empty text.

    Parameters
    ----------
    model : Solution or fitted estimator
    problem : Problem

    Returns
    -------
    reason : str
        As a sentence.
    """
    if isinstance(model, NeighborEmbedding):
        return "These vectors store the links of the graph; they are not meant to predict others."
    if isinstance(model, Solution) and not isinstance(model.model, SymmetricReLU):
        return f"A model of the kind {type(model.model).__name__} is not fitted again without some pairs."
    try:
        check_pairs(observed_pairs(problem), "auc")
    except ValueError:
        return "The graph has too few pairs to hide some of them."
    return ""


def measure_hidden(model: Any, problem: Problem, fraction: float, seed: int) -> HiddenPairs:
    """Fit again without some pairs, and compare the predictions for them.

    Parameters
    ----------
    model : Solution or fitted estimator
        Its settings are those of the second fit; of a Solution, the solver is the default one.
    problem : Problem
    fraction : float
        Share of the links to hide.
    seed : int
        Chooses the pairs.

    Returns
    -------
    hidden : HiddenPairs

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C ended the second fit: its numbers would say nothing about the first one.
    """
    split = random_split(observed_pairs(problem), fraction, _ZEROS_PER_LINK, seed)
    left = problem.hide(split.i, split.j)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first fit has given the same warnings
        second = _fit_again(model, left, seed)
    if was_interrupted(second):  # Ctrl-C is meant for the whole report, not for this fit
        raise KeyboardInterrupt
    again = View.of(second)
    scores = again.scores.score_pairs(split.i, split.j)
    links = int(np.count_nonzero(split.truth))
    aims_at_values = again.fits_the_graph_itself and again.zero_weight == 1
    error = SCORINGS["error"](scores, split, again.solution.support if again.solution else "equal")
    auc = SCORINGS["auc"](scores, split)
    return HiddenPairs(links, len(split.truth) - links, auc, error if aims_at_values else None)


def was_interrupted(model: Any) -> bool:
    """Return whether Ctrl-C ended a fit.

    Parameters
    ----------
    model : Solution or fitted estimator

    Returns
    -------
    interrupted : bool
        Also if it ended one of several fits.
    """
    solution = model if isinstance(model, Solution) else getattr(model, "solution_", None)
    fits = (solution, *getattr(model, "fits_", ()))
    return any(fit is not None and fit.status is Status.INTERRUPTED for fit in fits)


def _fit_again(model: Any, problem: Problem, seed: int) -> Any:
    if isinstance(model, Solution):
        return decompose(
            problem,
            model.rank,
            n_negative=model.n_negative,
            alpha=model.alpha,
            zero_weight=model.zero_weight,
            support=model.support,
            max_iter=max(1, model.n_iter),
            random_state=seed,
        )
    again = clone(model)
    # What was chosen by the data is not chosen again, which would take many fits.
    chosen = {
        "affinity": "precomputed",
        "checkpoint": None,
        "verbose": 0,
        "n_components": _number_of_columns(model),
        "n_clusters": getattr(model, "n_clusters_", None),
    }
    parameters = again.get_params(deep=False)
    again.set_params(**{name: value for name, value in chosen.items() if name in parameters})
    return again.fit(problem.M, mask=problem.mask)


def _number_of_columns(model: Any) -> Any:
    return model.solution_.rank if model.n_components == "auto" else model.n_components
