"""SymReLU: scikit-learn's contract, and that it only forwards to decompose."""

import inspect
import pickle
from functools import cache

import numpy as np
import pytest
from joblib import Memory
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from symrelu import AAPB, SymReLU, decompose
from symrelu.datasets import make_relu_gram
from symrelu.fit.selection import select_rank
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
        received.update(settings, rank=rank, mask=matrix.mask)
        return decompose(matrix, rank, **{"random_state": 0, "max_iter": 1})

    monkeypatch.setattr("symrelu.estimators.base.decompose", spy)
    values = {
        "n_components": 3,
        "n_negative": 1,
        "diagonal": "ignore",
        "solver": AAPB(step_size=2),
        "shrinkage": 0.25,
        "zero_weight": 0.5,
        "support": "at_least",
        "init": "spectral",
        "tol": 1e-3,
        "gtol": 1e-5,
        "ftol": 1e-7,
        "max_iter": 11,
        "max_time": 7.0,
        "random_state": 4,
        "backend": "dense",
        "precision": "auto",
        "client": None,  # an address would need the backend of a cluster: tests/operators/test_dask.py
        "checkpoint": "fit.npz",
        "verbose": 1,
    }
    mask = np.eye(40, dtype=bool)
    with pytest.warns(ConvergenceWarning):
        SymReLU(**values).fit(M, mask=mask)
    values["rank"] = values.pop("n_components")
    unmasked = np.where(mask, 0, M)
    alpha = 2 * values.pop("shrinkage") * np.linalg.eigvalsh(unmasked)[-1]
    assert received.pop("alpha") == pytest.approx(alpha, rel=1e-9)
    assert received.pop("mask") is mask
    assert received == {**values, "callback": None}
    shared = set(inspect.signature(decompose).parameters) - {"M", "rank", "mask", "callback"}
    own = {"n_components", "affinity", "shrinkage", "n_init", "n_jobs", "warm_start"}
    assert shared == set(SymReLU().get_params()) - own


def test_defaults_are_those_of_decompose():
    function = inspect.signature(decompose).parameters
    own = {"tol": 1e-6, "n_negative": "auto", "diagonal": "auto", "alpha": None}
    for name, value in SymReLU().get_params().items():
        if name in function:
            assert value == own.get(name, function[name].default), name


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
    with pytest.warns(ConvergenceWarning, match=r"max_iter was reached\. Raise max_iter"):
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
    model = SymReLU(5, affinity="self_tuning", random_state=0, max_iter=20)
    embedding = make_pipeline(StandardScaler(), model).fit_transform(X)
    graph = self_tuning_graph(StandardScaler().fit_transform(X))
    assert_allclose(abs(model.affinity_matrix_ - graph).max(), 0)
    settings = {"n_negative": "auto", "diagonal": "ignore", "random_state": 0, "max_iter": 20}
    assert_array_equal(embedding, decompose(graph, 5, **settings).U)


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
        ({"solver": "gradient"}, "solver must be one of"),
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
    with pytest.raises(ValueError, match=r"X must be symmetric: \|X - X.T\| reaches 1 at \(0, 1\)"):
        SymReLU(3).fit(M)


# New items


def test_transform_of_fitted_and_new_items(M):
    estimator = SymReLU(3, random_state=0).fit(M[:30, :30])
    assert_allclose(estimator.transform(M[:30, :30]), estimator.embedding_, atol=1e-4)
    new = estimator.transform(M[30:, :30])
    assert_array_equal(new, decompose(M[:30, :30], 3, random_state=0, tol=1e-6).transform(M[30:, :30]))
    assert_array_equal(estimator.transform(sparse.csr_array(M[30:, :30])), new)
    mask = np.arange(30) % 2 == np.zeros((10, 1))
    wrong = np.where(mask, 9.0, M[30:, :30])  # the model is exact: without these entries it finds the same
    assert_allclose(estimator.transform(wrong, mask), new, atol=1e-4)
    assert not np.allclose(estimator.transform(wrong), new, atol=1e-1)


def test_transform_keeps_the_names_of_new_items(M):
    pandas = pytest.importorskip("pandas")
    names = [f"gene{k}" for k in range(40)]
    frame = pandas.DataFrame(M, index=names, columns=names)
    estimator = SymReLU(3, random_state=0).set_output(transform="pandas").fit(frame.iloc[:30, :30])
    new = estimator.transform(frame.iloc[30:, :30])
    assert list(new.index) == names[30:]
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.transform(frame.iloc[30:, :30].rename(columns={"gene0": "other"}))


@pytest.mark.parametrize("diagonal", ["fit", "ignore", "auto"])
def test_transform_of_samples(diagonal):
    X = np.random.default_rng(0).standard_normal((80, 3))
    model = SymReLU(4, affinity="self_tuning", diagonal=diagonal, shrinkage=0.01, random_state=0).fit(X[:70])
    assert model.diagonal_ == diagonal.replace("auto", "ignore")
    assert_array_equal(model.transform(X[60:70]), model.embedding_[60:70])
    rows, _ = model._graph.rows(X[70:])
    assert_array_equal(model.transform(X[70:]), model.solution_.transform(rows))
    assert model.score(X[:70]) > model.score(X[70:])
    with pytest.raises(ValueError, match="mask marks similarities: it requires affinity='precomputed'"):
        model.transform(X[70:], mask=np.zeros((10, 70), bool))
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X[70:]), model.transform(X[70:]))


def test_grid_search_hides_items():
    """scikit-learn cuts both axes of a pairwise matrix: the fit sees (n, n), the score (n_new, n)."""
    M, _ = make_relu_gram(90, 3, random_state=0)
    search = GridSearchCV(SymReLU(random_state=0), {"n_components": [1, 3]}, cv=3).fit(M)
    assert search.best_params_ == {"n_components": 3}
    assert search.best_score_ > 0.9
    first = cross_val_score(SymReLU(3, random_state=0), M, cv=KFold(3))[0]
    by_hand = SymReLU(3, random_state=0).fit(M[30:, 30:]).score(M[:30, 30:])
    assert_allclose(first, by_hand, rtol=1e-9)


def test_pipeline_with_new_samples():
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = SymReLU(3, affinity="self_tuning", shrinkage=0.05, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model, KMeans(3))
    pipeline.fit(X[:50])
    assert pipeline.predict(X[50:]).shape == (10,)


def test_joblib_memory(M, tmp_path):
    memory = Memory(tmp_path, verbose=0)
    calls = []

    def embed(matrix, model):
        calls.append(1)
        return model.fit_transform(matrix)

    cached = memory.cache(embed)
    first = cached(M, SymReLU(3, random_state=0))
    assert_array_equal(cached(M, SymReLU(3, random_state=0)), first)
    assert len(calls) == 1


def test_canonical_embedding(M):
    estimator = SymReLU(3, random_state=0).fit(M)
    rows = estimator.reconstruct([0, 1])
    expected = estimator.solution_.canonicalize().U
    assert estimator.canonicalize() is estimator
    assert_array_equal(estimator.embedding_, expected)
    assert_allclose(estimator.reconstruct([0, 1]), rows, atol=1e-10)
    assert_array_equal(estimator.reconstruct([0, 1]), np.maximum(0, expected[:2] @ expected.T))
    assert_allclose(estimator.transform(M), estimator.embedding_, atol=1e-4)
    turned = SymReLU(3, random_state=5).fit(M).canonicalize()
    assert_allclose(turned.embedding_, expected, atol=1e-3)


# Graphs of other libraries


def test_graphs_with_names():
    networkx = pytest.importorskip("networkx")
    graph = networkx.karate_club_graph()
    named = networkx.relabel_nodes(graph, {k: f"member {k}" for k in graph})
    model = SymReLU(4, random_state=0, shrinkage=0.05, gtol=1e-2)
    expected = clone(model).fit(networkx.to_scipy_sparse_array(graph, dtype=float))
    assert not hasattr(expected, "node_names_")
    fitted = clone(model).fit(named)
    assert_array_equal(fitted.embedding_, expected.embedding_)
    assert list(fitted.node_names_) == list(named)
    # The names of an earlier fit do not stay.
    assert not hasattr(fitted.fit(networkx.to_scipy_sparse_array(graph, dtype=float)), "node_names_")


def test_new_rows_by_the_names_of_the_columns(M):
    """Names that scikit-learn does not compare: numbers, and those of a graph."""
    pandas, networkx = pytest.importorskip("pandas"), pytest.importorskip("networkx")
    numbers = pandas.DataFrame(M, index=range(100, 140), columns=range(100, 140))
    model = SymReLU(3, random_state=0).fit(numbers.iloc[:30, :30])
    new = numbers.iloc[30:, :30]
    expected = model.transform(new.to_numpy())
    assert_array_equal(model.transform(new), expected)
    assert_array_equal(model.transform(new[new.columns[::-1]]), expected)
    with pytest.raises(
        ValueError, match="X must have a column for each of the 30 fitted items, got 29 columns"
    ):
        model.transform(new.iloc[:, 1:])
    graph = networkx.from_numpy_array(M[:30, :30])
    named = networkx.relabel_nodes(graph, {k: f"n{k}" for k in graph})
    model = SymReLU(3, random_state=0).fit(named)
    frame = pandas.DataFrame(M[30:, :30], columns=[f"n{k}" for k in range(30)])
    assert_array_equal(model.transform(frame[frame.columns[::-1]]), model.transform(frame.to_numpy()))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_new_rows_of_torch(M, layout):
    torch = pytest.importorskip("torch")
    model = SymReLU(3, random_state=0).fit(M[:30, :30])
    tensor = torch.tensor(M[30:, :30], requires_grad=True)
    tensor = tensor if layout == "dense" else tensor.detach().to_sparse()
    assert_array_equal(model.transform(tensor), model.transform(M[30:, :30]))


def test_a_later_fit_forgets_the_graph_of_an_earlier_one(M):
    model = SymReLU(3, affinity="self_tuning", random_state=0, gtol=1e-3)
    model.fit(np.random.default_rng(0).standard_normal((20, 3)))
    model.set_params(affinity="precomputed").fit(M)
    assert not hasattr(model, "affinity_matrix_")
    assert model.transform(M[:2]).shape == (2, 3)


def test_frames_whose_columns_are_in_another_order(M):
    pandas = pytest.importorskip("pandas")
    names = [f"gene{k}" for k in range(40)]
    frame = pandas.DataFrame(M, index=names, columns=names)
    fitted = SymReLU(3, random_state=0).fit(frame[names[::-1]])
    assert_array_equal(fitted.embedding_, SymReLU(3, random_state=0).fit(M).embedding_)
    assert list(fitted.feature_names_in_) == list(fitted.node_names_) == names


# The number of columns


def test_the_data_choose_the_number_of_columns():
    M, _ = make_relu_gram(80, 3, random_state=0)
    model = SymReLU("auto", random_state=0, max_iter=60, tol=1e-4).fit(M)
    assert model.embedding_.shape == (80, 3)
    settings = {"n_negative": "auto", "random_state": 0, "max_iter": 60}
    expected = select_rank(M, **settings, tol=1e-4)
    assert model.selection_.table == expected.table
    assert_array_equal(model.embedding_, decompose(M, 3, **settings).U)
    with pytest.raises(ValueError, match="n_components must be 'auto' or an integer, got 'best'"):
        SymReLU("best").fit(M)


def test_limits_that_are_not_given_are_those_of_a_selection(monkeypatch):
    received = {}

    def spy(problem, **settings):
        received.update(settings)
        return select_rank(problem, [2, 3], n_repeats=2, **settings)

    monkeypatch.setattr("symrelu.estimators.embedding.select_rank", spy)
    M, _ = make_relu_gram(40, 2, random_state=0)
    SymReLU("auto", random_state=0, max_iter=60, verbose=0).fit(M)
    assert (received["max_iter"], received["tol"], received["verbose"]) == (60, 1e-6, 0)
    assert "ftol" not in received


def test_the_default_number_of_columns():
    M, _ = make_relu_gram(40, 2, random_state=0)
    fitted = [SymReLU(tol=0.9, random_state=0).fit(part) for part in (M, M[:5, :5])]
    assert [model.embedding_.shape[1] for model in fitted] == [16, 5]


def test_automatic_number_of_columns_and_a_checkpoint(tmp_path, monkeypatch):
    """The choice is in the file: a fit that resumes does not choose again."""
    M, _ = make_relu_gram(60, 2, random_state=0)
    model = SymReLU("auto", max_iter=30, tol=1e-3, checkpoint=tmp_path / "auto.ckpt")
    first = clone(model).fit(M)
    monkeypatch.setattr("symrelu.estimators.embedding.select_rank", None)
    assert_array_equal(clone(model).fit(M).embedding_, first.embedding_)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"checkpoint": "no/such/folder/x"}, FileNotFoundError),
        ({"verbose": -1}, ValueError),
        ({"n_init": 0}, ValueError),
        ({"max_iter": "x"}, TypeError),
    ],
)
def test_wrong_settings_are_told_before_a_rank_is_chosen(M, settings, error, monkeypatch):
    monkeypatch.setattr("symrelu.estimators.embedding.select_rank", None)
    with pytest.raises(error):
        SymReLU("auto", **settings).fit(M)


def test_the_choice_of_an_earlier_fit_is_forgotten():
    M, _ = make_relu_gram(40, 2, random_state=0)
    model = SymReLU("auto", max_iter=20, tol=1e-2, random_state=0).fit(M)
    assert model.selection_.chosen["rank"] == model.embedding_.shape[1]
    assert not hasattr(model.set_params(n_components=2).fit(M), "selection_")
    with pytest.raises(TypeError, match=r"zero_weight must be a number in \(0, 1\], got 'x'"):
        model.set_params(n_components="auto", zero_weight="x").fit(M)


def test_automatic_number_of_columns_without_zeros():
    M = make_relu_gram(40, 2, random_state=0)[0] + 1.0
    model = SymReLU("auto", zero_weight=0.5, max_iter=20, gtol=1e-3, random_state=0).fit(M)
    assert model.selection_.scoring == "error"


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("value", [3.0, -2.0, 1e300, np.nan, np.inf])
def test_nothing_about_an_unknown_similarity_changes_a_new_item(M, value, kind):
    model = SymReLU(3, random_state=0).fit(M[:30, :30])
    mask = np.random.default_rng(2).random((10, 30)) < 0.2
    plain, other = kind(np.where(mask, 0, M[30:, :30])), kind(np.where(mask, value, M[30:, :30]))
    for unknown in (mask, sparse.csr_array(mask)):
        assert_array_equal(model.transform(other, unknown), model.transform(plain, mask))
        assert model.score(other, mask=unknown) == model.score(plain, mask=mask)


def test_a_rank_is_chosen_where_unknown_entries_are_the_only_zeros():
    M = np.exp(-np.abs(np.subtract.outer(np.arange(30.0), np.arange(30.0))) / 9)
    model = SymReLU("auto", zero_weight=0.5, diagonal="ignore", random_state=0, max_iter=300, ftol=1e-3).fit(M)
    assert model.selection_.scoring == "error"


def test_a_mask_of_samples_is_aligned_by_their_names():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.standard_normal((30, 3)), index=[f"s{k}" for k in range(30)])
    mask = np.triu(rng.random((30, 30)) < 0.1, 1)
    mask = pandas.DataFrame(mask | mask.T, X.index, X.index)
    order = rng.permutation(30)
    model = SymReLU(3, affinity="self_tuning", random_state=0, ftol=1e-3)
    expected = model.fit(X, mask=mask).embedding_
    assert_array_equal(model.fit(X, mask=mask.iloc[order, order]).embedding_, expected)


# The diagonal of a graph, which is not fitted


def weighted_graph(n=40, seed=0):
    """Return a graph with random weights, so that no two rows are equal, and without isolated nodes."""
    rng = np.random.default_rng(seed)
    W = np.triu((rng.random((n, n)) < 0.3) * (0.2 + rng.random((n, n))), 1)
    W[np.arange(n - 1), np.arange(1, n)] = 1.0
    return W + W.T


PENALISED = {"n_components": 4, "shrinkage": 0.2, "gtol": 1e-8, "ftol": 0, "max_iter": 4000, "random_state": 0}
ROWS = {
    "dense": np.asarray,
    "columns first": np.asfortranarray,
    "sparse": sparse.csr_array,
    "coo": sparse.coo_array,
}


def given_mask(n=40):
    mask = np.random.default_rng(5).random((n, n)) < 0.1
    return mask | mask.T


@cache
def fitted_to(form, with_mask):
    return SymReLU(**PENALISED).fit(ROWS[form](weighted_graph()), mask=given_mask() if with_mask else None)


@pytest.mark.parametrize("asked", ROWS)
@pytest.mark.parametrize("fitted", ROWS)
@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("rows", [slice(None), slice(10), [7, 3, 3]])
def test_fitted_rows_get_their_own_embedding(fitted, asked, with_mask, rows):
    M, mask = weighted_graph(), given_mask() if with_mask else None
    model = fitted_to(fitted, with_mask)
    assert model.diagonal_ == model.solution_.diagonal == "ignore"
    some = ROWS[asked](M[rows]), None if mask is None else mask[rows]
    assert_array_equal(model.transform(*some), model.embedding_[rows])
    # Solved for, with their own entries left out, they are the same up to the convergence of the fit.
    M_new, unknown, same = model._new_rows(*some)
    assert_array_equal(same, np.arange(40)[rows])
    solved = model.solution_.model.transform_checked(M_new, unknown)
    assert_allclose(solved, model.embedding_[rows], atol=1e-6)
    own = np.eye(40, dtype=bool)[rows]
    hidden = own if mask is None else own | mask[rows]
    assert_allclose(model.score(some[0], mask=some[1]), model.solution_.model.score(M[rows], hidden), rtol=1e-9)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.transform(*some), model.embedding_[rows])


def test_a_fitted_row_with_other_unobserved_entries_is_solved_for():
    M, mask = weighted_graph(), given_mask()
    model = SymReLU(**PENALISED).fit(M)
    zeros = mask & (M == 0)  # the nonzeros stay, so the row is recognised
    expected = model.solution_.transform(M, zeros | np.eye(40, dtype=bool))
    assert_allclose(model.transform(M, zeros), expected, rtol=0, atol=1e-12)


def test_rows_are_recognised_in_float32_and_with_rounding_errors():
    M = weighted_graph().astype(np.float32)
    model = SymReLU(**PENALISED).fit(M.astype(np.float64))
    assert_array_equal(model.transform(M), model.embedding_)
    lopsided = M.astype(np.float64)
    lopsided[np.triu_indices(40, 1)] *= 1 + 1e-14  # averaged by the fit
    model = SymReLU(**PENALISED).fit(lopsided)
    assert_array_equal(model.transform(lopsided), model.embedding_)


@pytest.mark.parametrize("value", [0.0, 1.0, np.nan, -1.0])
def test_the_diagonal_of_fitted_rows_may_be_anything_that_was_fitted(value):
    M = weighted_graph()
    model = SymReLU(**PENALISED, diagonal="ignore").fit(M + np.diag(np.full(40, value)))
    expected = SymReLU(**PENALISED).fit(M)
    assert_array_equal(model.embedding_, expected.embedding_)
    if value >= 0:
        assert_array_equal(model.transform(M + np.diag(np.full(40, value))), model.embedding_)
    else:
        with pytest.raises(ValueError, match="X must "):
            model.transform(M + np.diag(np.full(40, value)))


@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("value", [0.0, 1.0, np.nan])
def test_the_own_entry_of_a_fitted_row_may_be_left_out(value, with_mask):
    M, mask = weighted_graph(), given_mask() if with_mask else None
    model = SymReLU(**PENALISED, diagonal="ignore").fit(M + np.diag(np.full(40, value)), mask=mask)
    own = np.eye(40, dtype=bool) if mask is None else mask | np.eye(40, dtype=bool)
    assert_array_equal(model.transform(M + np.diag(np.full(40, value)), mask=own), model.embedding_)
    assert_array_equal(model.transform(M, mask=mask), model.embedding_)
    assert_array_equal(model.transform(sparse.csr_array(M), mask=sparse.csr_array(own)), model.embedding_)


def test_an_isolated_item_gets_its_own_row():
    M = weighted_graph()
    M[7] = M[:, 7] = 0
    model = SymReLU(4, diagonal="ignore", shrinkage=0.0, gtol=1e-2, tol=1e-2, random_state=0).fit(M)
    assert_array_equal(model.transform(np.zeros((1, 40))), model.embedding_[[7]])


def test_new_and_changed_rows_are_not_recognised():
    M = weighted_graph(41)
    model = SymReLU(**PENALISED).fit(M[:40, :40])
    expected = model.solution_.transform(M[40:, :40])
    assert_array_equal(model.transform(M[40:, :40]), expected)
    changed = M[:40, :40] * (1 + 1e-12)
    assert_array_equal(model.transform(changed), model.solution_.transform(changed))


def test_of_equal_rows_the_first_is_meant():
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1.0
    model = SymReLU(2, shrinkage=0.1, random_state=0).fit(star)
    assert model._new_rows(star, None)[2].tolist() == [0, 1, 1, 1, 1, 1]
    assert_array_equal(model.transform(star), model.embedding_[[0, 1, 1, 1, 1, 1]])


def test_rows_are_kept_only_if_the_diagonal_is_not_fitted(M):
    model = SymReLU(3, random_state=0).fit(M)
    assert model.diagonal_ == "fit"
    assert not hasattr(model, "_row_index")
    assert hasattr(model.set_params(diagonal="ignore", shrinkage=0.1).fit(M), "_row_index")
    assert not hasattr(model.set_params(diagonal="fit").fit(M), "_row_index")
    with pytest.raises(AttributeError):
        _ = SymReLU().diagonal_


# Units, and the penalty without units


UNITS = {
    "the defaults": {"shrinkage": 0.05},
    "the paper's model": {"n_negative": 0, "diagonal": "fit", "shrinkage": 0.05},
    "no penalty": {"n_negative": 0, "diagonal": "fit"},
    "weighted zeros": {"zero_weight": 0.3, "shrinkage": 0.05},
    "a strong penalty": {"shrinkage": 0.5},
    "a random start": {"init": "random", "shrinkage": 0.05},
    "rank chosen": {"n_components": "auto", "shrinkage": 0.05, "max_iter": 30, "ftol": 1e-3},
}


@cache
def fitted_in_units(case, scale):
    settings = {"n_components": 3, "random_state": 0, "max_iter": 60, **UNITS[case]}
    return SymReLU(**settings).fit(scale * weighted_graph(24))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("case", UNITS)
def test_units_of_the_matrix_are_units_of_the_embedding(case, scale):
    M = weighted_graph(24)
    one, other = fitted_in_units(case, 1.0), fitted_in_units(case, scale)
    assert other.embedding_.shape == one.embedding_.shape
    assert (other.n_iter_, other.stop_reason_, other.diagonal_) == (
        one.n_iter_,
        one.stop_reason_,
        one.diagonal_,
    )
    assert_array_equal(other.signature_, one.signature_)
    size = np.abs(one.embedding_).max()
    assert_allclose(other.embedding_ / np.sqrt(scale), one.embedding_, rtol=0, atol=1e-6 * size)
    assert_allclose(other.solution_.alpha, scale * one.solution_.alpha, rtol=1e-9)
    assert_allclose(other.relative_error_, one.relative_error_, rtol=1e-6)
    assert_allclose(other.score(scale * M), one.score(M), rtol=1e-6)


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 0.7, 1.05])
@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
def test_shrinkage_lowers_the_eigenvalues(shrinkage, diagonal):
    """Without zeros in M, and with the diagonal fitted, by exactly that share of the largest one."""
    G = 0.5 + np.random.default_rng(0).random((12, 3))
    M = G @ G.T
    model = SymReLU(3, n_negative=0, diagonal=diagonal, shrinkage=shrinkage, gtol=1e-9, tol=0, random_state=0)
    if shrinkage > 1:
        with pytest.warns(ConvergenceWarning, match="the factor became zero.* Lower shrinkage, which"):
            model.fit(M)
        assert np.linalg.norm(model.embedding_) < 1e-3 * np.linalg.norm(G)
        return
    model.fit(M)
    observed = M if diagonal == "fit" else M - np.diag(np.diag(M))
    exact = np.linalg.eigvalsh(observed)[::-1]
    assert_allclose(model.solution_.alpha, 2 * shrinkage * exact[0], rtol=1e-9)
    if diagonal == "fit":
        values = np.linalg.eigvalsh(model.embedding_ @ model.embedding_.T)[::-1][:3]
        assert_allclose(values, np.maximum(exact[:3] - shrinkage * exact[0], 0), atol=1e-4 * exact[0])


@pytest.mark.parametrize(
    ("shrinkage", "error"), [(-0.1, ValueError), (np.nan, ValueError), ("auto", TypeError), (True, TypeError)]
)
def test_bad_shrinkage(M, shrinkage, error):
    with pytest.raises(error, match="shrinkage must be a finite number >= 0"):
        SymReLU(3, shrinkage=shrinkage).fit(M)


def test_shrinkage_reaches_the_selection_of_the_rank():
    M = weighted_graph(30)
    model = SymReLU("auto", shrinkage=0.2, max_iter=60, ftol=1e-2, random_state=0).fit(M)
    alpha = {row["alpha"] for row in model.selection_.table}
    assert alpha == {model.solution_.alpha} == {model.selection_.chosen["alpha"]}
    assert model.selection_.chosen["diagonal"] == "ignore"


def test_one_column_is_positive():
    model = SymReLU(1, shrinkage=0.1, random_state=0).fit(weighted_graph())
    assert model.signature_.tolist() == [1.0]


def test_a_warm_start_keeps_the_signs():
    model = SymReLU(4, shrinkage=0.1, warm_start=True, gtol=1e-2, random_state=0)
    signs = model.fit(weighted_graph()).signature_
    assert signs.min() < 0
    # Without zeros, "auto" alone would choose no negative column.
    assert_array_equal(model.fit(np.ones((40, 40))).signature_, signs)
