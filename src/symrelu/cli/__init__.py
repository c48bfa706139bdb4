"""The command line ``symrelu``, a thin layer over the library. Each command has its own module."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

try:
    import rich  # noqa: F401
    import typer
except ImportError as missing:  # pragma: no cover
    raise SystemExit("The command line needs typer and rich: pip install 'symrelu[cli]'.") from missing

from symrelu import __version__
from symrelu.cli.commands import COMMANDS, LazyGroup, add_stand_ins, examples_text
from symrelu.cli.streams import BROKEN_PIPE_CODE, discard, guarded_streams

TERMINATED_CODE = 128 + signal.SIGTERM

EXAMPLES = (
    "symrelu embed graph.csv -o embedding.csv",
    "symrelu cluster graph.csv --clusters 5 -o clusters.csv",
    "symrelu fit graph.csv --rank 16 -o fit.npz --json",
)
_EXIT_CODES = (
    "Exit codes: 0 done; 1 unexpected error; 2 invalid options, or a file that cannot be read or "
    "written; 3 the result was written, but it misses the goal that was set (neighbors); 130 interrupted by "
    "Ctrl-C, with the result so far written if there is one; "
    f"{BROKEN_PIPE_CODE} the reader of the output went away; {TERMINATED_CODE} terminated."
)

app = typer.Typer(
    cls=LazyGroup,
    help="ReLU-based symmetric matrix decomposition: M ~ max(0, U Uᵀ).",
    epilog=f"{examples_text(EXAMPLES)}\n\n{_EXIT_CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
add_stand_ins(app)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"symrelu {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line; a user's error ends it with a message instead of a traceback."""
    with guarded_streams():
        try:
            with _exit_on_sigterm(), warnings.catch_warnings():
                # _show_warning ignores all arguments but the first, hence the different type.
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                app()
        except (ValueError, TypeError, OSError, MemoryError, ImportError, Warning) as error:
            from symrelu.cli.screen import print_error

            print_error(error)
            sys.exit(2)
        finally:
            _drop_unwritable_output()


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that temporary files are removed and checkpoints written."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends a clean-up that hangs
    raise SystemExit(TERMINATED_CODE)


def _drop_unwritable_output() -> None:
    """Discard what cannot be written, or the interpreter would report it once more when it ends."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if a process is started without it
        try:
            stream.flush()
        except OSError:
            discard(stream)


def _show_warning(message: Warning | str, *_: Any) -> None:
    from symrelu.cli.screen import show_warning

    show_warning(message)


def __getattr__(name: str) -> Any:
    if name in COMMANDS:
        return import_module(f"symrelu.cli.{name}")
    raise AttributeError(f"module 'symrelu.cli' has no attribute {name!r}")
