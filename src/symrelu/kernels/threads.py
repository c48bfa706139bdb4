"""Threads of one pass: as many workers as BLAS would have used, each with single-threaded BLAS.

The number of BLAS threads is the only setting. Users set it as they do for NumPy
(``threadpoolctl.threadpool_limits``, ``OMP_NUM_THREADS``), and joblib sets it inside its workers.
While a fit or a pass runs, BLAS itself stays on one thread: its threads wait by spinning, which on a busy
machine costs more than they gain on tiles, and the last digits would depend on their number.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  # numba's dot products use this BLAS: it must be loaded to be limited
from threadpoolctl import ThreadpoolController

from symrelu.kernels.atomics import fetch_add, load
from symrelu.kernels.jit import compiled, inlined
from symrelu.kernels.one_time_warnings import warn_once
from symrelu.kernels.shared_context import SharedContext

Task = TypeVar("Task")

# A thread with less work, in multiplications of a matrix product, takes longer to start than it saves.
MIN_WORK_OF_A_THREAD = 2e7

_SHARES_OF_A_WORKER = 4
_SMALLEST_SHARE, _LARGEST_SHARE = 128, 4096

# How often the caller looks whether all others have finished before it sleeps, 45 us on an x86-64 processor:
# to be woken takes about as long.
_LOOKS = 100_000

# Multiplications in one call of compiled code, about 20 ms. Ctrl-C is handled between calls.
WORK_OF_A_CALL = 4e8


@lru_cache(maxsize=1)
def _blas_libraries() -> tuple[Any, ...]:
    """Return threadpoolctl's handles of the loaded BLAS libraries (finding them takes a millisecond)."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class single_threaded_blas(SharedContext):  # lower case: with single_threaded_blas(): ...
    """Hold BLAS at one thread inside the block; nestable, and usable from several threads at once."""

    _before: ClassVar[list[int]] = []  # thread counts to restore, one per library

    def _save(self) -> None:
        self._before[:] = _current_threads()

    def _apply(self) -> None:
        _set_threads([1] * len(self._before))

    def _restore(self) -> None:
        _set_threads(self._before)


def _current_threads() -> list[int]:
    return [library.num_threads or 1 for library in _blas_libraries()]


def _set_threads(counts: Sequence[int]) -> None:
    for library, count in zip(_blas_libraries(), counts, strict=True):
        # Since 3.8, threadpoolctl lets one Python thread at a time set the number, and ignores all others. Here
        # overlapping blocks agree on it among themselves, and no block may keep a user from setting it.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


class at_most_threads:  # lower case: with at_most_threads(2): ...
    """Let passes of the calling thread use so many threads inside the block, whatever BLAS is set to.

    A worker of a cluster knows how many threads it has; other workers of the machine need the other cores.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __enter__(self) -> None:
        self._before = getattr(_own, "count", None)
        _own.count = self._count

    def __exit__(self, *_: object) -> None:
        _own.count = self._before


_own = threading.local()


def allowed_threads() -> int:
    """Return how many threads a pass may use: those of BLAS, or 1 if BLAS cannot be controlled."""
    own: int | None = getattr(_own, "count", None)
    if own is not None:
        return own
    with single_threaded_blas._lock:
        counts = single_threaded_blas._before if single_threaded_blas._inside else _current_threads()
        return max(counts, default=1)


def workers_for(multiplications: float) -> int:
    """Return how many threads so much work is worth, of those that are allowed."""
    return max(1, min(allowed_threads(), int(multiplications / MIN_WORK_OF_A_THREAD)))


def slices(count: int, size: int) -> list[slice]:
    """Return slices of ``range(count)`` with at most ``size`` items each."""
    # scikit-learn's gen_batches takes 20 us to check its arguments, more than the work on a small matrix.
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def shares(count: int, workers: int) -> list[slice]:
    """Return slices of ``range(count)``, a few for each worker, for work that does not depend on the slices."""
    # Python hands out one slice at a time, which takes 20 us. Ctrl-C is handled between two of them.
    size = -(-count // (_SHARES_OF_A_WORKER * workers))
    return slices(count, min(max(size, _SMALLEST_SHARE), _LARGEST_SHARE))


class Order:
    """A task for a thread. The task must not raise."""

    def __init__(self, task: Callable[[], None]) -> None:
        self._task: Callable[[], None] | None = task
        self._done = False
        self._signal = threading.Lock()
        self._signal.acquire()

    def carry_out(self) -> None:
        """Call the task."""
        assert self._task is not None
        self._task()
        self._task = None  # a thread that waits must not hold the arrays of its last pass
        self._done = True
        self._signal.release()

    def wait(self) -> None:
        """Wait until the task is done; Ctrl-C can interrupt this, and a second call waits again."""
        while not self._done:
            self._signal.acquire(timeout=0.1)  # without a limit, it could wait for what was acquired before


class Crew:
    """Threads that carry out orders. Those of a crew that stays wait for more, until it is dismissed."""

    def __init__(self, *, stays: bool) -> None:
        self.process = os.getpid()
        self._stays = stays
        self._threads: list[threading.Thread] = []
        self._idle = 0  # known to have nothing to do
        self._orders: SimpleQueue[Order | None] = SimpleQueue()

    def order(self, task: Callable[[], None]) -> Order:
        """Let a thread carry out a task; raises RuntimeError if the system refuses to start one."""
        order = Order(task)
        if self._idle:
            self._idle -= 1
            self._orders.put(order)
        else:
            thread = threading.Thread(target=self._work, args=(order,), daemon=True)
            self._threads.append(thread)  # first: after Ctrl-C between the two, no thread may be left out
            try:
                thread.start()
            except RuntimeError:
                self._threads.pop()
                raise
        return order

    def _work(self, order: Order | None) -> None:
        while order is not None:
            order.carry_out()
            order = self._orders.get() if self._stays else None

    def rest(self) -> None:
        """Note that all orders have been carried out."""
        if self._stays:
            self._idle = sum(thread.is_alive() for thread in self._threads)
        else:
            self.dismiss()

    def dismiss(self) -> None:
        """End all threads."""
        if self._stays:
            for _ in self._threads:
                self._orders.put(None)
        while self._threads:
            thread = self._threads.pop()
            if thread.ident is not None:  # it is None if Ctrl-C came before the start
                thread.join()


@compiled
def _look(flags, looks):  # type: ignore[no-untyped-def]
    """Return as soon as all flags are set, or after so many looks."""
    k = 0
    while k < len(flags) and looks > 0:
        if load(flags, k):
            k += 1
        else:
            looks -= 1


_kept = threading.local()


class kept_threads:  # lower case: with kept_threads(): ...
    """Keep the threads that the calling thread starts inside the block, instead of new ones for each pass.

    Starting a thread takes longer than its share of a small pass. At the end of the block they are gone, so
    that a later fork finds none.
    """

    def __enter__(self) -> None:
        self._crew: Crew | None = None
        if _kept_crew() is None:  # else the threads of the outer block serve this one too
            self._crew = _kept.crew = Crew(stays=True)

    def __exit__(self, *_: object) -> None:
        if self._crew is not None:
            _kept.crew = None
            self._crew.dismiss()


def _kept_crew() -> Crew | None:
    """Return the crew that the calling thread keeps, if any. After a fork, its threads are not there."""
    crew: Crew | None = getattr(_kept, "crew", None)
    return crew if crew is not None and crew.process == os.getpid() else None


def run_workers(work: Callable[[int, Callable[[], bool]], None], workers: int) -> None:
    """Call ``work(worker, stopped)`` in several threads at once and wait for all of them.

    The caller is worker 0. Workers take their tasks from a common supply: if not all of them can be started,
    the others do the work. ``stopped()`` becomes true after an error or Ctrl-C in one of them; the others
    should then return soon.
    """
    errors: list[BaseException] = []
    refusal: RuntimeError | None = None
    stop = threading.Event()

    def run(worker: int) -> None:
        try:
            if worker and not getattr(_own, "has_single_threaded_blas", False):
                # Some libraries have a number for each thread. It is set once: at each pass, that would take
                # longer than many a task, and one thread would wait for the other.
                _set_threads([1] * len(_blas_libraries()))
                _own.has_single_threaded_blas = True
            work(worker, stop.is_set)
        except BaseException as error:  # Ctrl-C too: the others must not go on for nothing
            errors.append(error)
            stop.set()
        finally:
            finished[worker] = 1

    finished = np.zeros(max(1, workers), np.int64)
    crew = _kept_crew() or Crew(stays=False)
    orders: list[Order] = []
    with single_threaded_blas():
        try:
            while len(orders) < workers - 1 and refusal is None:
                try:
                    orders.append(crew.order(partial(run, len(orders) + 1)))
                except RuntimeError as error:
                    refusal = error
            run(0)
            _look(finished[: 1 + len(orders)], _LOOKS)
            for order in orders:
                order.wait()
        except BaseException:  # Ctrl-C while threads are started or awaited
            stop.set()
            raise
        finally:
            for order in orders:
                order.wait()
            crew.rest()
    if errors:
        raise errors[0]
    if refusal is not None:
        warn_once(
            "threads",
            f"Only {1 + len(orders)} of {workers} threads could be started for a pass: {refusal}. Results are "
            "not affected, but it takes longer. Raise the limit on threads or memory (ulimit -u, or that of "
            "the container), or request fewer threads with OMP_NUM_THREADS or threadpoolctl.threadpool_limits.",
        )


def compile_rounds() -> None:
    """Compile what a round of several threads needs."""
    run_workers(lambda *_: None, 1)


def run_tasks(work: Callable[[Task], None], tasks: Iterable[Task], workers: int) -> None:
    """Call ``work(task)`` for each task, in several threads at once; no task may write where another does."""
    supply = deque(tasks)
    if workers == 1 or len(supply) <= 1:
        with single_threaded_blas():
            for task in supply:
                work(task)
        return

    def work_off(_: int, stopped: Callable[[], bool]) -> None:
        # popleft is atomic. A lock could stay closed if Ctrl-C came between two instructions.
        while not stopped():
            try:
                task = supply.popleft()
            except IndexError:
                return
            work(task)

    run_workers(work_off, min(workers, len(supply)))  # more would find nothing to do


class Supply(NamedTuple):
    """Items of a round, of which compiled code takes one share after the other, until none is left.

    Tasks that Python hands out take 20 us each, in which no other thread can get one.
    """

    taken: np.ndarray  # int64; how many items have been taken
    total: int
    size: int  # of a share
    shares: int  # of one call


@inlined
def next_share(supply):  # type: ignore[no-untyped-def]
    """Take a share, and return its first item and the one after its last; from the total on, none is left."""
    first = fetch_add(supply.taken, 0, supply.size)
    return first, min(first + supply.size, supply.total)


def run_supply(
    work: Callable[[Supply], None], count: int, size: int, multiplications: float, workers: int
) -> None:
    """Let compiled code work off some items, in several threads at once.

    Parameters
    ----------
    work : callable
        Takes shares of a supply (:func:`next_share`), at most ``supply.shares`` of them, until none is left.
        It may write only what belongs to these.
    count, size : int
        The number of items, and of those in a share.
    multiplications : float
        The work of all items, in multiplications of a matrix product.
    workers : int
    """
    number = max(1, -(-count // size))
    of_a_call = max(1, int(WORK_OF_A_CALL * number / max(multiplications, 1.0)))
    supply = Supply(np.zeros(1, np.int64), count, size, min(number, of_a_call))

    def work_off(_: int, stopped: Callable[[], bool]) -> None:
        work(supply)  # where there are no items too: that compiles it
        while supply.taken[0] < count and not stopped():
            work(supply)

    if workers == 1 or number == 1:
        with single_threaded_blas():
            work_off(0, lambda: False)
    else:
        run_workers(work_off, min(workers, number))
