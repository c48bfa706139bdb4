"""Writing files."""

import os

import pytest

from symrelu.files import check_output, write_atomically


def write_half(path):
    with write_atomically(path) as file:
        file.write(b"new")
        raise OSError("the disk is full")


def test_write_atomically_replaces_only_when_complete(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="the disk is full"):
        write_half(path)
    assert path.read_bytes() == b"old"
    with write_atomically(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_write_atomically_follows_a_symbolic_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with write_atomically(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_check_output(tmp_path, monkeypatch):
    assert check_output(tmp_path / "new.npz") == tmp_path / "new.npz"
    with pytest.raises(FileNotFoundError, match=r"The output folder .*nowhere does not exist"):
        check_output(tmp_path / "nowhere" / "x.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(OSError, match="is longer than 255 bytes"):
        check_output(tmp_path / ("x" * 300))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not an ordinary file"):
        check_output(tmp_path / "pipe")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_output(tmp_path / "x.npz")
