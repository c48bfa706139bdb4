"""Threads: how many, in which rounds, and that a pass goes on with those that can be had, to the same bits."""

import gc
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from symrelu import decompose
from symrelu.datasets import make_relu_gram
from symrelu.kernels import one_time_warnings, streaming, threads
from symrelu.kernels.streaming import stream
from symrelu.kernels.tiles import DenseTiles

pytestmark = pytest.mark.blas_threads


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(one_time_warnings, "_already_warned", {})


def blas_threads():
    """Return the numbers of the libraries, except those on OpenMP, which keep one for each thread (faiss)."""
    libraries = threads._blas_libraries()
    return [library.num_threads for library in libraries if getattr(library, "threading_layer", "") != "openmp"]


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """No test leaves a thread, or BLAS at one thread."""
    blas = blas_threads()
    running = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - running:
        thread.join(timeout=5)
        assert not thread.is_alive()
    assert blas_threads() == blas
    assert not threads.single_threaded_blas._inside


def grant(monkeypatch, count, error=None):
    """Let each pass start that many threads; the next one fails as it does where the system has no more."""
    real_start, real_run = threading.Thread.start, threads.run_workers
    started = []

    def start(thread):
        if len(started) == count:
            raise error or RuntimeError("can't start new thread")
        started.append(thread)
        real_start(thread)

    def run_workers(*arguments, **named):
        started.clear()
        return real_run(*arguments, **named)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(threads, "run_workers", run_workers)
    monkeypatch.setattr(streaming, "run_workers", run_workers)


def shared_pass():
    rng = np.random.default_rng(0)
    U, M = rng.standard_normal((200, 5)), rng.random((200, 200))
    M = np.maximum(0, M + M.T - 1)
    return stream(U, U, U, DenseTiles(M, 1.0, at_least=False), symmetric=True, side=16)


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_pass_with_fewer_threads_than_asked_has_the_same_bits(granted, monkeypatch):
    monkeypatch.setattr(threads, "allowed_threads", lambda: 1)
    alone = shared_pass()
    monkeypatch.setattr(threads, "allowed_threads", lambda: 4)
    grant(monkeypatch, granted)
    with pytest.warns(RuntimeWarning, match=f"Only {1 + granted} of 4 threads could be started") as told:
        passes = [shared_pass() for _ in range(3)]
    assert len(told) == 1
    for product, sums in passes:
        assert_array_equal(product, alone[0])
        assert sums == alone[1]


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_every_task_is_done_once(granted, monkeypatch):
    grant(monkeypatch, granted)
    log = []
    with pytest.warns(RuntimeWarning, match="can't start new thread"):
        threads.run_tasks(log.append, range(1, 150), workers=5)
    assert sorted(log) == list(range(1, 150))


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("keep", [False, True])
def test_tasks_are_shared_among_threads(workers, keep):
    """Tasks that wait for each other are only done if as many threads work at once."""
    meeting, met = threading.Barrier(workers, timeout=30), []
    with threads.kept_threads() if keep else nullcontext():
        for _ in range(3):
            threads.run_tasks(lambda _: met.append(meeting.wait()), range(workers), workers=workers)
    assert sorted(met) == sorted(3 * list(range(workers)))


@pytest.mark.parametrize("count", [0, 1, 99, 100])
@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("work", [0.0, 1e9, 1e12])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_item_of_a_supply_is_taken_once(count, size, work, workers):
    """A share is no longer than asked, and a call takes several unless that would take too long."""
    taken, calls = [], []

    def take(supply):
        calls.append(supply.shares)
        for _ in range(supply.shares):
            with lock:
                first = int(supply.taken[0])
                supply.taken[0] += supply.size
            if first >= supply.total:
                return
            taken.append(range(first, min(first + supply.size, supply.total)))

    lock = threading.Lock()
    threads.run_supply(take, count, size, work, workers)
    assert sorted(item for share in taken for item in share) == list(range(count))
    assert all(len(share) <= size for share in taken)
    shares = max(1, -(-count // size))
    assert set(calls) == {min(shares, max(1, int(4e8 * shares / max(work, 1))))}


@pytest.mark.parametrize("guilty", [0, 3])
def test_after_an_error_nobody_takes_from_a_supply(guilty):
    """The others take nothing, so only the error can end the round."""
    calls, failed = [], threading.Event()

    def take(supply):
        with lock:
            number = len(calls)
            calls.append(number)
        if number == guilty:
            failed.set()
            raise RuntimeError("broken share")
        if number > guilty:
            assert failed.wait(timeout=30)
            time.sleep(0.01)  # until the error is noted
        if len(calls) > 1000:
            supply.taken[0] = supply.total

    lock = threading.Lock()
    with pytest.raises(RuntimeError, match="broken share"):
        threads.run_supply(take, 10**6, 1, 1e18, 3)
    assert len(calls) <= guilty + 10


@pytest.fixture
def started(monkeypatch):
    """The threads that are started."""
    real_start, started = threading.Thread.start, []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread) or real_start(thread))
    return started


def test_threads_are_kept_in_a_block(started):
    before = threading.active_count()
    with threads.kept_threads():
        for workers in (3, 2, 1, 5, 5):
            threads.run_workers(lambda *_: None, workers)
            with threads.kept_threads():
                threads.run_workers(lambda *_: None, workers)
        assert len(started) == 4
        assert threading.active_count() == before + 4
    assert threading.active_count() == before
    threads.run_workers(lambda *_: None, 3)
    assert len(started) == 6
    assert threading.active_count() == before


def test_each_thread_keeps_its_own(started):
    """Workers of one block must not wait for those of another, which may wait for them."""
    meeting = threading.Barrier(6, timeout=30)

    def fit(_):
        with threads.kept_threads():
            threads.run_workers(lambda *_: meeting.wait(), 3)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fit, range(2)))
    assert len(started) == 2 + 4


def test_a_fit_starts_threads_once(started, monkeypatch):
    monkeypatch.setattr(threads, "allowed_threads", lambda: 3)
    M, _ = make_relu_gram(800, 3, random_state=0)  # several tiles
    decompose(M, 3, random_state=0, max_iter=5)
    assert len(started) == 2


def test_a_thread_sets_the_number_of_blas_threads_once(monkeypatch):
    """It takes longer than a small task, and holds the GIL."""
    calls = []
    monkeypatch.setattr(threads, "_set_threads", lambda counts: calls.append(threading.get_ident()))
    everyone = threading.Barrier(3)
    with threads.kept_threads():
        for _ in range(4):
            threads.run_workers(lambda worker, stopped: everyone.wait(10), 3)
    others = [ident for ident in calls if ident != threading.get_ident()]
    assert len(others) == len(set(others)) == 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_kept_threads_go_on_after_an_error(error, started):
    def fail(worker, stopped):
        if worker == 1:
            raise error("broken tile")
        while not stopped():
            time.sleep(0)

    done = []
    with threads.kept_threads():
        for _ in range(2):
            with pytest.raises(error, match="broken tile"):
                threads.run_workers(fail, 3)
        threads.run_tasks(done.append, range(10), 3)
    assert sorted(done) == list(range(10))
    assert len(started) == 2


FORKED = """
import os, sys, threading
from symrelu.kernels import threads

done = []
with threads.kept_threads():
    threads.run_tasks(done.append, range(5), 3)
    child = os.fork()
    threads.run_tasks(done.append, range(5), 3)  # in both processes
    with threads.kept_threads():
        threads.run_tasks(done.append, range(5), 3)
assert len(done) == 15
assert threading.active_count() == 1
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_inside_a_block_does_not_wait_for_threads_that_it_does_not_have():
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout, run.stderr) == ("7\n", "")


@pytest.mark.parametrize("granted", [0, 1])
def test_a_fit_without_threads_is_the_same_fit(granted, monkeypatch):
    M, _ = make_relu_gram(80, 3, random_state=0)
    with threadpool_limits(1, user_api="blas"):
        alone = decompose(M, 3, random_state=0, max_iter=20)
    monkeypatch.setattr(threads, "allowed_threads", lambda: 3)
    grant(monkeypatch, granted)
    with pytest.warns(RuntimeWarning, match="Results are not affected, but it takes longer") as told:
        solution = decompose(M, 3, random_state=0, max_iter=20)
    assert len(told) == 1
    assert_array_equal(solution.U, alone.U)


def test_where_warnings_are_errors_the_fit_is_not_lost(monkeypatch, caplog):
    grant(monkeypatch, 0)
    done = []
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "symrelu"):
        warnings.simplefilter("error")
        for _ in range(2):
            threads.run_tasks(done.append, [1, 2], workers=2)
    assert done == [1, 2, 1, 2]
    assert ["Only 1 of 2 threads" in message for message in caplog.messages] == [True]


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_an_error_in_a_reduced_pass_reaches_the_caller(granted, monkeypatch):
    grant(monkeypatch, granted)

    def work(worker, stopped):
        if worker == granted:
            raise RuntimeError("broken tile")
        while not stopped():
            time.sleep(0)

    with pytest.raises(RuntimeError, match="broken tile"):
        threads.run_workers(work, workers=4)


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_ctrl_c_while_threads_start_leaves_nobody_working(granted, monkeypatch):
    grant(monkeypatch, granted, KeyboardInterrupt())

    def work(worker, stopped):
        while not stopped():  # for ever, if nobody says stop
            time.sleep(0)

    with pytest.raises(KeyboardInterrupt):
        threads.run_workers(work, workers=4)


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

    def work(worker, stopped):
        if worker == guilty:
            raise error("broken tile")
        while not stopped():
            time.sleep(0)

    with pytest.raises(error, match="broken tile"):
        threads.run_workers(work, workers=2)
    assert blas_threads() == before


def test_after_an_error_no_further_task_is_begun():
    done = []

    def work(task):
        done.append(task)
        raise RuntimeError("broken task")

    with pytest.raises(RuntimeError, match="broken task"):
        threads.run_tasks(work, range(100), workers=2)
    assert len(done) <= 2


def in_thread(function):
    """Return what a function returns in another thread, while this one waits."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_blas_is_held_at_one_thread_from_any_thread():
    """threadpoolctl alone would let only one Python thread set the number."""
    with threads.single_threaded_blas():
        pass  # whoever was first must not keep the others from it

    def inside():
        with threads.single_threaded_blas():
            return blas_threads()

    before = blas_threads()
    assert set(in_thread(inside)) <= {1}
    assert blas_threads() == before
    assert in_thread(lambda: limited(blas_threads)) == [1] * len(before)


def limited(function):
    with threadpool_limits(1, user_api="blas"):
        return function()


def test_a_block_that_ends_last_in_another_thread_restores_blas():
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with threads.single_threaded_blas():
            entered.set()
            assert leave.wait(30)

    with ThreadPoolExecutor(1) as pool:
        with threads.single_threaded_blas():
            running = pool.submit(other)
            assert entered.wait(30)
        assert set(blas_threads()) <= {1}
        leave.set()
        running.result()
        assert blas_threads() == before


def test_the_same_bits_in_another_thread():
    """With so many columns, BLAS on several threads would round differently."""
    M, _ = make_relu_gram(700, 40, random_state=0)

    def fit():
        solution = decompose(M, 40, random_state=0, max_iter=4)
        return solution.U, *solution.top_k(np.arange(700), 5), solution.transform(M[:40])

    for found, expected in zip(in_thread(fit), fit(), strict=True):
        assert_array_equal(found, expected)


def test_ctrl_c_while_others_are_awaited_stops_them(monkeypatch):
    """The caller has no more work when Ctrl-C comes."""
    ended, interrupted = [], []

    def work(worker, stopped):
        while worker and not stopped():
            time.sleep(0.001)
        ended.append(worker)

    def wait(order):
        if not interrupted:
            interrupted.append(order)
            raise KeyboardInterrupt
        real_wait(order)

    real_wait = threads.Order.wait
    monkeypatch.setattr(threads.Order, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        threads.run_workers(work, 3)
    assert sorted(ended) == [0, 1, 2]


def test_an_order_can_be_awaited_again():
    done = []
    order = threads.Order(lambda: done.append(True))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: order.wait() or list(done))
        assert not waiting.done()
        order.carry_out()
        assert waiting.result(timeout=30) == [True]
        assert pool.submit(order.wait).result(timeout=30) is None


def test_kept_threads_hold_nothing():
    """What a pass worked on is free when the pass is over."""

    class Array:
        pass

    def work_on(array):
        threads.run_workers(lambda *_: id(array), 3)
        return weakref.ref(array)

    with threads.kept_threads():
        reference = work_on(Array())
        gc.collect()
        assert reference() is None


def test_a_worker_of_a_cluster_says_how_many_threads_it_has():
    before = threads.allowed_threads()
    with threads.at_most_threads(5):
        assert threads.allowed_threads() == 5
        with threads.at_most_threads(2):
            assert threads.workers_for(1e12) == 2
        assert threads.allowed_threads() == 5
    assert threads.allowed_threads() == before


@pytest.mark.parametrize("count", [0, 1, 100, 5000, 10**6])
@pytest.mark.parametrize("workers", [1, 3, 16])
def test_shares_are_neither_many_nor_so_long_that_nobody_can_interrupt(count, workers):
    shares = threads.shares(count, workers)
    assert [i for share in shares for i in (share.start, share.stop)][1:-1:2] == [s.start for s in shares[1:]]
    assert sum(share.stop - share.start for share in shares) == count
    assert all(share.stop - share.start <= 4096 for share in shares)
    assert len(shares) <= max(4 * workers, -(-count // 4096))
