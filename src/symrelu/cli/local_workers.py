"""Workers of this machine, for commands with ``--workers``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symrelu.operators import operator_class
from symrelu.validation import check_integer

# Dask gives up a worker that is not there 15 seconds after it was lost, even if it has been there meanwhile.
# And workers of one machine need not try for 30 seconds to connect to another one that was killed.
_DASK = {"distributed.deploy.lost-worker-timeout": "1 hour", "distributed.comm.timeouts.connect": "10s"}


@contextmanager
def running_workers(count: int | None, settings: dict[str, Any]) -> Iterator[None]:
    """Start so many workers with one thread each, if a number is given, and let the settings use them.

    Parameters
    ----------
    count : int or None
    settings : dict
        Those of a fit: "client" and "backend" are set.
    """
    if count is None:
        yield
        return
    check_integer("--workers", count, 1)
    if settings["client"] is not None:
        raise ValueError("--workers starts workers, and --scheduler uses others: pass one of them.")
    if settings["backend"] not in ("auto", "dask"):
        raise ValueError(f"--workers is for --backend dask, got --backend {settings['backend']}.")
    operator_class("dask")  # raises an ImportError that names the missing package
    import dask
    import distributed

    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(_unset(dask.config)),
        distributed.LocalCluster(n_workers=count, threads_per_worker=1, **quiet) as cluster,
    ):
        # The address, because estimators take no client, and processes of --jobs could not share one.
        settings.update(client=cluster.scheduler_address, backend="dask")
        yield


def _unset(config: Any) -> dict[str, str]:
    """Return our values of what still has the default of Dask: what a user has set, by any means, is kept."""
    defaults = config.merge(*config.defaults)
    return {name: ours for name, ours in _DASK.items() if config.get(name) == config.get(name, config=defaults)}


@contextmanager
def fitted_on_workers(count: int | None, estimator: Any) -> Iterator[None]:
    """Let an estimator fit on so many workers, if a number is given; afterwards it has its parameters back.

    Parameters
    ----------
    count : int or None
    estimator : SymReLU, SymReLUClustering or LinkPredictor
    """
    before = {name: getattr(estimator, name) for name in ("client", "backend")}
    settings = dict(before)
    with running_workers(count, settings):
        estimator.set_params(**settings)
        try:
            yield
        finally:
            estimator.set_params(**before)  # a model that is saved must not name a cluster that is gone
