"""Split text files into records: find the delimiter, skip comments and empty lines.

The lines are parsed by the csv module. Its pass over a million lines takes as long as pandas' reader of text
columns, and it knows the number of each line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path

from symrelu.files.checks import WrongKind
from symrelu.files.text import Lines, open_text
from symrelu.graphs.remarks import Doubt

# Memory for each byte of text. Measured: 82 bytes for an edge, 10.5 times a text of short lines.
EXPANSION = 12
_SAMPLE = 50  # records from which the format is detected
_LONGEST_PREAMBLE = 1000  # lines of comments
# Rare characters first: they are in each line by design only. Blanks may be part of any name.
_DELIMITERS = "\t;|, "
_PREFERRED = {".csv": ",\t;| "}  # in the order of preference, if it depends on the extension
_CALLED = {"\t": "tabs", ";": "semicolons", "|": "'|'", ",": "commas", " ": "blanks"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[\d.]*,\d+\s*")
SPELLED = {"\\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
_BY_EXTENSION = {".tsv": "\t"}


def records_of(lines: Lines, delimiter: str, strict: bool = True) -> Iterator[list[str]]:
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


def detect(path: Path, given: str | None) -> tuple[str, list[list[str]], tuple[str, ...]]:
    """Return the delimiter and the first records of a file, and a doubt if another delimiter would do."""
    extension = Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()
    fixed = _BY_EXTENSION.get(extension)
    order = _PREFERRED.get(extension, _DELIMITERS)
    candidates = [SPELLED.get(given, given)] if given else [fixed] if fixed else list(order)
    samples = {delimiter: _sample(path, delimiter) for delimiter in candidates}
    if not any(samples.values()):
        raise WrongKind(f"{path} must have at least one edge, but it has none.")
    wide = {mark: rows for mark, rows in samples.items() if rows and len(rows[0]) > 1}
    alike = [mark for mark, rows in wide.items() if len(set(map(len, rows))) == 1]
    if not alike:
        # No delimiter splits all lines alike. The error that names the line comes later.
        return *next(iter((wide or samples).items())), ()
    # Lines such as a;b;0,5 are not split at their commas.
    better = [
        mark for mark in alike if mark != "," and len(wide[mark][0]) > 2 and _only_decimal_commas(wide[mark])
    ]
    chosen = better[0] if alike[0] == "," and better else alike[0]
    # "Big Route 66,7" may be two cells, so blanks are less clear than semicolons.
    decimal = chosen in better and chosen != " " and len(wide.get(",", [[]])[0]) <= 2
    # Names may have blanks, and a blank may follow a comma: they leave no doubt about another delimiter.
    rivals = [mark for mark in alike if mark not in (chosen, " ") and not (mark == "," and decimal)]
    return chosen, wide[chosen], _split_note(chosen, rivals)


def _split_note(chosen: str, rivals: Sequence[str]) -> tuple[str, ...]:
    if not rivals:
        return ()
    others = " or ".join(_CALLED[mark] for mark in rivals)
    return (Doubt(f"the lines were split at {_CALLED[chosen]}, not at {others}: pass delimiter= to choose"),)


def _only_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether there are commas, all of them in numbers such as 0,5."""
    cells = [cell for row in rows for cell in row if "," in cell]
    return bool(cells) and all(map(_DECIMAL_COMMA.fullmatch, cells))


def _sample(path: Path, delimiter: str) -> list[list[str]]:
    """Return the first records. Lines that begin with # count if they have as many cells as the others."""
    number = count()
    # All of them are comments at first, but not endlessly: a large network may have names like "#tag" only.
    others = _first_records(path, delimiter, lambda line: next(number) < _LONGEST_PREAMBLE)
    if others:
        width = len(others[0])
    else:
        hashes = _first_records(path, delimiter, partial(is_comment, delimiter, None))
        width = len(hashes[-1]) if hashes else 0
    return _first_records(path, delimiter, partial(is_comment, delimiter, width))


def _first_records(path: Path, delimiter: str, skip: Callable[[str], bool]) -> list[list[str]]:
    with open_text(path, EXPANSION) as file:
        lines = Lines(path, file, skip)
        rows = list(islice(records_of(lines, delimiter, strict=False), _SAMPLE))
    if any("\0" in cell for row in rows for cell in row):
        raise WrongKind(f"{path} must be a text file, but it has zero bytes, as binary files and UTF-16 have.")
    return rows


def is_comment(delimiter: str, width: int | None, line: str) -> bool:
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
