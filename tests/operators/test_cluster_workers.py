"""Who is there, and what workers answer, with a pretended client; real ones are in test_dask.py."""

import asyncio
import time
from importlib import import_module
from types import SimpleNamespace

import pytest

distributed = pytest.importorskip("distributed", reason="dask is not installed")

from symrelu.operators import cluster_calls as calls  # noqa: E402
from symrelu.operators import cluster_workers  # noqa: E402

Answers = import_module("scripted_client").Answers
ClusterError = import_module("symrelu.operators.cluster_clients").ClusterError
Workers = cluster_workers.Workers


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(cluster_workers, "PATIENCE", 0.0)
    monkeypatch.setattr(cluster_workers, "LOOK", 0.0)
    monkeypatch.setattr(calls, "LOOK", 0.01)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"nthreads": {}}, r"has no workers.*wait_for_workers\(1\)"),
        ({"nthreads": OSError("refused")}, "tcp://nowhere cannot be reached any more"),
        ({"version": "0.0.1"}, r"worker a has symrelu 0\.0\.1"),
        ({"version": ImportError("No module named 'symrelu'")}, "worker a cannot import symrelu"),
    ],
)
def test_what_is_wrong_with_the_workers_is_said(answers, reason):
    with pytest.raises(ClusterError, match=reason):
        Workers(Answers(**answers)).workers()


def test_workers_that_were_there_are_said_to_be_lost():
    client = Answers()
    found = Workers(client)
    found.workers()
    client.answers = {"nthreads": {}}
    with pytest.raises(ClusterError, match=r"has lost all of its workers.*with a checkpoint it resumes"):
        found.workers()


def test_a_closed_client_is_named():
    client = Answers()
    client.status = "closed"
    with pytest.raises(ClusterError, match="client of the cluster is closed"):
        Workers(client).workers()
    assert not Workers(client).is_for(None)


def test_a_scheduler_that_does_not_answer_is_not_waited_for_for_ever(monkeypatch):
    async def never(workers):
        await asyncio.sleep(3600)

    monkeypatch.setattr(cluster_workers, "_ANSWERING", 0.05)
    client = Answers()
    client.scheduler.ncores = never
    with pytest.raises(ClusterError, match=r"cannot be reached any more \(no answer within 0\.05 seconds\)"):
        Workers(client).workers()


def test_workers_are_not_asked_for_at_every_round():
    client = Answers()
    found = Workers(client)
    assert found.workers() == {"a": 1}
    client.answers = {"nthreads": {"b": 2}}
    assert found.workers(recently=60) == {"a": 1}
    assert found.workers() == {"b": 2}


def test_the_tasks_of_all_workers_are_listed():
    assert Workers(Answers(processing={"a": ["x", "y"], "b": ["z"]})).processed() == {"x", "y", "z"}


class Deadly(Answers):
    """Its worker b dies when it is asked, and Dask tries for long to reach it."""

    async def run(self, function, *arguments, workers, **how):
        if "b" in workers:
            self.answers["nthreads"] = {"a": 1}
            await asyncio.sleep(3600)
        return await super().run(function, *arguments, workers=workers, **how)


def test_a_worker_that_dies_when_it_is_asked_is_not_waited_for():
    found = Workers(Deadly(nthreads={"a": 1, "b": 1}))
    assert list(found.ask_each(max, 1, 2)) == ["a"]


class Restless(Answers):
    """Its worker is missing at the first look after some of the questions, and back at the next."""

    def __init__(self, absences):
        super().__init__()
        self.absences, self.asked, self.missing = absences, 0, False
        self.scheduler.ncores = self.looked

    async def looked(self, workers):
        missing, self.missing = self.missing, False
        return {} if missing else {"a": 1}

    async def run(self, *arguments, **how):
        self.asked += 1
        if self.asked <= self.absences:
            self.missing = True
            await asyncio.sleep(3600)
        return await super().run(*arguments, **how)


def test_a_worker_that_is_back_before_it_is_missed_is_asked_again():
    """It was said that the scheduler could not be reached any more (WorkerLost)."""
    client = Restless(3)
    assert Workers(client).workers() == {"a": 1}
    assert client.asked == 4
    with pytest.raises(ClusterError, match=r"tcp://nowhere leave and come back so often that 5 questions"):
        Workers(Restless(99)).workers()


def test_what_is_sent_to_a_worker_that_dies_is_lost():
    client = Answers(nthreads={"a": 1, "b": 1})

    async def scatter(values, **_):
        client.answers["nthreads"] = {"a": 1}
        await asyncio.sleep(3600)

    client.scatter = scatter
    with pytest.raises(calls.WorkerLost):
        Workers(client).scatter_now([1])
    client.answers["nthreads"] = {}
    with pytest.raises(calls.WorkerLost):  # at once: Dask would wait for a worker
        Workers(client).scatter_now([1])


def released(client, count):
    """Return the keys that a client has released, as soon as there are so many."""
    deadline = time.monotonic() + 10
    while len(client.released) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return client.released


@pytest.mark.parametrize("seconds", [0.1, 3600])
def test_what_arrives_after_a_worker_has_left_is_released(monkeypatch, seconds):
    """The scheduler goes on if it is not waited for, and keeps what it has for this client."""
    monkeypatch.setattr(cluster_workers, "_FORGETTING", 0.5)
    monkeypatch.setattr(cluster_workers, "LOOK", 0.2)
    client, sent = Answers(nthreads={"a": 1, "b": 1}), []

    async def scatter(values, **_):
        sent.extend(values)
        client.answers["nthreads"] = {"a": 1}
        found = {key: distributed.Future(key, client) for key in values}
        await asyncio.sleep(seconds)
        return found

    client.scatter = scatter
    with pytest.raises(calls.WorkerLost) as error:  # its traceback must not keep them
        Workers(client).scatter_now([1, 2])
    assert client.released == []
    assert set(released(client, 2)) == set(sent)
    assert error.value.__traceback__ is not None


def test_what_is_sent_in_part_is_released():
    client, sent = Answers(), []

    async def scatter(values, **_):
        sent.extend(values)
        raise OSError("gone")

    client.scatter = scatter
    with pytest.raises(OSError, match="gone"):
        Workers(client).scatter_now([1, 2])
    assert set(released(client, 2)) == set(sent)
    assert client.removed == {"a": sent}  # if the scheduler does not know that it has them
    assert len(sent) == 2


def test_workers_that_cannot_be_reached_for_a_moment_are_tried_again(monkeypatch):
    """Else all that is sent goes through the scheduler until the end of the fit; but attempts take long."""
    now, attempts = [0.0], []

    async def scatter(values, **_):
        attempts.append(now[0])
        now[0] += 1.0
        if len(attempts) < 3:
            raise OSError("gone")
        return values

    monkeypatch.setattr(cluster_workers, "time", SimpleNamespace(monotonic=lambda: now[0]))
    client = Answers()
    client.scatter = scatter
    found, answers = Workers(client), []
    for _ in range(60):
        answers.append(found.direct)
        now[0] += 1.0
    assert len(attempts) == 3  # seldom while it fails, and never again when it has not
    assert not any(answers[:20])
    assert all(answers[-10:])


def test_an_error_of_a_question_to_each_worker_names_the_worker():
    client = Answers()
    found = Workers(client)
    found.workers()
    client.answers = {"version": OSError("libllvmlite.so: cannot open")}
    with pytest.raises(ClusterError, match="The worker a failed: OSError: libllvmlite"):
        found.ask_each(max, 1, 2)
    client.answers = {"version": distributed.comm.CommClosedError("closed")}
    assert found.ask_each(max, 1, 2) == {}
