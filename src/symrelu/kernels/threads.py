"""Threads of one pass: as many workers as BLAS would have used, each with BLAS on one thread.

The number of BLAS threads is the one knob. Users set it as they set it for NumPy
(``threadpoolctl.threadpool_limits``, ``OMP_NUM_THREADS``), and joblib sets it inside its workers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")


@lru_cache(maxsize=1)
def _blas_libraries() -> tuple[Any, ...]:
    """Return threadpoolctl's handles of the loaded BLAS libraries (finding them takes a millisecond)."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def blas_threads() -> int:
    """Return how many threads BLAS may use now; 1 where that cannot be controlled."""
    return max((library.num_threads or 1 for library in _blas_libraries()), default=1)


class _SingleThreadedBlas:
    """Hold BLAS at one thread while any pass of this process runs.

    The setting is global to the process. Two fits that overlap in time would each restore what they
    found, the second one the first one's limit; counting who is inside restores the true value once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [library.num_threads or 1 for library in _blas_libraries()]
                self._set([1] * len(self._before))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._set(self._before)

    @staticmethod
    def _set(counts: Sequence[int]) -> None:
        for library, count in zip(_blas_libraries(), counts, strict=True):
            library.set_num_threads(count)


_single_threaded_blas = _SingleThreadedBlas()


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    # A pool for each pass costs 0.1 ms and leaves nothing behind that a fork could break.
    with _single_threaded_blas, ThreadPoolExecutor(workers) as pool:
        yield pool


def run_rounds(
    rounds: Iterable[Sequence[Task]], work: Callable[[int, Sequence[Task]], None], workers: int
) -> None:
    """Call ``work(worker, tasks)`` so that every round is complete before the next one starts.

    The tasks of a round must not write to the same place. Results that are summed in the order of the
    rounds are then the same for any number of workers.
    """
    if workers == 1:
        for tasks in rounds:
            work(0, tasks)
        return
    with _pool(workers) as pool:
        for tasks in rounds:
            shares = [tasks[worker::workers] for worker in range(workers)]
            for _ in pool.map(work, range(workers), shares):
                pass  # reading the results raises what a worker raised
