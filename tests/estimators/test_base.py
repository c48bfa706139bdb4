"""What all estimators share: their input, several fits, warm starts, messages."""

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from symrelu import LinkPredictor, NeighborEmbedding, Status, SymReLU, SymReLUClustering, decompose
from symrelu.datasets import load_digits_graph, make_relu_gram

pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def M():
    return make_relu_gram(40, 3, random_state=0)[0]


def test_restarts_keep_the_best():
    M = load_digits_graph()[0][:60, :60]
    model = {"n_components": 4, "init": "random", "random_state": 0, "gtol": 1e-2}
    single = SymReLU(**model).fit(M)
    several = SymReLU(n_init=4, **model).fit(M)
    assert several.solution_.objective <= single.solution_.objective
    with parallel_config("threading"):
        parallel = SymReLU(n_init=4, n_jobs=2, **model).fit(M)
    assert_array_equal(parallel.embedding_, several.embedding_)
    for seed in (np.random.RandomState, np.random.default_rng):
        first, second = (SymReLU(n_init=2, **{**model, "random_state": seed(0)}).fit(M) for _ in range(2))
        assert_array_equal(first.embedding_, second.embedding_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_init": 0}, "n_init must be an integer of at least 1, got 0"),
        ({"n_init": 2, "init": np.ones((40, 3))}, "n_init > 1 requires different starts"),
        ({"n_init": 2, "checkpoint": "a.ckpt"}, "A checkpoint belongs to one fit: pass n_init=1"),
    ],
)
def test_bad_restarts(M, settings, message):
    with pytest.raises(ValueError, match=message):
        SymReLU(3, **settings).fit(M)


def test_warm_start_goes_on(M):
    estimator = SymReLU(3, random_state=0, max_iter=3, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        first = estimator.fit(M).relative_error_
    with pytest.warns(ConvergenceWarning):
        assert estimator.fit(M).relative_error_ < first
    assert_allclose(estimator.history_.relative_error[0], first, rtol=1e-9)
    with pytest.raises(ValueError, match=r"warm_start=True continues from the last factor, of shape \(40, 3\)"):
        estimator.fit(M[:30, :30])
    estimator.set_params(warm_start=False, max_iter=1000).fit(M[:30, :30])
    assert estimator.embedding_.shape == (30, 3)


def test_interrupted_restarts(M, monkeypatch):
    fits = []

    def interrupted(*arguments, **settings):
        fits.append(replace(decompose(*arguments, **settings), status=Status.INTERRUPTED))
        return fits[-1]

    monkeypatch.setattr("symrelu.estimators.base.decompose", interrupted)
    with pytest.warns(ConvergenceWarning, match="the fit was interrupted"):
        SymReLU(2, n_init=4, random_state=0).fit(M)
    assert len(fits) == 1


@pytest.mark.blas_threads
def test_same_seed_same_factor_on_any_number_of_threads():
    M, _ = make_relu_gram(700, 10, random_state=0)
    fitted = {}
    for threads in (1, 2, 1, 2):
        with threadpool_limits(threads, "blas"):
            model = SymReLU(8, random_state=0, max_iter=12, tol=0, gtol=0, ftol=0)
            with pytest.warns(ConvergenceWarning):
                embedding = model.fit_transform(M)
        if threads in fitted:
            assert_array_equal(embedding, fitted[threads])
        fitted[threads] = embedding
    assert_allclose(fitted[1], fitted[2], rtol=0, atol=1e-10 * np.abs(fitted[1]).max())


@pytest.mark.parametrize("kind", ["anndata", "torch"])
@pytest.mark.parametrize("model", [SymReLU, SymReLUClustering, LinkPredictor])
def test_all_estimators_read_what_other_libraries_hold(M, kind, model):
    library = pytest.importorskip(kind)
    names = [f"cell {k}" for k in range(40)]
    if kind == "anndata":
        held = library.AnnData(np.ones((40, 2)), obsp={"connectivities": sparse.csr_matrix(M)})
        held.obs_names = names
    else:
        held = library.tensor(M).to_sparse()
    settings = {"random_state": 0, "shrinkage": 0.1}
    fitted = model(3, **settings).fit(held)
    assert_array_equal(fitted.embedding_, model(3, **settings).fit(sparse.csr_array(M)).embedding_)
    assert list(getattr(fitted, "node_names_", [])) == (names if kind == "anndata" else [])


# What is unknown (issue 11.1)

UNKNOWN = {
    "a mask": (lambda: SymReLU(3, random_state=0), "mask"),
    "the diagonal": (lambda: SymReLU(3, diagonal="ignore", shrinkage=0.01, random_state=0), "diagonal"),
    "a mask, rank chosen": (lambda: SymReLU("auto", shrinkage=0.01, max_iter=20, random_state=0), "mask"),
    "clustering, a mask": (lambda: SymReLUClustering(3, random_state=0), "mask"),
    "clustering, the diagonal": (lambda: SymReLUClustering(3, random_state=0), "diagonal"),
    "links, a mask": (lambda: LinkPredictor(3, n_init=2, random_state=0), "mask"),
    "links, the diagonal": (lambda: LinkPredictor(3, n_init=2, random_state=0), "diagonal"),
}


@functools.cache
def fitted_with_unknown(case, value, kind):
    make, where = UNKNOWN[case]
    M = make_relu_gram(24, 3, random_state=0)[0]
    unknown = np.eye(24, dtype=bool)
    if where == "mask":
        unknown = np.random.default_rng(1).random((24, 24)) < 0.1
        unknown |= unknown.T
    return make().fit(kind(np.where(unknown, value, M)), mask=unknown if where == "mask" else None)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("value", [3.0, -2.0, 1e300, np.nan, np.inf])
@pytest.mark.parametrize("case", UNKNOWN)
def test_nothing_about_an_unknown_entry_changes_an_estimator(case, value, kind):
    """Issue 11.1: bit for bit, whatever an unknown entry holds."""
    plain, other = fitted_with_unknown(case, 0.0, kind), fitted_with_unknown(case, value, kind)
    assert_array_equal(other.embedding_, plain.embedding_)
    assert other.relative_error_ == plain.relative_error_
    if hasattr(plain, "labels_"):
        assert_array_equal(other.labels_, plain.labels_)
    if hasattr(plain, "root_degrees_"):
        assert_array_equal(other.root_degrees_, plain.root_degrees_)
    if hasattr(plain, "known_"):
        assert_array_equal(other.known_.toarray(), plain.known_.toarray())


# Messages (issue 11.14), and what compiled code must not see (issue 11.9)

ESTIMATORS = {"SymReLU": SymReLU(2), "clustering": SymReLUClustering(2), "links": LinkPredictor(2)}
CORRELATIONS = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]])
HOLED = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, np.nan], [0.1, np.nan, 1.0]])
BAD_INPUT = {
    "correlations": (
        CORRELATIONS,
        ValueError,
        r"X must be nonnegative: entry \(0, 2\) is -0.3. .*numpy.maximum\(X, 0\), abs\(X\) or X \*\* 2",
    ),
    "correlations, sparse": (sparse.csr_array(CORRELATIONS), ValueError, r"entry \(0, 2\) is -0.3"),
    "NaN": (HOLED, ValueError, r"X must not contain NaN: entry \(1, 2\) is nan. .*mask=numpy.isnan\(X\)"),
    "a file": ("graph.npz", TypeError, r"got the str 'graph.npz'.*symrelu.files.read_matrix\('graph.npz'\)"),
    "a path": (Path("a/graph.mtx"), TypeError, r"got the \w+ 'a/graph.mtx'.*read_matrix\('a/graph.mtx'\)"),
    "a table": ("table.csv", TypeError, r"pandas.read_csv\('table.csv', index_col=0\)"),
    "a string": (
        "karate",
        TypeError,
        "X must be a matrix or a graph, got the str 'karate'. If it names a file",
    ),
    "words": ([["a", "b"], ["b", "a"]], ValueError, "X must hold numbers, but could not convert string.*'a'"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_messages_of_the_estimators_say_what_to_do(name, case):
    X, error, message = BAD_INPUT[case]
    with pytest.raises(error, match=message):
        clone(ESTIMATORS[name]).fit(X)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array, "frame"])
def test_a_table_of_samples_names_the_affinity(kind):
    X = np.random.default_rng(0).random((6, 4))
    X = pytest.importorskip("pandas").DataFrame(X) if kind == "frame" else kind(X)
    with pytest.raises(
        ValueError, match=r"X must be square .*got shape \(6, 4\).*SymReLU\(affinity='self_tuning'\)"
    ):
        SymReLU(2).fit(X)
    with pytest.raises(ValueError, match=r"SymReLUClustering\(affinity='self_tuning'\)"):
        SymReLUClustering(2, affinity="precomputed").fit(X)
    with pytest.raises(ValueError, match=r"build a graph first: symrelu.graphs.self_tuning_graph\(X\)"):
        LinkPredictor(2).fit(X)


def malformed(M):
    M = sparse.csr_array(M)
    M.indices = M.indices.copy()
    M.indices[-1] = 10**6
    return M


@pytest.mark.parametrize("name", ESTIMATORS)
def test_malformed_sparse_input_of_estimators(name):
    """Issue 11.9: refused before compiled code follows its indices."""
    M = np.kron(np.eye(4), np.ones((5, 5)))
    model = clone(ESTIMATORS[name])
    with pytest.raises(ValueError, match="X must be a well-formed sparse matrix"):
        model.fit(malformed(M))
    with pytest.raises(ValueError, match="mask must be a well-formed sparse matrix"):
        model.fit(M, mask=malformed(np.eye(20, dtype=bool)))
    model.fit(M)
    if hasattr(model, "transform"):
        for method in (model.transform, model.score):
            with pytest.raises(ValueError, match="X must be a well-formed sparse matrix"):
                method(malformed(M))
            with pytest.raises(ValueError, match="mask must be a well-formed sparse matrix"):
                method(M, mask=malformed(np.eye(20, dtype=bool)))
    if hasattr(model, "top_k"):
        with pytest.raises(ValueError, match="exclude must be a well-formed sparse matrix"):
            model.top_k([0], 1, exclude=malformed(M))


@pytest.mark.parametrize("name", ["SymReLU", "clustering"])
def test_malformed_samples(name):
    model = clone(ESTIMATORS[name]).set_params(affinity="self_tuning")
    with pytest.raises(ValueError, match="X must be a well-formed sparse matrix"):
        model.fit(malformed(np.eye(20, 3) + 1))


def test_duplicates_of_booleans_are_one_entry_for_estimators_too():
    rows, cols = np.array([0, 1, 1, 2, 0, 1]), np.array([1, 0, 2, 1, 1, 0])
    B = sparse.coo_array((np.ones(6, bool), (rows, cols)), shape=(3, 3))
    fitted = SymReLU(1, shrinkage=0.1, random_state=0).fit(B)
    plain = SymReLU(1, shrinkage=0.1, random_state=0).fit(B.toarray())
    assert_allclose(fitted.embedding_, plain.embedding_, rtol=1e-12)


@pytest.mark.parametrize("X", [[[1, 2], [2]], {1, 2}, object(), None], ids=["ragged", "set", "object", "None"])
def test_what_is_no_matrix_is_refused_with_a_sentence(X):
    for model in (SymReLU(1), LinkPredictor(1), SymReLUClustering(1)):
        with pytest.raises((TypeError, ValueError), match="X must be a matrix"):
            model.fit(X)


def test_a_warm_start_needs_something_to_begin_with(M):
    model = SymReLU(3, shrinkage=2.0, warm_start=True, random_state=0)
    with pytest.warns(ConvergenceWarning, match="the factor became zero"):
        model.fit(M)
    with pytest.raises(ValueError, match="warm_start=True cannot continue from a factor that became zero"):
        model.set_params(shrinkage=0).fit(M)


# A fit that fails

CYCLE = np.roll(np.eye(20), 1, axis=0) + np.roll(np.eye(20), -1, axis=0)
OTHER = np.random.default_rng(3).permutation(20)
REFITS = {
    "SymReLU": lambda: SymReLU(4, random_state=0, shrinkage=0.1),
    "clustering": lambda: SymReLUClustering(2, random_state=0),
    "links": lambda: LinkPredictor(3, random_state=0),
    "neighbors": lambda: NeighborEmbedding(max_iter=50, random_state=0),
}
SEARCHES = ("symrelu.estimators.base.decompose", "symrelu.estimators.neighbors.search_neighbors")


def named(A, prefix):
    names = [f"{prefix}{k}" for k in range(len(A))]
    return pd.DataFrame(A, index=names, columns=names)


def stop(*arguments, **settings):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", REFITS)
def test_a_fit_that_fails_changes_nothing(name, monkeypatch):
    model = REFITS[name]().fit(named(CYCLE, "a"))
    before = dict(vars(model))
    for search in SEARCHES:
        monkeypatch.setattr(search, stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(named(CYCLE[np.ix_(OTHER, OTHER)], "b"))
    assert {name for name, value in vars(model).items() if value is not before.get(name)} == set()
    assert set(vars(model)) == set(before)
    fresh = REFITS[name]()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(CYCLE)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)


@pytest.mark.parametrize("name", ["SymReLU", "neighbors"])
def test_rows_after_a_refused_fit_are_those_of_the_earlier_one(name):
    model = REFITS[name]().fit(CYCLE)
    other = CYCLE[np.ix_(OTHER, OTHER)]
    expected = model.transform(other)
    model.set_params(n_components=1000)
    with pytest.raises(ValueError, match="n_components must be"):
        model.fit(other)
    assert_array_equal(model.transform(other), expected)
    assert_array_equal(model.transform(CYCLE), rows_of(model))


def test_samples_after_an_interrupted_fit_are_connected_to_the_earlier_graph(monkeypatch):
    samples = np.random.default_rng(0).standard_normal((2, 30, 3))
    model = SymReLU(3, affinity="self_tuning", shrinkage=0.1, random_state=0).fit(samples[0])
    expected = model.transform(samples[1])
    monkeypatch.setattr(SEARCHES[0], stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(samples[1])
    assert_array_equal(model.transform(samples[1]), expected)


def test_clusters_that_fail_leave_the_earlier_fit(monkeypatch):
    model = SymReLUClustering(2, random_state=0).fit(CYCLE)
    before = dict(vars(model))
    monkeypatch.setattr("symrelu.fit.cluster_methods.average_linkage_of_factor", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(CYCLE[:12, :12])
    assert all(vars(model)[name] is value for name, value in before.items())


def rows_of(model):
    return model.embedding_ if isinstance(model, SymReLU) else model.item_vectors_
