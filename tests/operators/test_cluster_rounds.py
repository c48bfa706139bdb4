"""Rounds of tasks that are lost or fail, with a pretended client; real ones are in test_dask.py."""

import asyncio
from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace

import pytest

from symrelu.operators import EvaluationFailed

distributed = pytest.importorskip("distributed", reason="dask is not installed")
calls = import_module("symrelu.operators.cluster_calls")
cluster_rounds = import_module("symrelu.operators.cluster_rounds")
cluster_workers = import_module("symrelu.operators.cluster_workers")
Answers = import_module("scripted_client").Answers
ClusterError = import_module("symrelu.operators.cluster_clients").ClusterError


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(cluster_workers, "PATIENCE", 0.0)
    monkeypatch.setattr(cluster_workers, "LOOK", 0.0)
    monkeypatch.setattr(calls, "LOOK", 0.01)


def ended(result, status="finished"):
    return "a", SimpleNamespace(result=result, done=lambda: True, status=status)


def run_round(client, make, count):
    return cluster_rounds.run_round(cluster_workers.Workers(client), make, count, lambda key: key == "ours")


def round_of(client, *attempts):
    """Run a round with given results of each attempt; return the numbers asked for, and the results."""
    asked = []

    def make(numbers, attempt):
        asked.append(list(numbers))
        return {k: ended(attempts[attempt][k]) for k in numbers}

    return asked, run_round(client, make, len(attempts[0]))


def test_lost_tasks_alone_are_made_again():
    lost = distributed.CancelledError("gone")
    asked, results = round_of(Answers(), [1, lost, 3], [None, 2, None])
    assert asked == [[0, 1, 2], [1]]
    assert results == [1, 2, 3]


def test_a_round_is_made_again_if_what_it_sends_is_lost():
    def make(numbers, attempt):
        if attempt < 2:
            raise calls.WorkerLost
        return {k: ended(attempt) for k in numbers}

    assert run_round(Answers(), make, 2) == [2, 2]


class Stuck(SimpleNamespace):
    """A future that does not end before it is cancelled."""

    def done(self):
        return self.cancelled


@pytest.fixture
def no_waiting(monkeypatch):
    def wait(futures, timeout):
        raise TimeoutError

    monkeypatch.setattr(distributed, "wait", wait)
    monkeypatch.setattr(Answers, "as_current", lambda self: nullcontext())


def test_tasks_that_no_worker_has_are_made_again(monkeypatch, no_waiting):
    """All workers were lost and have come back: Dask gives them no task that was meant for a lost one."""
    monkeypatch.setattr(cluster_rounds, "_IDLE", 0.0)
    asked = []

    def make(numbers, attempt):
        asked.append(list(numbers))
        stuck = Stuck(result=distributed.CancelledError("gone"), cancelled=False)
        return {k: ("a", stuck) if attempt == 0 and k == 1 else ended(k) for k in numbers}

    assert run_round(Answers(processing={"a": ["another"]}), make, 3) == [0, 1, 2]
    assert asked == [[0, 1, 2], [1]]


def test_tasks_that_a_worker_has_may_take_their_time(monkeypatch, no_waiting):
    monkeypatch.setattr(cluster_rounds, "_IDLE", 0.0)
    client = Answers(processing={"a": ["ours"]})
    looks = iter([False] * 5 + [True] * 99)
    slow = SimpleNamespace(result=7, done=lambda: next(looks), cancelled=False)
    assert run_round(client, lambda *_: {0: ("a", slow)}, 1) == [7]
    assert not slow.cancelled


def test_results_that_are_lost_while_they_are_fetched_are_made_again():
    """Dask tries for long to reach the dead worker, and then waits for a result that nobody computes."""
    client = Answers()
    lost = SimpleNamespace(result=None, there=True)
    lost.done = lambda: lost.there
    fetch = client.gather

    async def gather(futures, **how):
        if lost in futures:
            lost.there = False
            await asyncio.sleep(3600)
        return await fetch(futures, **how)

    def cancelled(futures, timeout):
        lost.there, lost.result = True, distributed.CancelledError("gone")
        client.gather = fetch

    client.gather = gather
    asked = []

    def make(numbers, attempt):
        asked.append(list(numbers))
        return {k: ("a", lost) if attempt == 0 and k == 0 else ended(k) for k in numbers}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed, "wait", cancelled)
        patch.setattr(Answers, "as_current", lambda self: nullcontext())
        assert run_round(client, make, 2) == [0, 1]
    assert asked == [[0, 1], [0]]


def test_results_that_vanish_with_all_workers_end_the_fit(no_waiting):
    """Dask would wait for ever for a worker that computes them again."""
    client = Answers(nthreads={})
    stuck = Stuck(result=None, cancelled=False)
    with pytest.raises(EvaluationFailed, match="has no workers"):  # which the loop knows
        run_round(client, lambda numbers, attempt: dict.fromkeys(range(4), ("a", stuck)), 4)
    assert client.fetched == 0


def test_errors_of_tasks_are_named_and_the_others_cancelled():
    with pytest.raises(ClusterError, match="A worker of the cluster failed: ZeroDivisionError: by zero"):
        round_of(Answers(), [1, ZeroDivisionError("by zero")])


def test_a_task_that_kills_every_worker_ends_the_fit():
    dead = distributed.scheduler.KilledWorker("task", SimpleNamespace(name="w", address="w"), 3)
    with pytest.raises(ClusterError, match="die whenever they compute"):
        round_of(Answers(), *[[dead]] * 9)


@pytest.mark.parametrize("lost", [distributed.CancelledError("gone"), TimeoutError("no answer")])
def test_endless_losses_end_the_fit(lost):
    with pytest.raises(ClusterError, match="attempts at one evaluation failed") as error:
        round_of(Answers(), *[[lost]] * 30)
    assert error.value.__cause__ is lost
    assert lost.__traceback__ is None  # else its frames keep the futures, and Dask runs lost tasks again


def test_endless_losses_of_what_is_sent_have_their_cause():
    def make(numbers, attempt):
        raise calls.WorkerLost from OSError(f"attempt {attempt}")

    with pytest.raises(ClusterError, match="attempts at one evaluation failed") as error:
        run_round(Answers(), make, 1)
    assert str(error.value.__cause__.__cause__) == "attempt 19"


def test_a_timeout_of_a_task_itself_is_not_a_loss():
    asked = []

    def make(numbers, attempt):
        asked.append(attempt)
        return {k: ended(TimeoutError("disk"), "error") for k in numbers}

    with pytest.raises(ClusterError, match="A worker of the cluster failed: TimeoutError: disk"):
        run_round(Answers(), make, 1)
    assert asked == [0]


def test_there_is_a_pause_if_waiting_fails(monkeypatch, no_waiting):
    """The client connects again meanwhile: its status is still that of a running one."""
    pauses = []

    def wait(futures, timeout):
        raise OSError("connection lost")

    monkeypatch.setattr(distributed, "wait", wait)
    now = import_module("time").monotonic
    monkeypatch.setattr(cluster_rounds, "time", SimpleNamespace(sleep=pauses.append, monotonic=now))
    slow = SimpleNamespace(result=7, done=lambda: len(pauses) >= 3)
    assert run_round(Answers(), lambda *_: {0: ("a", slow)}, 1) == [7]
    assert pauses == [cluster_rounds.LOOK] * 3


def test_a_failed_task_of_a_worker_without_symrelu_names_the_worker():
    """It has joined since the last look, and Dask has given it the task of a lost one."""
    client = Answers(version=ImportError("No module named 'symrelu'"))
    with pytest.raises(ClusterError, match="The worker a cannot import symrelu"):
        round_of(client, [ModuleNotFoundError("No module named 'symrelu'")])
