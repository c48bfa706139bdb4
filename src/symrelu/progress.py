"""What a fit says while it runs: lines of the logger ``symrelu``, never print."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symrelu.solution import Record, Solution
from symrelu.validation import check_integer

logger = logging.getLogger("symrelu")

_SECONDS_BETWEEN_LINES = 1.0


def check_verbose(verbose: Any) -> int:
    """Return how much a fit says: 0 nothing, 1 a line a second, 2 a line a step. True is 1."""
    return int(verbose) if isinstance(verbose, bool) else check_integer("verbose", verbose, 0)


class Narrator:
    """Says how a fit goes.

    Parameters
    ----------
    verbose : int
        0 says nothing, 1 a line a second, 2 or more a line a step.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.last_line = time.monotonic()

    def step(self, record: Record) -> None:
        """Tell of a step, if it is time to."""
        now = time.monotonic()
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

    def end(self, solution: Solution) -> None:
        """Tell how the fit ended."""
        if self.verbose:
            logger.info(
                "%s after %d steps (%d evaluations): relative error %.4g",
                solution.status.value,
                solution.n_iter,
                solution.n_evaluations,
                solution.relative_error,
            )


@contextmanager
def narrated(verbose: int) -> Iterator[Narrator]:
    """Give a :class:`Narrator` whose lines can be seen.

    Where logging is set up the lines go where it sends them. Where it is not, they go to stderr, by rich if it
    is installed.
    """
    if not verbose:
        yield Narrator(verbose)
        return
    level, handler = logger.level, None if logger.hasHandlers() else _handler()
    if handler is not None:
        logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)  # the lines were asked for
    try:
        yield Narrator(verbose)
    finally:
        if handler is not None:
            logger.removeHandler(handler)
        logger.setLevel(level)


def _handler() -> logging.Handler:
    try:
        from rich.console import Console
        from rich.logging import RichHandler
    except ImportError:
        handler: logging.Handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        return handler
    return RichHandler(console=Console(stderr=True), show_path=False, show_level=False)
