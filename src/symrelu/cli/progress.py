"""The progress of commands on stderr: a bar or a status on a terminal, otherwise a line now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from symrelu.cli import screen
from symrelu.kernels.compilation import noticing_compilation

SECONDS_BETWEEN_LINES = 10.0  # where stderr is not a terminal

_COMPILING = "compiling, at the first run only"


class Advance(Protocol):
    """A function that shows one more step, unless it is one of a smaller matrix (``level`` > 0)."""

    def __call__(self, error: float, level: int = 0) -> None: ...


@contextmanager
def step_progress(description: str, total: int, begun: int = 0) -> Iterator[Advance]:
    """Yield a function that shows one more step and its relative error, with the time left.

    A fit that resumes has ``begun``: so many steps were made before.

    On a terminal it is a bar; otherwise a line is printed every few seconds, unless the fit logs its steps. A
    fit may end before its last step, or at a limit of time, so the time left is an upper bound.
    """
    description = screen.printable(description)
    if screen.is_quiet() or (screen.verbosity() and not screen.is_interactive()):
        yield lambda error, level=0: None
    elif not screen.is_interactive():
        yield _Lines(description, total, begun).advance
    else:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            _MostTimeLeft(),
        )
        with Progress(*columns, console=screen.errors, transient=True) as bar:
            task = bar.add_task(description, total=total, completed=begun, state="relative error -")

            def advance(error: float, level: int = 0) -> None:
                where = f" at level {level}" if level else ""
                bar.update(task, advance=int(level == 0), state=f"relative error {error:.4g}{where}")

            with noticing_compilation(lambda: bar.update(task, state=_COMPILING)):
                yield advance


class _MostTimeLeft(TimeRemainingColumn):
    """The time that all further steps would take; a fit may end earlier."""

    def render(self, task: Task) -> Text:
        return Text("at most ", "progress.remaining") + super().render(task)


class _Lines:
    """Progress as lines of text."""

    def __init__(self, description: str, total: int, begun: int = 0) -> None:
        self.description, self.total, self.begun, self.done = description, total, begun, begun
        self.shown: float | None = None

    def advance(self, error: float, level: int = 0) -> None:
        self.done += level == 0
        now = time.monotonic()
        if self.shown is None:
            self.shown = now
        made = self.done - self.begun
        if made == 1:
            self.began = self.shown = now  # what came before may have been compilation, which is not repeated
        if now - self.shown < SECONDS_BETWEEN_LINES:
            return
        self.shown = now
        if level:
            text = f"{self.description}: level {level} of the start, relative error {error:.4g}"
            screen.errors.print(Text(text), soft_wrap=True)
            return
        left = timedelta(seconds=round((now - self.began) / (made - 1) * (self.total - self.done)))
        steps = f"step {self.done} of at most {self.total}"
        line = f"{self.description}: {steps}, relative error {error:.4g}, at most {left} left"
        screen.errors.print(Text(line), soft_wrap=True)


@contextmanager
def fit_progress(description: str, total: int, begun: int = 0) -> Iterator[Callable[[Any], None]]:
    """Yield a callback for :func:`symrelu.decompose` that shows ``total`` iterations of one or more fits."""
    with step_progress(description, total, begun) as advance:
        yield lambda progress: advance(progress.record.relative_error, progress.level)


@contextmanager
def search_progress() -> Iterator[int]:
    """Show what a search logs meanwhile, and yield its ``verbose``.

    How long a search takes is not known. On a terminal, each message replaces the one before; otherwise one is
    printed every few seconds. With ``--verbose``, all are printed.
    """
    if screen.is_quiet() or screen.verbosity():
        yield screen.verbosity()
        return
    # A fit with verbose > 0 adds its own handler to this logger only if there is none.
    logger = logging.getLogger(screen.LOGGER)
    with ExitStack() as stack:
        show: Callable[[Text], object] = partial(screen.errors.print, soft_wrap=True)
        if screen.is_interactive():
            show = stack.enter_context(working("searching"))
        handler = _LastMessage(show, 0.0 if screen.is_interactive() else SECONDS_BETWEEN_LINES)
        logger.addHandler(handler)
        stack.callback(logger.removeHandler, handler)
        yield 1


@contextmanager
def working(text: str) -> Iterator[Callable[[Text], object]]:
    """Show on a terminal that a command works, and if it compiles; yield a function that shows other text."""
    if screen.is_quiet() or not screen.is_interactive():
        yield lambda text: None
        return
    with screen.errors.status(text) as status, noticing_compilation(lambda: status.update(_COMPILING)):
        yield status.update


class _LastMessage(logging.Handler):
    """Show the messages of a logger, but not more often than given."""

    def __init__(self, show: Callable[[Text], object], seconds: float) -> None:
        super().__init__()
        self.show, self.seconds, self.shown = show, seconds, time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        if time.monotonic() - self.shown >= self.seconds:
            self.shown = time.monotonic()
            text = screen.printable(screen.in_words(record.getMessage()))
            self.show(Text(text, no_wrap=True, overflow="ellipsis"))


@contextmanager
def estimator_progress(
    estimator: Any, description: str, *, search: bool = False, begun: int = 0
) -> Iterator[None]:
    """Show the progress of an estimator that is fitted meanwhile: its steps, or the lines of a search."""
    before = estimator.verbose
    with ExitStack() as stack:
        # A saved model must not depend on what was shown.
        stack.callback(lambda: estimator.set_params(verbose=before))
        # With callbacks all fits run in one process.
        if (
            search
            or (estimator.n_jobs or 1) != 1
            or not _set_callback(estimator, _StepCallback(description, begun))
        ):
            verbose = stack.enter_context(search_progress())
        else:
            stack.callback(estimator.set_callbacks)
            verbose = screen.verbosity()
        estimator.set_params(verbose=verbose)
        yield


def _set_callback(estimator: Any, callback: _StepCallback) -> bool:
    """Return whether an estimator takes callbacks, which need scikit-learn 1.9, and set one if it does."""
    try:
        estimator.set_callbacks(callback)
    except ImportError:
        return False
    return True


class _StepCallback:
    """A callback of scikit-learn for the steps of our estimators."""

    # The protocol of scikit-learn has no context manager: setup and teardown enter and leave the bar.

    def __init__(self, description: str, begun: int = 0) -> None:
        self.description, self.begun = description, begun
        self.shown: Any = None

    def setup(self, estimator: Any, context: Any) -> None:
        self.shown = step_progress(self.description, context.max_subtasks, self.begun)
        self.advance: Advance = self.shown.__enter__()

    def teardown(self, estimator: Any, context: Any) -> None:
        self.shown.__exit__(None, None, None)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if context.task_name == "step":
            self.advance(estimator.latest_record_.relative_error)
