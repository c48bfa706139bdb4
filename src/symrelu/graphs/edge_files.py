"""Read lists of edges from text files: csv, tsv and text with any delimiter, with names as they are.

The lines are parsed by the csv module. Its pass over a million lines takes as long as pandas' reader of text
columns, and it knows the number of each line.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symrelu.files.checks import WrongKind
from symrelu.files.text import Lines, open_text
from symrelu.graphs.columns import (
    AUTO,
    ColumnChoice,
    Columns,
    choose_columns,
    declared_direction,
    is_header,
    refuse_index_column,
    refuse_square,
    type_column,
)

# Memory for each byte of text. Measured: 82 bytes for an edge, 10.5 times a text of short lines.
_EXPANSION = 12
_SHOWN = 5  # unknown names in a message
_SAMPLE = 50  # records from which the format is detected
_LONGEST_PREAMBLE = 1000  # lines of comments
# Rare characters first: they are in each line by design only. Blanks may be part of any name.
_DELIMITERS = "\t;|, "
_PREFERRED = {".csv": ",\t;| "}  # in the order of preference, if it depends on the extension
_CALLED = {"\t": "tabs", ";": "semicolons", "|": "'|'", ",": "commas", " ": "blanks"}
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
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
    """The ends of the edges as numbers, their weights or None, notes, and whether all are declared directed."""

    rows: np.ndarray
    cols: np.ndarray
    weights: np.ndarray | None
    notes: tuple[str, ...]
    directed: bool = False


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
    delimiter, sample, split_note = _detect(path, options)
    names, note = _header(options, sample)
    width = len(sample[0])
    full = [row for row in sample[names is not None :] if len(row) == width]
    numeric = [_all_numbers(row[k] for row in full) for k in range(width)]
    columns = choose_columns(path, options.columns, names, width, numeric)
    refuse_index_column(path, options.columns, names, [row[0] for row in full])
    with open_text(path, _EXPANSION) as file:
        lines = Lines(path, file, partial(_is_comment, delimiter, width))
        records = _records(lines, delimiter)
        if names is not None:
            next(records)
            lines.kept = 0
        types: set[str] = set()
        records = _collecting(records, type_column(names, columns), types)
        rows, cols, weights = _parse(lines, records, columns, width, sources, targets)
    if not rows:
        raise WrongKind(f"{path} must have at least one edge, but it has only a header.")
    refuse_square(path, options.columns, names, numeric, len(rows))
    ends = [sample[0][columns.source], sample[0][columns.target]]
    if names is None and options.header == AUTO and sources is targets and _may_be_header(ends, rows, cols):
        note = (f"the first line was read as the edge {tuple(ends)}: pass header=True if it names the columns",)
    directed, type_note = declared_direction(types)
    return EdgeColumns(
        np.frombuffer(rows, np.int64),
        np.frombuffer(cols, np.int64),
        None if columns.weight is None else np.frombuffer(weights, np.float64),
        split_note + columns.notes + note + type_note + _comment_notes(lines) + blank_notes(sources),
        directed,
    )


def _collecting(records: Iterator[list[str]], column: int | None, found: set[str]) -> Iterator[list[str]]:
    """Return the records, and add the cells of a column to a set on the way."""
    if column is None:
        return records

    def collect() -> Iterator[list[str]]:
        for cells in records:
            found.update(cells[column : column + 1])
            yield cells

    return collect()


def blank_notes(names: Iterable[str]) -> tuple[str, ...]:
    """Return a note if some names differ in leading or trailing blanks only."""
    seen: dict[str, str] = {}
    alike = [(name, first) for name in names if (first := seen.setdefault(name.strip(), name)) != name]
    if not alike:
        return ()
    example = f"such as {alike[0][1]!r} and {alike[0][0]!r}"
    return (f"names that differ in blanks only are different nodes, {example}: {len(alike)}",)


def _comment_notes(lines: Lines) -> tuple[str, ...]:
    """Return notes on lines that begin like a comment: a name may begin with # too."""
    notes: tuple[str, ...] = ()
    if lines.skipped:
        notes += (f"comments, lines that begin with # or %, were skipped: {lines.skipped}",)
    if lines.kept:
        notes += (
            f"lines that begin with # or % were read as edges: {lines.kept}. Put a blank after the # of a "
            "comment",
        )
    return notes


def _is_comment(delimiter: str, width: int | None, line: str) -> bool:
    """Return whether a line that begins with # or % is a comment: a blank follows, or it is no record."""
    after = line.lstrip("#%")[:1]
    # A name such as "#tag" has no blank there, but a delimiter may follow "#" itself.
    if not after or (after.isspace() and (after != delimiter or delimiter == " ")):
        return True
    return width is not None and len(_cells(line, delimiter)) != width


def _cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line that may be no record at all."""
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter == " "), [])
    except csv.Error:
        return []
    return cells[:-1] if delimiter == " " and cells and not cells[-1] else cells


def check_known(path: Path, new: Numbering, targets: Numbering, n_known: int) -> None:
    """Raise an error that names the first targets that are not known, and says how many there are."""
    unknown = list(targets)[n_known:]
    if not unknown:
        return
    shown = ", ".join(map(repr, unknown[:_SHOWN])) + (", ..." if len(unknown) > _SHOWN else "")
    known = set(list(targets)[:n_known])
    swapped = known.issuperset(new)
    advice = (
        "The sources are known: pass source= and target= the other way round."
        if swapped
        else "Remove their lines, or pass target= if another column names the known items."
    )
    raise WrongKind(
        f"{path} must name known items as targets, but {len(unknown)} of them "
        f"{'is' if len(unknown) == 1 else 'are'} not known: {shown}. {advice}"
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
                if "_" in cells[at_weight]:  # Python reads 1_0 as 10
                    raise ValueError
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


def _detect(path: Path, options: TextOptions) -> tuple[str, list[list[str]], tuple[str, ...]]:
    """Return the delimiter and the first records of a file, and a note if another delimiter would do."""
    given = options.delimiter
    extension = Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()
    fixed = _BY_EXTENSION.get(extension)
    order = _PREFERRED.get(extension, _DELIMITERS)
    candidates = [_SPELLED.get(given, given)] if given else [fixed] if fixed else list(order)
    samples = {delimiter: _sample(path, delimiter) for delimiter in candidates}
    if not any(samples.values()):
        raise WrongKind(f"{path} must have at least one edge, but it has none.")
    wide = {mark: rows for mark, rows in samples.items() if rows and len(rows[0]) > 1}
    alike = [mark for mark, rows in wide.items() if len(set(map(len, rows))) == 1]
    if not alike:
        # No delimiter splits all lines alike. The error that names the line comes later.
        return *next(iter((wide or samples).items())), ()
    if alike[0] == "," and len(alike) > 1 and alike[1] != " " and _only_decimal_commas(wide[alike[1]]):
        alike[:2] = alike[1], alike[0]
    chosen = alike[0]
    # Names may have blanks, and a blank may follow a comma: they leave no doubt about another delimiter.
    return chosen, wide[chosen], _split_note(chosen, [mark for mark in alike[1:] if mark != " "])


def _split_note(chosen: str, rivals: Sequence[str]) -> tuple[str, ...]:
    if not rivals:
        return ()
    others = " or ".join(_CALLED[mark] for mark in rivals)
    return (f"the lines were split at {_CALLED[chosen]}, not at {others}: pass delimiter= to choose",)


def _only_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether all commas are those of numbers such as 0,5."""
    cells = [cell for row in rows for cell in row if "," in cell]
    return all("," not in _DECIMAL_COMMA.sub("", cell) for cell in cells)


def _sample(path: Path, delimiter: str) -> list[list[str]]:
    """Return the first records. Lines that begin with # count if they have as many cells as the others."""
    number = count()
    # All of them are comments at first, but not endlessly: a large network may have names like "#tag" only.
    others = _first_records(path, delimiter, lambda line: next(number) < _LONGEST_PREAMBLE)
    if others:
        width = len(others[0])
    else:
        hashes = _first_records(path, delimiter, partial(_is_comment, delimiter, None))
        width = len(hashes[-1]) if hashes else 0
    return _first_records(path, delimiter, partial(_is_comment, delimiter, width))


def _first_records(path: Path, delimiter: str, is_comment: Callable[[str], bool]) -> list[list[str]]:
    with open_text(path, _EXPANSION) as file:
        lines = Lines(path, file, is_comment)
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
    # Of two ends and a weight, none is called 5: this is one named node among numbered ones. A wide table with
    # such columns is a matrix, which is refused later.
    may_be_an_edge = len(first) <= 3 and any(map(_is_number, first))
    columns = (k for k in range(len(first)) if not _is_number(first[k]))
    if not may_be_an_edge and any(_all_numbers(row[k] for row in rest) for k in columns):
        return first, ("the first line was read as a header: pass header=False if it is an edge",)
    return None, ()


def _all_numbers(cells: Iterable[str]) -> bool:
    """Return whether there are numbers only. Empty cells do not count: they are an error where a weight is."""
    found = [_is_number(cell) for cell in cells if cell.strip()]
    return bool(found) and all(found)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_0 as 10
