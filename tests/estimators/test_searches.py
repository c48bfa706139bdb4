"""Warnings of fits that a limit ended, alone and in a search."""

import re
import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.validation import check_is_fitted

from symrelu import LinkPredictor, SymReLU, SymReLUClustering
from symrelu.datasets import make_relu_gram
from symrelu.estimators import searches
from symrelu.graphs import self_tuning_graph
from symrelu.kernels import one_time_warnings


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


def grid_search(model, M, ranks=(1, 3), shrinkages=(0.0, 0.05), **settings):
    grid = {"n_components": list(ranks), "shrinkage": list(shrinkages)}
    return GridSearchCV(model, grid, cv=KFold(4, shuffle=True, random_state=0), **settings).fit(M)


def shown(call, action="default"):
    """Return the ConvergenceWarnings that are shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        call()
    return [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


@pytest.mark.parametrize(
    ("model", "shrinkages"),
    [({"n_negative": 0, "diagonal": "fit"}, [0.0, 0.05]), ({}, [0.02, 0.05])],
    ids=["the paper's model", "the defaults"],
)
def test_a_search_of_ordinary_fits_converges(model, shrinkages):
    """A stopping test ends all 41 fits. Without shrinkage, the loss of a signed model may have no minimum."""
    M = self_tuning_graph(load_digits().data[:60])
    estimator = SymReLU(**model, random_state=0)
    texts = shown(lambda: grid_search(estimator, M, ranks=(1, 2, 3, 4, 5), shrinkages=shrinkages), "always")
    assert texts == []


def test_a_search_of_fits_that_a_limit_ends_warns_once(M, monkeypatch):
    monkeypatch.setattr(searches, "_shown", set())
    model = SymReLU(max_iter=3, random_state=0)
    texts = shown(lambda: grid_search(model, M))
    assert len(texts) == 2, "one of the parts that are fitted, one of the whole"
    assert "max_iter was reached. Raise max_iter" in texts[0]
    assert "which is shown only once" in texts[0]
    assert len(shown(lambda: model.fit(M))) == 1  # no clone
    assert len(shown(lambda: clone(model).fit(M[:31, :31]))) == 1  # of other data
    assert len(shown(lambda: grid_search(model, M), "always")) == 17
    with pytest.raises(ValueError, match="All the 16 fits failed"):  # not the first alone
        shown(lambda: grid_search(model, M, refit=False), "error")


def test_the_warning_of_a_limit_tells_the_settings_and_what_would_help(M):
    first = shown(lambda: SymReLU(3, max_iter=2, random_state=0).fit(M), "always")
    assert "SymReLU(max_iter=2, n_components=3, random_state=0) stopped before convergence" in first[0]
    assert "a small shrinkage > 0" not in first[0]
    ignoring = SymReLU(3, max_iter=2, diagonal="ignore", random_state=0)
    assert "may have no minimum" in shown(lambda: ignoring.fit(M), "always")[0]
    assert "a small shrinkage > 0" in shown(lambda: ignoring.fit(M), "always")[0]
    ignoring.set_params(shrinkage=0.1)
    assert "may have no minimum" not in shown(lambda: ignoring.fit(M), "always")[0]


def test_a_search_shows_the_warning_of_distances_once(monkeypatch):
    monkeypatch.setattr(searches, "_shown", set())
    X = np.random.default_rng(0).standard_normal((40, 2))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    texts = shown(lambda: grid_search(SymReLU(random_state=0, max_iter=300), D))
    assert sum("looks like a matrix of distances" in text for text in texts) <= 2


# Changed defaults


@pytest.fixture
def _nothing_said(monkeypatch):
    monkeypatch.setattr(one_time_warnings, "_already_warned", {})


def said(*fits):
    """Return the FutureWarnings that are shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for fit in fits:
            fit()
    return [w for w in caught if issubclass(w.category, FutureWarning)]


RING = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
QUICK = {"n_components": 3, "shrinkage": 0.1, "random_state": 0}


CHANGED = {
    "n_components": r"n_components=None chose 12 for this X. Pass n_components=8 to keep",
    "n_negative": r"n_negative='auto' chose [14] for this X. Pass n_negative=0 to keep",
    "diagonal": r"diagonal='auto' chose 'ignore' for this X. Pass diagonal='fit' to keep",
}
DEFAULTS = {"shrinkage": 0.1, "random_state": 0, "gtol": 1e-2}


@pytest.mark.usefixtures("_nothing_said")
@pytest.mark.parametrize(
    ("explicit", "expected"),
    [
        ({}, ["n_components", "n_negative", "diagonal"]),
        ({"n_components": 3}, ["n_negative", "diagonal"]),
        ({"diagonal": "ignore"}, ["n_components", "n_negative"]),  # as for graphs in 0.1.0
        ({"diagonal": "fit", "n_negative": 1}, ["n_components"]),
        ({"n_components": 3, "n_negative": 0}, ["diagonal"]),
        ({"n_components": 8, "n_negative": 0, "diagonal": "fit"}, []),
        ({"n_components": "auto", "n_negative": 1, "diagonal": "ignore"}, []),
    ],
)
def test_each_changed_default_is_told_once(explicit, expected):
    told = said(*(lambda: SymReLU(**DEFAULTS, **explicit).fit(RING),) * 2)
    assert len(told) == len(expected)
    for one, parameter in zip(told, expected, strict=True):
        assert one.filename == __file__
        text = str(one.message)
        assert re.match(
            f"The default {parameter} of SymReLU changed in symrelu 0.2.0: {CHANGED[parameter]}", text
        )
        assert text.endswith("for the same fit without this warning, which is shown only once.")


@pytest.mark.usefixtures("_nothing_said")
def test_a_default_told_does_not_hide_another():
    first, later = (
        said(lambda one=one: SymReLU(**DEFAULTS, **one).fit(RING)) for one in ({"n_components": 3}, {})
    )
    assert [str(one.message).split()[2] for one in (*first, *later)] == [
        "n_negative",
        "diagonal",
        "n_components",
    ]


@pytest.mark.usefixtures("_nothing_said")
@pytest.mark.parametrize("n", [3, 8])
def test_a_small_matrix_has_no_more_columns_than_before(n):
    assert said(lambda: SymReLU(**DEFAULTS).fit(np.ones((n, n)))) == []


@pytest.mark.usefixtures("_nothing_said")
def test_the_same_model_as_before_is_not_told(M):
    model = SymReLU(3, random_state=0)
    assert said(lambda: model.fit(M)) == []
    assert (model.solution_.n_negative, model.diagonal_) == (0, "fit")
    others = (SymReLUClustering(2, random_state=0), LinkPredictor(2, random_state=0))
    assert said(*(lambda other=other: other.fit(RING) for other in others)) == []


@pytest.mark.usefixtures("_nothing_said")
def test_changed_defaults_never_end_a_fit(caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SymReLU(**QUICK).fit(RING).converged_
    assert "The default n_negative of SymReLU changed" in caplog.text


def test_alpha_is_deprecated():
    new = SymReLU(3, shrinkage=0.1, random_state=0).fit(RING)
    assert new.solution_.alpha == pytest.approx(0.4)  # the largest eigenvalue is 2
    told = said(lambda: SymReLU(3, alpha=0.4, diagonal="ignore", random_state=0).fit(RING))
    assert len(told) == 1
    assert told[0].filename == __file__
    assert "alpha of SymReLU is deprecated and will be removed in symrelu 0.3.0. Pass shrinkage=0.1 " in str(
        told[0].message
    )
    with pytest.warns(FutureWarning, match="shrinkage=0.1 instead"):
        old = SymReLU(3, diagonal="ignore", random_state=0).set_params(alpha=0.4).fit(RING)
    assert old.solution_.alpha == 0.4
    assert_allclose(old.embedding_, new.embedding_, rtol=1e-6, atol=1e-6)
    with pytest.warns(FutureWarning, match="shrinkage=0 instead"):
        SymReLU(2, alpha=0.0, n_negative=0, random_state=0).fit(np.eye(4))


def test_alpha_in_a_search_is_told_once(monkeypatch, M):
    monkeypatch.setattr(searches, "_shown", set())
    search = GridSearchCV(SymReLU(2, random_state=0), {"alpha": [0.1, 0.2]}, cv=3, refit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        search.fit(M)
    assert sum("alpha of SymReLU is deprecated" in str(w.message) for w in caught) <= 2  # two sizes of parts


@pytest.mark.parametrize("alpha", [0, 0.0, 0.3])
def test_alpha_and_shrinkage_together(alpha, monkeypatch):
    monkeypatch.setattr("symrelu.estimators.base.Problem", None)  # before any work
    with pytest.raises(ValueError, match=r"alpha and shrinkage set the same penalty.*Pass shrinkage alone"):
        SymReLU(2, alpha=alpha, shrinkage=0.1).fit(RING)


def test_clones_are_alike_to_a_cache():
    """A mark that differs from clone to clone would keep joblib from finding anything again."""
    model = SymReLU(3, random_state=0)
    before = joblib.hash(model)
    assert joblib.hash(clone(model)) == joblib.hash(clone(SymReLU(3, random_state=0)))
    assert joblib.hash(model) == before
