"""Progress messages of a fit, through the logger ``symrelu`` rather than ``print``."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from functools import partial
from typing import ClassVar

from symrelu.fit.loop import Fit, Observer
from symrelu.fitted.history import Status, advice_after, stop_reason
from symrelu.kernels.compilation import noticing_compilation
from symrelu.kernels.shared_context import SharedContext

logger = logging.getLogger("symrelu")

_SECONDS_BETWEEN_LINES = 1.0
_COMPILING = "compiling: the first fit of its kind on a machine takes up to half a minute longer"


class LineTimer:
    """Limit progress messages to one line per second, the first of them after a second."""

    def __init__(self) -> None:
        self._last_line = time.monotonic()

    def due(self) -> bool:
        """Return whether a line is due; if so, the next one is due a second later."""
        now = time.monotonic()
        if now - self._last_line < _SECONDS_BETWEEN_LINES:
            return False
        self._last_line = now
        return True


class Narrator(Observer):
    """Log the progress of a fit.

    Parameters
    ----------
    verbose : int
        0 logs nothing, 1 one line per second, 2 or more one line per step.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.timer = LineTimer()

    def say(self, text: str) -> None:
        """Log a sentence about the fit."""
        if self.verbose:
            logger.info("%s", text)

    def step(self, fit: Fit) -> bool:
        """Log a step, if a line is due."""
        if self.verbose >= 2 or (self.verbose and self.timer.due()):
            record = fit.record
            logger.info(
                "%sstep %d: relative error %.4g, objective %.6g, %s, %.1f s",
                _level(fit),
                record.iteration,
                record.relative_error,
                record.objective,
                _passes(fit, record.evaluations),
                record.seconds,
            )
        return False

    def end(self, fit: Fit) -> None:
        """Log why the fit stopped."""
        if self.verbose and fit.status is not None:
            outcome = fit.outcome()
            logger.info(
                "%s%s%s (%s): relative error %.4g",
                _level(fit),
                _reason(fit, outcome.status, outcome.level),
                "" if outcome.level else f" after {outcome.n_iter} steps",
                _passes(fit, outcome.n_evaluations),
                outcome.relative_error,
            )
            if outcome.level:
                self.say(advice_after(outcome.status, outcome.level))


def _level(fit: Fit) -> str:
    """Return the beginning of a line while a smaller matrix than M is fitted."""
    stage = fit.stage
    if not stage.level:
        return ""
    what = "M, less exactly" if fit.op.n == stage.n_items else f"{fit.op.n} of {stage.n_items} items"
    return f"level {stage.level} ({what}): "


def _reason(fit: Fit, status: Status, level: int) -> str:
    """Return why a fit stopped. A smaller matrix has a tolerance of its own."""
    if fit.stage.level and status is Status.TOLERANCE:
        return "close enough for a start"
    return stop_reason(status, level)


def _passes(fit: Fit, count: int) -> str:
    """Return how many evaluations were made; those of smaller matrices are counted by what they cost."""
    plural = "" if count == 1 else "s"
    return f"the work of {count} evaluation{plural} of M" if fit.stage.level else f"{count} evaluation{plural}"


class narrated(SharedContext):  # lower case: with narrated(verbose) as narrator: ...
    """Context manager that yields a :class:`Narrator` and makes its lines visible.

    If logging is configured, the lines go to its handlers; otherwise to stderr, through rich if it is
    installed. All fits of a process share the logger. If fits overlap in time, the first one sets the level and
    the handler, and the last one to finish restores what the first one found. If something must be compiled
    meanwhile, a line says so.

    Parameters
    ----------
    verbose : int
        As for :class:`Narrator`; 0 leaves the logger unchanged.
    """

    _level: ClassVar[int] = logging.NOTSET  # the level that the first fit found
    _handler: ClassVar[logging.Handler | None] = None  # the handler that it added
    _noticing: ClassVar[ExitStack] = ExitStack()  # of compilation

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose

    def __enter__(self) -> Narrator:
        if self.verbose:
            super().__enter__()
        return Narrator(self.verbose)

    def _save(self) -> None:
        cls = type(self)
        cls._level, cls._handler = logger.level, None if logger.hasHandlers() else _stderr_handler()
        cls._noticing = ExitStack()
        cls._noticing.enter_context(noticing_compilation(partial(logger.info, _COMPILING)))

    def _apply(self) -> None:
        if self._handler is not None:
            logger.addHandler(self._handler)  # does nothing if it was added before
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)  # verbose > 0 overrides a higher level

    def _restore(self) -> None:
        self._noticing.close()
        if self._handler is not None:
            logger.removeHandler(self._handler)
        logger.setLevel(self._level)


def _stderr_handler() -> logging.Handler:
    try:
        from rich.console import Console
        from rich.logging import RichHandler
    except ImportError:
        handler: logging.Handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        return handler
    return RichHandler(console=Console(stderr=True), show_path=False, show_level=False)
