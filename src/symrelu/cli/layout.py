"""Tables on the terminal that lose no digit: rich cuts off what does not fit into a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.table import Table
from rich.text import Text

from symrelu.cli.screen import console, printable

_UNLIMITED = 100_000  # characters in a line


def fitting_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    justify: Literal["left", "right"] = "right",
) -> Table | Text:
    """Return a framed table if it fits the terminal, if necessary with headings of several lines.

    Otherwise return a text with a line for each cell, which the terminal wraps.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequences of str
    title : str, default=""
    justify : {"left", "right"}, default="right"
        Where the text of a column is, except the first one.

    Returns
    -------
    table : Table or Text
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    for names in (header, [name.replace(" ", "\n") for name in header]):
        table = Table(title=Text(title) if title else None)
        for k, name in enumerate(names):
            table.add_column(Text(name), justify=justify if k else "left")
        for row in rows:
            table.add_row(*map(Text, row))
        if natural_width(table) <= console.width:
            return table
    return Text("\n".join([*filter(None, [title]), *_lines(header, rows)]))


def natural_width(table: Table) -> int:
    """Return the width of a table if no line of a cell is broken."""
    return console.measure(table, options=console.options.update(max_width=_UNLIMITED)).maximum


def _lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    width = max(map(len, header[1:]), default=0)
    for first, *others in rows:
        yield f"{header[0]}: {first}"
        for name, cell in zip(header[1:], others, strict=True):
            if cell:
                yield f"  {name:{width}}  {cell}"
