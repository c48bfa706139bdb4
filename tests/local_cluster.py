"""A cluster of processes on this machine, shared by the tests that need one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def local_cluster(workers: int, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Start so many workers with one thread each; yield the cluster and a client."""
    import dask
    from distributed import Client, LocalCluster

    # Else one that is killed twice is given up if it is not there again 15 seconds after the first time.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL, "threads_per_worker": 1}
    with patient, LocalCluster(n_workers=workers, **quiet | options) as cluster, Client(cluster) as client:
        yield cluster, client
