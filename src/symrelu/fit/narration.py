"""What a fit says while it runs: lines of the logger ``symrelu``, never print."""

from __future__ import annotations

import logging
import threading
import time
from typing import ClassVar

from symrelu.fit.loop import Fit, Observer

logger = logging.getLogger("symrelu")

_SECONDS_BETWEEN_LINES = 1.0


class Narrator(Observer):
    """Says how a fit goes.

    Parameters
    ----------
    verbose : int
        0 says nothing, 1 a line a second, 2 or more a line a step.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.last_line = time.monotonic()

    def step(self, fit: Fit) -> bool:
        """Tell of a step, if it is time to."""
        now, record = time.monotonic(), fit.record
        if self.verbose >= 2 or (self.verbose and now - self.last_line >= _SECONDS_BETWEEN_LINES):
            self.last_line = now
            logger.info(
                "step %d: relative error %.4g, objective %.6g, %d evaluations, %.1f s",
                record.iteration,
                record.relative_error,
                record.objective,
                record.evaluations,
                record.seconds,
            )
        return False

    def end(self, fit: Fit) -> None:
        """Tell how the fit ended."""
        if self.verbose and fit.status is not None:
            outcome = fit.outcome()
            logger.info(
                "%s after %d steps (%d evaluations): relative error %.4g",
                outcome.status.value,
                outcome.n_iter,
                outcome.n_evaluations,
                outcome.relative_error,
            )


class narrated:  # used like a function: with narrated(verbose) as narrator: ...
    """Give a :class:`Narrator` whose lines can be seen.

    Where logging is set up the lines go where it sends them. Where it is not, they go to stderr, by rich if it
    is installed. The logger is one for the process: of fits that overlap in time the first one makes it heard,
    and the last one to leave makes it what the first one found.

    Parameters
    ----------
    verbose : int
        As of :class:`Narrator`; with 0 the logger is left alone.
    """

    _lock = threading.RLock()
    _inside: ClassVar[set[int]] = set()
    _level: ClassVar[int] = logging.NOTSET  # what the first one found
    _handler: ClassVar[logging.Handler | None] = None  # what it added

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose

    def __enter__(self) -> Narrator:
        cls = type(self)
        if self.verbose:
            with self._lock:
                if not self._inside:
                    cls._level, cls._handler = logger.level, None if logger.hasHandlers() else _stderr_handler()
                self._inside.add(id(self))
                if cls._handler is not None:
                    logger.addHandler(cls._handler)  # once: it knows those that it has
                if not logger.isEnabledFor(logging.INFO):
                    logger.setLevel(logging.INFO)  # the lines were asked for
        return Narrator(self.verbose)

    def __exit__(self, *_: object) -> None:
        self._leave()

    def __del__(self) -> None:  # where Ctrl-C came between two lines
        self._leave()

    def _leave(self) -> None:
        cls = type(self)
        with self._lock:
            if id(self) in self._inside:
                if len(self._inside) == 1:
                    if cls._handler is not None:
                        logger.removeHandler(cls._handler)
                    logger.setLevel(cls._level)
                self._inside.discard(id(self))


def _stderr_handler() -> logging.Handler:
    try:
        from rich.console import Console
        from rich.logging import RichHandler
    except ImportError:
        handler: logging.Handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        return handler
    return RichHandler(console=Console(stderr=True), show_path=False, show_level=False)
