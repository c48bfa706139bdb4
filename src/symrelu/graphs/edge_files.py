"""Read lists of edges from text files: csv, tsv and text with any delimiter, with names as they are."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symrelu.files.checks import WrongKind
from symrelu.files.text import Lines, open_text
from symrelu.graphs.cells import (
    COMMA,
    POINT,
    UNCLEAR,
    Facts,
    facts_of,
    is_date,
    is_number,
    looks_like_a_number,
    number_with_comma,
)
from symrelu.graphs.column_names import usual_ends
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
from symrelu.graphs.records import EXPANSION, SPELLED, detect, is_comment, records_of
from symrelu.graphs.remarks import Doubt

_EDGES_OF_A_PART = 1_000_000
_SHOWN = 5  # unknown names in a message


# Takes rows, columns and weights of some edges.
Spill = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


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
    decimal: str = AUTO

    def __post_init__(self) -> None:
        if self.decimal not in (AUTO, POINT, COMMA):
            raise ValueError(f"decimal must be 'auto', '.' or ',', got {self.decimal!r}.")
        if self.header != AUTO and not isinstance(self.header, bool):
            raise TypeError(f"header must be True, False or 'auto', got {self.header!r}.")
        given = self.delimiter
        if given is None:
            return
        one = isinstance(given, str) and (given in SPELLED or (len(given) == 1 and given not in '"\r\n#%'))
        if not one:
            raise ValueError(
                f"delimiter must be a single character such as ',' or ';', or 'tab' or 'space', got {given!r}."
            )


def read_edge_file(
    path: Path, options: TextOptions, sources: Numbering, targets: Numbering, spill: Spill | None = None
) -> EdgeColumns:
    """Read the edges of a text file. New names are added to ``sources`` and ``targets``, which may be one.

    With ``spill``, edges are passed on to it in parts, and only the first part is returned.
    """
    delimiter, sample, split_note = detect(path, options.delimiter)
    names, note = _header(options, sample, delimiter)
    width = len(sample[0])
    full = [row for row in sample[names is not None :] if len(row) == width]
    facts = _facts(full, width, options, delimiter)
    columns = choose_columns(path, options.columns, names, facts)
    refuse_index_column(path, options.columns, names, [row[0] for row in full], facts)
    number, decimal_note = _number_reader(path, columns.weight, facts, full, options.decimal)
    with open_text(path, EXPANSION if spill is None else 1) as file:
        lines = Lines(path, file, partial(is_comment, delimiter, width))
        records = records_of(lines, delimiter)
        if names is not None:
            next(records)
            lines.kept = 0
        types: set[str] = set()
        records = _collecting(records, type_column(names, columns), types)
        parse = partial(
            _parse, lines, columns=columns, width=width, sources=sources, targets=targets, number=number
        )
        rows, cols, weights = parse(records if spill is None else islice(records, _EDGES_OF_A_PART))
        count = len(rows) if spill is None else _spill_all(spill, (rows, cols, weights), parse, records)
    if not rows:
        raise WrongKind(f"{path} must have at least one edge, but it has only a header.")
    refuse_square(path, options.columns, names, facts, count)
    if options.header == AUTO and sources is targets:
        ends = [sample[0][columns.source], sample[0][columns.target]]
        note += _first_line_doubts(ends, names, rows, cols, sources, weighted=columns.weight is not None)
    directed, type_note = declared_direction(types)
    return EdgeColumns(
        np.frombuffer(rows, np.int64),
        np.frombuffer(cols, np.int64),
        None if columns.weight is None else np.frombuffer(weights, np.float64),
        split_note
        + columns.notes
        + decimal_note
        + note
        + type_note
        + _comment_notes(lines, sources)
        + blank_notes(sources),
        directed,
    )


def _spill_all(spill: Spill, first: Any, parse: Callable[..., Any], records: Iterator[list[str]]) -> int:
    """Pass on all edges, part by part, and return their number."""
    count, part = 0, first
    while part[0]:
        rows, cols, weights = part
        values = np.frombuffer(weights, np.float64) if weights else np.ones(len(rows))
        spill(np.frombuffer(rows, np.int64), np.frombuffer(cols, np.int64), values)
        count += len(rows)
        part = parse(islice(records, _EDGES_OF_A_PART))
    return count


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
    """Return a doubt if some names differ in leading or trailing blanks only."""
    seen: dict[str, str] = {}
    alike = [(name, first) for name in names if (first := seen.setdefault(name.strip(), name)) != name]
    if not alike:
        return ()
    example = f"such as {alike[0][1]!r} and {alike[0][0]!r}"
    return (Doubt(f"names that differ in blanks only are different nodes, {example}: {len(alike)}"),)


def _comment_notes(lines: Lines, names: Numbering) -> tuple[str, ...]:
    """Return remarks on lines that begin like a comment: a name may begin with # too."""
    notes: tuple[str, ...] = ()
    if lines.skipped:
        notes += (f"comments, lines that begin with # or %, were skipped: {lines.skipped}",)
    if lines.kept:
        text = f"lines that begin with # or % were read as edges: {lines.kept}"
        text += ". Put a blank after the # of a comment"
        # "#a" beside "a" is more likely an edge that somebody commented out than a name.
        notes += (
            Doubt(text) if any(name[0] in "#%" and name.lstrip("#%") in names for name in names) else text,
        )
    return notes


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


def _first_line_doubts(
    ends: Sequence[str],
    names: Sequence[str] | None,
    rows: Sequence[int],
    cols: Sequence[int],
    numbers: Numbering,
    *,
    weighted: bool,
) -> tuple[str, ...]:
    """Return a doubt if the first line may be an edge that was read as a header, or the other way round."""
    if names is not None:
        if weighted or not all(name in numbers for name in ends):
            return ()
        return (Doubt("the first line was read as a header, but its names are nodes too: pass header="),)
    if not _may_be_header(ends, rows, cols):
        return ()
    return (
        Doubt(f"the first line was read as the edge {tuple(ends)}: pass header=True if it names the columns"),
    )


def _may_be_header(first: Sequence[str], rows: Sequence[int], cols: Sequence[int]) -> bool:
    """Return whether the names of the first edge occur nowhere else, as the names of columns would."""
    if len(rows) < 2 or any(map(is_number, first)):
        return False
    ends = {rows[0], cols[0]}
    return not any(np.isin(list(ends), others[1:]).any() for others in (rows, cols))


def _facts(rows: Sequence[Sequence[str]], width: int, options: TextOptions, delimiter: str) -> list[Facts]:
    decimal = None if options.decimal == AUTO else options.decimal
    return [facts_of([row[k] for row in rows], decimal, delimiter) for k in range(width)]


def _number_reader(
    path: Path, column: int | None, facts: Sequence[Facts], rows: Sequence[Sequence[str]], chosen: str
) -> tuple[Callable[[str], float], tuple[str, ...]]:
    """Return a function that reads the weights, and a note if they have decimal commas."""
    if chosen == COMMA:
        return number_with_comma, ()
    if column is None or facts[column].decimal == POINT:
        return float, ()
    example = next(row[column] for row in rows if COMMA in row[column])
    if facts[column].decimal == UNCLEAR:
        raise WrongKind(
            f"{path}: the weights in column {column + 1} must be numbers with a decimal point, got "
            f'{example!r}. Pass decimal="," if this is a decimal comma; otherwise remove the commas.'
        )
    return number_with_comma, (f"weights such as {example!r} were read with a decimal comma",)


def _parse(
    lines: Lines,
    records: Iterator[list[str]],
    columns: Columns,
    width: int,
    sources: Numbering,
    targets: Numbering,
    number: Callable[[str], float],
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
                weights.append(number(cells[at_weight]))
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
    comma = 'Write numbers with a decimal point, pass decimal="," for a decimal comma'
    advice = comma if "," in cell else "Pass weight= to choose another column"
    return WrongKind(
        f"{lines.path}: line {lines.first} must have a number in column {column + 1}, got {cell[:40]!r}. "
        f"{advice}, or weight=None to give every edge the weight 1."
    )


def _header(
    options: TextOptions, sample: Sequence[Sequence[str]], delimiter: str
) -> tuple[Sequence[str] | None, tuple[str, ...]]:
    """Return the names of the columns, or None if the file has no header, and a doubt about a guess."""
    first = sample[0]
    if options.header != AUTO:
        return (first if options.header else None), ()
    rest = [row for row in sample[1:] if len(row) == len(first)]
    facts = _facts(rest, len(first), options, delimiter)
    if options.columns.names or is_header(first, facts, {cell for row in rest for cell in row}):
        return first, ()
    # Of two ends and a weight, none is called 5: this is one named node among numbered ones. A wide table with
    # such columns is a matrix, which is refused later.
    may_be_an_edge = len(first) <= 3 and any(map(looks_like_a_number, first))
    columns = (k for k in range(len(first)) if not looks_like_a_number(first[k]))
    above = (facts[k].numeric or (facts[k].dates and not is_date(first[k])) for k in columns)
    if not may_be_an_edge and any(above):
        if usual_ends(first) is not None:
            return first, ()
        return first, (Doubt("the first line was read as a header: pass header=False if it is an edge"),)
    return None, ()
