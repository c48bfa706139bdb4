"""Read lists of edges from text files: csv, tsv and text with any delimiter, with names as they are.

The lines are parsed by the csv module. Its pass over a million lines takes as long as pandas' reader of text
columns, and it knows the number of each line.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symrelu.files.checks import WrongKind
from symrelu.files.text import Lines, open_text
from symrelu.graphs.columns import AUTO, ColumnChoice, Columns, choose_columns, is_header

# Memory for each byte of text: three numbers for an edge, and its names if they are new.
_EXPANSION = 4
_SAMPLE = 50  # records from which the format is detected
# Rare characters first: they are in each line by design only. Blanks may be part of any name.
_DELIMITERS = "\t;|, "
_SPELLED = {"\\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
_BY_EXTENSION = {".tsv": "\t"}


class Numbering(dict[str, int]):
    """The number of each name, where a new name gets the next number."""

    def __missing__(self, name: str) -> int:
        if not name or name.isspace():
            raise NoName
        number = self[name] = len(self)
        return number


class NoName(Exception):
    """A name is blank."""


class EdgeColumns(NamedTuple):
    """The ends of the edges as numbers, their weights or None, and notes on how the file was read."""

    rows: np.ndarray
    cols: np.ndarray
    weights: np.ndarray | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TextOptions:
    """How a text file is split into columns; what is not given is detected."""

    columns: ColumnChoice = field(default_factory=ColumnChoice)
    delimiter: str | None = None
    header: bool | str = AUTO

    def __post_init__(self) -> None:
        if self.header != AUTO and not isinstance(self.header, bool):
            raise TypeError(f"header must be True, False or 'auto', got {self.header!r}.")
        given = self.delimiter
        if given is None:
            return
        one = isinstance(given, str) and (given in _SPELLED or (len(given) == 1 and given not in '"\r\n#%'))
        if not one:
            raise ValueError(
                f"delimiter must be a single character such as ',' or ';', or 'tab' or 'space', got {given!r}."
            )


def read_edge_file(path: Path, options: TextOptions, sources: Numbering, targets: Numbering) -> EdgeColumns:
    """Read the edges of a text file. New names are added to ``sources`` and ``targets``, which may be one."""
    delimiter, sample = _detect(path, options)
    names, note = _header(options, sample)
    width = len(sample[0])
    full = [row for row in sample[names is not None :] if len(row) == width]
    numeric = [_all_numbers(row[k] for row in full) for k in range(width)]
    columns = choose_columns(path, options.columns, names, width, numeric)
    with open_text(path, _EXPANSION) as file:
        lines = Lines(path, file)
        records = _records(lines, delimiter)
        if names is not None:
            next(records)
        rows, cols, weights = _parse(lines, records, columns, width, sources, targets)
    if not rows:
        raise WrongKind(f"{path} must have at least one edge, but it has only a header.")
    ends = [sample[0][columns.source], sample[0][columns.target]]
    if names is None and options.header == AUTO and sources is targets and _may_be_header(ends, rows, cols):
        note = (f"the first line was read as the edge {tuple(ends)}: pass header=True if it names the columns",)
    if lines.skipped:  # names of edges may begin like a comment
        note += (f"lines that begin with # or % were skipped after the first edge: {lines.skipped}",)
    return EdgeColumns(
        np.frombuffer(rows, np.int64),
        np.frombuffer(cols, np.int64),
        None if columns.weight is None else np.frombuffer(weights, np.float64),
        columns.notes + note,
    )


def _may_be_header(first: Sequence[str], rows: Sequence[int], cols: Sequence[int]) -> bool:
    """Return whether the names of the first edge occur nowhere else, as the names of columns would."""
    if len(rows) < 2 or any(map(_is_number, first)):
        return False
    ends = {rows[0], cols[0]}
    return not any(np.isin(list(ends), others[1:]).any() for others in (rows, cols))


def _parse(
    lines: Lines,
    records: Iterator[list[str]],
    columns: Columns,
    width: int,
    sources: Numbering,
    targets: Numbering,
) -> tuple[array[int], array[int], array[float]]:
    rows, cols, weights = array("q"), array("q"), array("d")
    at_source, at_target, at_weight, _ = columns
    cells: list[str] = []
    # The loop holds only what each line needs, because it takes most of the time of reading a file.
    try:
        for cells in records:
            if len(cells) != width:
                raise _ragged(lines, len(cells), width)
            rows.append(sources[cells[at_source]])
            cols.append(targets[cells[at_target]])
            if at_weight is not None:
                weights.append(float(cells[at_weight]))
    except NoName:
        raise _gap(lines, "name", at_target if cells[at_source].strip() else at_source) from None
    except (WrongKind, UnicodeDecodeError):  # both are ValueErrors too
        raise
    except ValueError:
        assert at_weight is not None
        raise _not_a_number(lines, cells[at_weight], at_weight) from None
    return rows, cols, weights


def _ragged(lines: Lines, count: int, width: int) -> WrongKind:
    return WrongKind(
        f"{lines.path}: line {lines.first} has {count} cells, but the first line has {width}. "
        "Put cells that contain the delimiter in quotes, or pass another delimiter."
    )


def _gap(lines: Lines, what: str, column: int) -> WrongKind:
    return WrongKind(
        f"{lines.path}: line {lines.first} has no {what} in column {column + 1}. Fill the cell, or delete the "
        "line."
    )


def _not_a_number(lines: Lines, cell: str, column: int) -> WrongKind:
    if not cell.strip():
        return _gap(lines, "weight", column)
    advice = "Write numbers with a decimal point" if "," in cell else "Pass weight= to choose another column"
    return WrongKind(
        f"{lines.path}: line {lines.first} must have a number in column {column + 1}, got {cell[:40]!r}. "
        f"{advice}, or weight=None to give every edge the weight 1."
    )


def _records(lines: Lines, delimiter: str, strict: bool = True) -> Iterator[list[str]]:
    """Yield the cells of each line that has any, and tell the lines where a record ends."""
    # Several blanks are one delimiter.
    blanks = delimiter == " "
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=blanks, strict=strict)
    try:
        for cells in reader:
            lines.between_records = True
            if blanks and cells and not cells[-1]:
                cells.pop()  # a blank at the end of the line
            if len(cells) > 1 or (cells and not cells[0].isspace() and cells[0]):
                yield cells
    except csv.Error as error:
        reason = "a quote is not closed" if "end of data" in str(error) or "limit" in str(error) else error
        raise WrongKind(
            f"{lines.path}: line {lines.first} cannot be split into cells: {reason}. Write a quote inside a "
            "cell twice, and the cell in quotes."
        ) from error


def _detect(path: Path, options: TextOptions) -> tuple[str, list[list[str]]]:
    """Return the delimiter and the first records of a file."""
    given = options.delimiter
    fixed = _BY_EXTENSION.get(Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower())
    candidates = [_SPELLED.get(given, given)] if given else [fixed] if fixed else list(_DELIMITERS)
    samples = {delimiter: _sample(path, delimiter) for delimiter in candidates}
    if not any(samples.values()):
        raise WrongKind(f"{path} must have at least one edge, but it has none.")
    wide = {mark: rows for mark, rows in samples.items() if rows and len(rows[0]) > 1}
    for delimiter, rows in wide.items():
        if len(set(map(len, rows))) == 1:
            return delimiter, rows
    # No delimiter splits all lines alike. The error that names the line comes later.
    return next(iter((wide or samples).items()))


def _sample(path: Path, delimiter: str) -> list[list[str]]:
    with open_text(path, _EXPANSION) as file:
        lines = Lines(path, file)
        rows = list(islice(_records(lines, delimiter, strict=False), _SAMPLE))
    if any("\0" in cell for row in rows for cell in row):
        raise WrongKind(f"{path} must be a text file, but it has zero bytes, as binary files and UTF-16 have.")
    return rows


def _header(
    options: TextOptions, sample: Sequence[Sequence[str]]
) -> tuple[Sequence[str] | None, tuple[str, ...]]:
    """Return the names of the columns, or None if the file has no header, and a note on a guess."""
    first = sample[0]
    if options.header != AUTO:
        return (first if options.header else None), ()
    if is_header(first) or options.columns.names:
        return first, ()
    rest = [row for row in sample[1:] if len(row) == len(first)]
    if any(not _is_number(first[k]) and _all_numbers(row[k] for row in rest) for k in range(len(first))):
        return first, ("the first line was read as a header: pass header=False if it is an edge",)
    return None, ()


def _all_numbers(cells: Iterable[str]) -> bool:
    """Return whether there are numbers only. Empty cells do not count: they are an error where a weight is."""
    found = [_is_number(cell) for cell in cells if cell.strip()]
    return bool(found) and all(found)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
