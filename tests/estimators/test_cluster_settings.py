"""Settings of a clustering whose defaults depend on the method."""

import pytest

from symrelu import SymReLUClustering
from symrelu.estimators.cluster_settings import ClusterSettingsMixin
from symrelu.fit.cluster_methods import METHODS


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_what_is_not_given_comes_from_the_method(method):
    assert issubclass(SymReLUClustering, ClusterSettingsMixin)
    plain = SymReLUClustering()._of(method)
    for name in ("shrinkage", "zero_weight", "init", "max_iter", "n_init"):
        assert plain[name] == getattr(method, name)
    given = SymReLUClustering(shrinkage=0.5, zero_weight=0.3, init="imputed", max_iter=7, n_init=2)._of(method)
    assert (given["shrinkage"], given["zero_weight"], given["init"]) == (0.5, 0.3, "imputed")
    assert (given["max_iter"], given["n_init"]) == (7, 2)


@pytest.mark.parametrize(("method", "names"), [("auto", list(METHODS)), *((name, [name]) for name in METHODS)])
def test_methods(method, names):
    assert [one.name for one in SymReLUClustering(method=method)._methods()] == names
