"""The standard streams of the program: what happens if nobody reads them, and a table on stdout.

Typer and rich end a program with code 1 if the reader of its output went away, wherever they notice it. Here
the streams themselves decide, so that it is the same for results, help texts and everything else.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

BROKEN_PIPE_CODE = 128 + 13  # as shells report a program that SIGPIPE ended; Windows has no such signal
STDOUT = Path("-")  # as the name of an output


class GuardedStream:
    """A text stream that does not fail if its reader went away.

    Parameters
    ----------
    stream : text stream
    ends : bool
        Whether the program ends then. Otherwise what is written is discarded: nobody reads the messages, but
        the results are still wanted.
    """

    def __init__(self, stream: IO[str], *, ends: bool) -> None:
        self._stream, self._ends = stream, ends

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._guarded():
            self._stream.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        with self._guarded():
            self._stream.writelines(lines)

    def flush(self) -> None:
        with self._guarded():
            self._stream.flush()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            discard(self._stream)
            if self._ends:
                # No OSError, which Typer and rich would handle.
                raise SystemExit(BROKEN_PIPE_CODE) from None


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard stdout and stderr meanwhile, and let no character that they cannot encode end the program."""
    before = sys.stdout, sys.stderr
    for stream in filter(None, before):  # None if a process is started without it
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        sys.stdout = sys.stdout and GuardedStream(sys.stdout, ends=True)
        sys.stderr = sys.stderr and GuardedStream(sys.stderr, ends=False)
        yield
    finally:
        sys.stdout, sys.stderr = before


def discard(stream: IO[Any]) -> None:
    """Let all that is written to a stream go nowhere, also when the interpreter ends."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def binary_stdout() -> Iterator[IO[bytes]]:
    """Yield stdout for bytes; the program ends if its reader went away."""
    if sys.stdout is None:
        raise OSError("The table cannot be written to stdout, because this process has none. Choose a file.")
    sys.stdout.flush()
    stdout: Any = sys.stdout.buffer
    try:
        # With PYTHONUNBUFFERED=1 it is a raw file, which may write a part only.
        if isinstance(stdout, io.RawIOBase):
            with open(os.dup(stdout.fileno()), "wb") as file:
                yield file
        else:
            yield stdout
            stdout.flush()
    except BrokenPipeError:
        discard(stdout)
        raise SystemExit(BROKEN_PIPE_CODE) from None
