"""The workers that a client can use: who is there, which versions they have, and questions to each of them."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import distributed

from symrelu.operators.cluster_calls import LOOK, WorkerLost, call
from symrelu.operators.cluster_clients import (
    VERSION_THERE,
    ClusterError,
    answers_of,
    check_client,
    check_versions,
    client_of,
)

PATIENCE = 30.0  # seconds without any worker after which a fit gives up; a nanny restarts one in a few
_ANSWERING = 60.0  # seconds for an answer of the scheduler itself
_FORGETTING = 60.0  # seconds in which the scheduler ends to send what nobody waits for any more
_MOST_RETURNS = 5  # of workers that leave while they are asked, in one question
_PAUSES = 20  # how much longer than an attempt to reach the workers the pause before the next one is


class Workers:
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
        self._checked: set[str] = set()
        self._direct = False
        self._try_direct = -math.inf  # when to try it again
        self._answer: dict[str, int] = {}
        self._asked = -math.inf

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
            found = self.present()
            if found:
                self.check_versions(found)
                self._answer, self._asked = found, time.monotonic()
                return found
            if time.monotonic() > deadline:
                raise self._without_workers()
            time.sleep(LOOK)

    def _without_workers(self) -> ClusterError:
        if not self._answer:
            return ClusterError(
                f"The cluster at {self.address} has no workers, and none came within {PATIENCE:g} seconds. "
                "Start workers, and wait for them: client.wait_for_workers(1)."
            )
        return ClusterError(
            f"The cluster at {self.address} has lost all of its workers, and none came back within "
            f"{PATIENCE:g} seconds. Start workers, and run the fit again; with a checkpoint it resumes."
        )

    def _restless(self) -> ClusterError:
        return ClusterError(
            f"Workers of the cluster at {self.address} leave and come back so often that {_MOST_RETURNS} "
            "questions to them were in vain. Look at the logs of the workers."
        )

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return str(getattr(self.client.scheduler, "address", self.given))

    def present(self) -> dict[str, int]:
        """Return the number of threads of each worker, by asking the scheduler."""
        return dict(sorted(self._ask_scheduler("ncores").items()))

    def processed(self) -> set[str]:
        """Return the keys of the tasks that the scheduler has given to workers."""
        return {key for keys in self._ask_scheduler("processing").values() for key in keys}

    def _ask_scheduler(self, question: str) -> Any:
        if self.client.status == "closed":
            raise ClusterError(
                "The client of the cluster is closed. Make a new one, and run the fit again; with a "
                "checkpoint it resumes."
            )
        try:
            return call(
                self.client, lambda: getattr(self.client.scheduler, question)(workers=None), limit=_ANSWERING
            )
        except (OSError, RuntimeError, AttributeError, TimeoutError) as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: BaseException) -> ClusterError:
        """Return the error of a scheduler that does not answer."""
        return ClusterError(
            f"The scheduler of the cluster at {self.address} cannot be reached any more "
            f"({str(error) or type(error).__name__}). Start it, and run the fit again; with a checkpoint it "
            "resumes."
        )

    def check_versions(self, workers: Mapping[str, int]) -> None:
        """Raise if a worker that was not seen before has no symrelu, or another version."""
        new = [address for address in workers if address not in self._checked]
        self._checked.update(check_versions(self._ask(new, eval, VERSION_THERE)))

    def ask_each(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function on each worker, and return the results of those that are still there.

        An error of the function is raised, with the name of the worker.
        """
        return answers_of(self._ask(list(self.workers()), function, *arguments))

    def _ask(self, workers: Collection[str], function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Return what each worker answers, or its error, without those that leave meanwhile."""
        returns = 0  # how often one has left, and was back under its address before it was missed
        while workers:
            how = {"workers": list(workers), "on_error": "return", "asynchronous": True}
            try:
                found: dict[str, Any] = self.call(
                    partial(self.client.run, function, *arguments, **how), among=workers
                )
                return found
            except (WorkerLost, OSError, ValueError) as error:
                there = self.present()
                left = [worker for worker in workers if worker in there]
                if len(left) == len(workers):
                    if not isinstance(error, WorkerLost):
                        raise self.unreachable(error) from error
                    returns += 1
                    if returns == _MOST_RETURNS:
                        raise self._restless() from error
                workers = left
        return {}

    def call(
        self,
        make: Callable[[], Awaitable[Any]],
        *,
        among: Collection[str],
        pointless: Callable[[], bool] | None = None,
    ) -> Any:
        """Return the result of a coroutine of the client; raise WorkerLost if one of these workers leaves."""

        def in_vain() -> bool:
            return not self.present().keys() >= set(among) or (pointless is not None and pointless())

        return call(self.client, make, pointless=in_vain)

    @property
    def direct(self) -> bool:
        """Whether this process can reach the workers itself, not only through the scheduler."""
        begin = time.monotonic()
        if not self._direct and begin >= self._try_direct:
            try:
                self.scatter_now([0], direct=True)
                self._direct = True
            except Exception:  # a worker may have been lost, or none can be reached: that takes long to notice
                self._try_direct = begin + _PAUSES * (time.monotonic() - begin)
        return self._direct

    def scatter_now(self, values: Any, **how: Any) -> Any:
        """Return the future of what is sent to workers, or a list for a list.

        Raise WorkerLost if a worker leaves meanwhile; what has arrived by then is released.
        """
        there = self.present()
        if not there:  # Dask would wait for one
            raise WorkerLost
        several = isinstance(values, list)
        data = {f"symrelu-data-{uuid.uuid4().hex}": value for value in (values if several else [values])}
        found = self.call(lambda: _sent(self.client, data, how), among=there)
        futures = [found[key] for key in data]
        return futures if several else futures[0]


async def _sent(client: Any, data: Mapping[str, Any], how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the futures of data that are sent to workers, by their keys; release all if it fails."""
    sending = asyncio.ensure_future(client.scatter(dict(data), asynchronous=True, **how))
    try:
        futures: dict[str, Any] = await asyncio.shield(sending)
    except BaseException:
        if how.get("direct") and how.get("broadcast"):
            sending.cancel()  # else it holds futures meanwhile, and what they stand for cannot be released
        await _forget(client, list(data), sending)
        raise
    return futures


async def _forget(client: Any, keys: list[str], sending: asyncio.Future[Any]) -> None:
    """Let workers and the scheduler forget what was sent in part.

    The scheduler goes on if it is not waited for, and notes afterwards that this client wants the keys. If they
    are for all workers, it goes on until they are released, or for ever, and sends nothing else to all workers.
    """
    deadline = time.monotonic() + _FORGETTING
    ended = False
    while not ended:
        await asyncio.wait([sending], timeout=LOOK)
        ended = sending.done() or time.monotonic() > deadline
        await _release(client, keys)
    sending.cancel()
    await asyncio.sleep(LOOK)  # workers may yet receive what was on its way
    await _release(client, keys)


async def _release(client: Any, keys: list[str]) -> None:
    with suppress(Exception):
        for key in keys:
            distributed.Future(key, client).release()
        for worker in await client.scheduler.ncores(workers=None):
            # The scheduler lets a worker remove what it is said to have, and nobody wants.
            await client.scheduler.add_keys(worker=worker, keys=keys)
