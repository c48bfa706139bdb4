"""Clients, and the versions of workers; real workers of other versions are in test_dask.py."""

import asyncio
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import symrelu
from symrelu import decompose
from symrelu.operators import EvaluationFailed

distributed = pytest.importorskip("distributed", reason="dask is not installed")
clients = import_module("symrelu.operators.cluster_clients")
Answers = import_module("scripted_client").Answers
ClusterError = clients.ClusterError
dask = import_module("dask")

GONE = (
    distributed.comm.CommClosedError("closed"),
    ConnectionRefusedError("refused"),
    TimeoutError("no answer"),
    OSError("Timed out trying to connect to tcp://127.0.0.1:1 after 30 s"),
)
NO_LIBRARY = OSError("libllvmlite.so: cannot open shared object file")


def test_clients_are_checked_before_any_work(no_work):
    clients.check_client(None)
    assert issubclass(ClusterError, EvaluationFailed)
    with pytest.raises(
        TypeError, match=r"must be a distributed\.Client, the address of a scheduler or None, got int"
    ):
        decompose(np.eye(3), 1, client=3)
    with pytest.raises(ValueError, match="client= is for backend='dask', got backend='sparse'"):
        decompose(np.eye(3), 1, backend="sparse", client="tcp://x")


def test_a_client_alone_means_the_cluster(monkeypatch):
    """A matrix in memory and a client, without a backend, raised a TypeError of the sparse operator."""
    monkeypatch.setattr(clients, "_CONNECTING", 0.2)
    with pytest.raises(ClusterError, match=r"No scheduler answers at 'tcp://127\.0\.0\.1:1'"):
        decompose(np.eye(3), 1, client="tcp://127.0.0.1:1")


def test_without_a_client_it_is_said_how_to_make_one(monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ValueError, match="there is no current client"):
        clients.client_of(None)


class Asynchronous(Answers):
    """A client in the loop of the caller."""

    _asynchronous = True
    loop = property(lambda self: self.own_loop)


def test_asynchronous_clients_are_refused(monkeypatch):
    async def refused():
        client = Asynchronous()
        client.own_loop = SimpleNamespace(asyncio_loop=asyncio.get_running_loop())
        monkeypatch.setattr(distributed, "default_client", lambda: client)
        for accept in (clients.check_client, lambda _: clients.client_of(None)):
            with pytest.raises(ValueError, match=r"must be synchronous.*make one with Client\(address\)"):
                accept(client)
        await asyncio.to_thread(clients.check_client, client)  # its loop can answer
        return client

    client = asyncio.run(refused())
    with pytest.raises(ValueError, match="must be synchronous"):
        clients.check_client(client)  # its loop has ended


def test_workers_must_have_this_version():
    answers = {"a": symrelu.__version__} | dict(enumerate(GONE))
    assert clients.check_versions(answers) == ["a"]
    with pytest.raises(ClusterError, match=r"worker c has symrelu 0\.0\.1, .* Install the same version"):
        clients.check_versions(answers | {"c": "0.0.1"})
    with pytest.raises(ClusterError, match=r"worker c cannot import symrelu \(broken\)\. Install symrelu"):
        clients.check_versions(answers | {"c": ImportError("broken")})
    with pytest.raises(ClusterError, match=r"worker c cannot import symrelu \(libllvmlite.so: cannot open"):
        clients.check_versions(answers | {"c": NO_LIBRARY})


def test_workers_that_fail_are_not_taken_for_gone():
    answers = {"a": True} | dict(enumerate(GONE))
    assert clients.answers_of(answers) == {"a": True}
    for error in (NO_LIBRARY, ZeroDivisionError("by zero"), PermissionError("no")):
        with pytest.raises(ClusterError, match=f"The worker c failed: {type(error).__name__}: {error}"):
            clients.answers_of(answers | {"c": error})


def test_a_dead_address_is_told_from_a_worker_that_fails():
    """The errors are those of Dask itself, as they arrive here."""
    with (
        distributed.LocalCluster(1, processes=False, dashboard_address=":0") as workers,
        distributed.Client(workers) as client,
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
    ):
        (there,) = client.nthreads()
        nowhere = "tcp://127.0.0.1:1"
        found = client.run(eval, "open('/nowhere')", workers=[there, nowhere], on_error="return")
    assert clients.is_gone(found[nowhere])
    assert isinstance(found[there], FileNotFoundError)
    assert not clients.is_gone(found[there])


def test_a_task_is_refused_by_a_worker_of_another_version(monkeypatch):
    call, *arguments = clients.versioned(max, [1, 2])
    assert call(*arguments, key=lambda k: -k) == 1
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://w"))
    with pytest.raises(
        ClusterError, match=rf"tcp://w has symrelu {symrelu.__version__}, .* by symrelu 0\.0\.1"
    ):
        clients.call_same_version("0.0.1", max, [1, 2])
