"""Rounds of tasks on a cluster: waiting for them, fetching their results, and what can go wrong.

A task whose worker was lost is run again by Dask; what was sent to a lost worker is lost, and is sent again
here. So a round ends with all its results, or with an error that says what happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import distributed

from symrelu.operators.base import EvaluationFailed
from symrelu.operators.cluster_calls import LOOK, WorkerLost
from symrelu.operators.cluster_clients import ClusterError
from symrelu.operators.cluster_workers import Workers

_IDLE = 5.0  # seconds of waiting, after which some worker must have one of the tasks
_MOST_ATTEMPTS = 20  # to make a round, each of which was spoilt by the loss of a worker
_MOST_DEATHS = 3  # rounds in a row in which a task took all workers with it that tried it

Placed = tuple[str, Any]  # a worker, and the future of a task there


def run_round(
    workers: Workers,
    make: Callable[[Sequence[int], int], Mapping[int, Placed]],
    count: int,
    is_ours: Callable[[str], bool],
) -> list[Any]:
    """Return the results of so many tasks.

    Parameters
    ----------
    workers : Workers
    make : callable
        Takes the numbers of tasks, and of the attempt; submits these tasks and returns the worker and the
        future of each. It is called again for tasks that were lost together with what had been sent to them.
    count : int
    is_ours : callable
        Takes the key of a task, and returns whether it is one of these or one that they need.

    Returns
    -------
    results : list
    """
    one = _Round(workers, is_ours)
    deaths = 0
    for attempt in range(_MOST_ATTEMPTS):
        left = [k for k in range(count) if k not in one.results]
        try:
            futures = make(left, attempt)
        except WorkerLost as error:
            one.remember(error)
            continue
        try:
            killed = one.collect(futures)
        except BaseException:  # Ctrl-C too: nobody waits for these tasks any more
            one.cancel([future for _, future in futures.values()])
            raise
        if len(one.results) == count:
            return [one.results[k] for k in range(count)]
        deaths = deaths + 1 if killed else 0
        if deaths >= _MOST_DEATHS:
            raise ClusterError(f"Workers at {workers.address} die whenever they compute: {killed}")
    raise ClusterError(
        f"The cluster at {workers.address} loses workers or tasks so often that {_MOST_ATTEMPTS} attempts at "
        "one evaluation failed. Look at the logs of the workers."
    ) from one.last


class _Round:
    """The results of a round that have come so far."""

    def __init__(self, workers: Workers, is_ours: Callable[[str], bool]) -> None:
        self.workers = workers
        self.client = workers.client
        self.is_ours = is_ours
        self.results: dict[int, Any] = {}
        self.last: BaseException | None = None  # why something was lost

    def remember(self, error: BaseException) -> None:
        """Keep an error, without its frames: they keep futures of lost tasks, which Dask then runs again."""
        self.last = error
        link: BaseException | None = error
        while link is not None:
            link.__traceback__ = None
            link = link.__cause__ or link.__context__

    def collect(self, futures: Mapping[int, Placed]) -> str:
        """Fetch the results of tasks when they have ended; return why workers died, if they did.

        Errors of the tasks themselves are raised. Results that are not there afterwards were lost.
        """
        try:  # all at once, if nothing went wrong
            found = self._fetch(futures)
            self.results.update(zip(futures, found, strict=True))
        except EvaluationFailed:  # no worker came for so long: the others would only wait as long again
            raise
        except Exception:
            pass
        killed = ""
        for k, placed in futures.items():
            if k in self.results:
                continue
            try:  # each by itself, because one that is lost must not cost the others
                (self.results[k],) = self._fetch({k: placed})
            except distributed.scheduler.KilledWorker as error:
                killed = str(error).partition("\n")[0]
                self.remember(error)
            except EvaluationFailed:
                raise
            except Exception as error:
                self._check_lost(error, placed[1])
                self.remember(error)
        return killed

    def _check_lost(self, error: Exception, future: Any) -> None:
        """Raise unless an error means that a worker or a result was lost, and the task can be made again."""
        lost = isinstance(error, (WorkerLost, distributed.CancelledError))
        # A timeout of the task itself, as of a file system, would come again, and must be named.
        if lost or (isinstance(error, TimeoutError) and future.status != "error"):
            self.workers.present()
            return
        if isinstance(error, (OSError, RuntimeError)) and self.client.status != "running":
            raise self.workers.unreachable(error) from error
        if not isinstance(error, distributed.comm.CommClosedError):
            raise self._failed(error) from error

    def _fetch(self, placed: Mapping[int, Placed]) -> list[Any]:
        """Return the results of tasks; raise WorkerLost if a worker or a result is lost meanwhile.

        Dask would wait for results that are computed again, but not always give them to a worker.
        """
        self._await(placed)
        futures = [future for _, future in placed.values()]
        direct = self.workers.direct
        there = self.workers.present()
        results: list[Any] = self.workers.call(
            lambda: self.client.gather(futures, direct=direct, asynchronous=True),
            among=there,
            pointless=lambda: not all(future.done() for future in futures),
        )
        return results

    def _await(self, futures: Mapping[int, Placed]) -> None:
        """Wait until the tasks have ended, one way or another, or there is no worker left for them."""
        busy = time.monotonic()  # since when no worker may have had one of the tasks
        while waiting := [future for _, future in futures.values() if not future.done()]:
            try:
                with self.client.as_current():  # wait takes no client: it may find none, or another
                    distributed.wait(waiting, timeout=LOOK)
            except TimeoutError:  # before OSError, of which it is a subclass
                there = self.workers.workers()  # raises if all are lost for good
                # Dask does not give tasks of lost workers to new ones, if all others are lost too.
                self.cancel([one for worker, one in futures.values() if worker not in there and not one.done()])
                if time.monotonic() - busy > _IDLE:
                    if not any(map(self.is_ours, self.workers.processed())):
                        self.cancel(waiting)
                    busy = time.monotonic()
            except (distributed.CancelledError, RuntimeError, OSError) as error:
                if self.client.status != "running":
                    self.workers.present()
                    raise self.workers.unreachable(error) from error
                time.sleep(LOOK)  # wait has not waited, and may fail again at once

    def cancel(self, futures: Sequence[Any]) -> None:
        """Let Dask forget tasks."""
        with suppress(Exception):
            self.client.cancel(list(futures))

    def _failed(self, error: BaseException) -> ClusterError:
        self.workers.check_versions(
            self.workers.present()
        )  # one without symrelu fails first, and is named here
        return ClusterError(f"A worker of the cluster failed: {type(error).__name__}: {error}")
