"""Settings of a clustering whose defaults depend on the method."""

import numpy as np
import pytest

from symrelu import SymReLUClustering
from symrelu.estimators.cluster_settings import ClusterSettingsMixin
from symrelu.fit.cluster_methods import METHODS
from symrelu.problem import Problem


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_what_is_not_given_comes_from_the_method(method):
    assert issubclass(SymReLUClustering, ClusterSettingsMixin)
    plain = SymReLUClustering()._of(method)
    for name in ("zero_weight", "init", "max_iter", "n_init"):
        assert plain[name] == getattr(method, name)
    given = SymReLUClustering(zero_weight=0.3, init="imputed", max_iter=7, n_init=2)._of(method)
    assert (given["zero_weight"], given["init"], given["max_iter"], given["n_init"]) == (0.3, "imputed", 7, 2)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("shrinkage", [None, 0.0, 0.5])
def test_shrinkage_that_is_not_given_comes_from_the_data(method, shrinkage):
    data = method.prepare(Problem.of(np.ones((6, 6)), None, "ignore"))
    _, settings = SymReLUClustering(shrinkage=shrinkage)._fit_settings(method, data, 3)
    assert settings["alpha"] == data.problem.alpha_of(data.shrinkage if shrinkage is None else shrinkage)


@pytest.mark.parametrize(("method", "names"), [("auto", list(METHODS)), *((name, [name]) for name in METHODS)])
def test_methods(method, names):
    assert [one.name for one in SymReLUClustering(method=method)._methods()] == names
