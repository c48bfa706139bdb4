"""Read MatrixMarket files, which are checked before SciPy parses them."""

from __future__ import annotations

import gzip
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import io

from symrelu.files.checks import WrongKind, check_room, check_rows, in_units, naming_damaged_file

_CHUNK = 2**20  # bytes read at a time
_BYTES_OF_A_PART = 2**24  # of text that is parsed at once
_BANNER = re.compile(rb"%%MatrixMarket +matrix +(coordinate|array) +([\w-]+) +([\w-]+)\s*", re.IGNORECASE)
_SIZE = re.compile(rb"\d{1,18}")
# All characters of numbers, "nan" and "inf", and blanks. Comments are allowed before the sizes only.
_NUMBER_BYTES = b"0123456789+-.eEdDnaifNAIF \t\r\n"
_LONGEST_COMMENTS = 2**20  # bytes
_LONGEST_ENTRY = 200  # bytes on average; 17 digits and two indices take 60


@dataclass(frozen=True)
class _Header:
    """The header of a MatrixMarket file."""

    sparse: bool
    rows: int
    columns: int
    entries: int  # number of lines that must follow
    memory: int  # bytes that SciPy's reader allocates
    lines: int  # length of the header
    field: str = "real"
    symmetry: str = "general"

    @property
    def longest(self) -> int:
        """The largest size of the file in bytes, including blanks and comments."""
        return _LONGEST_COMMENTS + _LONGEST_ENTRY * self.entries

    def check_length(self, length: int) -> None:
        """Raise if there are more bytes than the entries need."""
        if length > self.longest:
            raise ValueError(
                f"{in_units(length)} of text are too much for the {self.entries} entries that the header "
                "declares"
            )


def read_matrix_market(path: Path) -> Any:
    """Read a MatrixMarket file after checking its text, because SciPy's reader crashes on some damaged files.

    Seen with SciPy 1.17: bytes that are not text, and a last line that ends in a blank without a line feed.
    SciPy also allocates memory for all entries that the header declares before it reads the first.
    """
    with _open_text(path) as file:
        header = _read_header(file)
        check_room(path, header.memory, f"the {header.entries} entries of its header")
        if header.sparse:
            check_rows(path, header.rows, header.columns)
        header.check_length(_text_length(path))
        _check_entries(file, header)
    with _open_text(path) as file:
        return io.mmread(_EndingInLineFeed(file), spmatrix=False)


def matrix_market_parts(path: Path) -> tuple[tuple[int, int], Iterator[tuple[np.ndarray, ...]]]:
    """Return the shape of a sparse matrix, and its entries in parts: rows, columns and values.

    Both triangles of a symmetric file are returned. The matrix is never held as a whole.
    """
    with _open_text(path) as file:
        header = _read_header(file)
        if not header.sparse or header.field == "complex" or header.symmetry not in ("general", "symmetric"):
            raise WrongKind(
                f"{path} must be a sparse matrix of real numbers (coordinate, general or symmetric) to be "
                f"read in parts, got {'coordinate' if header.sparse else 'array'} {header.field} "
                f"{header.symmetry}."
            )
        header.check_length(_text_length(path))
        _check_entries(file, header)
    return (header.rows, header.columns), _parts(path, header)


def _parts(path: Path, header: _Header) -> Iterator[tuple[np.ndarray, ...]]:
    width = 2 if header.field == "pattern" else 3
    with naming_damaged_file(path, "mtx"), _open_text(path) as file:
        _read_header(file)
        rest = b""
        while chunk := file.read(_BYTES_OF_A_PART):
            text, _, rest = (rest + chunk).rpartition(b"\n")
            yield from _entries_of(text, width, header)
        yield from _entries_of(rest, width, header)


def _entries_of(text: bytes, width: int, header: _Header) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield rows, columns and values of lines of text, and the mirrored ones if the matrix is symmetric."""
    if not text.strip():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # what cannot be parsed
        numbers = np.fromstring(text.decode("ascii"), sep=" ")
    if len(numbers) % width:
        raise ValueError(f"each entry must have {width} numbers")
    table = numbers.reshape(-1, width)
    places = table[:, :2].astype(np.int64) - 1
    if (
        (places + 1 != table[:, :2]).any()
        or (places < 0).any()
        or (places >= (header.rows, header.columns)).any()
    ):
        raise ValueError(f"indices must be whole numbers within {header.rows} x {header.columns}")
    rows, cols = places[:, 0].copy(), places[:, 1].copy()
    values = np.ones(len(rows)) if width == 2 else table[:, 2].copy()
    yield rows, cols, values
    if header.symmetry == "symmetric":
        off = rows != cols
        yield cols[off], rows[off], values[off]


def _open_text(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")


def _text_length(path: Path) -> int:
    """Return the length of the text. For a gz file this is what its trailer says, which may be too small."""
    size = path.stat().st_size
    if path.suffix.lower() != ".gz":
        return size
    with open(path, "rb") as file:
        file.seek(-min(4, size), os.SEEK_END)  # the length modulo 2^32, of the last member only
        return int.from_bytes(file.read(), "little")


def _read_header(file: IO[bytes]) -> _Header:
    """Read the header, up to the line with the sizes."""
    banner = _BANNER.fullmatch(file.readline(_CHUNK))
    if not banner:
        raise ValueError("the first line is not a MatrixMarket header")
    kind, field, symmetry = (word.decode().lower() for word in banner.groups())
    line, lines = b"%", 1
    while line.startswith(b"%") or line.isspace():
        line, lines = file.readline(_CHUNK), lines + 1
        if file.tell() > _LONGEST_COMMENTS:
            raise ValueError(
                f"the sizes of the matrix must come within the first {in_units(_LONGEST_COMMENTS)}"
            )
    sizes = line.split()
    if len(sizes) != (3 if kind == "coordinate" else 2) or not all(map(_SIZE.fullmatch, sizes)):
        raise ValueError(f"line {lines} must hold the sizes of the matrix, got {line[:80].decode('latin-1')!r}")
    rows, columns, *stored = map(int, sizes)
    value_bytes = 16 if field == "complex" else 8
    if kind == "array":
        # Symmetric files store the lower triangle, skew-symmetric ones without the diagonal.
        below = rows * (rows - 1) // 2
        entries = {"general": rows * columns, "skew-symmetric": below}.get(symmetry, below + rows)
        return _Header(False, rows, columns, entries, rows * columns * value_bytes, lines, field, symmetry)
    (entries,) = stored
    if entries > rows * columns:
        raise ValueError(f"a {rows} x {columns} matrix cannot have {entries} entries")
    copies = 1 if symmetry == "general" else 2  # SciPy adds the entries above the diagonal
    return _Header(True, rows, columns, entries, copies * entries * (16 + value_bytes), lines, field, symmetry)


def _check_entries(file: IO[bytes], header: _Header) -> None:
    """Raise unless the rest of a file consists of one line of numbers per entry, and blanks."""
    lines, entries, last = header.lines, 0, b"\n"
    while chunk := file.read(_CHUNK):
        header.check_length(file.tell())
        foreign = chunk.translate(None, _NUMBER_BYTES)[:1]
        if foreign:
            line = lines + chunk[: chunk.index(foreign)].count(b"\n") + 1
            raise ValueError(f"line {line} must hold numbers only")
        lines += chunk.count(b"\n")
        # A line may span two chunks, so the last byte of the previous one is kept.
        dense = last + chunk.translate(None, b" \t\r")
        filled = np.frombuffer(dense, np.uint8) != ord("\n")
        entries += int(np.count_nonzero(filled[1:] & ~filled[:-1]))  # starts of lines that are not empty
        last = dense[-1:]
        if entries > header.entries:
            break
    if entries != header.entries:
        came = f"there are {'more' if entries > header.entries else entries}"
        raise ValueError(f"the header declares {header.entries} entries, but {came}")


class _EndingInLineFeed:
    """A readable file that ends with a line feed."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.ended = False

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes."""
        content = self.file.read(size)
        if content or self.ended:
            return content
        self.ended = True
        return b"\n"
