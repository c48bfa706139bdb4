"""Text files, plain and compressed."""

import gzip
import shutil
import subprocess

import pytest

from symrelu.files import text
from symrelu.files.text import Lines, open_text, read_bytes


def write(path, content):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


NAMES = ["a.txt", "a.txt.gz", "A.TXT.GZ"]


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "byte order mark"])
def test_text(tmp_path, name, mark):
    path = write(tmp_path / name, mark + "ä\r\nb\n\n".encode())
    with open_text(path, 4) as file:
        assert file.read() == "ä\r\nb\n\n"
    assert read_bytes(path, 4) == mark + "ä\r\nb\n\n".encode()


@pytest.mark.parametrize("name", NAMES[:2])
def test_other_encodings(tmp_path, name):
    path = write(tmp_path / name, "a\nb\nJosé\n".encode("latin-1"))
    with (
        pytest.raises(ValueError, match=r"a\.txt.* must be text in UTF-8, but line 3 has the byte 0xe9"),
        open_text(path, 4) as file,
    ):
        file.read()
    path = write(tmp_path / name, "a,b\n".encode("utf-16"))
    with (
        pytest.raises(ValueError, match=r"must be text in UTF-8, but it is in UTF-16\. In Excel, save it as"),
        open_text(path, 4) as file,
    ):
        file.read()


@pytest.mark.parametrize("name", NAMES[:2])
def test_more_text_than_memory(tmp_path, name, monkeypatch):
    """A megabyte of zeros takes a kilobyte in the file."""
    monkeypatch.setattr(text, "available_memory", lambda: 400_000)
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 400_000)
    path = write(tmp_path / name, b"0\n" * 500_000)
    with pytest.raises(MemoryError, match=r"a\.txt.* must fit into memory, but"):
        read_bytes(path, 4)
    with pytest.raises(MemoryError, match=r"a\.txt.* must fit into memory, but"), open_text(path, 4) as file:
        list(Lines(path, file))


def test_where_the_system_reports_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "available_memory", lambda: None)
    assert read_bytes(write(tmp_path / "a.gz", b"abc"), 4) == b"abc"


def test_comments_and_numbers_of_lines(tmp_path):
    path = write(tmp_path / "a.txt", b"# one\na\n% two\nb\n#c\n#d\n")
    with open_text(path, 4) as file:
        lines, seen = Lines(path, file), []
        for line in lines:
            seen.append((line, lines.number, lines.first))
            # As if the record of b went on in the next line.
            lines.between_records = line != "b\n"
    assert seen == [("a\n", 2, 2), ("b\n", 4, 4), ("#c\n", 5, 4)]


def test_only_some_lines_are_comments(tmp_path):
    path = write(tmp_path / "a.txt", b"# one\n#tag\na\n# two\n")
    with open_text(path, 4) as file:
        lines = Lines(path, file, lambda line: line.startswith("# "))
        seen = []
        for line in lines:
            seen.append(line)
            lines.between_records = True
    assert seen == ["#tag\n", "a\n"]
    assert (lines.skipped, lines.kept) == (2, 1)


def test_long_lines(tmp_path):
    path = write(tmp_path / "a.txt.gz", b"a\n" + b"x" * 2**21)
    with open_text(path, 4) as file, pytest.raises(ValueError, match="at most 1048576 characters, but line 2"):
        list(Lines(path, file))


@pytest.mark.skipif(shutil.which("iconv") is None, reason="needs iconv")
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("name", ["my list.csv", "a.csv.gz"])
def test_the_proposed_command_converts_a_file(tmp_path, encoding, name):
    """The message said what is wrong, but not how to mend it."""
    text = "Müller,Kovač\n" if encoding == "utf-16" else "Müller,Žižek\n"
    path = tmp_path / name
    with gzip.open(path, "wb") if name.endswith("gz") else open(path, "wb") as file:
        file.write(text.encode(encoding))
    with pytest.raises(ValueError, match="CSV UTF-8") as refused, open_text(path, 4) as file:
        file.read()
    command = str(refused.value).partition("in a shell: ")[2]
    subprocess.run(command, shell=True, check=True, timeout=60)
    (new,) = tmp_path.glob("*_utf8.csv")
    with open_text(new, 4) as file:
        assert file.read() == text
