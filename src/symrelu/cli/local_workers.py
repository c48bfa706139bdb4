"""Workers of this machine, for commands with ``--workers``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symrelu.operators import operator_class
from symrelu.validation import check_integer


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
    import distributed

    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=count, threads_per_worker=1, **quiet) as cluster,
        distributed.Client(cluster) as client,
    ):
        settings.update(client=client, backend="dask")
        yield
