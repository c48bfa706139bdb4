"""Terminal output of the commands: results on stdout; messages and progress on stderr."""

from __future__ import annotations

import inspect
import json
import logging
import math
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from symrelu.cli.streams import STDOUT

INTERRUPTED_CODE = 130  # 128 + SIGINT, as shells report a program that Ctrl-C ended
SECONDS_BETWEEN_LINES = 10.0  # of progress, where stderr is not a terminal

_PANEL = "Output"
_LOGGER = "symrelu"
_COMPILING = "compiling, at the first run only"


# Without emoji, which would replace parts of file names such as a:x:b.
console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


@dataclass(frozen=True)
class Output:
    """How the running command shows its results, and the messages it has shown so far.

    Attributes
    ----------
    json, quiet, verbose : bool
        The options of the same names.
    began : float
        When the command was called, by ``time.monotonic``.
    notes, warnings : list of str
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    began: float = field(default_factory=time.monotonic)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise ValueError("--quiet and --verbose ask for different things. Pass one of them.")


_running: ContextVar[Output | None] = ContextVar("_running", default=None)


def output_options(*, fits: bool = False) -> list[inspect.Parameter]:
    """Return the options that every command has, and ``--verbose`` of those that fit."""
    options = [
        _flag("json", "Print the results as one JSON object."),
        _flag("quiet", "Print nothing but warnings and errors."),
    ]
    verbose = _flag("verbose", "Print what fits log on stderr: the backend chosen for them, their steps.", "-v")
    return [verbose, *options] if fits else options


def _flag(name: str, text: str, *short: str) -> inspect.Parameter:
    # The flag is given explicitly, because Typer would add a --no-json.
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option(f"--{name}", *short, help=text, rich_help_panel=_PANEL)],
    )


@contextmanager
def showing(output: Output) -> Iterator[None]:
    """Let :func:`report`, :func:`note`, the log and the progress bars follow these options."""
    token = _running.set(output)
    with _shown_log() if output.verbose else nullcontext():
        try:
            yield
        finally:
            _running.reset(token)


@contextmanager
def _shown_log() -> Iterator[None]:
    """Print what the library logs meanwhile, above the progress bar if there is one."""
    logger, handler = logging.getLogger(_LOGGER), _Printer()
    level = logger.level
    logger.addHandler(handler)  # a fit with verbose > 0 adds its own only if there is none
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Printer(logging.Handler):
    """Print each message of a logger."""

    def emit(self, record: logging.LogRecord) -> None:
        # Only a terminal has a width.
        errors.print(Text(printable(_in_words(record.getMessage())), "dim"), soft_wrap=not _is_interactive())


def is_quiet() -> bool:
    """Return whether the user asked for warnings and errors only."""
    return _current().quiet


def verbosity() -> int:
    """Return the ``verbose`` of a fit whose steps are shown anyway: 1 if the user asked for its log."""
    return int(_current().verbose)


def _current() -> Output:
    return _running.get() or Output()


def report(result: Mapping[str, Any], *shown: Any) -> None:
    """Print the results of a command on stdout: tables, one JSON object with ``--json``, or nothing.

    If a table was written to stdout, they go to stderr: stdout must hold nothing else.

    Parameters
    ----------
    result : mapping
        Everything the command found, for ``--json``. Paths, arrays and enumerations are converted, and numbers
        that are not finite become null. The notes, the warnings and the seconds since the call are added.
    *shown
        What to print otherwise: prose, which is wrapped; lists of rows (label, value) for a table without
        header; or anything that rich can print. A ``Text`` is not wrapped, so that a path in it can be copied.
    """
    output = _current()
    target = (
        errors if any(isinstance(value, Path) and value == STDOUT for value in result.values()) else console
    )
    if output.json:
        # Rounded to what is meaningful; a result that has its own seconds keeps them.
        seconds = round(time.monotonic() - output.began, 3)
        complete = {"seconds": seconds, **result, "notes": output.notes, "warnings": output.warnings}
        target.out(json.dumps(_plain(complete), allow_nan=False), highlight=False)
    elif not output.quiet:
        for part in shown:
            if isinstance(part, str):
                target.print(Text(part))
            else:
                shape = _two_columns(part) if isinstance(part, (list, tuple)) else part
                target.print(shape, soft_wrap=isinstance(shape, Text))


def _two_columns(rows: Iterable[tuple[str, Any]]) -> Table:
    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(Text(label), Text(printable(str(value))))
    return table


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy, which this module need not import
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, bool, int)) else repr(value)


def note(text: str) -> None:
    """Print what the user should know about the input, on stderr."""
    output, text = _current(), _in_words(text)
    output.notes.append(text)
    if not output.quiet:
        errors.print(message_text("Note:", text, style="cyan"), soft_wrap=True)


def print_error(error: BaseException) -> None:
    """Print an error without a traceback."""
    errors.print(message_text("Error:", _reason(error), style="bold red"), soft_wrap=True)


def _reason(error: BaseException) -> str:
    # The message of such an error is only "[Errno 28] No space left on device".
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        return f"{error.strerror}. What was being written is incomplete; files that exist are complete."
    if isinstance(error, MemoryError) and not str(error):
        return "There is not enough memory. Use a part of the data, or a machine with more memory."
    return _in_words(str(error)) or type(error).__name__


def next_command(words: Sequence[str] | None) -> list[Text]:
    """Return a line with the command to give next, for :func:`report`, or nothing if there is none."""
    return [] if words is None else [message_text("Next:", shlex.join(words))]


def show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning without the line of code it comes from."""
    text = _in_words(str(message))
    _current().warnings.append(text)
    errors.print(message_text("Warning:", text, style="yellow"), soft_wrap=True)


def _in_words(text: str) -> str:
    """Return a message of the library with options in place of the arguments of functions."""
    from symrelu.cli.advice import for_command_line  # it loads NumPy, which --help does without

    return for_command_line(text)


def printable(text: str) -> str:
    """Return a text, such as a file name, with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def message_text(head: str, text: str, style: str = "") -> Text:
    """Return a styled heading followed by a literal text: no markup, no emoji, no control characters."""
    return Text.assemble((head, style), " ", printable(text))


def check_plots() -> None:
    """Raise if matplotlib is not installed."""
    from symrelu.plots import new_figure

    new_figure()


class Advance(Protocol):
    """A function that shows one more step, unless it is one of a smaller matrix (``level`` > 0)."""

    def __call__(self, error: float, level: int = 0) -> None: ...


@contextmanager
def step_progress(description: str, total: int) -> Iterator[Advance]:
    """Yield a function that shows one more step and its relative error, with the time left.

    On a terminal it is a bar; otherwise a line is printed every few seconds, unless the fit logs its steps. A
    fit may end before its last step, so the time left is an upper bound.
    """
    description = printable(description)
    if is_quiet() or (_current().verbose and not _is_interactive()):
        yield lambda error, level=0: None
    elif not _is_interactive():
        yield _Lines(description, total).advance
    else:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=errors, transient=True) as bar:
            task = bar.add_task(description, total=total, state="relative error -")

            def advance(error: float, level: int = 0) -> None:
                where = f" at level {level}" if level else ""
                bar.update(task, advance=int(level == 0), state=f"relative error {error:.4g}{where}")

            with _noticing_compilation(lambda: bar.update(task, state=_COMPILING)):
                yield advance


def _noticing_compilation(show: Callable[[], object]) -> AbstractContextManager[None]:
    """Call a function if something must be compiled meanwhile, before which nothing else can be shown."""
    from symrelu.kernels.compilation import noticing_compilation  # it loads numba, which --help does without

    return noticing_compilation(show)


class _Lines:
    """Progress as lines of text."""

    def __init__(self, description: str, total: int) -> None:
        self.description, self.total, self.done = description, total, 0
        self.shown: float | None = None

    def advance(self, error: float, level: int = 0) -> None:
        self.done += level == 0
        now = time.monotonic()
        if self.shown is None:
            self.shown = now
        if self.done == 1:
            self.began = self.shown = now  # what came before may have been compilation, which is not repeated
        if now - self.shown < SECONDS_BETWEEN_LINES:
            return
        self.shown = now
        if level:
            text = f"{self.description}: level {level} of the start, relative error {error:.4g}"
            errors.print(Text(text), soft_wrap=True)
            return
        left = timedelta(seconds=round((now - self.began) / (self.done - 1) * (self.total - self.done)))
        steps = f"step {self.done} of at most {self.total}"
        line = f"{self.description}: {steps}, relative error {error:.4g}, at most {left} left"
        errors.print(Text(line), soft_wrap=True)


@contextmanager
def fit_progress(description: str, total: int) -> Iterator[Callable[[Any], None]]:
    """Yield a callback for :func:`symrelu.decompose` that shows ``total`` iterations of one or more fits."""
    with step_progress(description, total) as advance:
        yield lambda progress: advance(progress.record.relative_error, progress.level)


@contextmanager
def search_progress() -> Iterator[int]:
    """Show what a search logs meanwhile, and yield its ``verbose``.

    How long a search takes is not known. On a terminal, each message replaces the one before; otherwise one is
    printed every few seconds. With ``--verbose``, all are printed.
    """
    if is_quiet() or _current().verbose:
        yield verbosity()
        return
    # A fit with verbose > 0 adds its own handler to this logger only if there is none.
    logger = logging.getLogger(_LOGGER)
    with ExitStack() as stack:
        show: Callable[[Text], object] = partial(errors.print, soft_wrap=True)
        if _is_interactive():
            show = stack.enter_context(working("searching"))
        handler = _LastMessage(show, 0.0 if _is_interactive() else SECONDS_BETWEEN_LINES)
        logger.addHandler(handler)
        stack.callback(logger.removeHandler, handler)
        yield 1


@contextmanager
def working(text: str) -> Iterator[Callable[[Text], object]]:
    """Show on a terminal that a command works, and if it compiles; yield a function that shows other text."""
    if is_quiet() or not _is_interactive():
        yield lambda text: None
        return
    with errors.status(text) as status, _noticing_compilation(lambda: status.update(_COMPILING)):
        yield status.update


class _LastMessage(logging.Handler):
    """Show the messages of a logger, but not more often than given."""

    def __init__(self, show: Callable[[Text], object], seconds: float) -> None:
        super().__init__()
        self.show, self.seconds, self.shown = show, seconds, time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        if time.monotonic() - self.shown >= self.seconds:
            self.shown = time.monotonic()
            self.show(Text(printable(record.getMessage())))


def _is_interactive() -> bool:
    return errors.is_terminal and not errors.is_dumb_terminal


@contextmanager
def estimator_progress(estimator: Any, description: str, *, search: bool = False) -> Iterator[None]:
    """Show the progress of an estimator that is fitted meanwhile: its steps, or the lines of a search."""
    before = estimator.verbose
    with ExitStack() as stack:
        # A saved model must not depend on what was shown.
        stack.callback(lambda: estimator.set_params(verbose=before))
        # With callbacks all fits run in one process.
        if search or (estimator.n_jobs or 1) != 1 or not _set_callback(estimator, _StepCallback(description)):
            verbose = stack.enter_context(search_progress())
        else:
            stack.callback(estimator.set_callbacks)
            verbose = verbosity()
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

    def __init__(self, description: str) -> None:
        self.description = description
        self.shown: Any = None

    def setup(self, estimator: Any, context: Any) -> None:
        self.shown = step_progress(self.description, context.max_subtasks)
        self.advance: Advance = self.shown.__enter__()

    def teardown(self, estimator: Any, context: Any) -> None:
        self.shown.__exit__(None, None, None)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if context.task_name == "step":
            self.advance(estimator.latest_record_.relative_error)
