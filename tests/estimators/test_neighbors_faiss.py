"""The vectors in an index of faiss: it returns exactly the graph."""

import numpy as np
import pytest
from example_graphs import GRAPHS, random_graph
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from symrelu.estimators import NeighborEmbedding

pytestmark = pytest.mark.blas_threads

faiss = pytest.importorskip("faiss", reason="faiss is not installed (extra 'vectors')")

CASES = {
    **{name: GRAPHS[name] for name in ("path", "grid", "star", "sparse")},
    "larger": random_graph(300, 0.015, 0),
}


def flat(vectors):
    """Return an index that keeps vectors in float32; those in float16 are converted, without a rounding."""
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors.astype(np.float32))
    return index


def half(vectors):
    """Return an index that keeps vectors in float16 and computes in float32."""
    kind = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexScalarQuantizer(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors.astype(np.float32))
    index.add(vectors.astype(np.float32))
    return index


INDICES = {"float32": ("float32", flat), "float16 as float32": ("float16", flat), "float16": ("float16", half)}


@pytest.fixture(scope="module", params=CASES)
def graph(request):
    return CASES[request.param]


@pytest.fixture(scope="module", params=INDICES)
def stored(request, graph):
    dtype, index_of = INDICES[request.param]
    model = NeighborEmbedding(dtype=dtype, max_iter=100, random_state=0).fit(graph)
    assert model.certificate_.exact
    return model, index_of(model.item_vectors_)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_range_search_returns_the_graph(graph, stored, threads):
    model, index = stored
    with threadpool_limits(threads):
        limits, _, found = index.range_search(model.query_vectors_.astype(np.float32), model.threshold_)
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(limits.astype(np.int64)))
    returned = np.zeros(graph.shape, bool)
    returned[rows, found] = True
    np.fill_diagonal(returned, False)  # a node may find itself
    assert_array_equal(returned, graph.toarray())


def test_the_nearest_items_are_the_neighbours(graph, stored):
    model, index = stored
    queries = model.query_vectors_.astype(np.float32)
    for node, row in enumerate(graph.toarray()):
        neighbors = np.flatnonzero(row)
        scores, found = index.search(queries[node : node + 1], len(neighbors) + 1)  # one more: the node itself
        kept = (scores[0] > model.threshold_) & (found[0] != node)
        assert_array_equal(np.sort(found[0][kept]), neighbors)


def test_a_fit_after_faiss_was_used_is_the_same(stored, graph):
    """Its OpenMP and BLAS in this process change nothing."""
    model, _ = stored
    again = NeighborEmbedding(dtype=model.dtype, max_iter=100, random_state=0).fit(graph)
    assert_array_equal(again.item_vectors_, model.item_vectors_)
