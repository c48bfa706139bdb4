"""What the driver makes of a cluster's answers; real clusters are in test_dask.py."""

import contextlib
import itertools
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import symrelu
from symrelu.operators import EvaluationFailed

distributed = pytest.importorskip("distributed", reason="dask is not installed")
cluster = import_module("symrelu.operators.cluster")
Cluster, ClusterError = cluster.Cluster, cluster.ClusterError


class Answers(distributed.Client):
    """A client that answers from a script, without a cluster."""

    status = "running"
    fetched = 0
    scheduler = SimpleNamespace(address="tcp://nowhere")

    def __init__(self, **answers):
        self.answers = answers

    def nthreads(self):
        found = self.answers.get("nthreads", {"a": 1})
        if isinstance(found, Exception):
            raise found
        return found

    def run(self, function, *arguments, workers, on_error):
        return dict.fromkeys(workers, self.answers.get("version", symrelu.__version__))

    def cancel(self, futures, **_):
        for future in futures:
            future.cancelled = True

    def sync(self, function, callback_timeout):
        self.fetched += 1
        return function()

    def gather(self, futures, **how):
        if isinstance(futures, list):
            return [self.gather(future, **how) for future in futures]
        if isinstance(futures.result, Exception):
            raise futures.result
        return futures.result

    def scatter(self, values, **_):
        return values

    def submit(self, *call, key, **_):
        return SimpleNamespace(key=key, call=call)

    def __del__(self):
        pass


def ended(result):
    return "a", SimpleNamespace(result=result, done=lambda: True)


def round_of(client, *attempts):
    """Run a round with given results of each attempt; return the numbers asked for, and the results."""
    asked = []

    def make(numbers, attempt):
        asked.append(list(numbers))
        return {k: ended(attempts[attempt][k]) for k in numbers}

    return asked, Cluster(client).run_round(make, len(attempts[0]))


def test_lost_tasks_alone_are_made_again():
    lost = distributed.CancelledError("gone")
    asked, results = round_of(Answers(), [1, lost, 3], [None, 2, None])
    assert asked == [[0, 1, 2], [1]]
    assert results == [1, 2, 3]


def test_results_that_vanish_with_all_workers_end_the_fit(monkeypatch):
    """Dask would wait for ever for a worker that computes them again."""
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)
    monkeypatch.setattr(cluster, "_LOOK", 0.0)
    client = Answers()
    found = Cluster(client)
    found.workers()
    client.answers = {"nthreads": {}}
    with pytest.raises(EvaluationFailed, match="has lost all of its workers"):  # which the loop knows
        found.run_round(lambda numbers, attempt: dict.fromkeys(range(4), ended(TimeoutError("no answer"))), 4)
    assert client.fetched == 1  # not each result again, with the same patience


def test_errors_of_tasks_are_named_and_the_others_cancelled():
    with pytest.raises(ClusterError, match="A worker of the cluster failed: ZeroDivisionError: by zero"):
        round_of(Answers(), [1, ZeroDivisionError("by zero")])


def test_a_task_that_kills_every_worker_ends_the_fit():
    dead = distributed.scheduler.KilledWorker("task", SimpleNamespace(name="w", address="w"), 3)
    with pytest.raises(ClusterError, match="die whenever they compute"):
        round_of(Answers(), *[[dead]] * 9)


def test_endless_losses_end_the_fit():
    with pytest.raises(ClusterError, match="attempts at one evaluation failed"):
        round_of(Answers(), *[[distributed.CancelledError("gone")]] * 30)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"nthreads": {}}, r"has no workers.*wait_for_workers\(1\)"),
        ({"nthreads": OSError("refused")}, "tcp://nowhere cannot be reached any more"),
        ({"version": "0.0.1"}, r"worker a has symrelu 0\.0\.1"),
        ({"version": ImportError("No module named 'symrelu'")}, "worker a cannot import symrelu"),
    ],
)
def test_what_is_wrong_with_the_workers_is_said(monkeypatch, answers, reason):
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)
    monkeypatch.setattr(cluster, "_LOOK", 0.0)
    with pytest.raises(ClusterError, match=reason):
        Cluster(Answers(**answers)).workers()


def test_workers_that_were_there_are_said_to_be_lost(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)
    monkeypatch.setattr(cluster, "_LOOK", 0.0)
    client = Answers()
    found = Cluster(client)
    found.workers()
    client.answers = {"nthreads": {}}
    with pytest.raises(ClusterError, match=r"has lost all of its workers.*with a checkpoint it resumes"):
        found.workers()


def test_a_closed_client_is_named():
    client = Answers()
    client.status = "closed"
    with pytest.raises(ClusterError, match="client of the cluster is closed"):
        Cluster(client).workers()
    assert not Cluster(client).is_for(None)


def test_workers_are_not_asked_for_at_every_round():
    client = Answers()
    found = Cluster(client)
    assert found.workers() == {"a": 1}
    client.answers = {"nthreads": {"b": 2}}
    assert found.workers(recently=60) == {"a": 1}
    assert found.workers() == {"b": 2}


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


def test_a_failed_task_of_a_worker_without_symrelu_names_the_worker():
    """It has joined since the last look, and Dask has given it the task of a lost one."""
    client = Answers(version=ImportError("No module named 'symrelu'"))
    with pytest.raises(ClusterError, match="The worker a cannot import symrelu"):
        round_of(client, [ModuleNotFoundError("No module named 'symrelu'")])


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


def test_workers_that_cannot_be_reached_for_a_moment_are_tried_again(monkeypatch):
    """Else all that is sent goes through the scheduler until the end of the fit; but attempts take long."""
    now, attempts = [0.0], []

    def scatter(values, **_):
        attempts.append(now[0])
        now[0] += 1.0
        if len(attempts) < 3:
            raise OSError("gone")
        return values

    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: now[0]))
    client = Answers()
    client.scatter = scatter
    found, answers = Cluster(client), []
    for _ in range(60):
        answers.append(found.direct)
        now[0] += 1.0
    assert len(attempts) == 3  # seldom while it fails, and never again when it has not
    assert not any(answers[:20])
    assert all(answers[-10:])


def test_an_error_of_a_question_to_each_worker_names_the_worker():
    client = Answers()
    found = Cluster(client)
    found.workers()
    client.answers = {"version": OSError("libllvmlite.so: cannot open")}
    with pytest.raises(ClusterError, match="The worker a failed: OSError: libllvmlite"):
        found.ask_each(max, 1, 2)
    client.answers = {"version": distributed.comm.CommClosedError("closed")}
    assert found.ask_each(max, 1, 2) == {}
