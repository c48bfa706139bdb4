"""NeighborEmbedding: input, attributes, new nodes, files, callbacks, warnings."""

import pickle

import numpy as np
import pytest
from example_graphs import GRAPHS, counted, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from symrelu import NeighborEmbedding, SymReLU
from symrelu.estimators.neighbors import ON_ONE_MACHINE
from symrelu.fit import neighbor_search
from symrelu.fitted import NeighborVectors
from symrelu.graphs import Labelled, from_edges
from symrelu.graphs.edges import as_labels

networkx = pytest.importorskip("networkx", reason="networkx is not installed (extra 'graph')")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

QUICK = {"max_iter": 100, "random_state": 0}
TREE = GRAPHS["tree"].astype(float)


@pytest.fixture(scope="module")
def tree():
    return NeighborEmbedding(**QUICK).fit(TREE)


def same(model, other):
    assert_array_equal(model.item_vectors_, other.item_vectors_)
    assert_array_equal(model.signature_, other.signature_)
    assert model.certificate_ == other.certificate_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([NeighborEmbedding(max_iter=30), NeighborEmbedding(2, dtype="float16", max_iter=10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_gets_its_neighbours_back(name, dtype):
    graph = GRAPHS[name]
    model = NeighborEmbedding(dtype=dtype, **QUICK).fit(graph)
    assert model.certificate_.exact
    assert counted(model.item_vectors_, model.signature_, graph, model.threshold_).wrong_pairs == 0
    for node, row in enumerate(graph.toarray()):
        assert_array_equal(np.sort(model.neighbors(node)), np.flatnonzero(row))


@pytest.mark.parametrize("backend", ["dense", "sparse", "active", "reference"])
def test_every_backend_finds_exact_vectors(backend):
    assert NeighborEmbedding(5, backend=backend, **QUICK).fit(TREE).certificate_.exact


def test_a_cluster_cannot_search():
    with pytest.raises(ValueError, match=r"backend must be one of 'auto', .*'cuda', got 'dask'"):
        NeighborEmbedding(backend="dask").fit(TREE)


def test_the_description_names_every_backend():
    for backend in ON_ONE_MACHINE:
        assert f'"{backend}"' in NeighborEmbedding.__doc__


def test_attributes(tree):
    n, rank = 31, tree.n_components_
    assert tree.item_vectors_.shape == tree.query_vectors_.shape == (n, rank)
    assert tree.item_vectors_.dtype == tree.query_vectors_.dtype == np.float32
    assert_array_equal(tree.query_vectors_, tree.item_vectors_ * tree.signature_)
    assert (tree.n_features_in_, tree.stop_reason_) == (n, "the search has ended")
    assert tree.n_iter_ == sum(attempt.n_iter for attempt in tree.attempts_)
    assert isinstance(tree.vectors_, NeighborVectors)
    assert not hasattr(tree, "node_names_")
    assert tree.get_feature_names_out().tolist() == [f"neighborembedding{k}" for k in range(rank)]


def test_what_fit_transform_returns_is_not_the_certified_array():
    model = NeighborEmbedding(**QUICK)
    returned = model.fit_transform(TREE)
    assert_array_equal(returned, model.item_vectors_)
    returned[:] = 0
    assert model.vectors_.certify() == model.certificate_


# Input

FORMS = {
    "dense": lambda A: A,
    "list": lambda A: A.tolist(),
    "bool": lambda A: A > 0,
    "integers": lambda A: A.astype(int),
    "float32": lambda A: A.astype(np.float32),
    "csr": sparse.csr_array,
    "csc matrix": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "networkx": networkx.from_numpy_array,
    "torch": lambda A: pytest.importorskip("torch").tensor(A).to_sparse(),
    "frame": lambda A: pd.DataFrame(A),
    "edges": lambda A: from_edges(np.argwhere(np.triu(A)), nodes=range(len(A))),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_graph_give_the_same_vectors(tree, form):
    same(NeighborEmbedding(**QUICK).fit(FORMS[form](TREE.toarray())), tree)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1e6, 1e300])
def test_units_do_not_matter(tree, scale):
    same(NeighborEmbedding(**QUICK).fit(TREE * scale), tree)


@settings(max_examples=5)
@given(seed=st.integers(0, 2**16), loops=st.booleans(), spread=st.floats(0, 8))
def test_weights_and_loops_do_not_matter(tree, seed, loops, spread):
    rng = np.random.default_rng(seed)
    weights = np.triu(10 ** rng.uniform(-spread, spread, TREE.shape), 0 if loops else 1)
    A = (TREE.toarray() + np.eye(31)) * (weights + weights.T)
    model = NeighborEmbedding(**QUICK).fit(A)
    same(model, tree)
    assert_array_equal(model.transform(A), model.item_vectors_[first_equal(A)])


def first_equal(rows):
    """Return for each row the first one that is equal to it."""
    return [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in rows]


def test_stored_zeros_are_no_edges(tree):
    graph = TREE.tolil()
    graph[0, 30] = graph[30, 0] = 1.0
    graph = graph.tocsr()
    graph.data[(graph.indices == 30) & (np.repeat(np.arange(31), np.diff(graph.indptr)) == 0)] = 0
    graph.data[(graph.indices == 0) & (np.repeat(np.arange(31), np.diff(graph.indptr)) == 30)] = 0
    assert graph.nnz == TREE.nnz + 2
    same(NeighborEmbedding(**QUICK).fit(graph), tree)


def test_names_of_nodes():
    names = ["d", "a", "c", "b"]
    graph = networkx.Graph([("d", "a"), ("a", "c"), ("c", "b")])
    model = NeighborEmbedding(**QUICK).fit(graph)
    assert model.node_names_.tolist() == names
    assert [model.node_names_[node] for node in model.neighbors(0)] == ["a"]
    frame = pd.DataFrame(np.eye(4, k=1) + np.eye(4, k=-1), index=names, columns=names)
    model = NeighborEmbedding(**QUICK).fit(frame)
    assert model.node_names_.tolist() == model.feature_names_in_.tolist() == names
    assert not hasattr(model.fit(frame.to_numpy()), "node_names_")


BAD_SETTINGS = {
    "no columns": ({"n_components": 0}, ValueError, r"n_components must be an integer .*1.*31.*or None, got 0"),
    "too many columns": ({"n_components": 32}, ValueError, r"n_components must be .*31.*, got 32"),
    "half a column": ({"n_components": 1.5}, TypeError, "n_components must be an integer"),
    "recall 0": ({"recall": 0}, ValueError, r"recall must be a number in \(0, 1\], got 0"),
    "recall above 1": ({"recall": 1.01}, ValueError, r"recall must be a number in \(0, 1\], got 1.01"),
    "float64": ({"dtype": "float64"}, ValueError, "dtype must be one of 'float32', 'float16', got 'float64'"),
    "a type": ({"dtype": int}, ValueError, "dtype must be one of 'float32', 'float16', got 'int64'"),
    "a class": ({"dtype": SymReLU}, ValueError, "dtype must be one of 'float32', 'float16', got"),
    "no type": ({"dtype": None}, ValueError, "dtype must be one of 'float32', 'float16', got None"),
    "negative": ({"n_negative": -1}, ValueError, "n_negative must be an integer of at least 0, got -1"),
    "auto": ({"n_negative": "auto"}, TypeError, "n_negative must be an integer of at least 0, got 'auto'"),
    "no steps": ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
    "no time": ({"max_time": -1}, ValueError, "max_time"),
    "loud": ({"verbose": "yes"}, TypeError, "verbose"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings(case, no_work):
    changed, error, message = BAD_SETTINGS[case]
    with pytest.raises(error, match=message):
        NeighborEmbedding(**changed).fit(TREE)


BAD_INPUT = {
    "no edges": (np.zeros((3, 3)), "X must have a positive entry, but all are zero"),
    "loops only": (np.eye(3), "X must have an edge between two different nodes, got only loops"),
    "one node": (np.ones((1, 1)), "X must have at least 2 nodes, since an edge joins two, got n_samples = 1"),
    "asymmetric": (np.triu(np.ones((3, 3))), "X must be symmetric"),
    "negative": (-TREE.toarray(), "X must be nonnegative"),
    "not square": (np.ones((3, 2)), r"X must be square .*got shape \(3, 2\)"),
    "NaN": (np.full((3, 3), np.nan), "X must not contain NaN"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input(case, no_work):
    X, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        NeighborEmbedding().fit(X)


# New nodes


def test_transform_of_fitted_rows(tree):
    rows = TREE.toarray()
    # Leaves of one parent have equal rows.
    assert_array_equal(tree.transform(TREE), tree.item_vectors_[first_equal(rows)])
    weighted = NeighborEmbedding(**QUICK).fit(7 * TREE)
    assert_array_equal(weighted.transform(7 * TREE), tree.transform(TREE))


def test_transform_of_new_nodes():
    tree = NeighborEmbedding(10, **QUICK).fit(TREE)  # with few columns, not all rows can be met
    rows = np.zeros((3, 31))
    rows[0, [0, 1]] = 1
    rows[1, 13] = 5.0
    new = tree.transform(rows)
    assert new.shape == (3, tree.n_components_)
    assert new.dtype == np.float32
    assert_array_equal(new @ tree.query_vectors_.T > tree.threshold_, rows > 0)
    assert_array_equal(new[2], 0)
    assert_array_equal(tree.transform(sparse.csr_array(rows)), new)


NAMES = {
    "integers": range(100, 131),
    "strings": [f"n{k}" for k in range(31)],
    "pairs": [(k, "b") for k in range(31)],
    "a mixture": [*range(30), "last"],
}


def named(A, names):
    names = pd.Index(list(names), tupleize_cols=False)
    return pd.DataFrame(A, index=names, columns=names)


@pytest.mark.parametrize("kind", [NeighborEmbedding, SymReLU])
@pytest.mark.parametrize("case", NAMES)
def test_columns_of_new_rows_are_aligned_by_name(case, kind):
    frame = named(TREE.toarray(), NAMES[case])
    limits = QUICK if kind is NeighborEmbedding else {"n_components": 3, "shrinkage": 0.1, "random_state": 0}
    model = kind(**limits).fit(frame)
    order = np.random.default_rng(0).permutation(31)
    rows = pd.concat([frame, frame.iloc[:3] + frame.iloc[10:13].to_numpy()])
    expected = model.transform(rows)
    if case == "strings":  # compared by scikit-learn
        with pytest.raises(ValueError, match="same order"):
            model.transform(rows.iloc[:, order])
    else:
        assert_array_equal(model.transform(rows.iloc[:, order]), expected)
        with pytest.raises(
            ValueError, match=r"must have a column for each of the 31 fitted items.*names differ"
        ):
            model.transform(rows.set_axis([f"x{k}" for k in range(31)], axis=1))
    if kind is NeighborEmbedding:
        assert_array_equal(expected[:31], model.item_vectors_[first_equal(frame.to_numpy())])


def test_new_rows_in_every_form(tree):
    rows = np.vstack([TREE.toarray()[:4], np.eye(31)[13:15]])
    expected = tree.transform(rows)
    for form in (sparse.coo_array(rows), rows > 0):
        assert_array_equal(tree.transform(form), expected)


def test_new_rows_of_torch(tree):
    torch = pytest.importorskip("torch")
    rows = torch.tensor(TREE.toarray()[:4])
    for form in (rows, rows.to_sparse()):
        assert_array_equal(tree.transform(form), tree.transform(rows.numpy()))


def weighted(A, seed, loops=False):
    weights = np.triu(np.random.default_rng(seed).uniform(0.1, 1, A.shape), 0 if loops else 1)
    return np.where(A + loops * np.eye(len(A)) > 0, weights + weights.T, 0)


@pytest.mark.parametrize("loops", [False, True])
def test_nodes_are_recognised_by_their_edges(tmp_path, loops):
    A = TREE.toarray()
    W = weighted(A, 0, loops)
    model = NeighborEmbedding(**QUICK).fit(W)
    assert_array_equal(model.transform(W), model.item_vectors_[first_equal(W)])
    for same_edges in (A, A + np.eye(31), weighted(A, 1), weighted(A, 1, True)):
        assert_array_equal(model.transform(same_edges), model.item_vectors_[first_equal(same_edges > 0)])
    model.save(tmp_path / "tree.npz")
    loaded = NeighborEmbedding.load(tmp_path / "tree.npz")
    for same_edges in (W, A, A + np.eye(31)):
        assert_array_equal(loaded.transform(same_edges), model.item_vectors_[first_equal(same_edges > 0)])


def test_weights_tell_nodes_with_equal_edges_apart(tmp_path):
    A = np.zeros((8, 8))
    A[:2, 2:] = A[2:, :2] = 1  # two centres, six nodes with equal edges
    W = weighted(A, 0)
    model = NeighborEmbedding(**QUICK).fit(W)
    assert_array_equal(model.transform(W), model.item_vectors_)
    assert_array_equal(model.transform(A), model.item_vectors_[[0, 0, 2, 2, 2, 2, 2, 2]])
    model.save(tmp_path / "graph.npz")
    loaded = NeighborEmbedding.load(tmp_path / "graph.npz")
    assert_array_equal(loaded.transform(W), model.transform(A))  # the file has no weights


def test_a_row_with_the_edges_of_a_node_can_be_placed_as_a_new_one(tree):
    rows = TREE[:1]
    placed = tree.vectors_.place(rows)
    assert_array_equal(placed @ tree.query_vectors_.T > tree.threshold_, rows.toarray() > 0)
    assert np.abs(placed - tree.transform(rows)).max() > 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [(np.ones((2, 5)), "5 features"), (-np.ones((1, 31)), "X must be nonnegative")],
)
def test_bad_new_rows(tree, rows, message):
    with pytest.raises(ValueError, match=message):
        tree.transform(rows)


def test_unfitted():
    model = NeighborEmbedding()
    for call in (lambda: model.neighbors(0), lambda: model.transform(TREE), lambda: model.save("a.npz")):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(model, "certificate_")


FROM_VECTORS = ["item_vectors_", "query_vectors_", "signature_", "threshold_", "certificate_", "n_components_"]


@pytest.mark.parametrize("attribute", FROM_VECTORS)
def test_an_attribute_before_fit(attribute):
    model = NeighborEmbedding()
    with pytest.raises(NotFittedError, match=rf"has no {attribute} yet: call fit first"):
        getattr(model, attribute)
    assert not hasattr(model, attribute)


# Copies and files


def test_clone_and_pickle(tree):
    copy = pickle.loads(pickle.dumps(tree))
    same(copy, tree)
    assert_array_equal(copy.transform(TREE), tree.transform(TREE))
    same(clone(tree).fit(TREE), tree)
    assert repr(clone(tree)) == repr(NeighborEmbedding(**QUICK))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_saved_and_loaded(tmp_path, dtype):
    model = NeighborEmbedding(dtype=dtype, **QUICK).fit(TREE)
    model.save(tmp_path / "tree.npz")
    loaded = NeighborEmbedding.load(tmp_path / "tree.npz")
    same(loaded, model)
    assert loaded.dtype == dtype
    assert loaded.n_features_in_ == 31
    assert loaded.n_components == model.n_components_
    assert not any(hasattr(loaded, name) for name in ("attempts_", "n_iter_", "stop_reason_", "node_names_"))
    assert_array_equal(loaded.neighbors(4), model.neighbors(4))
    rows = np.vstack([TREE.toarray()[:3], np.eye(31)[13:14]])
    assert_array_equal(loaded.transform(rows), model.transform(rows))


def test_the_backend_comes_back_from_a_file(tree, tmp_path):
    path = tmp_path / "tree.npz"
    for backend in ("auto", "dense", "cuda"):  # there need be no GPU
        model = clone(tree).set_params(backend=backend)
        model.vectors_ = tree.vectors_
        model.save(path)
        assert NeighborEmbedding.load(path).backend == backend
    with pytest.raises(ValueError, match=r"backend must be one of .* got 'abacus'"):
        model.set_params(backend="abacus").save(path)
    assert NeighborEmbedding.load(path).backend == "cuda"  # the file of before


@pytest.mark.parametrize("dtype", [np.float16, np.dtype("float16"), "float16"])
def test_types_of_numpy(dtype):
    model = NeighborEmbedding(dtype=dtype, **QUICK).fit(TREE)
    assert model.item_vectors_.dtype == np.float16
    assert model.get_params()["dtype"] is dtype


STORED_NAMES = {
    "strings": ["é", "", "a\x00", *map(str, range(28))],
    "integers": list(range(100, 131)),
    "integers of NumPy": [np.int64(k) for k in range(100, 131)],
    "pairs": [(k // 6, f"{k % 6}") for k in range(31)],
    "a mixture": [*range(28), "28", "last", ("a", 1)],
}


@pytest.mark.parametrize("case", STORED_NAMES)
def test_names_come_back_from_a_file(tmp_path, case):
    names = STORED_NAMES[case]
    model = NeighborEmbedding(**QUICK).fit(Labelled(TREE, as_labels(names)))
    model.save(tmp_path / "tree.npz")
    loaded = NeighborEmbedding.load(tmp_path / "tree.npz")
    assert loaded.node_names_.tolist() == names
    assert loaded.node_names_.dtype == object
    assert all(type(name) in (str, int, tuple) for name in loaded.node_names_)
    assert_array_equal(loaded.index_of(names), np.arange(31))
    if isinstance(names[-1], (str, tuple)):
        assert loaded.neighbors(names[-1]).tolist() == model.neighbors(names[-1]).tolist()
    rows = named(TREE.toarray(), names).iloc[[3, 20], ::-1]
    assert_array_equal(loaded.transform(rows), loaded.transform(TREE[[3, 20]]))


def test_names_that_a_file_cannot_hold(tmp_path):
    names = [*map(str, range(30)), frozenset("a")]
    model = NeighborEmbedding(**QUICK).fit(Labelled(TREE, as_labels(names)))
    assert [names[k] for k in model.vectors_.neighbors(30)] == model.neighbors(frozenset("a")).tolist()
    path = tmp_path / "tree.npz"
    with pytest.raises(
        TypeError, match=r"Names in a file must be strings, .*got frozenset.*Set node_names_ = "
    ):
        model.save(path)
    assert not path.exists()
    model.node_names_ = model.node_names_.astype(str).astype(object)
    assert model.index_of("frozenset({'a'})") == 30
    model.save(path)
    assert NeighborEmbedding.load(path).node_names_[30] == "frozenset({'a'})"
    del model.node_names_
    model.save(path)
    assert not hasattr(NeighborEmbedding.load(path), "node_names_")


def test_nearest_nodes_with_scores(tree):
    items, scores = tree.top_k([4, 30], 5)
    X = tree.query_vectors_ @ tree.item_vectors_.T
    np.fill_diagonal(X, -np.inf)
    assert items.shape == scores.shape == (2, 5)
    assert scores.dtype == np.float32
    assert_allclose(scores, -np.sort(-X[[4, 30]])[:, :5], rtol=1e-5, atol=1e-6)
    for node, found, score in zip((4, 30), items, scores, strict=True):
        assert_array_equal(found[score > tree.threshold_], tree.neighbors(node))
    half = NeighborEmbedding(dtype="float16", **QUICK).fit(TREE)
    items, scores = half.top_k(4, 31)
    assert_array_equal(items[scores > half.threshold_], half.neighbors(4))
    assert items[0, -1] == -1


def test_a_changed_file_is_refused(tree, tmp_path):
    path = tmp_path / "tree.npz"
    tree.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["item_vectors"] = arrays["item_vectors"][::-1].copy()
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"tree.npz cannot be read .*says wrong_pairs = 0, but a count"):
        NeighborEmbedding.load(path)


# The search, seen from outside


class Recorder:
    """A callback of scikit-learn's protocol that keeps what it is told, and stops after some attempts."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.calls = []
        self.fitted = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.calls.append(f"end {context.task_name}")
        if context.task_name == "attempt":
            assert_array_equal(X.toarray(), TREE.toarray())
            self.fitted.append(fitted_estimator)
            return len(self.fitted) == self.stop_after
        return False

    def teardown(self, estimator, context):
        self.calls.append("teardown")


@pytest.mark.requires_callbacks
def test_each_attempt_is_a_task_of_callbacks(tree):
    recorder = Recorder()
    model = NeighborEmbedding(**QUICK).set_callbacks(recorder).fit(TREE)
    same(model, tree)
    attempts = ["begin attempt", "end attempt"] * len(model.attempts_)
    assert recorder.calls == ["setup", "begin fit", *attempts, "end fit", "teardown"]
    assert [len(one.attempts_) for one in recorder.fitted] == list(range(1, len(model.attempts_) + 1))
    assert all(one.certificate_.exact for one in recorder.fitted)
    assert_array_equal(recorder.fitted[0].transform(TREE[:2]), recorder.fitted[0].item_vectors_[:2])


@pytest.mark.requires_callbacks
def test_a_callback_ends_the_search():
    model = NeighborEmbedding(**QUICK).set_callbacks(Recorder(stop_after=2)).fit(TREE)
    assert len(model.attempts_) == 2
    assert model.certificate_.exact
    assert model.stop_reason_ == "the callback asked to stop"


@pytest.mark.requires_callbacks
def test_progress_bar(capsys):
    from sklearn.callback import ProgressBar

    NeighborEmbedding(**QUICK).set_callbacks(ProgressBar()).fit(TREE)
    assert "NeighborEmbedding" in capsys.readouterr().out


def test_a_goal_that_is_not_met():
    graph = random_graph(40, 0.3, 0)
    model = NeighborEmbedding(2, max_iter=20, random_state=0)
    with pytest.warns(
        ConvergenceWarning,
        match=r"found no vectors with recall >= 1 and 2 columns: the best have \d+ wrong pairs with 2 columns "
        r"\(the search has ended\). \d+ columns were enough: pass n_components=",
    ) as caught:
        model.fit(graph)
    assert caught[0].filename == __file__
    assert model.n_components_ == 2
    assert not model.certificate_.exact
    with pytest.raises(ConvergenceWarning):  # as pytest is told to raise all warnings
        model.fit(graph)
    assert model.item_vectors_.shape == (40, 2)


def test_a_search_stopped_before_the_given_number_of_columns_was_reached(monkeypatch):
    calls, decompose = [], neighbor_search.decompose

    def interrupted(*arguments, **settings):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return decompose(*arguments, **settings)

    monkeypatch.setattr(neighbor_search, "decompose", interrupted)
    model = NeighborEmbedding(4, **QUICK)
    with pytest.warns(
        ConvergenceWarning, match=r"and 4 columns: the best have 0 wrong pairs with [5-8] columns"
    ):
        model.fit(TREE)
    assert model.certificate_.exact
    assert model.stop_reason_ == "the fit was interrupted"


def test_a_lower_recall():
    graph = random_graph(50, 0.1, 0)
    exact, most = (NeighborEmbedding(recall=recall, **QUICK).fit(graph) for recall in (1.0, 0.9))
    assert most.n_components_ <= exact.n_components_
    assert min(most.certificate_.recall, most.certificate_.precision) >= 0.9


def test_the_time_limit():
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = NeighborEmbedding(max_time=1e-9).fit(random_graph(60, 0.3, 0))
    assert len(model.attempts_) == 1
