"""Nodes by name: which queries are names, what they return, and what is said of names that are wrong."""

import pickle
import warnings

import numpy as np
import pytest
from graph_sources import NAMES, SOURCES, A, networkx, networkx_graph, pd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from symrelu import LinkPredictor, NeighborEmbedding, SymReLU, SymReLUClustering
from symrelu.estimators.naming import NameIndex
from symrelu.graphs import Labelled, as_similarity
from symrelu.kernels import one_time_warnings

ESTIMATORS = {
    "SymReLU": lambda: SymReLU(3, max_iter=30, random_state=0),
    "LinkPredictor": lambda: LinkPredictor(3, max_iter=5, n_init=2, random_state=0),
    "NeighborEmbedding": lambda: NeighborEmbedding(max_iter=100, random_state=0),
}
NAMED = [name for name, (_, has_labels, _) in SOURCES.items() if has_labels]
UNNAMED = ["array", "scipy", "torch", "loaded graph"]


def fitted(kind, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps do not converge
        return ESTIMATORS[kind]().fit(X)


def labels(names):
    return np.fromiter(names, dtype=object, count=len(names))


# A query -> (a function of a model and three nodes that returns arrays, the estimators that have the method)
QUERIES = {
    "top_k": (lambda model, nodes: model.top_k(nodes, 2), list(ESTIMATORS)),
    "top_k, all": (lambda model, nodes: model.top_k(nodes, 9), list(ESTIMATORS)),
    "score_pairs": (lambda model, nodes: (model.score_pairs(nodes, nodes[::-1]),), list(ESTIMATORS)[:2]),
    "score_pairs, grid": (
        lambda model, nodes: (model.score_pairs([[node] for node in nodes], nodes),),
        list(ESTIMATORS)[:2],
    ),
    "score_pairs, one": (lambda model, nodes: (model.score_pairs(nodes[0], nodes),), list(ESTIMATORS)[:2]),
    "reconstruct": (lambda model, nodes: (model.reconstruct(nodes),), list(ESTIMATORS)[:2]),
    "reconstruct, one": (lambda model, nodes: (model.reconstruct(nodes[0]),), list(ESTIMATORS)[:2]),
    "neighbors": (lambda model, nodes: (model.neighbors(nodes[0]),), ["NeighborEmbedding"]),
}
ASKED = [(kind, query) for query, (_, kinds) in QUERIES.items() for kind in kinds]


def as_names(found):
    """Return the names of indices, None for -1."""
    return labels([*NAMES, None])[found]


@pytest.fixture(scope="module")
def models():
    """Return a function that fits each estimator to each source once."""
    known = {}

    def model(kind, source):
        if (kind, source) not in known:
            known[kind, source] = fitted(kind, SOURCES[source][0]())
        return known[kind, source]

    return model


@pytest.mark.parametrize("source", NAMED)
@pytest.mark.parametrize(("kind", "query"), ASKED)
def test_a_query_by_name_is_the_query_by_index_with_names(models, kind, query, source):
    model, ask = models(kind, source), QUERIES[query][0]
    nodes = [5, 0, 3]
    by_index = ask(model, nodes)
    by_name = ask(model, [NAMES[k] for k in nodes])
    assert len(by_index) == len(by_name)
    for found, expected in zip(by_name, by_index, strict=True):
        if expected.dtype.kind == "i":
            assert found.dtype == object
            expected = as_names(expected)
        assert found.dtype == expected.dtype
        assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["SymReLU", "LinkPredictor"])
def test_queries_by_index_are_answered_as_by_the_model(models, kind):
    model = models(kind, "networkx")
    plain = model._model
    excluded = {"exclude": model.known_} if kind == "LinkPredictor" else {}
    for found, expected in zip(model.top_k([5, 0], 9), plain.top_k([5, 0], 9, **excluded), strict=True):
        assert found.dtype == expected.dtype
        assert_array_equal(found, expected)
    assert_array_equal(model.score_pairs([0, 1], 3), plain.score_pairs([0, 1], 3))
    assert_array_equal(model.reconstruct(2), plain.reconstruct(2))


LISTS = {
    "list": ["b", "d"],
    "array": np.array(["b", "d"]),
    "array of object": np.array(["b", "d"], dtype=object),
    "Series": pd.Series(["b", "d"], index=[7, 8]),
    "Index": pd.Index(["b", "d"]),
    "keys": {"b": 1, "d": 2}.keys(),
    "nodes of a graph": networkx.path_graph(["b", "d"]).nodes,
}


@pytest.mark.parametrize("case", LISTS)
def test_lists_of_names(models, case):
    model = models("SymReLU", "networkx")
    assert_array_equal(model.index_of(LISTS[case]), [4, 0])
    assert model.index_of(LISTS[case]).dtype == np.int64
    assert_array_equal(model.top_k(LISTS[case], 2).items, as_names(model.top_k([4, 0], 2).items))
    assert_array_equal(model.score_pairs(LISTS[case], LISTS[case]), model.score_pairs([4, 0], [4, 0]))


@pytest.mark.parametrize("name", ["b", np.str_("b"), np.array("b")])
def test_one_name(models, name):
    model = models("SymReLU", "networkx")
    assert model.index_of(name) == 4
    assert isinstance(model.index_of(name), int)
    assert model.top_k(name, 2).items.shape == (1, 2)


def test_empty_queries_are_as_before(models):
    model = models("SymReLU", "networkx")
    for empty in ([], np.array([], dtype=object), np.array([], dtype=int)):
        items, scores = model.top_k(empty, 2)
        assert items.shape == scores.shape == (0, 2)
    assert model.index_of([]).shape == (0,)


# Names that are numbers


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_integers_are_indices_even_if_they_are_names(kind):
    graph = networkx.relabel_nodes(networkx.path_graph(8), {k: 7 - k for k in range(8)})
    model = fitted(kind, graph)
    assert model.node_names_.tolist() == list(range(7, -1, -1))
    plain = fitted(kind, as_similarity(graph).matrix)
    for found, expected in zip(model.top_k([1, 2], 3), plain.top_k([1, 2], 3), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(model.index_of([7, 0]), [0, 7])
    frame = model.top_k(model.index_of([6]), 3).to_frame()
    assert_array_equal(frame["item"], 7 - plain.top_k([1], 3).items[0])
    assert frame["item"].dtype.kind == frame["node"].dtype.kind == "i"
    assert frame["node"].tolist() == [6] * len(frame)


AMBIGUOUS = {
    "an integer that is only a name": (range(10, 18), lambda m: m.top_k([17], 1), IndexError),
    "names in an array of object": (range(10, 18), lambda m: m.top_k(m.node_names_[:2], 1), TypeError),
    "a name that is a float": (np.arange(8) / 2, lambda m: m.top_k([0.5], 1), TypeError),
    "pairs of integers": ([(k, k) for k in range(8)], lambda m: m.top_k([(1, 1)], 1), ValueError),
    "one pair of integers": ([(k, k) for k in range(8)], lambda m: m.neighbors((1, 1)), ValueError),
    "an integer among names": ([*range(7), "last"], lambda m: m.top_k([3, "last"], 1), TypeError),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_errors_say_how_to_pass_names_that_are_numbers(case):
    names, ask, error = AMBIGUOUS[case]
    model = fitted("NeighborEmbedding", networkx.path_graph(list(names)))
    with pytest.raises(error, match=r"Numbers always mean indices: .*pass index_of\(names\)"):
        ask(model)
    for k, name in enumerate(names):
        assert model.index_of(name) == k


def test_errors_about_indices_are_as_before_if_no_name_is_a_number(models):
    with pytest.raises(IndexError, match=r"nodes must be from 0 to 6, the indices of the items, got 7\.$"):
        models("SymReLU", "networkx").top_k([7], 1)
    with pytest.raises(TypeError, match=r"nodes must be integers .*got float64 entries\.$"):
        models("SymReLU", "networkx").top_k([1.5], 1)


# Names that are wrong

WRONG = {
    "unknown": ("alan", ValueError, r"'alan' is not one of the 7 names of nodes. The closest one is 'alone'\."),
    "unknown, in a list": (["a", "alan"], ValueError, r"'alan' is not one of the 7 names .*'alone'\."),
    "nothing close": ("xyz", ValueError, r"'xyz' is not one of the 7 names of nodes\.$"),
    "several names in a tuple": (("a", "b"), ValueError, r"A tuple is one name: pass a list"),
    "an unknown tuple": (("a", "z"), ValueError, r"\('a', 'z'\) is not one of the 7 names of nodes\.$"),
    "a set": ({"a", "b"}, TypeError, "names must have an order, got a set. Pass a list"),
    "nested": ([["a"], ["a", "b"]], ValueError, "got lists of different lengths"),
    "a mixture": ([0, "b"], TypeError, "nodes must be all indices or all names, got the number 0 in a list"),
    "None": (None, ValueError, "None is not one of the 7 names"),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("case", WRONG)
def test_names_that_are_wrong(models, kind, case):
    nodes, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        models(kind, "networkx").top_k(nodes, 2)


def test_the_closest_name_may_be_of_another_type():
    model = fitted("SymReLU", networkx.path_graph(range(10, 16)))
    with pytest.raises(ValueError, match=r"'12' is not one of the 6 names of nodes. The closest one is 12\."):
        model.index_of("12")


def test_no_close_name_is_searched_among_very_many(monkeypatch):
    monkeypatch.setattr("symrelu.estimators.naming._COMPARED_NAMES", 2)
    with pytest.raises(ValueError, match=r"'alan' is not one of the 3 names of nodes\.$"):
        NameIndex(labels(["alone", "a", "b"])).index_of("alan")


def test_a_name_of_two_nodes():
    model = fitted("LinkPredictor", Labelled(A, labels(["x", "x", "y", "y", "y", "z", "w"])))
    assert model.index_of("z") == 5
    assert model.top_k(["z"], 1).items.shape == (1, 1)
    with pytest.raises(ValueError, match=r"The name 'y' must belong to one node, but 3 nodes have it\. Pass"):
        model.top_k(["z", "y"], 1)


@pytest.mark.parametrize("source", UNNAMED)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_without_names(models, kind, source):
    model = models(kind, source)
    no_names = r"had (none|no names)\. Pass indices, or fit a graph with names"
    for ask in (lambda: model.top_k(["a"], 1), lambda: model.top_k("a", 1)):
        with pytest.raises(
            TypeError, match=rf"nodes must be integers .*got .*'a'.*: the input of fit {no_names}"
        ):
            ask()
    with pytest.raises(ValueError, match=rf"index_of requires names, but the input of fit {no_names}"):
        model.index_of("a")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_unfitted(kind):
    with pytest.raises(NotFittedError):
        ESTIMATORS[kind]().index_of("a")
    with pytest.raises(NotFittedError):
        ESTIMATORS[kind]().top_k(["a"], 1)


def test_clusters_know_names_too():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SymReLUClustering(2, random_state=0).fit(networkx_graph())
    assert_array_equal(model.index_of(["b", "d"]), [4, 0])


def test_the_best_links_carry_names(models):
    model, plain = models("LinkPredictor", "networkx"), models("LinkPredictor", "scipy")
    pairs, scores = links = model.top_links(4)
    for found, expected in zip(links, plain.top_links(4), strict=True):
        assert_array_equal(found, expected)
    assert pairs.dtype == np.int64
    assert_array_equal(links.names, as_names(pairs))
    assert plain.top_links(4).names is None
    frame = links.to_frame()
    assert_array_equal(frame[["first", "second"]].to_numpy(), links.names)
    assert_array_equal(frame["score"], scores)
    assert_array_equal(model.score_pairs(frame["first"], frame["second"]), model.score_pairs(*pairs.T))


# Names after another fit, and in copies


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_names_are_those_of_the_last_fit(kind):
    model = fitted(kind, networkx_graph())
    assert model.index_of("d") == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(networkx.relabel_nodes(networkx_graph(), {"d": "new"}))
        assert model.index_of("new") == 0
        with pytest.raises(ValueError, match="'d' is not one"):
            model.index_of("d")
        model.fit(A)
    with pytest.raises(ValueError, match="index_of requires names"):
        model.index_of("new")
    assert not hasattr(model, "_cached_names")


def test_copies_and_clones(models):
    model = models("LinkPredictor", "networkx")
    model.index_of("a")
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.top_k(["a"], 3).items, model.top_k(["a"], 3).items)
    assert not hasattr(clone(model), "node_names_")
    assert "_positions" not in vars(pickle.loads(pickle.dumps(model._name_index)))


# Properties

NAME = st.one_of(
    st.text(max_size=4), st.integers(-3, 40), st.tuples(st.text(max_size=2), st.integers(0, 3)), st.booleans()
)


@settings(max_examples=30, deadline=None)
@given(st.lists(NAME, min_size=1, max_size=12, unique=True), st.data())
def test_index_of_finds_every_name(names, data):
    index = NameIndex(labels(names))
    assert_array_equal(index.index_of(names), np.arange(len(names)))
    assert_array_equal(index.index_of(index.names), np.arange(len(names)))
    drawn = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=5))
    found = index.index_of(drawn)
    assert [index.names[k] for k in found] == drawn
    assert [index.index_of(name) for name in drawn] == found.tolist()
    assert_array_equal(index.index_of([drawn, drawn]), [found, found])
    stranger = data.draw(NAME.filter(lambda name: name not in names))
    with pytest.raises(ValueError, match=r"is not one of the \d+ names of nodes"):
        index.index_of(stranger)


def permuted_graph(order):
    names = [NAMES[k] for k in order]
    return pd.DataFrame(A[np.ix_(order, order)], index=names, columns=names)


@settings(max_examples=5, deadline=None)
@given(st.permutations(range(len(NAMES))))
def test_the_order_of_the_nodes_does_not_matter_for_queries_by_name(order):
    start = np.random.default_rng(0).standard_normal((len(NAMES), 3))
    for make in (
        lambda U: SymReLU(3, n_negative=1, diagonal="ignore", init=U, max_iter=10),
        lambda U: LinkPredictor(3, init=U, n_init=1, max_iter=10),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(start).fit(permuted_graph(list(range(len(NAMES)))))
            other = make(start[list(order)]).fit(permuted_graph(list(order)))
        some = ["e", "d", "alone"]
        assert_allclose(other.score_pairs(some, "a"), model.score_pairs(some, "a"), rtol=1e-6, atol=1e-9)
        place = other.index_of(NAMES)
        assert_allclose(other.reconstruct(some)[:, place], model.reconstruct(some), rtol=1e-6, atol=1e-9)
        found, expected = other.top_k(["e", "d"], 2), model.top_k(["e", "d"], 2)
        assert found.items.tolist() == expected.items.tolist()


@settings(max_examples=5, deadline=None)
@given(st.permutations(range(len(NAMES))))
def test_the_order_of_the_nodes_does_not_matter_for_exact_neighbours(order):
    model = fitted("NeighborEmbedding", permuted_graph(list(order)))
    graph = networkx_graph()
    for name in NAMES:
        assert sorted(model.neighbors(name)) == sorted(set(graph[name]) - {name})


def test_integer_names_that_are_not_indices(monkeypatch):
    monkeypatch.setattr(one_time_warnings, "_already_warned", {})
    graph = networkx.relabel_nodes(networkx.path_graph(6), {k: 5 - k for k in range(6)})
    model = LinkPredictor(2, random_state=0).fit(graph)
    with pytest.warns(UserWarning, match="names of the nodes are integers, but not 0, 1, 2"):
        model.top_k([0], 1)
    model.top_k([0], 1)  # once
    monkeypatch.setattr(one_time_warnings, "_already_warned", {})
    LinkPredictor(2, random_state=0).fit(networkx.path_graph(6)).top_k([0], 1)


def test_a_tuple_of_numbers_that_is_a_name():
    model = LinkPredictor(2, random_state=0).fit(networkx.grid_2d_graph(3, 3))
    with pytest.raises(ValueError, match=r"nodes=\(0, 0\) is a name made of numbers.*index_of"):
        model.top_k((0, 0), 1)
    assert model.top_k([0, 0], 1).items.shape == (2, 1)
