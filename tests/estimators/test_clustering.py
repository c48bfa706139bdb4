"""SymReLUClustering: scikit-learn's contract, its two methods, and clusters that are right."""

import inspect
import pickle
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from symrelu import AAPB, Status, decompose
from symrelu.datasets import load_digits_graph
from symrelu.estimators.clustering import SymReLUClustering
from symrelu.fit.cluster_methods import METHODS
from symrelu.graphs import self_tuning_graph
from symrelu.metrics import clustering_accuracy, modularity
from symrelu.problem import Problem

BLOBS, BLOB = make_blobs(n_samples=60, centers=3, n_features=4, random_state=0)
CHECKED = [SymReLUClustering(max_iter=10), SymReLUClustering(affinity="self_tuning", max_iter=10)]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_what_is_square_is_taken_for_similarities(M):
    model = SymReLUClustering(3, random_state=0, max_iter=20)
    expected = clone(model).set_params(affinity="precomputed").fit_predict(M)
    for matrix in (M, M.toarray(), M.toarray().tolist()):
        assert_array_equal(clone(model).fit_predict(matrix), expected)
    samples = clone(model).set_params(affinity="self_tuning").fit_predict(BLOBS)
    for data in (BLOBS, BLOBS.tolist(), sparse.csr_array(BLOBS)):
        assert_array_equal(clone(model).fit_predict(data), samples)
    # Not what one meant by square samples, but said clearly.
    with pytest.raises(ValueError, match=r"Negative values|must be symmetric"):
        clone(model).fit(BLOBS[:4])


def test_graphs_and_frames_are_taken_for_what_they_are(M):
    networkx, pandas = pytest.importorskip("networkx"), pytest.importorskip("pandas")
    model = SymReLUClustering(2, random_state=0, max_iter=20)
    graph = networkx.karate_club_graph()
    model.fit(graph)
    assert list(model.node_names_) == list(graph)
    frame = pandas.DataFrame(BLOBS, columns=list("abcd"))
    assert_array_equal(clone(model).fit(frame).labels_, clone(model).fit(BLOBS).labels_)
    names = [f"item {k}" for k in range(60)]
    labelled = pandas.DataFrame(M.toarray(), index=names, columns=names)
    assert list(clone(model).fit(labelled).node_names_) == names


@pytest.fixture
def M():
    return self_tuning_graph(BLOBS)


def test_blobs_as_a_graph_and_as_samples(M):
    """What scikit-learn's check_clustering asks for, of both affinities."""
    clustering = SymReLUClustering(3, random_state=0)
    labels = clustering.fit_predict(M)
    assert adjusted_rand_score(BLOB, labels) > 0.9
    assert labels.dtype == np.int64
    assert_array_equal(labels, clustering.labels_)
    samples = SymReLUClustering(3, affinity="self_tuning", random_state=0).fit(BLOBS)
    assert_array_equal(samples.labels_, labels)
    assert abs(samples.affinity_matrix_ - M).max() == 0


@pytest.mark.parametrize("shape", [make_moons, partial(make_circles, factor=0.5)])
def test_two_clusters_that_are_not_round(shape):
    """A factor of as many columns as clusters loses them."""
    samples, halves = shape(200, noise=0.04, random_state=0)
    labels = SymReLUClustering(2, affinity="self_tuning", random_state=0).fit_predict(samples)
    assert adjusted_rand_score(halves, labels) == 1


def test_labels_are_the_average_linkage_of_max_0_x(M):
    model = SymReLUClustering(5, method="linkage", n_components=4, random_state=0, max_iter=10).fit(M)
    X = (model.embedding_ * model.signature_) @ model.embedding_.T
    S = np.maximum(0, (X + X.T) / 2)
    np.fill_diagonal(S, 0)
    distances = S.max() - S
    np.fill_diagonal(distances, 0)
    Z = linkage(squareform(distances, checks=False), "average")
    assert adjusted_rand_score(fcluster(Z, 5, "maxclust"), model.labels_) == 1
    assert_array_equal(np.unique(model.labels_), np.arange(5))
    assert_array_equal(model.tree_.cut(5), model.labels_)
    assert adjusted_rand_score(fcluster(Z, 9, "maxclust"), model.tree_.cut(9)) == 1


def test_digits_are_found_better_than_by_spectral_clustering():
    M, digits = load_digits_graph()
    labels = SymReLUClustering(10, random_state=0).fit_predict(M)
    spectral = SpectralClustering(10, affinity="precomputed", assign_labels="cluster_qr", random_state=0)
    theirs = spectral.fit_predict(sparse.csr_matrix(M))
    assert normalized_mutual_info_score(digits, labels) > normalized_mutual_info_score(digits, theirs) + 0.02
    assert clustering_accuracy(digits, labels) > clustering_accuracy(digits, theirs) + 0.04


def test_every_parameter_reaches_decompose(monkeypatch, M):
    received = {}

    def spy(problem, rank, **settings):
        received.update(settings, rank=rank, mask=problem.mask, unit=problem.alpha_of(1.0))
        return decompose(problem, rank, random_state=0, max_iter=1)

    monkeypatch.setattr("symrelu.estimators.base.decompose", spy)
    values = {
        "n_components": 4,
        "n_negative": 2,
        "diagonal": "fit",
        "solver": AAPB(step_size=2),
        "zero_weight": 0.5,
        "support": "at_least",
        "init": "imputed",
        "tol": 1e-3,
        "gtol": 1e-5,
        "ftol": 1e-7,
        "max_iter": 11,
        "max_time": 7.0,
        "random_state": 4,
        "backend": "dense",
        "precision": "auto",
        "client": None,
        "checkpoint": "fit.ckpt",
        "verbose": 2,
    }
    mask = np.zeros((60, 60), dtype=bool)
    SymReLUClustering(3, method="linkage", shrinkage=0.25, **values).fit(M, mask=mask)
    values["rank"] = values.pop("n_components")
    assert {name: received[name] for name in (*values, "mask")} == {**values, "mask": mask}
    assert received["alpha"] == 0.25 * received["unit"]
    further = {"n_clusters", "method", "n_components", "affinity", "alpha", "shrinkage", "n_init", "n_jobs"}
    assert set(SymReLUClustering().get_params()) == {*values, *further} - {"rank"}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_settings_that_the_method_decides(monkeypatch, M, method):
    received = []

    def spy(problem, rank, **settings):
        received.append(settings | {"shrinkage": settings["alpha"] / problem.alpha_of(1.0)})
        return decompose(problem, rank, **settings | {"max_iter": 1})

    monkeypatch.setattr("symrelu.estimators.base.decompose", spy)
    SymReLUClustering(3, method=method.name, random_state=0).fit(M)
    assert len(received) == method.n_init
    for settings in received:
        for name in ("zero_weight", "init", "max_iter"):
            assert settings[name] == getattr(method, name)
        assert_allclose(settings["shrinkage"], method.prepare(Problem.of(M, None, "ignore")).shrinkage)


def test_defaults_that_are_not_its_own_are_those_of_decompose():
    function = inspect.signature(decompose).parameters
    own = {
        "n_negative": 1,
        "diagonal": "ignore",
        "alpha": None,
        "zero_weight": None,
        "init": None,
        "max_iter": None,
    }
    for name, value in SymReLUClustering().get_params().items():
        if name in function:
            assert value == own.get(name, function[name].default), name


@pytest.mark.parametrize(
    ("settings", "rank", "n_negative"),
    [
        ({"n_clusters": 12}, 12, 1),
        ({"n_clusters": 5}, 10, 1),
        ({"n_clusters": 1}, 10, 1),
        ({"n_clusters": 60}, 60, 1),
        ({"n_clusters": 3, "n_components": 7}, 7, 1),
        ({"n_clusters": 3, "n_components": 1}, 1, 0),
        ({"n_clusters": 3, "n_negative": 99}, 10, 9),
        ({"n_clusters": 3, "n_negative": 0}, 10, 0),
        ({"n_clusters": 4, "n_negative": np.int64(2)}, 10, 2),
    ],
)
def test_rank_and_signs(M, settings, rank, n_negative):
    model = SymReLUClustering(**settings, method="linkage", random_state=0, max_iter=2).fit(M)
    assert model.embedding_.shape == (60, rank)
    assert np.sum(model.signature_ < 0) == n_negative
    assert_array_equal(np.unique(model.labels_), np.arange(settings["n_clusters"]))


def test_the_number_of_columns_has_a_limit():
    model = SymReLUClustering(105, method="linkage", random_state=0, max_iter=1).fit(np.ones((110, 110)))
    assert model.embedding_.shape == (110, 100)


def test_signs_chosen_by_the_data(M):
    model = SymReLUClustering(3, n_negative="auto", random_state=0).fit(M)
    assert_array_equal(
        model.signature_,
        decompose(M, 10, n_negative="auto", diagonal="ignore", random_state=0, max_iter=1).signature,
    )


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("as_many", [False, True])
def test_few_items(n, as_many):
    labels = SymReLUClustering(n if as_many else 1, random_state=0).fit_predict(np.ones((n, n)))
    assert_array_equal(labels, np.arange(n) if as_many else np.zeros(n))


def test_more_components_than_clusters():
    """Four cliques that nothing joins, and two items that nothing joins to anyone."""
    M = sparse.block_diag([np.ones((5, 5))] * 4 + [np.zeros((2, 2))], format="csr")
    model = SymReLUClustering(3, n_components=6, random_state=0).fit(M)
    assert_array_equal(np.unique(model.labels_), [0, 1, 2])
    for clique in np.arange(20).reshape(4, 5):
        assert len(set(model.labels_[clique])) == 1
    assert len(set(model.tree_.cut(6)[:20])) == 4


def test_reaching_max_iter_is_normal_but_running_out_of_time_is_told(M):
    model = SymReLUClustering(3, random_state=0, max_iter=2, tol=0).fit(M)  # a warning would be an error here
    assert model.stop_reason_ == "max_iter was reached"
    assert not model.converged_
    with pytest.warns(
        ConvergenceWarning, match=r"SymReLUClustering\(.*\) stopped before convergence: max_time"
    ):
        SymReLUClustering(3, random_state=0, max_time=1e-9, tol=0).fit(M)


def test_attributes_are_the_solution(M):
    model = SymReLUClustering(3, method="linkage", random_state=0, max_iter=20).fit(M)
    alpha = Problem.of(M, None, "ignore").alpha_of(0.01)
    solution = decompose(
        M, 10, n_negative=1, diagonal="ignore", init="spectral", alpha=alpha, random_state=0, max_iter=20
    )
    assert_array_equal(model.embedding_, solution.U)
    assert model.n_iter_ == solution.n_iter
    assert model.relative_error_ == solution.relative_error
    assert model.n_features_in_ == 60


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csr_array.toarray]
)
def test_kinds_of_input(M, kind):
    expected = SymReLUClustering(3, random_state=0).fit_predict(M)
    assert_array_equal(SymReLUClustering(3, random_state=0).fit_predict(kind(M)), expected)


def test_float32_stays(M):
    model = SymReLUClustering(3, random_state=0, max_iter=20).fit(M.astype(np.float32))
    assert model.embedding_.dtype == np.float32
    assert adjusted_rand_score(BLOB, model.labels_) > 0.9


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_does_not_matter(M, scale):
    expected = SymReLUClustering(4, random_state=0).fit_predict(M)
    assert_array_equal(SymReLUClustering(4, random_state=0).fit_predict(scale * M), expected)


def test_hidden_pairs_may_have_any_value(M):
    mask = np.zeros((60, 60), dtype=bool)
    mask[:5, -5:] = mask[-5:, :5] = True
    wrong = M.toarray()
    wrong[mask] = 100.0
    model = SymReLUClustering(3, random_state=0)
    assert_array_equal(model.fit_predict(wrong, mask=mask), clone(model).fit_predict(M.toarray(), mask=mask))


def test_clone_pickle_and_pipeline(M):
    model = SymReLUClustering(3, solver=AAPB(step_size=5), affinity="self_tuning", random_state=0, max_iter=20)
    copy = clone(model)
    assert repr(copy) == repr(model)
    labels = make_pipeline(StandardScaler(), model).fit_predict(BLOBS)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.labels_, labels)
    assert_array_equal(restored.tree_.cut(7), model.tree_.cut(7))
    assert_array_equal(copy.fit_predict(StandardScaler().fit_transform(BLOBS)), labels)


def test_the_same_seed_gives_the_same_tree(M):
    first, second = (SymReLUClustering(3, random_state=3).fit(M).tree_ for _ in range(2))
    assert_array_equal(first.children, second.children)
    assert_allclose(first.similarity, second.similarity, rtol=0)


def test_a_networkx_graph():
    networkx = pytest.importorskip("networkx")
    graph = networkx.barbell_graph(8, 0)
    labels = SymReLUClustering(2, random_state=0).fit_predict(graph)
    assert_array_equal(labels, np.repeat([0, 1], 8))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"n_clusters": 0},
            ValueError,
            r"n_clusters must be an integer from 1 to 60 \(the number of items\) or None, got 0",
        ),
        ({"n_clusters": 61}, ValueError, r"n_clusters must be an integer from 1 to 60 .*got 61"),
        ({"n_clusters": 2.0}, TypeError, "n_clusters must be an integer from 1 to 60"),
        ({"n_components": 0}, ValueError, "n_components must be an integer from 1 to 60 .* or None, got 0"),
        ({"n_components": 61}, ValueError, "n_components must be an integer from 1 to 60 .* or None, got 61"),
        ({"n_negative": -1}, ValueError, "n_negative must be an integer of at least 0 or 'auto', got -1"),
        ({"n_negative": "few"}, ValueError, "n_negative must be 'auto' or an integer, got 'few'"),
        ({"n_negative": 1.5}, TypeError, "n_negative must be an integer of at least 0"),
        ({"affinity": "rbf"}, ValueError, "affinity must be one of 'auto', 'precomputed', 'self_tuning', got"),
        ({"solver": "gradient"}, ValueError, "solver must be one of"),
        (
            {"method": "kmeans"},
            ValueError,
            "method must be one of 'auto', 'linkage', 'directions', got 'kmeans'",
        ),
        ({"shrinkage": -1}, ValueError, "shrinkage must be a finite number >= 0, got -1"),
        ({"alpha": 1.0, "shrinkage": 0.1}, ValueError, "alpha and shrinkage set the same penalty"),
        ({"n_init": 0}, ValueError, "n_init must be an integer of at least 1, got 0"),
        ({"zero_weight": 2}, ValueError, r"zero_weight must be a number in \(0, 1\], got 2"),
        ({"init": np.ones((60, 10))}, ValueError, "An array as init is the start of one fit: set method"),
        (
            {"method": "directions", "checkpoint": "c"},
            ValueError,
            "checkpoint must be left out with method='directions'",
        ),
        ({"n_init": 3, "checkpoint": "c"}, ValueError, "A checkpoint belongs to one fit"),
    ],
)
def test_bad_settings(M, settings, error, message):
    with pytest.raises(error, match=message):
        SymReLUClustering(**settings).fit(M)


def test_one_item_is_refused():
    with pytest.raises(
        ValueError, match="X must have at least 2 items, got 1 sample: there is nothing to cluster"
    ):
        SymReLUClustering(1).fit([[1.0]])


# ---------------------------------------------------------------------------------- networks


def block_model(sizes, inside, between, seed, weighted=False):
    """Return a graph in which links inside blocks are more frequent, and the blocks."""
    rng = np.random.default_rng(seed)
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    rates = np.where(blocks[:, None] == blocks, inside, between)
    upper = np.triu(rng.random(rates.shape) < rates, 1) * (
        rng.uniform(0.5, 1.5, rates.shape) if weighted else 1.0
    )
    return sparse.csr_array(upper + upper.T), blocks


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_a_network(weighted):
    M, blocks = block_model([60, 60, 60, 60], 0.2, 0.03, 0, weighted)
    model = SymReLUClustering(4, random_state=0).fit(M)
    assert model.method_ == "directions"
    assert model.modularity_["directions"] > 1.04 * model.modularity_["linkage"]
    assert normalized_mutual_info_score(blocks, model.labels_) > 0.9
    assert np.mean(np.argmax(model.memberships_, axis=1) == model.labels_) > 0.95


def test_nearest_neighbours_have_no_blocks():
    samples, _ = make_blobs(n_samples=150, centers=3, random_state=0)
    with pytest.warns(
        UserWarning, match=r"n_clusters=None chose \d+, more than half of the largest number \(24\)"
    ):
        SymReLUClustering(None, random_state=0).fit(samples)


def test_no_blocks_at_all():
    networkx = pytest.importorskip("networkx")
    for graph in (networkx.complete_graph(30), networkx.gnp_random_graph(100, 0.1, seed=0)):
        assert SymReLUClustering(None, random_state=0).fit(graph).n_clusters_ == 1


def test_one_pair_is_too_few_to_choose_a_number():
    with pytest.raises(ValueError, match=r"got 1\. Pass the number of clusters"):
        SymReLUClustering(None).fit([[0.0, 1.0], [1.0, 0.0]])


def test_ctrl_c_while_the_number_is_chosen(M, monkeypatch):
    def interrupted(problem, rank, **settings):
        return replace(decompose(problem, rank, **settings), status=Status.INTERRUPTED)

    monkeypatch.setattr("symrelu.fit.cluster_number.decompose", interrupted)
    model = SymReLUClustering(None, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(M)
    assert not hasattr(model, "labels_")


def test_equal_or_negative_modularity_goes_to_linkage():
    model = SymReLUClustering(4, random_state=0).fit(np.ones((4, 4)))
    assert model.modularity_["linkage"] == model.modularity_["directions"] < 0
    assert model.method_ == "linkage"


def test_nodes_without_links_are_in_the_largest_cluster():
    M, _ = block_model([60, 40, 30], 0.4, 0.03, 0)
    M = M.toarray()
    M[:6] = M[:, :6] = 0
    model = SymReLUClustering(3, method="directions", random_state=3).fit(M)
    assert set(model.labels_[:6]) == {np.argmax(np.bincount(model.labels_))}
    assert_allclose(model.memberships_[:6], 1 / 3)


def test_the_number_of_blocks_is_found():
    M, blocks = block_model([60, 50, 50, 40], 0.3, 0.03, 1)
    model = SymReLUClustering(None, random_state=0).fit(M)
    assert model.n_clusters_ == 4
    assert normalized_mutual_info_score(blocks, model.labels_) > 0.9
    assert model.selection_.n_clusters == 4
    assert set(model.modularity_) == set(METHODS)
    assert not hasattr(model.set_params(n_clusters=3).fit(M), "selection_")


def test_each_method_says_why_its_fits_stopped(M):
    model = SymReLUClustering(3, max_iter=3, tol=0, random_state=0).fit(M)
    assert model.statuses_ == dict.fromkeys(METHODS, Status.MAX_ITER)
    with pytest.warns(ConvergenceWarning):
        model.set_params(method="directions", max_time=1e-9).fit(M)
    assert model.statuses_ == {"directions": Status.MAX_TIME}


def test_the_method_with_the_clearly_larger_modularity_is_taken(M):
    both = SymReLUClustering(3, random_state=0).fit(M)
    for name in METHODS:
        alone = SymReLUClustering(3, method=name, random_state=0).fit(M)
        assert alone.method_ == name
        assert alone.modularity_ == {name: both.modularity_[name]}
        assert_allclose(alone.modularity_[name], modularity(M, alone.labels_))
        if name == both.method_:
            assert_array_equal(alone.labels_, both.labels_)
    linkage, directions = both.modularity_["linkage"], both.modularity_["directions"]
    assert both.method_ == ("directions" if directions > 1.04 * linkage else "linkage")


def test_outliers_instead_of_clusters_are_told():
    """Linkage finds them in a network with hubs."""
    networkx = pytest.importorskip("networkx")
    graph = networkx.les_miserables_graph()
    with pytest.warns(UserWarning, match=r"One cluster holds 7\d of 77 items, and the others at most ."):
        SymReLUClustering(5, method="linkage", random_state=0).fit(graph)
    model = SymReLUClustering(6, random_state=0).fit(graph)  # a warning would be an error here
    assert model.modularity_["directions"] > 0.5


def test_fewer_directions_than_clusters():
    M = np.kron(np.eye(2), np.ones((5, 5)))
    with pytest.warns(UserWarning, match=r"Only . of n_clusters=9 clusters were found"):
        model = SymReLUClustering(9, method="directions", n_components=1, n_init=1, random_state=0).fit(M)
    assert model.n_clusters_ == len(np.unique(model.labels_)) == model.memberships_.shape[1] < 9
    assert SymReLUClustering(9, random_state=0).fit(M).n_clusters_ == 9  # by linkage


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_do_not_matter(method, scale):
    M, _ = block_model([30, 30], 0.4, 0.05, 0)
    one, other = (SymReLUClustering(2, method=method, random_state=0).fit(c * M) for c in (1.0, scale))
    assert_array_equal(one.labels_, other.labels_)
    assert_allclose(one.memberships_, other.memberships_, atol=1e-4)  # rounding, amplified by the steps
    assert_array_equal(one.predict(M[:5]), other.predict(scale * M[:5]))


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_items_does_not_matter(method):
    M, _ = block_model([40, 40, 40], 0.4, 0.03, 0)
    order = np.random.default_rng(0).permutation(120)
    labels = SymReLUClustering(3, method=method, random_state=0).fit_predict(M)
    permuted = SymReLUClustering(3, method=method, random_state=0).fit_predict(M[order][:, order])
    assert adjusted_rand_score(labels[order], permuted) > 0.9


@pytest.mark.parametrize("kind", [list, np.array, "frame"])
def test_edges_are_not_taken_for_samples_silently(kind):
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]
    if kind == "frame":
        edges = pytest.importorskip("pandas").DataFrame(edges, columns=["u", "v"])
    else:
        edges = kind(edges)
    with pytest.warns(UserWarning, match=r"2 columns of integers and is taken as 7 samples.*from_edges\(X\)"):
        SymReLUClustering(2, random_state=0).fit(edges)
    SymReLUClustering(2, affinity="self_tuning", random_state=0).fit(edges)  # a warning would be an error here


def test_alpha_is_deprecated(M):
    with pytest.warns(FutureWarning, match="alpha"):
        old = SymReLUClustering(3, method="linkage", alpha=0.3, random_state=0).fit(M)
    share = 0.3 / Problem.of(M, None, "ignore").alpha_of(1.0)
    new = SymReLUClustering(3, method="linkage", shrinkage=share, random_state=0).fit(M)
    assert_allclose(old.embedding_, new.embedding_, rtol=1e-6)


def test_ctrl_c_in_the_first_fit_ends_with_its_clusters(M, monkeypatch):
    calls = []

    def interrupted(problem, rank, **settings):
        calls.append(rank)
        return replace(decompose(problem, rank, **settings), status=Status.INTERRUPTED)

    monkeypatch.setattr("symrelu.estimators.base.decompose", interrupted)
    with pytest.warns(ConvergenceWarning):
        model = SymReLUClustering(3, random_state=0).fit(M)
    assert (calls, model.method_, len(np.unique(model.labels_))) == ([10], "linkage", 3)


def test_ctrl_c_in_the_second_method_is_reported(M, monkeypatch):
    calls = []

    def interrupted(problem, rank, **settings):
        calls.append(rank)
        status = Status.INTERRUPTED if len(calls) > 1 else Status.MAX_ITER
        return replace(decompose(problem, rank, **settings), status=status)

    monkeypatch.setattr("symrelu.estimators.base.decompose", interrupted)
    with pytest.warns(ConvergenceWarning):
        model = SymReLUClustering(3, random_state=0).fit(M)
    assert len(calls) == 2
    assert model.solution_.status is Status.INTERRUPTED


def test_alpha_of_directions_names_the_equivalent_shrinkage():
    M, _ = block_model([40, 40], 0.3, 0.03, 0)
    with pytest.warns(FutureWarning, match="the normalised X") as caught:
        old = SymReLUClustering(2, method="directions", alpha=0.2, random_state=0).fit(M)
    share = float(re.search(r"shrinkage=([\d.]+)", str(caught[0].message))[1])
    new = SymReLUClustering(2, method="directions", shrinkage=share, random_state=0).fit(M)
    assert_allclose(new.solution_.alpha, old.solution_.alpha, rtol=1e-4)


def test_kmeans_on_the_factor_is_not_offered():
    with pytest.raises(TypeError, match="assign_labels"):
        SymReLUClustering(assign_labels="kmeans")
