"""Threads: how many, in which rounds, and that a pass goes on with those that can be had, to the same bits."""

import gc
import logging
import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from symrelu import decompose
from symrelu.datasets import make_relu_gram
from symrelu.kernels import threads, tiles, trouble
from symrelu.kernels.tiles import dense_excess, stream
from symrelu.operators import host


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(trouble, "_told", {})


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """No test leaves a thread, or BLAS at one thread."""
    blas = threads._current_threads()
    running = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - running:
        thread.join(timeout=5)
        assert not thread.is_alive()
    assert threads._current_threads() == blas
    assert not threads.single_threaded_blas._inside


def grant(monkeypatch, count, error=None):
    """Let each pass start that many threads; the next one fails as it does where the system has no more."""
    real_start = threading.Thread.start
    already = threading.active_count()

    def start(thread):
        if threading.active_count() - already >= count:
            raise error or RuntimeError("can't start new thread")
        real_start(thread)

    monkeypatch.setattr(threading.Thread, "start", start)


def shared_pass():
    rng = np.random.default_rng(0)
    U, M = rng.standard_normal((200, 5)), rng.random((200, 200))
    M = np.maximum(0, M + M.T - 1)
    return stream(U, U, U, lambda E, i, j: dense_excess(E, M, i * 16, j * 16, 1.0), symmetric=True, tile=16)


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_pass_with_fewer_threads_than_asked_has_the_same_bits(granted, monkeypatch):
    monkeypatch.setattr(tiles, "allowed_threads", lambda: 1)
    alone = shared_pass()
    monkeypatch.setattr(tiles, "allowed_threads", lambda: 4)
    grant(monkeypatch, granted)
    with pytest.warns(RuntimeWarning, match=f"Only {1 + granted} of 4 threads could be had") as told:
        passes = [shared_pass() for _ in range(3)]
    assert len(told) == 1
    for product, sums in passes:
        assert_array_equal(product, alone[0])
        assert sums == alone[1]


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_every_task_is_done_once_and_in_its_round(granted, monkeypatch):
    grant(monkeypatch, granted)
    log, workers = [], set()

    def work(worker, tasks):
        workers.add(worker)
        log.extend(tasks)

    with pytest.warns(RuntimeWarning, match="can't start new thread"):
        threads.run_rounds(lambda: [range(10 * k, 10 * k + 7) for k in range(20)], work, workers=5)
    assert workers == set(range(1 + granted))
    assert sorted(log) == [10 * k + i for k in range(20) for i in range(7)]
    assert [task // 10 for task in log] == sorted(task // 10 for task in log)


@pytest.mark.parametrize("granted", [0, 1])
def test_a_fit_without_threads_is_the_same_fit(granted, monkeypatch):
    M, _ = make_relu_gram(80, 3, random_state=0)
    with threadpool_limits(1, user_api="blas"):
        alone = decompose(M, 3, random_state=0, max_iter=20)
    monkeypatch.setattr(host, "allowed_threads", lambda: 3)
    grant(monkeypatch, granted)
    with pytest.warns(RuntimeWarning, match="Nothing is lost but time") as told:
        solution = decompose(M, 3, random_state=0, max_iter=20)
    assert len(told) == 1
    assert_array_equal(solution.U, alone.U)


def test_where_warnings_are_errors_the_fit_is_not_lost(monkeypatch, caplog):
    grant(monkeypatch, 0)
    done = []
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "symrelu"):
        warnings.simplefilter("error")
        for _ in range(2):
            threads.run_rounds(lambda: [[1, 2]], lambda worker, tasks: done.extend(tasks), workers=2)
    assert done == [1, 2, 1, 2]
    assert ["Only 1 of 2 threads" in message for message in caplog.messages] == [True]


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_an_error_in_a_reduced_pass_reaches_the_caller(granted, monkeypatch):
    grant(monkeypatch, granted)

    def work(worker, tasks):
        if worker == granted:
            raise RuntimeError("broken tile")

    with pytest.raises(RuntimeError, match="broken tile"):
        threads.run_rounds(lambda: [range(9)] * 3, work, workers=4)


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_ctrl_c_while_threads_start_leaves_nobody_waiting_and_nothing_done(granted, monkeypatch):
    grant(monkeypatch, granted, KeyboardInterrupt())
    done = []
    with pytest.raises(KeyboardInterrupt):
        threads.run_rounds(lambda: [range(9)] * 3, lambda worker, tasks: done.extend(tasks), workers=4)
    assert done == []


def blas_threads():
    return [library.num_threads for library in threads._blas_libraries()]


def test_number_of_workers_is_that_of_blas():
    for limit in (1, 2):
        with threadpool_limits(limits=limit, user_api="blas"):
            assert threads.allowed_threads() == limit


def test_blas_threads_are_restored_after_overlapping_fits():
    before, allowed = blas_threads(), threads.allowed_threads()
    first, second = threads.single_threaded_blas(), threads.single_threaded_blas()
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) <= {1}
    assert threads.allowed_threads() == allowed
    first.__exit__()
    assert set(blas_threads()) <= {1}
    second.__exit__()
    assert blas_threads() == before


def test_whoever_never_left_leaves_when_forgotten():
    """Ctrl-C between two lines of __exit__ must not leave BLAS at one thread for ever."""
    before = blas_threads()
    guard = threads.single_threaded_blas()
    guard.__enter__()
    del guard
    gc.collect()
    assert blas_threads() == before
    assert not threads.single_threaded_blas._inside


@pytest.mark.parametrize("guilty", [0, 1])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_a_worker_ends_the_pass_and_reaches_the_caller(guilty, error):
    before = blas_threads()

    def work(worker, tasks):
        if worker == guilty and 3 in tasks:
            raise error("broken tile")

    with pytest.raises(error, match="broken tile"):
        threads.run_rounds(lambda: [[1, 2], [3, 3], [4]], work, workers=2)
    assert blas_threads() == before


def test_rounds_are_kept_apart():
    """No worker starts a round before every worker has ended the one before."""
    log = []
    threads.run_rounds(lambda: [[k] * 3 for k in range(50)], lambda worker, tasks: log.extend(tasks), workers=3)
    assert log == sorted(log)
    assert len(log) == 150
