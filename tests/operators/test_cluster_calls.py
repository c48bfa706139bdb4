"""Calls that are left when they have become pointless."""

import asyncio
import time
from importlib import import_module
from types import SimpleNamespace

import pytest

distributed = pytest.importorskip("distributed", reason="dask is not installed")

from symrelu.operators import cluster_calls as calls  # noqa: E402

CLIENT = SimpleNamespace(loop=import_module("scripted_client").running_loop())


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(calls, "LOOK", 0.01)


async def gives(found):
    if isinstance(found, BaseException):
        raise found
    return found


def waits_for_ever(seen):
    async def wait():
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append("left")

    return wait


def test_results_and_errors_are_those_of_the_call():
    assert calls.call(CLIENT, lambda: gives(3)) == 3
    for error in (TimeoutError("late"), distributed.CancelledError("key"), asyncio.CancelledError("key")):
        with pytest.raises(type(error)) as found:
            calls.call(CLIENT, lambda error=error: gives(error))
        assert found.value is error  # not the error of the thread that it ran in


def test_a_call_is_left_when_it_is_pointless():
    answers, seen = iter([False, False, True]), []
    with pytest.raises(calls.WorkerLost):
        calls.call(CLIENT, waits_for_ever(seen), pointless=lambda: next(answers))
    assert not list(answers)
    deadline = time.monotonic() + 10
    while not seen and time.monotonic() < deadline:
        time.sleep(0.01)
    assert seen == ["left"]


def test_a_call_ends_after_its_limit():
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 seconds"):
        calls.call(CLIENT, waits_for_ever([]), limit=0.05)


def test_a_call_is_left_if_the_question_whether_it_is_pointless_fails():
    def fails():
        raise KeyError("closed")

    with pytest.raises(KeyError, match="closed"):
        calls.call(CLIENT, waits_for_ever([]), pointless=fails)


def test_a_loop_that_is_closed_is_an_error_at_once():
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        calls.call(SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop)), lambda: gives(3))


def test_a_call_in_the_thread_of_the_client_is_refused():
    """It would stop the loop that is to answer, until its limit."""

    async def here():
        client = SimpleNamespace(loop=SimpleNamespace(asyncio_loop=asyncio.get_running_loop()))
        with pytest.raises(ValueError, match=r"client must be synchronous.*Client\(address\)"):
            calls.call(client, lambda: gives(3))
        return calls.call(CLIENT, lambda: gives(3))  # a loop of another thread

    assert asyncio.run(here()) == 3
