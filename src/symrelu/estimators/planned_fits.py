"""The fits that an estimator is going to make, for an estimate of their cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from symrelu.estimators.clustering import SymReLUClustering
from symrelu.estimators.embedding import SymReLU
from symrelu.estimators.links import LinkPredictor
from symrelu.fit.cluster_methods import ClusterMethod, without_diagonal
from symrelu.fit.cluster_number import largest_choice, most_clusters
from symrelu.fit.normalised_graph import NormalisedGraph
from symrelu.problem import Problem
from symrelu.validation import check_integer

CHOICE = "choice"


@dataclass(frozen=True, eq=False)
class PlannedFits:
    """Fits of one problem with the same settings.

    Attributes
    ----------
    name : str
        Of the method, if the estimator has several; ``CHOICE`` for the fits that choose the number of clusters.
    problem : Problem
    rank : int
    count : int
        Number of fits, which differ in their seeds.
    settings : dict
        Keywords of :func:`symrelu.decompose`. The default of a penalty, which changes no cost, is left at 0.
    at_most : bool
        Whether there may be fewer fits, or of a lower rank, as the number of clusters is not known yet.
    """

    name: str
    problem: Problem
    rank: int
    count: int
    settings: dict[str, Any]
    at_most: bool = False


def planned_fits(estimator: SymReLU | LinkPredictor | SymReLUClustering, X: Any) -> list[PlannedFits]:
    """Return the fits that ``estimator.fit(X)`` would make.

    Parameters
    ----------
    estimator : SymReLU, LinkPredictor or SymReLUClustering
    X : matrix, graph, table, tensor or block folder

    Returns
    -------
    planned : list of PlannedFits
    """
    if isinstance(estimator, SymReLU):
        return [_of_embedding(estimator, X)]
    return [_of_links(estimator, X)] if isinstance(estimator, LinkPredictor) else _of_clusters(estimator, X)


def _of_embedding(estimator: SymReLU, X: Any) -> PlannedFits:
    if estimator.n_components == "auto":
        raise _many_fits()
    problem = estimator._problem(X, None, estimator.diagonal)
    settings = _without_penalty(estimator._settings()) | {"diagonal": problem.diagonal}
    return PlannedFits("", problem, estimator._rank(problem, settings), estimator.n_init, settings)


def _of_links(estimator: LinkPredictor, X: Any) -> PlannedFits:
    links = estimator._links(X, None)
    rank = min(check_integer("n_components", estimator.n_components, 1), links.n)
    problem = NormalisedGraph.of(links, estimator.degree_regularization).problem
    own = {"n_negative": estimator._n_negative_below(rank), "diagonal": problem.diagonal}
    return PlannedFits("", problem, rank, estimator.n_init, _without_penalty(estimator._settings()) | own)


def _of_clusters(estimator: SymReLUClustering, X: Any) -> list[PlannedFits]:
    problem = estimator._problem(X, None, estimator.diagonal)
    methods = estimator._methods()
    number = estimator.n_clusters
    if number is not None:
        number = check_integer("n_clusters", number, 1, problem.n, note=" (the number of items) or None")
        return [_of_method(estimator, method, problem, number) for method in methods]
    planned = [_of_method(estimator, method, problem, most_clusters(problem.n)) for method in methods]
    return [replace(plan, at_most=True) for plan in (_of_choice(estimator, methods[-1], problem), *planned)]


def _of_method(
    estimator: SymReLUClustering, method: ClusterMethod, problem: Problem, number: int
) -> PlannedFits:
    data = method.prepare(problem)
    rank = estimator._columns(method, number, problem.n)
    count, settings = estimator._fit_settings(method, data._replace(shrinkage=0.0), rank)
    return PlannedFits(method.name, data.problem, rank, count, settings)


def _of_choice(estimator: SymReLUClustering, method: ClusterMethod, problem: Problem) -> PlannedFits:
    """Return the fits that choose the number of clusters."""
    plan = _of_method(estimator, method, without_diagonal(problem), 1)
    columns = partial(estimator._columns, method, n=problem.n)
    rank, count = largest_choice(columns, problem.n, plan.count)
    return replace(plan, name=CHOICE, rank=rank, count=count, settings=plan.settings | {"checkpoint": None})


def _without_penalty(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"alpha": settings["alpha"] or 0.0}


def _many_fits() -> ValueError:
    return ValueError(
        "n_components must be given as a number for an estimate: how many fits it takes to choose it is not "
        "known."
    )
