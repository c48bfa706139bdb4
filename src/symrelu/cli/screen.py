"""Terminal output of the commands: results on stdout, messages and the log on stderr."""

from __future__ import annotations

import inspect
import json
import logging
import math
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from symrelu.cli.streams import STDOUT

INTERRUPTED_CODE = 130  # 128 + SIGINT, as shells report a program that Ctrl-C ended

_PANEL = "Output"
LOGGER = "symrelu"


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
    files : list of Path
        The files of matrices that were read so far.
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    began: float = field(default_factory=time.monotonic)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

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
    """Let :func:`report`, :func:`note`, the log and the progress bars follow these options.

    An error on the matrix names the file that it was read from: see :func:`has_read`.
    """
    token = _running.set(output)
    with _shown_log() if output.verbose else nullcontext():
        try:
            yield
        except ValueError as error:
            text = _naming_file(error, output)
            if text == str(error):
                raise
            raise ValueError(text) from error
        except KeyboardInterrupt:  # where no command expects it: the shell learns of it by the exit code alone
            errors.print("Interrupted.")
            raise
        finally:
            _running.reset(token)


def _naming_file(error: ValueError, output: Output) -> str:
    """Return the message of an error, with the file of the matrix if that is what it is about."""
    from symrelu.cli.advice import about_file  # it loads NumPy, which --help does without

    return about_file(str(error), output.files[-1]) if output.files else str(error)


def has_read(file: Path) -> None:
    """Remember the file of the matrix, for messages about it."""
    _current().files.append(file)


@contextmanager
def _shown_log() -> Iterator[None]:
    """Print what the library logs meanwhile, above the progress bar if there is one."""
    logger, handler = logging.getLogger(LOGGER), _Printer()
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
        errors.print(Text(printable(in_words(record.getMessage())), "dim"), soft_wrap=not is_interactive())


def is_quiet() -> bool:
    """Return whether the user asked for warnings and errors only."""
    return _current().quiet


def verbosity() -> int:
    """Return the ``verbose`` of a fit whose steps are shown anyway: 1 if the user asked for its log."""
    return int(_current().verbose)


def is_interactive() -> bool:
    """Return whether stderr is a terminal on which lines can be replaced."""
    return errors.is_terminal and not errors.is_dumb_terminal


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
    output, text = _current(), in_words(text)
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
    if hasattr(error, "refusal"):  # the fit does not fit into memory
        from symrelu.cli.advice import refusal_in_options

        return str(refusal_in_options(error.refusal))
    return in_words(str(error)) or type(error).__name__


def next_command(words: Sequence[str] | None) -> list[Text]:
    """Return a line with the command to give next, for :func:`report`, or nothing if there is none."""
    return [] if words is None else [message_text("Next:", shlex.join(words))]


def print_interrupted(checkpoint: Path | None = None) -> None:
    """Print that Ctrl-C ended a command without a result, and how to resume if there is a checkpoint."""
    from symrelu.cli.advice import following  # it loads NumPy, which --help does without
    from symrelu.fitted.history import Status

    errors.print("Interrupted: nothing was written.")
    saved = checkpoint if checkpoint is not None and checkpoint.exists() else None
    for line in next_command(following(Status.INTERRUPTED, saved)):
        errors.print(line, soft_wrap=True)


def show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning without the line of code it comes from."""
    text = in_words(str(message))
    _current().warnings.append(text)
    errors.print(message_text("Warning:", text, style="yellow"), soft_wrap=True)


def in_words(text: str) -> str:
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
