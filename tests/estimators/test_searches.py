"""Warnings of fits that a limit ended, alone and in a search."""

import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.validation import check_is_fitted

from symrelu import LinkPredictor, SymReLU, SymReLUClustering
from symrelu.datasets import make_relu_gram
from symrelu.estimators import searches
from symrelu.graphs import self_tuning_graph


@pytest.fixture
def M():
    return make_relu_gram(40, 3, random_state=0)[0]


STOPPED = {
    "SymReLU": lambda path: SymReLU(3, max_iter=2, checkpoint=path, random_state=0),
    "clustering": lambda path: SymReLUClustering(3, max_time=1e-9, checkpoint=path, random_state=0),
    "links": lambda path: LinkPredictor(3, max_time=1e-9, random_state=0),
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_warning_that_is_raised_loses_nothing(name, M, tmp_path):
    """Issue 11.12: all that a fit sets is set before the warning."""
    path = tmp_path / "fit.ckpt"
    model = STOPPED[name](path)
    with pytest.raises(ConvergenceWarning):  # as pytest is told to raise all warnings
        model.fit(M)
    check_is_fitted(model)
    assert path.exists() == (name != "links")
    with pytest.warns(ConvergenceWarning):
        other = STOPPED[name](tmp_path / "other.ckpt").fit(M)
    assert set(vars(model)) == set(vars(other))
    assert_array_equal(model.embedding_, other.embedding_)
    if name == "SymReLU":
        assert_array_equal(model.transform(M), other.transform(M))
    if name == "clustering":
        assert_array_equal(model.labels_, other.labels_)
    if name == "links":
        assert_array_equal(model.top_links(5)[0], other.top_links(5)[0])


def grid_search(model, M, **settings):
    grid = {"n_components": [1, 2, 3, 4, 5], "alpha": [0.0, 0.1]}
    return GridSearchCV(model, grid, cv=KFold(5, shuffle=True, random_state=0), **settings).fit(M)


def shown(call, action="default"):
    """Return the ConvergenceWarnings that are shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        call()
    return [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


def test_a_search_of_ordinary_fits_converges():
    """Issue 11.17: the defaults end all 51 fits by a stopping test."""
    M = self_tuning_graph(load_digits().data[:60])
    assert shown(lambda: grid_search(SymReLU(random_state=0), M), "always") == []


def test_a_search_of_fits_that_a_limit_ends_warns_once(M, monkeypatch):
    monkeypatch.setattr(searches, "_shown", set())
    model = SymReLU(max_iter=3, random_state=0)
    texts = shown(lambda: grid_search(model, M))
    assert len(texts) == 2, "one of the parts that are fitted, one of the whole"
    assert "max_iter was reached. Raise max_iter" in texts[0]
    assert "which is shown only once" in texts[0]
    assert len(shown(lambda: model.fit(M))) == 1  # no clone
    assert len(shown(lambda: clone(model).fit(M[:31, :31]))) == 1  # of other data
    assert len(shown(lambda: grid_search(model, M), "always")) == 51
    with pytest.raises(ValueError, match="All the 50 fits failed"):  # not the first alone
        shown(lambda: grid_search(model, M, refit=False), "error")


def test_the_warning_of_a_limit_tells_the_settings_and_what_would_help(M):
    first = shown(lambda: SymReLU(3, max_iter=2, random_state=0).fit(M), "always")
    assert "SymReLU(max_iter=2, n_components=3, random_state=0) stopped before convergence" in first[0]
    assert "a small alpha > 0" not in first[0]
    ignoring = SymReLU(3, max_iter=2, diagonal="ignore", random_state=0)
    assert "may have no minimum" in shown(lambda: ignoring.fit(M), "always")[0]
    ignoring.set_params(alpha=0.1)
    assert "may have no minimum" not in shown(lambda: ignoring.fit(M), "always")[0]


def test_a_search_shows_the_warning_of_distances_once(monkeypatch):
    monkeypatch.setattr(searches, "_shown", set())
    X = np.random.default_rng(0).standard_normal((40, 2))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    texts = shown(lambda: grid_search(SymReLU(random_state=0, max_iter=300, alpha=0.1), D))
    assert sum("looks like a matrix of distances" in text for text in texts) <= 2


def test_clones_are_alike_to_a_cache():
    """A mark that differs from clone to clone would keep joblib from finding anything again."""
    model = SymReLU(3, random_state=0)
    before = joblib.hash(model)
    assert joblib.hash(clone(model)) == joblib.hash(clone(SymReLU(3, random_state=0)))
    assert joblib.hash(model) == before
