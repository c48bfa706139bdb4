"""The kernels: tile schedule, packing, two-factor products."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from symrelu.kernels import tiles
from symrelu.kernels.tiles import dense_excess, pack_entries, sparse_excess, stream


@given(blocks=st.integers(1, 40))
def test_symmetric_rounds_meet_every_tile_once_and_no_block_twice(blocks):
    rounds = list(tiles._symmetric_rounds(blocks))
    met = [tile for tasks in rounds for tile in tasks]
    assert sorted(met) == [(i, j) for i in range(blocks) for j in range(i, blocks)]
    for tasks in rounds:
        used = [k for i, j in tasks for k in {i, j}]
        assert len(used) == len(set(used))


@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    tile=st.integers(1, 7),
)
def test_packed_entries_are_the_entries_of_each_tile(seed, shape, tile):
    rng = np.random.default_rng(seed)
    M = rng.random(shape) * (rng.random(shape) < 0.4)
    rows, cols = np.nonzero(M)
    packed = pack_entries(rows, cols, M[rows, cols], shape, symmetric=False, tile=tile)
    rebuilt = np.zeros(shape)
    for i in range(-(-shape[0] // tile)):
        for j in range(-(-shape[1] // tile)):
            r, c, v = packed.tile(i, j)
            rebuilt[r + i * tile, c + j * tile] += v
    assert_array_equal(rebuilt, M)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@given(seed=st.integers(0, 1000), p=st.integers(1, 25), q=st.integers(1, 25), tile=st.sampled_from([3, 8, 384]))
def test_two_factor_product(kind, dtype, seed, p, q, tile):
    """A and B may differ, in rows and in number: max(0, A B^T) V and the residual against a p x q matrix."""
    rng = np.random.default_rng(seed)
    A, B = (rng.standard_normal((k, 3)).astype(dtype) for k in (p, q))
    V = rng.standard_normal((q, 4)).astype(dtype)
    M = (rng.random((p, q)) * (rng.random((p, q)) < 0.3)).astype(dtype)
    rows, cols = np.nonzero(M)
    packed = pack_entries(rows, cols, M[rows, cols], (p, q), symmetric=False, tile=tile)
    nothing = np.empty(0, np.int32)

    def excess(block, i, j):
        if kind == "dense":
            return dense_excess(block, M, i * tile, j * tile, dtype(0.5))
        return sparse_excess(block, *packed.tile(i, j), nothing, nothing, dtype(0.5))

    product, sums = stream(A, B, V, excess, tile=tile)
    X = A.astype(float) @ B.T.astype(float)
    E = np.where(M > 0, X - M, 0.5 * np.maximum(0, X))
    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    assert_allclose(product, E @ V, atol=tolerance * 100)
    assert_allclose(sums.fit, np.sum((X - M)[M > 0] ** 2), rtol=tolerance, atol=tolerance)
    assert_allclose(sums.error, np.sum((M - np.maximum(0, X))[M > 0] ** 2), rtol=tolerance, atol=tolerance)
    assert_allclose(sums.positive, np.sum(np.maximum(0, X)[M == 0] ** 2), rtol=tolerance, atol=tolerance)
    assert_allclose(sums.negative, np.sum(np.minimum(0, X)[M == 0] ** 2), rtol=tolerance, atol=tolerance)
    assert stream(A, B, None, excess, tile=tile)[0] is None


def big_pass(tile=16):
    rng = np.random.default_rng(0)
    U = rng.standard_normal((200, 5))
    M = np.maximum(0, rng.standard_normal((200, 200)))
    M = M + M.T
    return stream(
        U, U, U, lambda block, i, j: dense_excess(block, M, i * tile, j * tile, 1.0), symmetric=True, tile=tile
    )


def test_same_bits_on_any_number_of_threads_and_on_repeated_runs(monkeypatch):
    results = []
    for workers in (1, 2, 3, 2, 1):
        monkeypatch.setattr(tiles, "allowed_threads", lambda workers=workers: workers)
        with threadpool_limits(limits=1, user_api="blas"):
            results.append(big_pass())
    for product, sums in results[1:]:
        assert_array_equal(product, results[0][0])
        assert sums == results[0][1]


def test_passes_may_run_in_several_threads_at_once():
    expected, _ = big_pass()
    with ThreadPoolExecutor(4) as pool:
        for product, _ in pool.map(lambda _: big_pass(), range(8)):
            assert_array_equal(product, expected)


def test_warm_up_touches_nothing_outside_its_tile():
    """A warm-up on too small a tile wrote past its end and crashed the interpreter on exit."""
    from scipy import sparse

    from symrelu.operators import as_operator

    n = 50
    M = sparse.csr_array(np.ones((n, n)))
    op = as_operator(M, np.ones(1))
    seen = []
    op._excess = lambda tile, i, j: seen.append((tile.shape, i, j))
    op.warm_up()
    assert seen == [((n, n), 0, 0)]
