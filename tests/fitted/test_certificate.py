"""The certificate, compared with a loop over all pairs in float64."""

import numpy as np
import pytest
from example_graphs import EPS, GRAPHS, counted, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from threadpoolctl import threadpool_limits

from symrelu import decompose
from symrelu.fitted.certificate import Certificate, certify

pytestmark = pytest.mark.blas_threads


def assert_counts(certificate, expected):
    for name in ("wrong_pairs", "missing", "extra", "n_pairs", "n_edges", "recall", "precision"):
        assert getattr(certificate, name) == getattr(expected, name), name
    assert_allclose(certificate.margin, expected.margin, rtol=1e-6, atol=1e-7)
    assert certificate.exact == (expected.wrong_pairs == 0) == (certificate.margin > 0)


def fitted(name, rank, dtype):
    """Return vectors that are nearly exact, or far from it, by their rank."""
    graph = GRAPHS[name]
    rank = min(rank, graph.shape[0])
    solution = decompose(
        graph.astype(float), rank, n_negative=min(1, rank - 1), diagonal="ignore", random_state=0, max_iter=60
    )
    return solution.U.astype(dtype), solution.signature


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rank", [2, 10])
@pytest.mark.parametrize("name", GRAPHS)
def test_all_pairs_are_counted(name, rank, dtype):
    graph, (vectors, signature) = GRAPHS[name], fitted(name, rank, dtype)
    assert_counts(certify(vectors, signature, graph, 0.5), counted(vectors, signature, graph, 0.5))
    vectors[-1] *= -3  # one corrupted row
    assert_counts(certify(vectors, signature, graph, 0.5), counted(vectors, signature, graph, 0.5))


def test_one_corrupted_row_is_noticed():
    vectors, signature = fitted("grid", 10, "float32")
    assert certify(vectors, signature, GRAPHS["grid"], 0.5).exact
    vectors[7] = 0
    degree = int(GRAPHS["grid"].toarray()[7].sum())
    broken = certify(vectors, signature, GRAPHS["grid"], 0.5)
    assert (broken.missing, broken.extra, broken.exact) == (degree, 0, False)
    assert_allclose(broken.margin, -0.5)


@given(
    n=st.integers(2, 70),
    rank=st.integers(1, 5),
    share=st.floats(0, 1),
    threshold=st.sampled_from([0.0, 0.25, 1.0, -0.5, 0.1]),
    dtype=st.sampled_from(["float16", "float32"]),
    seed=st.integers(0, 2**16),
)
def test_random_vectors_are_counted(n, rank, share, threshold, dtype, seed):
    rng = np.random.default_rng(seed)
    # Multiples of a quarter: many scores are exactly at the threshold.
    vectors = (rng.integers(-6, 7, (n, rank)) / 4).astype(dtype)
    signature = rng.choice([-1.0, 1.0], rank)
    graph = random_graph(n, share, seed)
    assert_counts(certify(vectors, signature, graph, threshold), counted(vectors, signature, graph, threshold))


@settings(max_examples=300)  # few draws come close to the bound
@given(
    rank=st.integers(1, 40),
    exponent=st.integers(-70, 60),
    distance=st.one_of(st.floats(0, 1), st.floats(0, 60)),  # of the threshold, in units of the rounding
    edge=st.booleans(),
    dtype=st.sampled_from(["float16", "float32"]),
    seed=st.integers(0, 2**16),
)
def test_no_order_of_summation_crosses_the_threshold_of_an_exact_certificate(
    rank, exponent, distance, edge, dtype, seed
):
    """A positive margin is above the rounding in float32: sums of permuted terms stay on their side."""
    rng = np.random.default_rng(seed)
    scale = 2.0 ** (min(exponent, 10) if dtype == "float16" else exponent)
    vectors = (scale * rng.standard_normal((2, rank))).astype(dtype)
    signature = rng.choice([-1.0, 1.0], rank)
    exact = float(np.sum(vectors[0].astype(float) * signature * vectors[1].astype(float)))
    size = float(np.prod(np.linalg.norm(vectors.astype(float), axis=1)))
    with np.errstate(over="ignore", under="ignore"):
        threshold = np.float32(exact + (-1 if edge else 1) * distance * EPS * size)
        graph = sparse.csr_array(np.array([[False, edge], [edge, False]]))
        certificate = certify(vectors, signature, graph, float(threshold))
        if not certificate.exact:
            return
        query, item = (
            vectors[0].astype(np.float32) * signature.astype(np.float32),
            vectors[1].astype(np.float32),
        )
        for _ in range(20):
            order = rng.permutation(rank)
            terms = query[order] * item[order]
            one_by_one = np.add.accumulate(terms, dtype=np.float32)[-1]
            for score in (one_by_one, terms.sum(dtype=np.float32), query @ item):
                assert (score > threshold) == edge


def test_the_margin_is_not_needlessly_wide():
    """Scores a few roundings away from the threshold are certain."""
    vectors = np.eye(2, 3, dtype=np.float32) + np.float32(0.5)
    graph = sparse.csr_array(np.array([[False, True], [True, False]]))
    signature, exact = np.ones(3), float(vectors[0].astype(float) @ vectors[1])
    assert certify(vectors, signature, graph, exact * (1 - 2e-6)).exact
    assert not certify(vectors, signature, graph, exact * (1 - 1e-7)).exact


def test_self_pairs_do_not_count():
    graph = sparse.csr_array((3, 3), dtype=bool)
    vectors = np.eye(3, dtype=np.float32)  # scores of 1 with themselves, 0 with all others
    certificate = certify(vectors, np.ones(3), graph, 0.5)
    assert (certificate.wrong_pairs, certificate.n_pairs, certificate.n_edges) == (0, 3, 0)
    assert (certificate.recall, certificate.precision) == (1.0, 1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("edge", [True, False])
def test_vectors_that_are_not_finite_or_overflow_are_wrong(value, edge):
    graph = sparse.csr_array(np.full((3, 3), edge) & ~np.eye(3, dtype=bool))
    vectors = np.array([[value, value], [-1.0, -2.0], [1.0, 2.0]], np.float32)
    certificate = certify(vectors, np.array([1.0, 1.0]), graph, 0.5)
    assert certificate.wrong_pairs >= 2
    assert certificate.margin == -np.inf


def test_numbers_below_the_range_of_float32_are_uncertain():
    graph = sparse.csr_array(np.array([[False, True], [True, False]]))
    vectors = np.full((2, 1), 1e-20, np.float32)  # a processor may flush their product to zero
    assert not certify(vectors, np.ones(1), graph, 0.0).exact


def test_any_number_of_threads_counts_the_same():
    graph, vectors = random_graph(300, 0.05, 0), np.random.default_rng(0).standard_normal((300, 5))
    results = set()
    for threads in (1, 2, 3):
        with threadpool_limits(threads, "blas"):
            results.add(certify(vectors.astype(np.float32), np.array([1, 1, 1, 1, -1]), graph, 0.5))
    assert len(results) == 1
    assert results.pop().wrong_pairs > 1000


def test_edges_in_any_order():
    graph = GRAPHS["sparse"]
    reverse = np.concatenate(
        [np.arange(b, e)[::-1] for b, e in zip(graph.indptr, graph.indptr[1:], strict=False)]
    )
    shuffled = sparse.csr_array((graph.data, graph.indices[reverse], graph.indptr), shape=graph.shape)
    vectors = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    assert certify(vectors, np.ones(3), shuffled, 0.5) == certify(vectors, np.ones(3), graph, 0.5)
    assert shuffled.indices.tolist() == graph.indices[reverse].tolist()


def test_the_threshold_is_one_that_float32_can_represent():
    certificate = certify(np.ones((2, 1), np.float32), np.ones(1), GRAPHS["one edge"], 0.1)
    assert certificate.threshold == float(np.float32(0.1))


def test_certificates_print_what_matters():
    exact = Certificate(0, 0, 0, 45, 9, 0.25, 0.5)
    assert str(exact) == "exact: 0 wrong of 45 pairs, 9 edges, margin 0.25"
    wrong = Certificate(3, 1, 2, 45, 9, -0.25, 0.5)
    assert str(wrong) == "not exact: 3 wrong of 45 pairs (1 of 9 edges missing, 2 other pairs found)"
    assert (wrong.recall, wrong.precision) == (8 / 9, 8 / 10)
