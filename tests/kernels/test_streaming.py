"""A pass over the tiles: the schedule, the products, and the same bits whoever computes them."""

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.kernels import streaming, threads
from symrelu.kernels.streaming import stream
from symrelu.kernels.tiles import DenseTiles, SparseTiles, excess_of, pack_entries
from symrelu.operators import as_operator

pytestmark = pytest.mark.blas_threads


def tiles_of(M, side, zero_weight=1.0, kind="dense", symmetric=False):
    """Return M, all of it observed, as the data of a pass."""
    settings = M.dtype.type(zero_weight), False
    if kind == "dense":
        return DenseTiles(M, *settings)
    rows, cols = np.nonzero(M)
    nothing = np.empty(0, np.int64)
    return SparseTiles(
        pack_entries(rows, cols, M[rows, cols], M.shape, symmetric=symmetric, tile=side),
        pack_entries(nothing, nothing, nothing, M.shape, symmetric=symmetric, tile=side),
        *settings,
    )


def schedule_of(rows, columns, symmetric):
    """Return i, j and turn of all tiles of so many blocks, in order."""
    A, B = np.zeros((rows, 1)), np.zeros((columns, 1))
    shared = streaming._new_pass(A, B, None, symmetric, 1)
    return np.array([streaming.tile_of(shared, t) for t in range(shared.rounds[-1])])


@given(blocks=st.integers(1, 40))
def test_symmetric_schedule_has_every_tile_once_and_every_block_once_a_turn(blocks):
    tiles = schedule_of(blocks, blocks, True)
    assert sorted(map(tuple, tiles[:, :2])) == [(i, j) for i in range(blocks) for j in range(i, blocks)]
    for turn in range(blocks):
        met = [block for i, j, _ in tiles[tiles[:, 2] == turn] for block in {i, j}]
        assert sorted(met) == list(range(blocks))
    assert (np.diff(tiles[:, 2]) >= 0).all()  # nobody waits for a tile that is taken later


@given(row_blocks=st.integers(1, 12), column_blocks=st.integers(1, 12))
def test_schedule_has_every_tile_once_and_every_row_block_once_a_turn(row_blocks, column_blocks):
    tiles = schedule_of(row_blocks, column_blocks, False)
    assert {(i, j) for i, j, _ in tiles} == {(i, j) for i in range(row_blocks) for j in range(column_blocks)}
    assert len(tiles) == row_blocks * column_blocks
    for turn in range(column_blocks):
        assert sorted(tiles[tiles[:, 2] == turn, 0]) == list(range(row_blocks))
    assert (np.diff(tiles[:, 2]) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@given(seed=st.integers(0, 1000), p=st.integers(1, 25), q=st.integers(1, 25), side=st.sampled_from([3, 8, 384]))
def test_two_factor_product(kind, dtype, seed, p, q, side):
    """A and B may differ, in rows and in number: max(0, A B^T) V and the residual against a p x q matrix."""
    rng = np.random.default_rng(seed)
    A, B = (rng.standard_normal((k, 3)).astype(dtype) for k in (p, q))
    V = rng.standard_normal((q, 4)).astype(dtype)
    M = (rng.random((p, q)) * (rng.random((p, q)) < 0.3)).astype(dtype)
    data = tiles_of(M, side, 0.5, kind)
    product, sums = stream(A, B, V, data, side=side)
    X = A.astype(float) @ B.T.astype(float)
    E = np.where(M > 0, X - M, 0.5 * np.maximum(0, X))
    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    assert_allclose(product, E @ V, atol=tolerance * 100)
    assert_allclose(sums.fit, np.sum((X - M)[M > 0] ** 2), rtol=tolerance, atol=tolerance)
    assert_allclose(sums.error, np.sum((M - np.maximum(0, X))[M > 0] ** 2), rtol=tolerance, atol=tolerance)
    assert_allclose(sums.positive, np.sum(np.maximum(0, X)[M == 0] ** 2), rtol=tolerance, atol=tolerance)
    assert_allclose(sums.negative, np.sum(np.minimum(0, X)[M == 0] ** 2), rtol=tolerance, atol=tolerance)
    without, same_sums = stream(A, B, None, data, side=side)
    assert without is None
    assert same_sums == sums


def big_pass(kind="dense", dtype=np.float64, side=16, order="C"):
    rng = np.random.default_rng(0)
    U = np.asarray(rng.standard_normal((200, 5)), dtype, order=order)
    M = np.maximum(0, rng.standard_normal((200, 200)))
    M = (M + M.T).astype(dtype) * (rng.random(200) < 0.5)
    M = np.minimum(M, M.T)
    return stream(U, U, U, tiles_of(M, side, 1.0, kind, symmetric=True), symmetric=True, side=side)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_same_bits_on_any_number_of_threads_and_on_repeated_runs(kind, dtype, monkeypatch):
    results = []
    for workers in (1, 2, 3, 4, 8, 16, 2, 1):
        monkeypatch.setattr(threads, "allowed_threads", lambda workers=workers: workers)
        results.append(big_pass(kind, dtype))
    for product, sums in results[1:]:
        assert_array_equal(product, results[0][0])
        assert sums == results[0][1]


def test_a_worker_that_loses_its_core_holds_nobody_up_for_ever(monkeypatch):
    """Workers sleep when their queue is full, and one sleeps before each of its calls: still the same bits."""
    alone = big_pass()
    monkeypatch.setattr(threads, "allowed_threads", lambda: 4)
    monkeypatch.setattr(streaming, "WORK_OF_A_CALL", 0.0)  # one tile a call
    monkeypatch.setattr(streaming, "_LONGEST_QUEUE", 2)
    real, slow = streaming.share, threading.local()

    def share(shared, desk, limit, data):
        if not hasattr(slow, "pause"):
            slow.pause = threading.current_thread() is threading.main_thread()
        if slow.pause:
            threading.Event().wait(0.002)
        return real(shared, desk, limit, data)

    monkeypatch.setattr(streaming, "share", share)
    product, sums = big_pass()
    assert_array_equal(product, alone[0])
    assert sums == alone[1]


def test_factors_in_any_order_in_memory():
    assert_allclose(big_pass(order="F")[0], big_pass()[0], rtol=1e-12, atol=1e-12)


def test_passes_may_run_in_several_threads_at_once():
    expected, _ = big_pass()
    with ThreadPoolExecutor(4) as pool:
        for product, _ in pool.map(lambda _: big_pass(), range(8)):
            assert_array_equal(product, expected)


def test_small_work_gets_one_thread_and_large_work_all(monkeypatch):
    monkeypatch.setattr(threads, "allowed_threads", lambda: 6)
    monkeypatch.setattr(threads, "MIN_WORK_OF_A_THREAD", 100.0)
    assert [threads.workers_for(work) for work in (0, 99, 250, 1e9)] == [1, 1, 2, 6]


def test_an_error_in_a_pass_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "allowed_threads", lambda: 3)
    monkeypatch.setattr(streaming, "share", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        big_pass()
    assert not threads.single_threaded_blas._inside


class ShortTiles(NamedTuple):
    """Data whose excess function forgets most of the sums."""

    number: float


@excess_of(ShortTiles)
def short_excess(tile, data, i, j, side):
    return 1.0, 2.0


def test_an_excess_function_must_return_all_sums():
    U = np.ones((3, 1))
    with pytest.raises(ValueError, match="the seven numbers of Sums"):
        stream(U, U, U, ShortTiles(1.0), symmetric=True)


def test_warm_up_computes_nothing():
    M = sparse.csr_array(np.ones((50, 50)))
    for data in (M, M.toarray()):
        op = as_operator(data, np.ones(1))
        op.warm_up()
        assert op.evaluations == 0


INTERRUPTED = """
import numpy as np
from symrelu.kernels import streaming, threads, tiles

threads.MIN_WORK_OF_A_THREAD = 1
threads.allowed_threads = lambda: {workers}
U, M = np.ones((4000, 40)), np.ones((4000, 4000))
streaming.stream(U[:8], U[:8], U[:8], tiles.DenseTiles(M[:8, :8].copy(), 1.0, False), symmetric=True)
try:
    print("ready", flush=True)
    while True:
        streaming.stream(U, U, U, tiles.DenseTiles(M, 1.0, False), symmetric=True, side=64)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process on Windows")
@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_in_the_middle_of_a_pass(workers):
    command = [sys.executable, "-c", INTERRUPTED.format(workers=workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    finally:
        process.kill()  # if it has not ended by itself
    assert process.returncode == 0


@given(row_blocks=st.integers(1, 12), column_blocks=st.integers(1, 12))
def test_schedule_of_both_sides_has_every_block_at_most_once_a_round(row_blocks, column_blocks):
    A, B = np.zeros((row_blocks, 1)), np.zeros((column_blocks, 1))
    shared = streaming._new_pass(A, B, None, False, 1, both_sides=True)
    tiles = [streaming.tile_of(shared, t) for t in range(shared.rounds[-1])]
    assert sorted((i, j) for i, j, _ in tiles) == [
        (i, j) for i in range(row_blocks) for j in range(column_blocks)
    ]
    seen_rows, seen_columns = np.zeros(row_blocks, int), np.zeros(column_blocks, int)
    for number in sorted({d for *_, d in tiles}):
        of_round = [(i, j) for i, j, d in tiles if d == number]
        assert len({i for i, _ in of_round}) == len({j for _, j in of_round}) == len(of_round)
        for i, j in of_round:  # the turn of a tile is the number of earlier ones in its row and in its column
            assert streaming.turns_of(shared, i, j, number) == (seen_rows[i], seen_columns[j])
        for i, j in of_round:
            seen_rows[i] += 1
            seen_columns[j] += 1


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(("p", "q"), [(23, 23), (23, 9), (8, 31)])
def test_both_sides_give_the_product_with_the_transpose_too(p, q, kind, workers, monkeypatch):
    rng = np.random.default_rng(p * q)
    A, B = rng.standard_normal((p, 3)), rng.standard_normal((q, 3))
    V, W = rng.standard_normal((q, 2)), rng.standard_normal((p, 2))
    M = np.maximum(0, rng.standard_normal((p, q)) - 0.5)
    data = tiles_of(M, 4, 0.5, kind)
    monkeypatch.setattr(streaming, "workers_for", lambda work: workers)
    product, mirrored, sums = streaming.stream_both_sides(A, B, V, W, data, side=4)
    _, once = stream(A, B, V, data, side=4)
    X = A @ B.T
    E = np.where(M > 0, X - M, 0.5 * np.maximum(0, X))
    assert_allclose(product, E @ V, atol=1e-12)
    assert_allclose(mirrored, E.T @ W, atol=1e-12)
    assert_allclose(sums, 2 * np.array(once), rtol=1e-12)
    monkeypatch.setattr(streaming, "workers_for", lambda work: 1)
    again = streaming.stream_both_sides(A, B, V, W, data, side=4)
    assert_array_equal(again[0], product)
    assert_array_equal(again[1], mirrored)
    assert again[2] == sums
    assert streaming.stream_both_sides(A, B, None, None, data, side=4)[2] == again[2]
