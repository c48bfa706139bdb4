"""Notice that numba compiles, which can take half a minute where its cache on disk has nothing yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Event, Listener, install_listener


class _AtStart(Listener):
    """Call a function, once, when something begins."""

    def __init__(self, began: Callable[[], Any]) -> None:
        self.began: Callable[[], Any] | None = began

    def on_start(self, event: Event) -> None:
        began, self.began = self.began, None  # functions that a function calls are compiled within it
        if began is not None:
            began()

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def noticing_compilation(began: Callable[[], Any]) -> Iterator[None]:
    """Call a function, once, if numba begins to compile meanwhile; what its cache has is not compiled.

    Parameters
    ----------
    began : function without arguments
        It is called in the thread that compiles.
    """
    with install_listener("numba:compile", _AtStart(began)):
        yield
