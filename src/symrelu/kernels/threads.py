"""Threads of one pass: as many workers as BLAS would have used, each with single-threaded BLAS.

The number of BLAS threads is the only setting. Users set it as they do for NumPy
(``threadpoolctl.threadpool_limits``, ``OMP_NUM_THREADS``), and joblib sets it inside its workers.
While a fit or a pass runs, BLAS itself stays on one thread: its threads wait by spinning, which on a busy
machine costs more than they gain on tiles, and the last digits would depend on their number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from threadpoolctl import ThreadpoolController

from symrelu.kernels.one_time_warnings import warn_once

Task = TypeVar("Task")


@lru_cache(maxsize=1)
def _blas_libraries() -> tuple[Any, ...]:
    """Return threadpoolctl's handles of the loaded BLAS libraries (finding them takes a millisecond)."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class single_threaded_blas:  # used like a function: with single_threaded_blas(): ...
    """Hold BLAS at one thread inside the block; nestable, and usable from several threads at once.

    The setting is global to the process. If each of two overlapping fits restored what it found, the second
    would restore the limit set by the first; so the last one to exit restores what the first one found.
    Ctrl-C can interrupt any line: a block that was not exited properly is released on garbage collection.
    """

    _lock = threading.RLock()  # reentrant: garbage collection may call __del__ while this thread holds it
    _inside: ClassVar[set[int]] = set()  # ids of the blocks that are open
    _before: ClassVar[list[int]] = []  # thread counts to restore, one per library

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before[:] = _current_threads()
            self._inside.add(id(self))
            _set_threads([1] * len(self._before))

    def __exit__(self, *_: object) -> None:
        self._leave()

    def __del__(self) -> None:
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            if id(self) in self._inside:
                # In this order, so that __del__ repeats what Ctrl-C interrupts.
                if len(self._inside) == 1:
                    _set_threads(self._before)
                self._inside.discard(id(self))


def _current_threads() -> list[int]:
    return [library.num_threads or 1 for library in _blas_libraries()]


def _set_threads(counts: Sequence[int]) -> None:
    for library, count in zip(_blas_libraries(), counts, strict=True):
        library.set_num_threads(count)


def allowed_threads() -> int:
    """Return how many threads a pass may use: those of BLAS, or 1 if BLAS cannot be controlled."""
    with single_threaded_blas._lock:
        counts = single_threaded_blas._before if single_threaded_blas._inside else _current_threads()
        return max(counts, default=1)


def run_rounds(
    rounds: Callable[[], Iterable[Sequence[Task]]], work: Callable[[int, Sequence[Task]], None], workers: int
) -> None:
    """Call ``work(worker, tasks)`` such that every round is complete before the next one starts.

    The tasks of a round must not write to the same place. Results that are summed in the order of the rounds
    are then the same for any number of workers. ``rounds()`` is called once by each worker. The caller is
    worker 0; the other threads only exist during the pass, so a fork never inherits them. If some of them
    cannot be started, the others take over their work.
    """
    errors: list[BaseException] = []
    counted = threading.Event()
    barrier = threading.Barrier(1)  # until the workers are counted

    def run(worker: int) -> None:
        try:
            for tasks in rounds():
                work(worker, tasks[worker :: barrier.parties])
                barrier.wait()
        except threading.BrokenBarrierError:
            pass  # another worker failed and has recorded the error
        except BaseException as error:  # Ctrl-C too: the others must not wait forever
            errors.append(error)
            barrier.abort()

    def follow(worker: int) -> None:
        counted.wait()
        if not barrier.broken:
            run(worker)

    with single_threaded_blas():
        try:
            others, refusal = _start_threads(follow, workers - 1)
            barrier = threading.Barrier(1 + len(others))
            counted.set()
            run(0)
            for thread in others:
                thread.join()
        except BaseException:  # Ctrl-C: release the workers that wait at the barrier or for the count
            barrier.abort()
            counted.set()
            raise
    if errors:
        raise errors[0]
    if refusal is not None:
        warn_once(
            "threads",
            f"Only {1 + len(others)} of {workers} threads could be started for a pass: {refusal}. Results are "
            "not affected, but it takes longer. Raise the limit on threads or memory (ulimit -u, or that of "
            "the container), or request fewer threads with OMP_NUM_THREADS or threadpoolctl.threadpool_limits.",
        )


def _start_threads(
    run: Callable[[int], None], count: int
) -> tuple[list[threading.Thread], RuntimeError | None]:
    """Start threads that call ``run(1)``, ``run(2)``, ...; return those that started, and the first failure."""
    threads: list[threading.Thread] = []
    for worker in range(1, count + 1):
        thread = threading.Thread(target=run, args=(worker,), daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            return threads, error
        threads.append(thread)
    return threads, None
