"""Calls of a Dask client that end when they have become pointless.

Dask tries for 30 seconds to connect to a worker that was killed (``distributed.comm.timeouts.connect``), and
waits for ever for results that no worker is going to compute. Here a call is left as soon as the caller knows
better.

Some things that the driver uses are no documented part of Dask, and may change with its versions: the event
loop of a client (``client.loop.asyncio_loop``, here); the questions ``ncores`` and ``processing`` to
``client.scheduler`` (``cluster_workers._ask_scheduler``); its ``add_keys``, and futures that are made by hand,
to release keys (``cluster_workers._release``).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

LOOK = 0.5  # seconds between two looks at the workers

SYNCHRONOUS = (
    "client must be synchronous, but it runs in the event loop of the caller; make one with Client(address)."
)


class WorkerLost(Exception):
    """A worker has left while something was sent to it or asked of it, or what it had is lost."""


def check_thread(client: Any) -> None:
    """Raise if a client has its event loop in this thread: whoever waits for an answer here, stops the loop.

    Parameters
    ----------
    client : Client

    Returns
    -------
    None
    """
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:  # no loop runs in this thread
        return
    if here is client.loop.asyncio_loop:
        raise ValueError(SYNCHRONOUS)


def call(
    client: Any,
    make: Callable[[], Awaitable[Any]],
    *,
    limit: float = math.inf,
    pointless: Callable[[], bool] | None = None,
) -> Any:
    """Return the result of a coroutine that runs in the thread of a client, which must not be this one.

    Parameters
    ----------
    client : Client
    make : callable
        Returns the coroutine.
    limit : float
        Seconds, after which a TimeoutError is raised.
    pointless : callable or None
        Asked twice a second, in this thread: a WorkerLost is raised if it returns True.

    Returns
    -------
    result : object
    """
    check_thread(client)
    outcome: list[tuple[Any, BaseException | None]] = []
    left = threading.Event()
    running = _store(outcome, make, left)
    try:
        answer = asyncio.run_coroutine_threadsafe(running, client.loop.asyncio_loop)
    except BaseException:  # the loop of a closed client
        running.close()
        raise
    deadline = time.monotonic() + limit
    try:
        while not concurrent.futures.wait([answer], timeout=LOOK).done:
            if pointless is not None and pointless():
                raise WorkerLost
            if time.monotonic() > deadline:
                raise TimeoutError(f"no answer within {limit:g} seconds")
    except BaseException:
        answer.cancel()
        left.set()
        outcome.clear()
        raise
    answer.result()  # raises if it was cancelled before it began
    result, error = outcome.pop()
    if error is not None:
        raise error
    return result


async def _store(
    outcome: list[tuple[Any, BaseException | None]], make: Callable[[], Awaitable[Any]], left: threading.Event
) -> None:
    """Store the result or the error, unless the call was left: then a traceback may keep the list.

    Raised here, the errors of cancelled tasks would lose their type; and what is returned here lives until the
    next garbage collection, because asyncio and the future that it makes refer to each other.
    """
    try:
        outcome.append((await make(), None))
    except BaseException as error:
        outcome.append((None, error))
    if left.is_set():
        outcome.clear()
