"""The standard streams: what happens if nobody reads them."""

import errno
import io
import os
import subprocess
import sys

import pytest

from symrelu.cli import streams
from symrelu.cli.streams import BROKEN_PIPE_CODE, GuardedStream, binary_stdout, guarded_streams


@pytest.fixture
def closed_pipe():
    """A text stream whose reader went away."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:
        yield stream
        streams.discard(stream)


@pytest.mark.parametrize(
    "write",
    [
        lambda stream: (stream.write("text"), stream.flush()),
        lambda stream: stream.writelines(["x" * 100_000] * 2),
    ],
)
def test_a_reader_that_went_away(write, closed_pipe):
    with pytest.raises(SystemExit) as end:
        write(GuardedStream(closed_pipe, ends=True))
    assert end.value.code == BROKEN_PIPE_CODE
    closed_pipe.flush()  # goes nowhere


def test_messages_that_nobody_reads_do_not_end_the_run(closed_pipe):
    stream = GuardedStream(closed_pipe, ends=False)
    assert stream.write("x" * 100_000) == 100_000
    stream.flush()
    assert stream.write("more") == 4


def test_other_errors_are_not_hidden():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        GuardedStream(Full(), ends=True).write("x")


def test_the_streams_come_back(monkeypatch):
    before = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", before)
    monkeypatch.setattr(sys, "stderr", None)
    with guarded_streams():
        assert sys.stderr is None
        print("é", file=sys.stdout, flush=True)  # noqa: T201
    assert sys.stdout is before
    assert before.buffer.getvalue() == b"?\n"


def test_no_stdout_for_a_table(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OSError, match=r"this process has none\. Choose a file"), binary_stdout():
        pytest.fail("there is no stdout")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("closed", [False, True])
def test_bytes_on_stdout(unbuffered, closed):
    program = (
        "import sys\n"
        "from symrelu.cli.streams import binary_stdout\n"
        "sys.stdin.read()\n"
        "with binary_stdout() as file:\n"
        "    for k in range(100_000): file.write(b'a line\\n')\n"
        "print('end')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    if closed:
        process.stdout.close()
        process.stdin.close()
        assert (process.wait(), process.stderr.read()) == (BROKEN_PIPE_CODE, b"")
        process.stderr.close()
    else:
        out, err = process.communicate(b"")
        assert (process.returncode, err) == (0, b"")
        assert out.split() == [b"a", b"line"] * 100_000 + [b"end"]
