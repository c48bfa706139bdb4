"""Progress and tables of the paper's experiments on the terminal."""

from __future__ import annotations

import time
from datetime import timedelta

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from symrelu.cli.screen import console, errors, is_quiet, message_text, printable
from symrelu.experiments import Cell, CellResult, Monitor
from symrelu.experiments.cells import Failure, Refused
from symrelu.experiments.tables import Table as ResultTable


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
        if not is_quiet():
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
        if is_quiet():
            return
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


def shown_table(table: ResultTable) -> list[Table | Text]:
    """Return a framed table if it fits the terminal, else Markdown, which wraps without losing digits."""
    shown = Table(title=table.title)
    shown.add_column(table.corner)
    for column in table.columns:
        shown.add_column(Text(column), justify="right")
    for label, row in table.rows:
        shown.add_row(Text(label), *(Text(table.text(entry)) for entry in row))
    unlimited = console.options.update(max_width=10_000)
    # A rich table shrinks its columns to the width of the terminal, and would cut off digits.
    if console.measure(shown, options=unlimited).minimum <= console.width:
        return [shown, Text(table.legend)]
    return [Text(table.to_markdown())]
