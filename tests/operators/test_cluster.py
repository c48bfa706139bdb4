"""What is sent to a cluster that is only pretended; real clusters are in test_dask.py."""

import contextlib
import itertools
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="dask is not installed")

from symrelu.operators import cluster  # noqa: E402

Answers = import_module("scripted_client").Answers
WorkerLost = import_module("symrelu.operators.cluster_calls").WorkerLost
Cluster = cluster.Cluster


def test_small_arrays_go_with_the_tasks():
    found = Cluster(Answers())
    small = [np.ones(3)]
    assert found.scatter(small)[0] is small[0]
    assert found.moved["sent"] == 0
    for count in (1, 2):  # with each of them again
        found.submit("pass", max, small, worker="a", U={0: small[0]}, rank=3)
        assert found.moved["sent"] == 48 * count
    found.scatter([np.ones(cluster._SMALL)])  # once, however many tasks get it
    found.submit("pass", max, object(), worker="a")
    assert found.moved["sent"] == 96 + 8 * cluster._SMALL


def test_results_of_a_round_are_counted():
    found = Cluster(Answers())
    future = SimpleNamespace(result=[np.ones(3)], done=lambda: True)
    assert len(found.run_round(lambda numbers, attempt: dict.fromkeys(numbers, ("a", future)), 2)) == 2
    assert found.moved["received"] == 48


def test_what_cannot_be_sent_is_sent_again_by_the_caller():
    client = Answers()

    async def scatter(values, **_):
        raise OSError("gone")

    client.scatter = scatter
    for send in (Cluster(client).broadcast, lambda one: Cluster(client).scatter([one])):
        with pytest.raises(WorkerLost):
            send(np.ones(cluster._SMALL))


def test_a_cluster_of_which_nothing_comes_is_closed(monkeypatch):
    found, closed = Cluster(Answers()), []
    monkeypatch.setattr(found, "close", lambda: closed.append(True))
    with cluster.closed_on_error(found):
        pass
    assert not closed
    with contextlib.suppress(KeyboardInterrupt), cluster.closed_on_error(found):
        raise KeyboardInterrupt
    assert closed


def test_keys_of_tasks_differ_between_processes(monkeypatch):
    """Forked ones have the same addresses of objects and counts; Dask gives both the result of the first."""
    monkeypatch.setattr(cluster, "id", lambda _: 7, raising=False)
    keys = []
    for _ in range(2):
        monkeypatch.setattr(cluster, "_rounds", itertools.count())
        found = Cluster(Answers())
        keys += [found.submit("pass", max, 1, 2, worker="a")[1].key for _ in range(2)]
    assert len(set(keys)) == 4
    assert all(key.startswith("symrelu-pass-") for key in keys)  # for the dashboard
