"""Ctrl-C and worker processes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ctrl_c_ignored() -> Iterator[None]:
    """Ignore Ctrl-C, as do the processes started meanwhile: only this one then answers, and ends them.

    A worker process that is interrupted between two tasks would print a traceback.
    """
    handler = signal.getsignal(signal.SIGINT)
    # Only the main thread may change handlers, and only those that Python knows can be put back.
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
