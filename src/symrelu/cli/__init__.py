"""The command line ``symrelu``, a thin layer over the library. Each command has its own module."""

from __future__ import annotations

import sys
import warnings

try:
    import rich  # noqa: F401
    import typer
except ImportError as missing:  # pragma: no cover
    raise SystemExit("The command line needs typer and rich: pip install 'symrelu[cli]'.") from missing

from symrelu.cli import demo, fit, rank, reproduce
from symrelu.cli.screen import print_error, show_warning

app = typer.Typer(
    help="ReLU-based symmetric matrix decomposition: M ~ max(0, U Uᵀ).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(fit.fit)
app.command()(rank.rank)
app.add_typer(reproduce.app, name="reproduce")


def main() -> None:
    """Run the command line; a user's error ends it with a message instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an unencodable character must not end a run
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            # show_warning ignores all arguments but the first, hence the different type.
            warnings.showwarning = show_warning  # type: ignore[assignment]
            app()
    except (ValueError, TypeError, OSError, MemoryError, ImportError, Warning) as error:
        print_error(error)
        sys.exit(2)
