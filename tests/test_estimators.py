"""SymReLU: scikit-learn's contract, and that it only forwards to decompose."""

import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from symrelu import AAPB, SymReLU, decompose
from symrelu.datasets import make_relu_gram
from symrelu.graphs import self_tuning_graph

CHECKED = [SymReLU(), SymReLU(affinity="self_tuning")]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_self_tuning_does_not_promise_to_keep_float32():
    X = np.random.default_rng(0).standard_normal((30, 3)).astype(np.float32)
    estimator = SymReLU(2, affinity="self_tuning", gtol=1e-1, random_state=0)
    assert estimator.fit_transform(X).dtype == np.float64
    assert estimator.__sklearn_tags__().transformer_tags.preserves_dtype == ["float64"]


@pytest.fixture
def M():
    return make_relu_gram(40, 3, random_state=0)[0]


def test_every_parameter_reaches_decompose(monkeypatch, M):
    """A test of the shell: each setting of the class is the argument of the same name of the function."""
    received = {}

    def spy(matrix, rank, **settings):
        received.update(settings, rank=rank)
        return decompose(matrix, rank, **{"random_state": 0, "max_iter": 1})

    monkeypatch.setattr("symrelu.estimators.base.decompose", spy)
    values = {
        "n_components": 3,
        "n_negative": 1,
        "diagonal": "ignore",
        "solver": AAPB(step_size=2),
        "alpha": 0.5,
        "zero_weight": 0.5,
        "init": "spectral",
        "tol": 1e-3,
        "gtol": 1e-5,
        "ftol": 1e-7,
        "max_iter": 11,
        "max_time": 7.0,
        "random_state": 4,
        "backend": "dense",
        "checkpoint": "fit.npz",
        "verbose": 1,
    }
    mask = np.eye(40, dtype=bool)
    with pytest.warns(ConvergenceWarning):
        SymReLU(**values).fit(M, mask=mask)
    values["rank"] = values.pop("n_components")
    assert received == {**values, "mask": mask, "callback": None}
    shared = set(inspect.signature(decompose).parameters) - {"M", "rank", "mask", "callback"}
    own = {"n_components", "affinity", "n_init", "n_jobs", "warm_start"}
    assert shared == set(SymReLU().get_params()) - own


def test_defaults_are_those_of_decompose():
    function = inspect.signature(decompose).parameters
    for name, value in SymReLU().get_params().items():
        if name in function and name != "tol":  # transform needs a closer fit
            assert value == function[name].default, name


def test_attributes_are_the_solution(M):
    estimator = SymReLU(3, random_state=0).fit(M)
    solution = decompose(M, 3, random_state=0, tol=1e-6)
    assert_array_equal(estimator.embedding_, solution.U)
    assert_array_equal(estimator.signature_, solution.signature)
    assert estimator.n_iter_ == solution.n_iter
    assert estimator.converged_
    assert estimator.stop_reason_ == solution.status.value
    assert len(estimator.history_) == solution.n_iter + 1
    X = solution.U @ solution.U.T
    assert_allclose(estimator.reconstruction_err_, np.linalg.norm(M - np.maximum(0, X)), rtol=1e-9)
    assert_allclose(estimator.relative_error_, solution.relative_error)
    assert estimator.n_features_in_ == 40
    assert_array_equal(SymReLU(3, random_state=0).fit_transform(M), solution.U)


def test_warns_with_advice_when_a_limit_ends_the_fit(M):
    with pytest.warns(ConvergenceWarning, match=r"max_iter was reached \(relative error .*Raise max_iter"):
        estimator = SymReLU(3, random_state=0, max_iter=2).fit(M)
    assert not estimator.converged_
    assert estimator.stop_reason_ == "max_iter was reached"


def test_pandas_in_and_out_keeps_the_index(M):
    pandas = pytest.importorskip("pandas")
    names = [f"gene{k}" for k in range(40)]
    frame = pandas.DataFrame(M, index=names, columns=names)
    estimator = SymReLU(3, random_state=0).set_output(transform="pandas")
    embedding = estimator.fit_transform(frame)
    assert list(embedding.index) == names
    assert list(embedding.columns) == ["symrelu0", "symrelu1", "symrelu2"]
    assert_array_equal(estimator.feature_names_in_, names)
    assert_array_equal(embedding.to_numpy(), SymReLU(3, random_state=0).fit_transform(M))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_sparse_input(M, kind):
    expected = SymReLU(3, random_state=0, max_iter=500).fit_transform(M)
    assert_allclose(SymReLU(3, random_state=0, max_iter=500).fit_transform(kind(M)), expected, atol=1e-8)


def test_float32_is_preserved(M):
    assert SymReLU(3, random_state=0).fit_transform(M.astype(np.float32)).dtype == np.float32


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_clone_and_pickle(M):
    estimator = SymReLU(3, solver=AAPB(step_size=5), random_state=0, max_iter=20)
    copy = clone(estimator)
    assert copy.solver == estimator.solver
    assert repr(copy) == repr(estimator)
    fitted = pickle.loads(pickle.dumps(estimator.fit(M)))
    assert_array_equal(fitted.embedding_, estimator.embedding_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_self_tuning_affinity_in_a_pipeline():
    X = np.random.default_rng(0).standard_normal((50, 4))
    model = SymReLU(5, affinity="self_tuning", diagonal="ignore", random_state=0, max_iter=20)
    embedding = make_pipeline(StandardScaler(), model).fit_transform(X)
    graph = self_tuning_graph(StandardScaler().fit_transform(X))
    assert_allclose(abs(model.affinity_matrix_ - graph).max(), 0)
    assert_array_equal(embedding, decompose(graph, 5, diagonal="ignore", random_state=0, max_iter=20).U)


def test_parameters_are_not_changed_by_fit(M):
    estimator = SymReLU(3, init=np.ones((40, 3)) + np.eye(40, 3), random_state=0, max_iter=500)
    before = {name: id(value) for name, value in estimator.get_params().items()}
    estimator.fit(M)
    assert {name: id(value) for name, value in estimator.get_params().items()} == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"affinity": "rbf"}, "affinity must be one of 'precomputed', 'self_tuning', got 'rbf'"),
        ({"n_components": 0}, "n_components must be an integer from 1 to 40"),
        ({"n_components": 41}, r"n_components must be an integer from 1 to 40 \(the number of items\), got 41"),
        ({"solver": "newton"}, "solver must be one of"),
    ],
)
def test_bad_settings(M, settings, message):
    with pytest.raises(ValueError, match=message):
        SymReLU(**settings).fit(M)


def test_objects_that_numpy_would_take_apart(M):
    networkx = pytest.importorskip("networkx")
    with pytest.raises(TypeError, match="X must be a matrix, got a networkx Graph"):
        SymReLU(2, affinity="self_tuning").fit(networkx.path_graph(4))
    with pytest.raises(TypeError, match="X must be a plain array, got a masked array"):
        SymReLU(2).fit(np.ma.masked_array(M, mask=M == 0))


def test_asymmetric_matrix_is_refused(M):
    M[0, 1] += 1.0
    with pytest.raises(ValueError, match=r"M must be symmetric: \|M - M.T\| reaches 1 at \(0, 1\)"):
        SymReLU(3).fit(M)
