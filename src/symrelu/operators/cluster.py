"""A Dask cluster seen by the driver of a fit: who is there, rounds of tasks, and what can go wrong.

Workers come and go. A task whose worker was lost is run again by Dask; what was sent to a lost worker is lost,
and is sent again here. So a round ends with all its results, or with an error that says what happened.
"""

from __future__ import annotations

import itertools
import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import distributed

from symrelu.operators.base import EvaluationFailed
from symrelu.operators.cluster_clients import (
    VERSION_THERE,
    ClusterError,
    answers_of,
    check_client,
    check_versions,
    client_of,
    versioned,
)

PATIENCE = 30.0  # seconds without any worker after which a fit gives up; a nanny restarts one in a few
_FETCHING = 30.0  # seconds for the results of a round, after which the workers are looked for
_PAUSES = 20  # how much longer than an attempt to reach the workers the pause before the next one is
_LOOK = 0.5  # seconds between two looks at the workers
_SMALL = 500_000  # bytes of arrays that go with tasks; more would burden the scheduler
_MOST_ATTEMPTS = 20  # to make a round, each of which was spoilt by the loss of a worker
_MOST_DEATHS = 3  # rounds in a row in which a task took all workers with it that tried it

_rounds = itertools.count()

Placed = tuple[str, Any]  # a worker, and the future of a task there


class Cluster:
    """The workers that a client can use.

    Parameters
    ----------
    client : Client, str or None
        A client, the address of a scheduler, or None for the current client.
    """

    def __init__(self, client: Any | None = None) -> None:
        check_client(client)
        self.given = client
        self.owned = isinstance(client, str)
        self.client = client_of(client)
        self._own = uuid.uuid4().hex  # in keys: other processes use the same scheduler, and count as this one
        self._checked: set[str] = set()
        self._direct = False
        self._try_direct = -math.inf  # when to try it again
        self._answer: dict[str, int] = {}
        self._asked = -math.inf
        self.moved = {"sent": 0, "received": 0}  # bytes of arrays between this process and the workers

    def close(self) -> None:
        """Close the client if it was made here."""
        if self.owned:
            with suppress(Exception):
                self.client.close(timeout=2)

    def is_for(self, client: Any | None) -> bool:
        """Return whether this is the cluster of a client and still usable."""
        return self.client.status == "running" and (
            client is None or client == self.given or client is self.client
        )

    def workers(self, *, recently: float = 0.0) -> dict[str, int]:
        """Return the number of threads of each worker; wait for one if there is none, but not for ever.

        An answer of the scheduler that is at most so many seconds old is used again.
        """
        if time.monotonic() - self._asked <= recently and self.client.status == "running":
            return self._answer
        deadline = time.monotonic() + PATIENCE
        while True:
            found = self._present()
            if found:
                self._check_versions(found)
                self._answer, self._asked = found, time.monotonic()
                return found
            if time.monotonic() > deadline:
                raise self._without_workers()
            time.sleep(_LOOK)

    def _without_workers(self) -> ClusterError:
        if not self._answer:
            return ClusterError(
                f"The cluster at {self._address} has no workers, and none came within {PATIENCE:g} seconds. "
                "Start workers, and wait for them: client.wait_for_workers(1)."
            )
        return ClusterError(
            f"The cluster at {self._address} has lost all of its workers, and none came back within "
            f"{PATIENCE:g} seconds. Start workers, and run the fit again; with a checkpoint it resumes."
        )

    @property
    def _address(self) -> str:
        return str(getattr(self.client.scheduler, "address", self.given))

    def _present(self) -> dict[str, int]:
        """Return the number of threads of each worker, by asking the scheduler."""
        if self.client.status == "closed":
            raise ClusterError(
                "The client of the cluster is closed. Make a new one, and run the fit again; with a "
                "checkpoint it resumes."
            )
        try:
            return dict(sorted(self.client.nthreads().items()))
        except (OSError, RuntimeError, AttributeError, TimeoutError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> ClusterError:
        return ClusterError(
            f"The scheduler of the cluster at {self._address} cannot be reached any more "
            f"({str(error) or type(error).__name__}). Start it, and run the fit again; with a checkpoint it "
            "resumes."
        )

    def _check_versions(self, workers: Mapping[str, int]) -> None:
        """Raise if a worker that was not seen before has no symrelu, or another version."""
        new = [address for address in workers if address not in self._checked]
        if not new:
            return
        try:
            found = self.client.run(eval, VERSION_THERE, workers=new, on_error="return")
        except (OSError, ValueError) as error:  # one of them is gone already: the next look shows it
            if not set(new) - set(self._present()):
                raise self._unreachable(error) from error
            return
        self._checked.update(check_versions(found))

    def ask_each(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function on each worker, and return the results of those that are still there.

        An error of the function is raised, with the name of the worker.
        """
        workers = list(self.workers())
        try:
            found = self.client.run(function, *arguments, workers=workers, on_error="return")
        except (OSError, ValueError) as error:
            raise self._unreachable(error) from error
        return answers_of(found)

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, worker: str, **settings: Any
    ) -> Placed:
        """Return the worker and the future of a task that runs there, or elsewhere if the worker is lost."""
        key = f"symrelu-{name}-{next(_rounds)}-{self._own}"
        try:
            call = versioned(function, *arguments)
            where = {"workers": [worker], "allow_other_workers": True}
            self.moved["sent"] += _nbytes(arguments) + _nbytes(settings)
            return worker, self.client.submit(*call, key=key, pure=False, **where, **settings)
        except (RuntimeError, OSError) as error:  # the client is closed
            self._present()
            raise self._unreachable(error) from error

    def scatter(self, arrays: Sequence[Any]) -> list[Any]:
        """Return futures of arrays that are sent to the workers, each to one of them.

        A few small arrays are returned as they are: they travel with the tasks, which is quicker.
        """
        size = _nbytes(arrays)
        if size <= _SMALL:
            return list(arrays)  # counted with each task that gets them
        self.moved["sent"] += size
        try:
            return list(self.client.scatter(list(arrays), hash=False, direct=self.direct))
        except Exception as error:  # a worker is gone, or all: the caller looks and tries again
            self._present()
            raise _Lost from error

    def broadcast(self, value: Any) -> Any:
        """Return the future of an object that is sent to all workers."""
        try:
            return self.client.scatter(value, hash=False, direct=self.direct, broadcast=True)
        except Exception as error:
            self._present()
            raise _Lost from error

    @property
    def direct(self) -> bool:
        """Whether this process can reach the workers itself, not only through the scheduler."""
        begin = time.monotonic()
        if not self._direct and begin >= self._try_direct:
            try:
                self.client.scatter([0], hash=False, direct=True)
                self._direct = True
            except Exception:  # a worker may have been lost, or none can be reached: that takes long to notice
                self._try_direct = begin + _PAUSES * (time.monotonic() - begin)
        return self._direct

    def run_round(self, make: Callable[[Sequence[int], int], Mapping[int, Placed]], count: int) -> list[Any]:
        """Return the results of so many tasks.

        Parameters
        ----------
        make : callable
            Takes the numbers of tasks, and of the attempt; submits these tasks and returns what :meth:`submit`
            returned. It is called again for tasks that were lost together with what had been sent to them.
        count : int

        Returns
        -------
        results : list
        """
        results: dict[int, Any] = {}
        deaths = 0
        for attempt in range(_MOST_ATTEMPTS):
            left = [k for k in range(count) if k not in results]
            try:
                futures = make(left, attempt)
            except _Lost:
                continue
            try:
                self._await(futures)
                killed = self._collect(futures, results)
            except BaseException:  # Ctrl-C too: nobody waits for these tasks any more
                self._cancel([future for _, future in futures.values()])
                raise
            if len(results) == count:
                self.moved["received"] += _nbytes(results)
                return [results[k] for k in range(count)]
            deaths = deaths + 1 if killed else 0
            if deaths >= _MOST_DEATHS:
                raise ClusterError(f"Workers at {self._address} die whenever they compute: {killed}")
        raise ClusterError(
            f"The cluster at {self._address} loses workers so often that {_MOST_ATTEMPTS} attempts at one "
            "evaluation failed. Look at the logs of the workers."
        )

    def _await(self, futures: Mapping[int, Placed]) -> None:
        """Wait until the tasks have ended, one way or another, or there is no worker left for them."""
        while waiting := [future for _, future in futures.values() if not future.done()]:
            try:
                with self.client.as_current():  # wait takes no client: it may find none, or another
                    distributed.wait(waiting, timeout=_LOOK)
            except TimeoutError:  # before OSError, of which it is a subclass
                there = self.workers()  # raises if all are lost for good
                # Dask does not give tasks of lost workers to new ones, if all others are lost too.
                gone = [one for worker, one in futures.values() if worker not in there and not one.done()]
                self._cancel(gone)
            except (distributed.CancelledError, RuntimeError, OSError) as error:
                if self.client.status != "running":
                    self._present()
                    raise self._unreachable(error) from error

    def _cancel(self, futures: Sequence[Any]) -> None:
        with suppress(Exception):
            self.client.cancel(list(futures))

    def _collect(self, futures: Mapping[int, Placed], results: dict[int, Any]) -> str:
        """Fetch the results of finished tasks; return why workers died, if they did; raise on other errors."""
        try:  # all at once, if nothing went wrong
            found = self._fetch([future for _, future in futures.values()])
            results.update(zip(futures, found, strict=True))
        except EvaluationFailed:  # no worker came for so long: the others would only wait as long again
            raise
        except Exception:
            pass
        killed = ""
        for k, (_, future) in futures.items():
            if k in results:
                continue
            try:  # each by itself, because one that is lost must not cost the others
                results[k] = self._fetch(future)
            except distributed.scheduler.KilledWorker as error:
                killed = str(error).partition("\n")[0]
            except (distributed.CancelledError, TimeoutError):
                self._present()
            except EvaluationFailed:
                raise
            except (OSError, RuntimeError) as error:
                if self.client.status != "running":
                    raise self._unreachable(error) from error
                if not isinstance(error, distributed.comm.CommClosedError):
                    raise self._failed(error) from error
            except Exception as error:
                raise self._failed(error) from error
        return killed

    def _fetch(self, futures: Any) -> Any:
        """Return results; raise if all workers are lost meanwhile: Dask would wait for others for ever."""
        patience = _FETCHING
        while True:
            gathering = partial(self.client.gather, futures, direct=self.direct, asynchronous=True)
            try:
                return self.client.sync(gathering, callback_timeout=patience)
            except TimeoutError:
                self.workers()  # raises if all are lost for good
                patience *= 2  # the results may be large, and the network slow

    def _failed(self, error: BaseException) -> ClusterError:
        self._check_versions(self._present())  # a worker without symrelu fails first, and is named here
        return ClusterError(f"A worker of the cluster failed: {type(error).__name__}: {error}")


@contextmanager
def closed_on_error(cluster: Cluster) -> Iterator[None]:
    """Close a cluster if the block raises."""
    try:
        yield
    except BaseException:
        cluster.close()
        raise


class _Lost(Exception):
    """What was sent to a worker is lost."""


def _nbytes(found: Any) -> int:
    """Return the bytes of the arrays in what is sent or received."""
    if isinstance(found, Mapping):
        return sum(map(_nbytes, found.values()))
    if isinstance(found, (tuple, list)):
        return sum(map(_nbytes, found))
    return int(getattr(found, "nbytes", 0))
