"""A Dask cluster seen by the driver of a fit: what it sends to the workers, and rounds of tasks."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from symrelu.operators.cluster_calls import WorkerLost
from symrelu.operators.cluster_clients import ClusterError, versioned
from symrelu.operators.cluster_rounds import Placed, run_round
from symrelu.operators.cluster_workers import Workers

__all__ = ["Cluster", "ClusterError", "Placed", "closed_on_error"]

_SMALL = 500_000  # bytes of arrays that go with tasks; more would burden the scheduler

_rounds = itertools.count()


class Cluster(Workers):
    """The workers that a client can use, and tasks for them.

    Parameters
    ----------
    client : Client, str or None
        A client, the address of a scheduler, or None for the current client.
    """

    def __init__(self, client: Any | None = None) -> None:
        super().__init__(client)
        self._own = uuid.uuid4().hex  # in keys: other processes use the same scheduler, and count as this one
        self.moved = {"sent": 0, "received": 0}  # bytes of arrays between this process and the workers

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
            self.present()
            raise self.unreachable(error) from error

    def scatter(self, arrays: Sequence[Any]) -> list[Any]:
        """Return futures of arrays that are sent to the workers, each to one of them.

        A few small arrays are returned as they are: they travel with the tasks, which is quicker.
        """
        size = _nbytes(arrays)
        if size <= _SMALL:
            return list(arrays)  # counted with each task that gets them
        self.moved["sent"] += size
        return list(self._scattered(list(arrays)))

    def broadcast(self, value: Any) -> Any:
        """Return the future of an object that is sent to all workers."""
        return self._scattered(value, broadcast=True)

    def _scattered(self, values: Any, **how: Any) -> Any:
        try:
            return self.scatter_now(values, direct=self.direct, **how)
        except Exception as error:  # a worker is gone, or all: the caller looks and tries again
            self.present()
            raise WorkerLost from error

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
        results = run_round(self, make, count, lambda key: str(key).endswith(self._own))
        self.moved["received"] += _nbytes(results)
        return results


@contextmanager
def closed_on_error(cluster: Cluster) -> Iterator[None]:
    """Close a cluster if the block raises."""
    try:
        yield
    except BaseException:
        cluster.close()
        raise


def _nbytes(found: Any) -> int:
    """Return the bytes of the arrays in what is sent or received."""
    if isinstance(found, Mapping):
        return sum(map(_nbytes, found.values()))
    if isinstance(found, (tuple, list)):
        return sum(map(_nbytes, found))
    return int(getattr(found, "nbytes", 0))
