"""What an estimator is going to fit, compared with what it fits."""

import numpy as np
import pytest

from symrelu import LinkPredictor, SymReLU, SymReLUClustering, decompose, estimate_cost
from symrelu.estimators import base
from symrelu.estimators.planned_fits import planned_fits
from symrelu.fit import cluster_number
from symrelu.graphs import self_tuning_graph

M = self_tuning_graph(np.random.default_rng(0).random((60, 2)), 6)
GRAPH = {"affinity": "precomputed"}

ESTIMATORS = {
    "embedding": SymReLU(random_state=0, max_iter=3),
    "embedding of few columns": SymReLU(2, random_state=0, max_iter=3, n_init=2, diagonal="fit", shrinkage=0.1),
    "links": LinkPredictor(random_state=0, max_iter=3),
    "links of one column": LinkPredictor(1, random_state=0, max_iter=3, n_init=1),
    "clusters": SymReLUClustering(3, random_state=0, max_iter=3, **GRAPH),
    "many clusters": SymReLUClustering(20, method="linkage", random_state=0, max_iter=3, **GRAPH),
    "directions": SymReLUClustering(2, method="directions", n_init=2, random_state=0, max_iter=3, **GRAPH),
}


def fits_of(estimator, monkeypatch):
    """Return the shape, the number of entries and the settings of all fits that an estimator makes."""
    made = []

    def noted(problem, rank, callback=None, **settings):
        made.append((problem, rank, settings))
        return decompose(problem, rank, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(base, "decompose", noted)
        estimator.fit(M)
    return made


def without_values(settings):
    """Return the settings that a cost may depend on: not the values of a penalty and a seed."""
    return {name: value for name, value in settings.items() if name not in ("alpha", "random_state")}


@pytest.mark.filterwarnings("ignore")  # of fits that are short on purpose
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_fits_that_are_planned_are_made(name, monkeypatch):
    made = fits_of(ESTIMATORS[name], monkeypatch)
    planned = [plan for plan in planned_fits(ESTIMATORS[name], M) for _ in range(plan.count)]
    assert len(planned) == len(made)
    for plan, (problem, rank, settings) in zip(planned, made, strict=True):
        assert (plan.problem.n, plan.problem.M.nnz, plan.problem.dtype) == (
            problem.n,
            problem.M.nnz,
            problem.dtype,
        )
        assert (plan.problem.diagonal, plan.rank) == (problem.diagonal, rank)
        assert without_values(plan.settings) == without_values(settings)


def test_the_methods_have_names():
    assert [plan.name for plan in planned_fits(ESTIMATORS["clusters"], M)] == ["linkage", "directions"]
    assert [plan.name for plan in planned_fits(ESTIMATORS["links"], M)] == [""]


def test_plans_have_the_settings_of_an_estimate():
    (plan,) = planned_fits(ESTIMATORS["links"], M)
    assert estimate_cost(plan.problem, plan.rank, **plan.settings).rank == 16


@pytest.mark.filterwarnings("ignore")  # of fits that are short on purpose
@pytest.mark.parametrize("method", ["auto", "linkage"])
def test_without_a_number_of_clusters_the_plans_are_upper_bounds(method, monkeypatch):
    estimator = SymReLUClustering(None, method=method, random_state=0, max_iter=3, **GRAPH)
    choice, *methods = planned_fits(estimator, M)
    tried = []

    def noted(problem, rank, **settings):
        tried.append((rank, without_values(settings)))
        return decompose(problem, rank, **settings)

    monkeypatch.setattr(cluster_number, "decompose", noted)
    made = fits_of(estimator, monkeypatch)
    assert choice.name == "choice"
    assert all(plan.at_most for plan in (choice, *methods))
    assert 0 < len(tried) <= choice.count
    assert max(rank for rank, _ in tried) <= choice.rank
    assert without_values(tried[0][1]) == without_values(choice.settings)
    planned = [plan for plan in methods for _ in range(plan.count)]
    assert len(planned) == len(made)
    for plan, (_, rank, _) in zip(planned, made, strict=True):
        assert rank <= plan.rank


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SymReLU("auto"), "n_components must be given as a number"),
        (SymReLU(61), "n_components must be an integer from 1 to 60"),
        (SymReLUClustering(61, **GRAPH), "n_clusters must be an integer from 1 to 60"),
    ],
)
def test_what_cannot_be_planned(estimator, message):
    with pytest.raises(ValueError, match=message):
        planned_fits(estimator, M)
