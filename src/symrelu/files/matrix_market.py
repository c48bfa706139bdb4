"""MatrixMarket files, checked before scipy parses them."""

from __future__ import annotations

import gzip
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import io

from symrelu.files.checks import check_room, check_rows, in_units

_CHUNK = 2**20
_BANNER = re.compile(rb"%%MatrixMarket +matrix +(coordinate|array) +([\w-]+) +([\w-]+)\s*", re.IGNORECASE)
_SIZE = re.compile(rb"\d{1,18}")
_NUMBER_BYTES = b"0123456789+-.eEdDnaifNAIF \t\r\n"
_LONGEST_COMMENTS = 2**20
_LONGEST_ENTRY = 200  # in bytes, on average: 17 digits and two indices take 60


@dataclass(frozen=True)
class _MatrixMarket:
    """What the first lines of a MatrixMarket file say."""

    sparse: bool
    rows: int
    columns: int
    entries: int  # lines that have to follow
    memory: int  # bytes that scipy's reader takes
    lines: int  # that this took

    @property
    def longest(self) -> int:
        """How many bytes the file can have, blanks and comments included."""
        return _LONGEST_COMMENTS + _LONGEST_ENTRY * self.entries

    def check_length(self, length: int) -> None:
        """Raise if there are more bytes than the entries can fill."""
        if length > self.longest:
            raise ValueError(
                f"{in_units(length)} of text are more than the {self.entries} entries of its header can take"
            )


def read_matrix_market(path: Path) -> Any:
    """Read MatrixMarket, with a look at the text first: scipy's reader crashes on some damaged files.

    Seen with scipy 1.17: bytes that are no text, and a last line that ends in a blank without a line feed.
    And it takes the memory for all entries of the header before it reads one.
    """
    with _open_text(path) as file:
        header = _mtx_header(file)
        check_room(path, header.memory, f"the {header.entries} entries of its header")
        if header.sparse:
            check_rows(path, header.rows, header.columns)
        header.check_length(_text_length(path))
        _check_entries(file, header)
    with _open_text(path) as file:
        return io.mmread(_EndingInLineFeed(file), spmatrix=False)


def _open_text(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


def _text_length(path: Path) -> int:
    """Return how long the text is; of a gz file what its end says, which is not always all of it."""
    size = path.stat().st_size
    if path.suffix != ".gz":
        return size
    with open(path, "rb") as file:
        file.seek(-min(4, size), os.SEEK_END)
        return int.from_bytes(file.read(), "little")


def _mtx_header(file: IO[bytes]) -> _MatrixMarket:
    """Read the first lines, up to the one with the sizes."""
    banner = _BANNER.fullmatch(file.readline(_CHUNK))
    if not banner:
        raise ValueError("the first line is not that of a MatrixMarket file")
    kind, field, symmetry = (word.decode().lower() for word in banner.groups())
    line, lines = b"%", 1
    while line.startswith(b"%") or line.isspace():
        line, lines = file.readline(_CHUNK), lines + 1
        if file.tell() > _LONGEST_COMMENTS:
            raise ValueError(
                f"the sizes of the matrix do not come within the first {in_units(_LONGEST_COMMENTS)}"
            )
    sizes = line.split()
    if len(sizes) != (3 if kind == "coordinate" else 2) or not all(map(_SIZE.fullmatch, sizes)):
        raise ValueError(f"line {lines} must hold the sizes of the matrix, got {line[:80].decode('latin-1')!r}")
    rows, columns, *stored = map(int, sizes)
    value_bytes = 16 if field == "complex" else 8
    if kind == "array":
        below = rows * (rows - 1) // 2
        entries = {"general": rows * columns, "skew-symmetric": below}.get(symmetry, below + rows)
        return _MatrixMarket(False, rows, columns, entries, rows * columns * value_bytes, lines)
    (entries,) = stored
    if entries > rows * columns:
        raise ValueError(f"a {rows} x {columns} matrix cannot have {entries} entries")
    copies = 1 if symmetry == "general" else 2
    return _MatrixMarket(True, rows, columns, entries, copies * entries * (16 + value_bytes), lines)


def _check_entries(file: IO[bytes], header: _MatrixMarket) -> None:
    """Raise unless the rest of a file has a line of numbers for each entry, and little besides."""
    lines, entries, last = header.lines, 0, b"\n"
    while chunk := file.read(_CHUNK):
        header.check_length(file.tell())
        foreign = chunk.translate(None, _NUMBER_BYTES)[:1]
        if foreign:
            line = lines + chunk[: chunk.index(foreign)].count(b"\n") + 1
            raise ValueError(f"line {line} holds something else than numbers")
        lines += chunk.count(b"\n")
        dense = last + chunk.translate(None, b" \t\r")
        filled = np.frombuffer(dense, np.uint8) != ord("\n")
        entries += int(np.count_nonzero(filled[1:] & ~filled[:-1]))  # beginnings of lines that are not empty
        last = dense[-1:]
        if entries > header.entries:
            break
    if entries != header.entries:
        came = f"there are {'more' if entries > header.entries else entries}"
        raise ValueError(f"the header tells of {header.entries} entries, but {came}")


class _EndingInLineFeed:
    """A file to read whose last line is complete."""

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
