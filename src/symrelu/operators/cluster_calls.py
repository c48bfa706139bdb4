"""Calls of a Dask client that end when they have become pointless.

Dask tries for 30 seconds to connect to a worker that was killed (``distributed.comm.timeouts.connect``), and
waits for ever for results that no worker is going to compute. Here a call is left as soon as the caller knows
better.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

LOOK = 0.5  # seconds between two looks at the workers


class WorkerLost(Exception):
    """A worker has left while something was sent to it or asked of it, or what it had is lost."""


def call(
    client: Any,
    make: Callable[[], Awaitable[Any]],
    *,
    limit: float = math.inf,
    pointless: Callable[[], bool] | None = None,
) -> Any:
    """Return the result of a coroutine that runs in the thread of a client.

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
    running = _outcome(make)
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
    finally:
        answer.cancel()
    result, error = answer.result()
    if error is not None:
        raise error
    return result


async def _outcome(make: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    """Return the result or the error: raised here, the errors of cancelled tasks would lose their type."""
    try:
        return await make(), None
    except BaseException as error:
        return None, error
