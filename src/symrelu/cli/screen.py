"""Terminal output of the commands: consoles, messages, progress bars and tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from symrelu.experiments import Cell, CellResult, Monitor
from symrelu.experiments.cells import Failure, Refused
from symrelu.experiments.tables import Table as ResultTable
from symrelu.fit.loop import FitProgress

INTERRUPTED_CODE = 130  # 128 + SIGINT, as shells report a program that Ctrl-C ended

# Without emoji, which would replace parts of file names such as a:x:b.
console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


def print_error(error: Exception) -> None:
    """Print an error without a traceback."""
    errors.print(message_text("Error:", str(error), style="bold red"), soft_wrap=True)


def show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning without the line of code it comes from."""
    errors.print(message_text("Warning:", str(message), style="yellow"), soft_wrap=True)


def printable(text: str) -> str:
    """Return a text, such as a file name, with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def message_text(head: str, text: str, style: str = "") -> Text:
    """Return a styled heading followed by a literal text: no markup, no emoji, no control characters."""
    return Text.assemble((head, style), " ", printable(text))


@contextmanager
def fit_progress(description: str, total: int) -> Iterator[Any]:
    """Yield a callback that advances a progress bar over ``total`` iterations of one or more fits."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("relative error {task.fields[error]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(printable(description), total=total, error="-")

        def callback(progress: FitProgress) -> None:
            bar.update(task, advance=1, error=f"{progress.record.relative_error:.4g}")

        yield callback


def check_plots() -> None:
    """Raise if matplotlib is not installed."""
    from symrelu.plots import new_figure

    new_figure()


class CellProgress(Monitor):
    """A progress bar with the time left, estimated by cost; without a terminal, a line every minute."""

    SECONDS_BETWEEN_LINES = 60.0
    SECONDS_BETWEEN_UPDATES = 0.5

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.fields[cells]}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]} left"),
            TextColumn("{task.description}", markup=False),
        )
        # Progress goes to stderr; stdout holds only the results.
        self.bar = Progress(*columns, console=errors, transient=True)
        self.failures: list[str] = []
        self.done = self.total = 0
        self.cost = self.spent = 0.0
        self.last = ""

    def __enter__(self) -> CellProgress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, cells: int, stored: int, cost: float) -> None:
        self.done, self.total, self.cost = stored, cells, cost
        self.began = self.shown = time.monotonic()
        self.task = self.bar.add_task("", total=cost, cells=self._count(), left="-")
        if stored:
            errors.print(f"{stored} of {cells} fits were stored by an earlier run.")

    def refused(self, refused: Refused) -> None:
        what = f"{refused.path}: {refused.reason}."
        errors.print(message_text("Computed again:", what, style="yellow"), soft_wrap=True)

    def advance(self, cost: float) -> None:
        self.spent += cost
        now = time.monotonic()
        terminal = errors.is_terminal
        if now - self.shown < (self.SECONDS_BETWEEN_UPDATES if terminal else self.SECONDS_BETWEEN_LINES):
            return
        self.shown = now
        # The cost of a cell is only relative: the rest is assumed to run as fast as the part that is done.
        left = timedelta(seconds=round((now - self.began) * (self.cost / self.spent - 1)))
        if terminal:
            self.bar.update(
                self.task, completed=self.spent, cells=self._count(), left=str(left), description=self.last
            )
        else:
            errors.print(f"{self._count()}, {self.spent / self.cost:.0%} of the work, {left} left")

    def ended(self, cell: Cell, result: CellResult | Failure) -> None:
        what = f"{cell.case.name}, rank {cell.rank}, {cell.method.name}, seed {cell.seed}"
        self.last = printable(what)
        if isinstance(result, Failure):
            self.failures.append(what)
            errors.print(message_text("Failed:", f"{what}: {result.message}", style="bold red"), soft_wrap=True)
        else:
            self.done += 1

    def _count(self) -> str:
        return f"{self.done}/{self.total} fits"

    def summary(self) -> str:
        """Return how many fits are stored and how many failed."""
        failed = f" {len(self.failures)} failed, see above." if self.failures else ""
        return f"{self.done} of {self.total} fits are stored.{failed}"


def print_table(table: ResultTable) -> None:
    """Print a framed table if it fits the terminal, else Markdown, which wraps without losing digits."""
    shown = Table(title=table.title)
    shown.add_column(table.corner)
    for column in table.columns:
        shown.add_column(Text(column), justify="right")
    for label, row in table.rows:
        shown.add_row(Text(label), *(Text(table.text(entry)) for entry in row))
    unlimited = console.options.update(max_width=10_000)
    # A rich table shrinks its columns to the width of the terminal, and would cut off digits.
    if console.measure(shown, options=unlimited).minimum <= console.width:
        console.print(shown)
        console.print(Text(table.legend), soft_wrap=True)
    else:
        console.print(Text(table.to_markdown()), soft_wrap=True)
