"""A context manager for a setting of the whole process, which blocks that overlap in time share."""

from __future__ import annotations

import threading
from typing import Any, ClassVar


class SharedContext:
    """Base class: the first block to enter saves a setting, and the last one to leave restores it.

    If each of two overlapping blocks restored what it found, the second would restore what the first had set.
    Blocks may be nested, and open in several threads at once. Ctrl-C can interrupt any line: a block that was
    not left properly is left when it is garbage-collected. Each subclass shares one setting among its blocks.
    """

    _lock: ClassVar[Any]  # reentrant: garbage collection may call __del__ while this thread holds it
    _inside: ClassVar[set[int]]  # ids of the blocks that are open

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._lock, cls._inside = threading.RLock(), set()

    def _save(self) -> None:
        """Keep the present setting; called for the first block only."""
        raise NotImplementedError

    def _apply(self) -> None:
        """Set what every block requires."""
        raise NotImplementedError

    def _restore(self) -> None:
        """Set what was saved; called for the last block, and again if Ctrl-C interrupts it."""
        raise NotImplementedError

    def __enter__(self) -> object:
        with self._lock:
            if not self._inside:
                self._save()
            self._inside.add(id(self))
            self._apply()
        return None

    def __exit__(self, *_: object) -> None:
        self._leave()

    def __del__(self) -> None:
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            if id(self) in self._inside:
                # In this order, so that __del__ repeats what Ctrl-C interrupts.
                if len(self._inside) == 1:
                    self._restore()
                self._inside.discard(id(self))
