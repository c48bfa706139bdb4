"""Result tables as files: CSV, TSV, Parquet or JSON, by the extension of the file.

Text that a spreadsheet may run as a formula, because it begins with ``=``, ``+``, ``-``, ``@``, one of their
full-width forms, or white space before one of them, gets a leading apostrophe in CSV and TSV files, unless it
is a number. Text that begins so after apostrophes gets one more, so that different names stay different. JSON
and Parquet files hold all texts unchanged. Numbers are written with all their digits.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from symrelu.cli.outputs import naming_output
from symrelu.cli.screen import note
from symrelu.cli.streams import STDOUT, binary_stdout
from symrelu.files import check_output, write_atomically

Columns = Mapping[str, Sequence[Any]]

# Numbers of Python take several times the memory of an array, so that few of them should exist at a time.
_ROWS_AT_ONCE = 10_000

_LONGEST_LINE = 2**22  # bytes; a row of 100 000 numbers is shorter

_STARTS_FORMULA = re.compile(r"'*(\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# A semicolon too: in some languages, spreadsheets split the lines of a CSV file there.
_NEEDS_QUOTES = re.compile(r'[,;\t"\r\n]|^[#%\s]|\s$|^$')  # a line that begins with # may be a comment


def check_table_output(path: str | PathLike[str] | None) -> None:
    """Raise before any work if :func:`write_table` could not write this file, if there is one."""
    if path is None or Path(path) == STDOUT:
        return
    _, extension = _writer_of(Path(path))
    if extension == ".parquet" and find_spec("pyarrow") is None:
        raise ImportError(
            f"Writing {path} requires pyarrow: pip install 'symrelu[tables]'. Or choose a .csv or .json file."
        )
    check_output(path)


def write_table(path: str | PathLike[str], columns: Columns) -> None:
    """Write columns of equal length to a .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .json file, atomically.

    Parameters
    ----------
    path : str or path-like
        ``-`` for CSV on stdout.
    columns : mapping of str to sequence
        Lists or one-dimensional arrays by name. NaN and None become empty cells, or null in JSON.
    """
    write, extension = _writer_of(Path(path))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The columns of a table must have the same length, got {lengths}.")
    if Path(path) == STDOUT:
        with binary_stdout() as file:
            write(file, columns)
    else:
        with naming_output(Path(path)), write_atomically(path) as file:
            write(file, columns)
    if not extension.startswith((".json", ".parquet")):
        _tell_of_apostrophes(path, columns)


def _tell_of_apostrophes(path: str | PathLike[str], columns: Columns) -> None:
    """Print a note if texts of a CSV or TSV file are not as they were."""
    texts = (
        column for column in columns.values() if getattr(column, "dtype", np.dtype(object)).kind not in "biuf"
    )
    count = len({cell for column in texts for cell in column if isinstance(cell, str) and _is_formula(cell)})
    if count:
        names = "1 name begins like a formula" if count == 1 else f"{count} names begin like formulas"
        where = "on stdout" if Path(path) == STDOUT else f"in {path}"
        note(f"{names} and got a leading apostrophe {where}: .json and .parquet files keep names as they are")


def is_table(path: Path) -> bool:
    """Return whether the extension of a file is that of a table; on stdout there can only be a table."""
    return path == STDOUT or path.name.lower().endswith(tuple(_WRITERS))


def embedding_columns(labels: Any | None, U: Any) -> dict[str, Sequence[Any]]:
    """Return the table of an embedding: the names of the nodes, and one column for each of U."""
    columns: dict[str, Sequence[Any]] = {"node": node_names(labels, len(U))}
    return columns | {f"x{k + 1}": U[:, k] for k in range(U.shape[1])}


def is_embedding_table(path: Path) -> bool:
    """Return whether a file is a table as :func:`write_table` writes those of :func:`embedding_columns`."""
    _, extension = _writer_of(path)
    try:
        names = _parquet_names(path) if extension == ".parquet" else _text_names(path, extension)
    except (OSError, EOFError, ValueError, zlib.error):  # another file with this extension
        return False
    return len(names) > 1 and names == ["node", *(f"x{k}" for k in range(1, len(names)))]


def _parquet_names(path: Path) -> list[str]:
    return list(import_module("pyarrow.parquet").read_schema(path).names)


def _text_names(path: Path, extension: str) -> list[str]:
    """Return the names of the columns in the first lines of a text file."""
    with gzip.open(path) if extension.endswith(".gz") else open(path, "rb") as file:
        first = file.readline(_LONGEST_LINE).decode()
        if extension != ".json":
            return first.rstrip("\n").split("\t" if extension.startswith(".tsv") else ",")
        row = json.loads(file.readline(_LONGEST_LINE).decode().rstrip(",\n")) if first == "[\n" else None
    return list(row) if isinstance(row, dict) else []


def node_names(labels: Any | None, n: int) -> list[Any]:
    """Return the names of n nodes, or their row numbers from 0 if they have none."""
    return list(range(n)) if labels is None else _as_list(labels)


def _as_list(column: Sequence[Any]) -> list[Any]:
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return [_cell(value) for value in values]


def _cell(value: Any) -> Any:
    """Return a value of a table as text, number, boolean or None."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def _rows(columns: Columns) -> Iterator[tuple[Any, ...]]:
    n = max(map(len, columns.values()))
    for start in range(0, n, _ROWS_AT_ONCE):
        stop = start + _ROWS_AT_ONCE
        yield from zip(*(_as_list(column[start:stop]) for column in columns.values()), strict=True)


def _write_separated(separator: str, file: IO[bytes], columns: Columns) -> None:
    for row in chain([tuple(columns)], _rows(columns)):
        line = separator.join(map(_separated_cell, row)) + "\n"
        # Names may hold bytes that are not UTF-8, which Python keeps as surrogates.
        file.write(line.encode("utf-8", "surrogateescape"))


def _separated_cell(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    if _is_formula(value):
        value = f"'{value}"
    return '"' + value.replace('"', '""') + '"' if _NEEDS_QUOTES.search(value) else value


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet may run a text as a formula."""
    return _STARTS_FORMULA.match(text) is not None and not _PLAIN_NUMBER.fullmatch(text)


def _write_json(file: IO[bytes], columns: Columns) -> None:
    """Write a list of objects, one line for each row."""
    before = "[\n"
    for row in _finite(columns):
        record = json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False)
        file.write((before + record).encode())
        before = ",\n"
    file.write(b"[]\n" if before.startswith("[") else b"\n]\n")


def _finite(columns: Columns) -> Iterator[tuple[Any, ...]]:
    for row in _rows(columns):
        yield tuple(None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in row)


def _write_parquet(file: IO[bytes], columns: Columns) -> None:
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    arrays = {name: pyarrow.array(_of_one_kind(_as_list(column))) for name, column in columns.items()}
    parquet.write_table(pyarrow.table(arrays), file)


def _of_one_kind(column: Sequence[Any]) -> Iterable[Any]:
    """Return a column for Parquet, whose columns have one type: as texts if only some of it is text."""
    texts = sum(isinstance(value, str) for value in column)
    return column if texts in (0, len(column)) else [None if value is None else str(value) for value in column]


def _compressed(write: Callable[[IO[bytes], Columns], None], file: IO[bytes], columns: Columns) -> None:
    # Without a time stamp, the same table gives the same file.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        write(packed, columns)  # type: ignore[arg-type]


_WRITERS: dict[str, Callable[[IO[bytes], Columns], None]] = {
    ".csv": partial(_write_separated, ","),
    ".csv.gz": partial(_compressed, partial(_write_separated, ",")),
    ".tsv": partial(_write_separated, "\t"),
    ".tsv.gz": partial(_compressed, partial(_write_separated, "\t")),
    ".parquet": _write_parquet,
    ".json": _write_json,
}


def _writer_of(path: Path) -> tuple[Callable[[IO[bytes], Columns], None], str]:
    if path == STDOUT:
        return _WRITERS[".csv"], ".csv"
    for extension, write in _WRITERS.items():
        if path.name.lower().endswith(extension):
            return write, extension
    *others, last = _WRITERS
    raise ValueError(
        f"The table {path} must end in {', '.join(others)} or {last}, or be - for "
        f"stdout, got {path.suffix or 'no extension'!r}."
    )
