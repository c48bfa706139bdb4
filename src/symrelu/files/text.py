"""Read text files, plain or compressed by gzip, without filling the memory."""

from __future__ import annotations

import gzip
import io
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, TextIO

from symrelu.files.checks import WrongKind, check_room, in_units
from symrelu.kernels.memory import available_memory

_LONGEST_LINE = 2**20  # characters
_CHUNK = 2**16  # bytes read at a time
_WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}  # byte order marks


@contextmanager
def open_text(path: Path, expansion: int) -> Iterator[TextIO]:
    """Open a text file in UTF-8, with or without a byte order mark; a path that ends in .gz is decompressed.

    Parameters
    ----------
    path : Path
    expansion : int
        How many bytes of memory the caller needs for each byte of text. Reading stops with a MemoryError if
        there is more text than the memory can hold, because a small gzip file may contain any amount of it.

    Yields
    ------
    file : text file
        Line ends are not translated.
    """
    with _open_bytes(path, expansion) as file:
        try:
            yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        except UnicodeDecodeError:
            raise WrongKind(_wrong_encoding(path, expansion)) from None


def read_bytes(path: Path, expansion: int) -> bytes:
    """Return the content of a file, decompressed if its path ends in .gz, with the limit of open_text."""
    with _open_bytes(path, expansion) as file:
        return file.read()


class Lines:
    """The lines of a text file without comments, with their numbers.

    The owner sets ``between_records`` after each record, because a line that begins with "#" inside a quoted
    cell is not a comment.

    Parameters
    ----------
    path : Path
    file : text file
    is_comment : callable, optional
        Says whether a line that begins with "#" or "%" is a comment. By default all of them are.
    """

    def __init__(self, path: Path, file: TextIO, is_comment: Callable[[str], bool] = lambda line: True) -> None:
        self.path = path
        self.file = file
        self.is_comment = is_comment
        self.number = 0  # of the last line read, counted from 1
        self.first = 0  # of the line in which the present record begins
        self.skipped = 0  # comments
        self.kept = 0  # lines that begin like a comment and are none
        self.between_records = True

    def __iter__(self) -> Iterator[str]:
        # Iterating over the file itself would read a line of any length.
        for line in iter(partial(self.file.readline, _LONGEST_LINE), ""):
            self.number += 1
            if self.between_records:
                if line[0] in "#%":
                    if self.is_comment(line):
                        self.skipped += 1
                        continue
                    self.kept += 1
                self.first = self.number
                self.between_records = False
            if len(line) == _LONGEST_LINE:
                raise WrongKind(
                    f"{self.path} must be text with lines of at most {_LONGEST_LINE} characters, but line "
                    f"{self.number} is longer."
                )
            yield line


@contextmanager
def _open_bytes(path: Path, expansion: int) -> Iterator[IO[bytes]]:
    compressed = path.suffix.lower() == ".gz"
    if not compressed:
        check_room(path, expansion * path.stat().st_size, "its contents")
    with open(path, "rb") as raw:
        content: Any = gzip.GzipFile(fileobj=raw) if compressed else raw
        with io.BufferedReader(_Limited(path, content, expansion), _CHUNK) as file:
            yield file


class _Limited(io.RawIOBase):
    """A binary file that refuses to deliver more than fits into memory."""

    def __init__(self, path: Path, file: IO[bytes], expansion: int) -> None:
        self.path, self.file = path, file
        available = available_memory()
        self.room = None if available is None else available // expansion
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.file.read(len(buffer))
        self.count += len(content)
        if self.room is not None and self.count > self.room:
            raise MemoryError(
                f"{self.path} must fit into memory, but it has more than {in_units(self.room)} of text. "
                "Use a part of the data, or a machine with more memory."
            )
        buffer[: len(content)] = content
        return len(content)


def _wrong_encoding(path: Path, expansion: int) -> str:
    """Return a message that names the first line that is not UTF-8."""
    number = 0
    with _open_bytes(path, expansion) as file:
        for number, line in enumerate(iter(partial(file.readline, _LONGEST_LINE), b""), 1):
            if number == 1 and line[:2] in _WIDE:
                wide = _WIDE[line[:2]]
                return f"{path} must be text in UTF-8, but it is in {wide}. {_conversion(path, wide)}"
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                break
    return (
        f"{path} must be text in UTF-8, but line {number} has the byte 0x{byte:02x}, which is not: the file "
        f"may be in Windows-1252 or Latin-1. {_conversion(path, 'WINDOWS-1252')}"
    )


def _conversion(path: Path, encoding: str) -> str:
    """Return how to convert a file to UTF-8."""
    compressed = path.suffix.lower() == ".gz"
    plain = path.with_suffix("") if compressed else path
    new = plain.with_name(f"{plain.stem}_utf8{plain.suffix}")
    name = shlex.quote(str(path))
    iconv = f"iconv -f {encoding} -t UTF-8"
    command = f"gunzip -c {name} | {iconv}" if compressed else f"{iconv} {name}"
    return f'In Excel, save it as "CSV UTF-8"; in a shell: {command} > {shlex.quote(str(new))}'
