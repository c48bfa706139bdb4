"""``--workers``: workers of this machine for a command."""

from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace

import pytest

from symrelu import SymReLU
from symrelu.cli.commands import COMMANDS, load_command
from symrelu.cli.local_workers import fitted_on_workers, running_workers

NOWHERE = "tcp://127.0.0.1:1"
LOST, CONNECT = "deploy.lost-worker-timeout", "comm.timeouts.connect"


@pytest.fixture
def no_cluster(monkeypatch):
    """A cluster that is not there, in place of one of this machine; the settings of Dask that it had."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed")

    @contextmanager
    def started(**options):
        assert options["threads_per_worker"] == 1
        settings.update(
            {name: import_module("dask").config.get(f"distributed.{name}") for name in (LOST, CONNECT)}
        )
        yield SimpleNamespace(scheduler_address=NOWHERE)

    settings = {}

    monkeypatch.setattr(distributed, "LocalCluster", started)
    monkeypatch.setattr(import_module("symrelu.operators.cluster_clients"), "_CONNECTING", 0.2)
    return settings


def test_nothing_is_started_without_a_number():
    settings = {"client": None, "backend": "auto"}
    with running_workers(None, settings):
        assert settings == {"client": None, "backend": "auto"}


@pytest.mark.parametrize(
    ("count", "settings", "reason"),
    [
        (0, {"client": None, "backend": "auto"}, "--workers must be"),
        (2, {"client": "tcp://x", "backend": "auto"}, "pass one of them"),
        (2, {"client": None, "backend": "sparse"}, "--workers is for --backend dask"),
    ],
)
def test_contradictions_are_refused(count, settings, reason):
    with pytest.raises(ValueError, match=reason), running_workers(count, settings):
        raise AssertionError("started")


def test_an_estimator_has_its_parameters_back(no_cluster):
    """A model that is saved must not name a cluster that is gone."""
    estimator = SymReLU()
    with fitted_on_workers(2, estimator):
        assert (estimator.client, estimator.backend) == (NOWHERE, "dask")
    assert (estimator.client, estimator.backend) == (None, "auto")
    with fitted_on_workers(None, estimator):
        assert (estimator.client, estimator.backend) == (None, "auto")


def test_what_the_user_has_set_for_dask_is_kept(no_cluster):
    config = import_module("dask").config
    with running_workers(2, {"client": None, "backend": "auto"}):
        assert no_cluster == {LOST: "1 hour", CONNECT: "10s"}  # else workers that die twice are given up
    own = config.set({f"distributed.{CONNECT}": "77s"})  # as a variable or a file does it
    with own, running_workers(2, {"client": None, "backend": "auto"}):
        assert no_cluster == {LOST: "1 hour", CONNECT: "77s"}


def test_whoever_takes_a_scheduler_starts_workers_too():
    options = {name: {option.name for option in load_command(name).params} for name in COMMANDS}
    assert {name for name, own in options.items() if "client" in own} >= {"fit", "embed", "rank", "resume"}
    assert {name for name, own in options.items() if ("client" in own) != ("workers" in own)} == set()


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "--rank", 2, "-o", "o.npz"),
        ("embed", "-o", "o.csv"),
        ("cluster", "--clusters", 2),
        ("links",),
        ("evaluate", "--splits", 1),
        ("rank", "--ranks", "2", "--repeats", 2),
    ],
    ids=lambda command: command[0],
)
def test_the_workers_make_the_fits(no_cluster, call, matrix_file, command):
    code, _, err = call(command[0], matrix_file, *command[1:], "--workers", 2)
    assert code == 2
    assert f"No scheduler answers at '{NOWHERE}'" in " ".join(err.split())
