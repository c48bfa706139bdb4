"""Clients, and the versions of workers; real workers of other versions are in test_dask.py."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import symrelu
from symrelu import decompose
from symrelu.operators import EvaluationFailed

distributed = pytest.importorskip("distributed", reason="dask is not installed")
clients = import_module("symrelu.operators.cluster_clients")
ClusterError = clients.ClusterError


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


def test_workers_must_have_this_version():
    answers = {"a": symrelu.__version__, "b": OSError("gone")}
    assert clients.check_versions(answers) == ["a"]
    with pytest.raises(ClusterError, match=r"worker c has symrelu 0\.0\.1, .* Install the same version"):
        clients.check_versions(answers | {"c": "0.0.1"})
    with pytest.raises(ClusterError, match=r"worker c cannot import symrelu \(broken\)\. Install symrelu"):
        clients.check_versions(answers | {"c": ImportError("broken")})


def test_a_task_is_refused_by_a_worker_of_another_version(monkeypatch):
    call, *arguments = clients.versioned(max, [1, 2])
    assert call(*arguments, key=lambda k: -k) == 1
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://w"))
    with pytest.raises(
        ClusterError, match=rf"tcp://w has symrelu {symrelu.__version__}, .* by symrelu 0\.0\.1"
    ):
        clients.call_same_version("0.0.1", max, [1, 2])
