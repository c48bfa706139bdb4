"""Tables with a row for each node, as input of a command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from symrelu.cli.screen import note
from symrelu.files.checks import WrongKind, check_readable
from symrelu.files.text import Lines, open_text
from symrelu.graphs.cells import COMMA, UNCLEAR, facts_of, number_with_comma
from symrelu.graphs.records import detect, records_of

_EXTENSIONS = (".csv", ".tsv")
_NAMES = ("node", "name", "id")  # of the column that names the nodes; otherwise it is the first
_EXPANSION = 30  # memory for each byte of text: a short cell is an object of more than 50 bytes
# A code such as a postcode: as a number, it would lose its zeros.
_CODE = re.compile(r"\s*[+-]?0\d.*", re.DOTALL)


def read_node_table(path: Path, names: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of a table in the order of the nodes, and print a note on nodes without a row.

    Parameters
    ----------
    path : Path
        A .csv or .tsv file with a header; the cells of a .csv file may also be separated by semicolons or tabs.
    names : sequence
        The names of the nodes.

    Returns
    -------
    columns : dict of str to list
        Columns in which every value is a number have numbers, others texts; None where there is no value.
    """
    place = {str(name): k for k, name in enumerate(names)}
    with _records(path) as (header, delimiter, rows):
        folded = [cell.casefold() for cell in header]
        key = next((folded.index(name) for name in _NAMES if name in folded), 0)
        table: list[list[Any]] = [[None] * len(names) for _ in header]
        unknown: list[str] = []
        known: dict[int, int] = {}  # place of a node -> line that names it
        for line, row in rows:
            at = _place(row[key], place)
            if at is None:
                unknown.append(row[key])
                continue
            if at in known:
                raise WrongKind(
                    f"{path} must name each node once, but lines {known[at]} and {line} name {row[key]!r}. "
                    "Leave one of them out."
                )
            known[at] = line
            for column, value in zip(table, row, strict=True):
                column[at] = value or None
    _check_names(path, header[key], len(names), len(known), unknown)
    return {
        name: _numbers(column, delimiter)
        for k, (name, column) in enumerate(zip(header, table, strict=True))
        if k != key
    }


def _check_names(path: Path, column: str, nodes: int, known: int, unknown: list[str]) -> None:
    """Raise if a table names no node, and print a note on nodes and rows that have no partner."""
    if not known and not unknown:
        raise WrongKind(f"{path} must have a header and a row for each node, got 1 rows.")
    if not known:
        raise WrongKind(
            f"{path} must name nodes of the graph in its column {column!r}, but none of its names, such "
            f"as {unknown[0]!r}, is one of them."
        )
    if unknown:
        note(f"{len(unknown)} rows of {path.name} name no node of the graph, for example {unknown[0]!r}")
    if known < nodes:
        note(f"{nodes - known} nodes of the graph have no row in {path.name}")


@contextmanager
def _records(path: Path) -> Iterator[tuple[list[str], str, Iterator[tuple[int, list[str]]]]]:
    """Open a table: its header, its delimiter, and the other rows with the numbers of their lines."""
    if path.suffix.lower() not in _EXTENSIONS:
        raise WrongKind(
            f"{path} must be a table in a .csv or .tsv file, got {path.suffix or 'no extension'!r}."
        )
    check_readable(path)
    if not path.stat().st_size:
        raise WrongKind(f"{path} must have a header and a row for each node, got 0 rows.")
    delimiter, _, doubts = detect(path, None)
    if delimiter == " ":  # part of a name, in a table of one column
        delimiter = ","
    for doubt in doubts:
        note(f"{path.name}: {doubt.split(': pass')[0]}")
    with open_text(path, _EXPANSION) as file:
        lines = Lines(path, file, lambda line: False)  # any line may be a node
        rows = records_of(lines, delimiter)
        header = [cell.strip() for cell in next(rows, [])]
        _check_header(path, header)
        yield header, delimiter, _rows_like(header, lines, rows)


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) < 2:
        raise WrongKind(f"{path} must have a column besides the names of the nodes, got {header}.")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise WrongKind(f"{path} must have a different name for each column, but {twice[0]!r} is there twice.")


def _rows_like(header: list[str], lines: Lines, rows: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    for row in rows:
        if len(row) != len(header):
            raise WrongKind(
                f"{lines.path}: line {lines.first} must have {len(header)} cells, like the header, "
                f"got {len(row)}."
            )
        yield lines.first, row


def _place(name: str, place: dict[str, int]) -> int | None:
    """Return the place of a node; in our own tables, names that look like formulas begin with an apostrophe."""
    return place.get(name, place.get(name[1:]) if name.startswith("'") else None)


def _numbers(column: list[Any], delimiter: str) -> list[Any]:
    """Return a column as numbers, if all its values are, or as it is."""
    cells = [value for value in column if value is not None]
    facts = facts_of(cells, delimiter=delimiter)
    if not facts.numeric or facts.decimal == UNCLEAR or any(map(_CODE.fullmatch, cells)):
        return column
    kind: Any = number_with_comma if facts.decimal == COMMA else float
    if all(re.fullmatch(r"\s*[+-]?\d+\s*", cell) for cell in cells):
        kind = int
    return [None if value is None or not value.strip() else kind(value) for value in column]
