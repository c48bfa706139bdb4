"""Queries on a torch device, compared with the methods of the models."""

import subprocess
import sys

import numpy as np
import pytest
from example_graphs import GRAPHS, random_graph
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import LinkPredictor, decompose
from symrelu.fitted import Linear, LinkScores, Logistic, NeighborVectors, SymmetricReLU, TwoFactor
from symrelu.fitted.certificate import certify
from symrelu.kernels.neighbor_counts import edges_of

torch = pytest.importorskip("torch")

from small_blocks import DEVICES, NO_GPU, Largest, small_blocks  # noqa: E402

from symrelu.fitted import on_device  # noqa: E402
from symrelu.fitted.counts_on_device import other_scores  # noqa: E402

on_each_device = pytest.mark.parametrize("device", DEVICES)


def whole_numbers(n, rank, dtype, seed):
    """Return a model whose scores have no rounding errors and many ties."""
    rng = np.random.default_rng(seed)
    U = rng.integers(-2, 3, (n, rank)).astype(dtype)
    return SymmetricReLU(U, rng.choice([-1, 1], rank).astype(dtype))


def assert_same(model, nodes, k, device, exclude=None, rtol=0.0):
    items, scores = on_device.top_k(model, nodes, k, exclude=exclude, device=device)
    own_items, own_scores = model.top_k(nodes, k, exclude=exclude)
    assert_array_equal(items, own_items)
    assert_allclose(scores, own_scores, rtol=rtol)
    assert (items.dtype, scores.dtype) == (own_items.dtype, own_scores.dtype)


@on_each_device
@given(
    n=st.integers(1, 40),
    rank=st.integers(1, 4),
    k=st.integers(1, 45),
    dtype=st.sampled_from(["float32", "float64"]),
    share=st.sampled_from([None, 0.0, 0.3, 1.0]),
    numbers=st.sampled_from([1, 100, 2**19]),
    seed=st.integers(0, 2**16),
)
def test_nearest_items_with_ties(device, n, rank, k, dtype, share, numbers, seed):
    rng = np.random.default_rng(seed)
    exclude = None if share is None else sparse.csr_array(1.0 * (rng.random((n, n)) < share))
    nodes = rng.integers(0, n, rng.integers(0, 2 * n))
    with small_blocks(numbers):
        assert_same(whole_numbers(n, rank, dtype, seed), nodes, k, device, exclude)


@on_each_device
@pytest.mark.parametrize("k", [1, 3, 29])
def test_all_items_are_the_same(device, k):
    model = SymmetricReLU(np.ones((30, 2)), np.ones(2))
    assert_same(model, np.arange(30), k, device)
    items, _ = on_device.top_k(model, [2], k, device=device)
    assert_array_equal(items[0], np.delete(np.arange(30), 2)[:k])


@on_each_device
def test_zeros_of_both_signs_are_equal(device):
    U = np.array([[1.0, 0.0], [-0.0, 1.0], [0.0, 2.0], [-0.0, 3.0], [0.0, -1.0], [-1.0, 0.0]])
    for k in range(1, 7):
        assert_same(Linear(U, np.ones(2)), [0, 5], k, device)


@on_each_device
def test_stored_zeros_exclude_nothing(device):
    exclude = sparse.csr_array(np.ones((6, 6)))
    exclude.data[::2] = 0
    assert_same(whole_numbers(6, 2, "float64", 0), np.arange(6), 5, device, exclude)


@on_each_device
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_numbers_are_left_out(device, value):
    U = np.random.default_rng(0).standard_normal((9, 2))
    U[4], U[5] = [value, 1.0], [1.0, -value]
    assert_same(Linear(U, np.ones(2)), np.arange(9), 8, device, rtol=1e-12)


@on_each_device
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_every_model(device, dtype):
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((2, 50, 3)).astype(dtype)
    signature = np.array([1, 1, -1], dtype)
    degrees = rng.random(50).astype(dtype)
    models = [
        SymmetricReLU(U, signature),
        Linear(U, signature),
        TwoFactor(U, V),
        Logistic(U, V),
        LinkScores(U, signature, degrees, 0.2),
    ]
    for model in models:
        assert_same(model, [3, 4, 5, 49, 3], 6, device, rtol=1e-5 if dtype == "float32" else 1e-3)


@on_each_device
@given(
    n=st.integers(1, 30),
    k=st.integers(1, 450),
    dtype=st.sampled_from(["float32", "float64"]),
    share=st.sampled_from([None, 0.0, 0.3, 1.0]),
    numbers=st.sampled_from([1, 100, 2**19]),
    seed=st.integers(0, 2**16),
)
def test_the_best_links_with_ties(device, n, k, dtype, share, numbers, seed):
    """With few degrees and factors of whole numbers, many scores are equal, also of (p, q) and (q, p)."""
    rng = np.random.default_rng(seed)
    own = whole_numbers(n, 2, dtype, seed)
    model = LinkScores(own.U, own.signature, np.sqrt(rng.integers(0, 4, n)).astype(dtype), 1.0)
    exclude = None if share is None else sparse.csr_array(1.0 * (rng.random((n, n)) < share))
    with small_blocks(numbers):
        pairs, scores = on_device.top_links(model, k, exclude=exclude, device=device)
    own_pairs, own_scores = model.top_links(k, exclude=exclude)
    assert_array_equal(pairs, own_pairs)
    assert_allclose(scores, own_scores, rtol=1e-6 if dtype == "float32" else 1e-14)
    assert (pairs.dtype, scores.dtype) == (own_pairs.dtype, own_scores.dtype)


@on_each_device
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_links_with_scores_that_are_not_numbers(device, value):
    U = np.random.default_rng(0).random((9, 2)) + 1
    U[4] = [value, 1.0]
    model = LinkScores(U, np.ones(2), np.ones(9), 1.0)
    with np.errstate(invalid="ignore"):
        expected = model.top_links(36)
    for found, own in zip(on_device.top_links(model, 36, device=device), expected, strict=True):
        assert_allclose(found, own)


@on_each_device
def test_a_product_is_not_rounded_to_shorter_numbers(device):
    """Differences of 1e-6 decide, and the settings of the process allow TF32 or bfloat16."""
    U = np.ones((300, 64), np.float32)
    U[:, 0] += np.random.default_rng(0).permutation(300).astype(np.float32) * 2e-5
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        assert_same(SymmetricReLU(U, np.ones(64, np.float32)), [0, 1, 2], 5, device, rtol=1e-6)
    finally:
        torch.set_float32_matmul_precision(before)


@on_each_device
def test_a_solution_is_taken_too(device):
    M = GRAPHS["grid"].astype(float)
    solution = decompose(M, 3, n_negative=1, diagonal="ignore", random_state=0, max_iter=30)
    assert_array_equal(on_device.top_k(solution, [0, 1], 2, device=device)[0], solution.top_k([0, 1], 2)[0])
    rows, mask = M[:5], sparse.eye_array(5, 20, dtype=bool)
    found = on_device.transform(solution, rows, mask, device=device)
    assert_allclose(found, solution.transform(rows, mask), atol=1e-7)


@on_each_device
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["grid", "sparse", "dense", "one edge"])
def test_the_certificate_is_that_of_the_host(device, name, dtype):
    graph = GRAPHS[name]
    rng = np.random.default_rng(0)
    vectors, signature = rng.standard_normal((graph.shape[0], 3)).astype(dtype), np.array([1, 1, -1], dtype)
    expected = certify(vectors, signature, graph, 0.3)
    with small_blocks(100):
        found = on_device.certify(NeighborVectors(vectors, signature, graph, expected), device=device)
    assert found.margin == pytest.approx(expected.margin, rel=1e-12)
    for field in ("wrong_pairs", "missing", "extra", "n_pairs", "n_edges", "threshold"):
        assert getattr(found, field) == getattr(expected, field)


@on_each_device
def test_a_fitted_predictor_is_asked_by_its_scores(device):
    predictor = LinkPredictor(3, n_init=1, random_state=0).fit(GRAPHS["grid"])
    found = on_device.top_links(predictor.link_scores_, 5, exclude=predictor.known_, device=device)
    for own, here in zip(predictor.top_links(5), found, strict=True):
        assert_allclose(here, own)


@on_each_device
def test_nothing_is_larger_than_a_block(device):
    n = 600
    model = SymmetricReLU(np.ones((n, 3), np.float32), np.ones(3, np.float32))  # all scores are equal
    graph = sparse.csr_array(sparse.diags_array([True, True], offsets=[-1, 1], shape=(n, n), dtype=bool))
    vectors = NeighborVectors(model.U, model.signature, graph, certify(model.U, model.signature, graph, 0.5))
    links = LinkScores(model.U, model.signature, np.ones(n, np.float32), 1.0)
    with small_blocks(6000), Largest() as largest:
        on_device.top_k(model, np.arange(n), 4, exclude=graph, device=device)
        on_device.top_links(links, 4, exclude=graph, device=device)
        on_device.transform(model, graph.astype(float)[:50], device=device)
        on_device.certify(vectors, device=device)
        other_scores(model.U, model.U, edges_of(graph), np.array([0.0, 1.0]), device=device)
    assert n * 3 < largest.numel <= 6000


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_without_a_gpu_the_message_has_the_remedy():
    model, graph = whole_numbers(4, 2, "float64", 0), random_graph(4, 0.5, 0)
    vectors = NeighborVectors(model.U, model.signature, graph, certify(model.U, model.signature, graph, 0.5))
    for query in (
        lambda: on_device.top_k(model, [0], 1),
        lambda: on_device.transform(model, np.ones((1, 4))),
        lambda: on_device.certify(vectors),
    ):
        with pytest.raises(ValueError, match=r"device='cuda' needs an NVIDIA GPU.*Use device='cpu'"):
            query()


def test_what_is_refused():
    model = whole_numbers(4, 2, "float64", 0)
    with pytest.raises(ValueError, match="k must be"):
        on_device.top_k(model, [0], 0, device="cpu")
    with pytest.raises(TypeError, match="needs a SymmetricReLU"):
        on_device.transform(Linear(model.U, model.signature), np.ones((1, 4)), device="cpu")
    with pytest.raises(
        TypeError, match=r"needs a LinkScores, got .*\. Pass link_scores_ of a fitted LinkPredictor"
    ):
        on_device.top_links(model, 1, device="cpu")
    links = LinkScores(model.U, model.signature, np.ones(4), 1.0)
    with pytest.raises(ValueError, match="k must be"):
        on_device.top_links(links, 0, device="cpu")
    with pytest.raises(ValueError, match="exclude must have shape"):
        on_device.top_links(links, 1, exclude=np.eye(3), device="cpu")
    with pytest.raises(ValueError, match="M_new must have shape"):
        on_device.transform(model, np.ones((1, 3)), device="cpu")


def test_without_torch_the_message_has_the_remedy():
    program = "import sys; sys.modules['torch'] = None; from symrelu.fitted import on_device"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "ImportError: backend='torch' and backend='cuda' need torch" in run.stderr
    assert "pip install 'symrelu[torch]', or 'symrelu[cuda]' where there is" in run.stderr
