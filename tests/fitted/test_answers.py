"""Queries of estimators on the device of their backend: here on the CPU by torch, which takes the same path."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import LinkPredictor, NeighborEmbedding, SymReLU, SymReLUClustering
from symrelu.datasets import make_relu_gram
from symrelu.fitted import SymmetricReLU
from symrelu.fitted.answers import answers_of, counters_for
from symrelu.kernels import neighbor_counts
from symrelu.operators import operator_class

torch = pytest.importorskip("torch")

from symrelu.fitted import counts_on_device, on_device  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SETTINGS = {"random_state": 0, "max_iter": 20}


@pytest.fixture(scope="module")
def M():
    return sparse.csr_array(make_relu_gram(40, 3, shift=0.3, random_state=0)[0])


@pytest.fixture
def asked(monkeypatch):
    """The devices that were asked, with the names of the queries."""
    found = []
    for name in ("top_k", "top_links", "transform_rows"):
        query = getattr(on_device, name)

        def noting(*arguments, name=name, query=query, **settings):
            found.append((name, str(settings["device"])))
            return query(*arguments, **settings)

        monkeypatch.setattr(on_device, name, noting)
    return found


def model():
    return SymmetricReLU(np.random.default_rng(0).random((9, 2)), np.ones(2))


@pytest.mark.parametrize("backend", ["auto", "sparse", "active", "dask"])
def test_the_model_answers_itself(backend):
    own = model()
    assert answers_of(own, backend) is own


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_so_it_does_where_there_is_no_gpu():
    own = model()
    assert answers_of(own, "cuda") is own


def test_so_it_does_without_torch(monkeypatch):
    own = model()

    def missing(backend):
        raise ImportError(backend)

    monkeypatch.setattr("symrelu.fitted.answers.operator_class", missing)
    assert answers_of(own, "torch") is own


def test_with_a_gpu_the_gpu_is_asked(monkeypatch):
    monkeypatch.setattr(operator_class("cuda"), "check_available", lambda: None)
    assert answers_of(model(), "cuda").device == "cuda"


def test_an_embedding_asks_its_device(M, asked):
    estimator = SymReLU(3, n_negative=1, diagonal="ignore", backend="torch", **SETTINGS).fit(M)
    new = M[:5] * 1.5
    items, scores = estimator.top_k([0, 7], 4, exclude=M)
    rows, explained = estimator.transform(new), estimator.score(new)
    assert asked == [("top_k", "cpu"), ("transform_rows", "cpu"), ("transform_rows", "cpu")]
    estimator.set_params(backend="sparse")
    assert_array_equal(items, estimator.top_k([0, 7], 4, exclude=M).items)
    assert_allclose(scores, estimator.top_k([0, 7], 4, exclude=M).scores)
    assert_allclose(rows, estimator.transform(new), atol=1e-8)
    assert explained == pytest.approx(estimator.score(new))
    assert len(asked) == 3


def test_links_and_clusters_ask_their_device(M, asked):
    links = LinkPredictor(3, backend="torch", **SETTINGS).fit(M)
    found, (pairs, scores) = links.top_k([0, 7], 4), links.top_links(9)
    clusters = SymReLUClustering(2, backend="torch", **SETTINGS).fit(M)
    labels = clusters.predict(M[:5] * 1.5)
    assert asked == [("top_k", "cpu"), ("top_links", "cpu"), ("transform_rows", "cpu")]
    for estimator in (links, clusters):
        estimator.set_params(backend="sparse")
    assert_array_equal(found.items, links.top_k([0, 7], 4).items)
    assert_array_equal(pairs, links.top_links(9).pairs)
    assert_allclose(scores, links.top_links(9).scores)
    assert_array_equal(labels, clusters.predict(M[:5] * 1.5))


def test_a_loaded_model_asks_its_device(M, asked, tmp_path):
    path = tmp_path / "model.npz"
    SymReLU(3, backend="torch", **SETTINGS).fit(M).save(path)
    SymReLU.load(path).transform(M[:3] * 1.5)
    NeighborEmbedding(2, backend="torch", random_state=0, max_iter=1).fit(M).save(path)
    NeighborEmbedding.load(path).top_k([0], 2)
    assert asked == [("transform_rows", "cpu"), ("top_k", "cpu")]


def test_a_search_counts_on_its_device(asked, monkeypatch):
    counted = set()
    for name in ("other_scores", "certain_counts"):
        count = getattr(counts_on_device, name)

        def noting(*arguments, name=name, count=count, device):
            counted.add((name, device))
            return count(*arguments, device=device)

        monkeypatch.setattr(counts_on_device, name, noting)
    path = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(30, 30))
    model = NeighborEmbedding(5, backend="torch", random_state=0, max_iter=200).fit(path)
    assert model.certificate_.exact
    assert counted == {("other_scores", "cpu"), ("certain_counts", "cpu")}
    found = model.top_k([0, 7], 4)
    assert asked == [("top_k", "cpu")]
    expected = model.set_params(backend="sparse").top_k([0, 7], 4)
    assert_array_equal(found.items, expected.items)
    assert_allclose(found.scores, expected.scores, atol=1e-5)
    assert model.certificate_ == model.vectors_.certify()


@pytest.mark.parametrize("backend", ["auto", "dense", "active"])
def test_other_searches_count_here(backend):
    assert counters_for(backend) == (neighbor_counts.other_scores, neighbor_counts.certain_counts)
