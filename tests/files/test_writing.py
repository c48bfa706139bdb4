"""Writing files."""

import os

import pytest

from symrelu.files import check_output, make_folder, write_atomically


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
    with pytest.raises(OSError, match="is not a regular file"):
        check_output(tmp_path / "pipe")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_output(tmp_path / "x.npz")


def test_folders_are_made_where_they_are_missing(tmp_path, monkeypatch):
    folder = tmp_path / "a" / "b"
    assert make_folder(folder) == make_folder(str(folder)) == folder
    assert folder.is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file"):
        make_folder(tmp_path / "file")
    with pytest.raises(OSError, match="Not a directory"):
        make_folder(tmp_path / "file" / "b")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="cannot be written to"):
        make_folder(folder)


def test_what_is_not_finished_begins_with_the_prefix(tmp_path):
    with write_atomically(tmp_path / "out", prefix=".mine"):
        (unfinished,) = tmp_path.iterdir()
        assert unfinished.name.startswith(".mine-")
        assert unfinished.name.endswith(".part")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_no_interruption_leaves_anything_behind(tmp_path, error):
    def interrupted():
        with write_atomically(tmp_path / "out") as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert list(tmp_path.iterdir()) == []


class Refused:
    """An ``open`` that fails for new files, as in a folder of another user, which root does not know."""

    def __init__(self, error):
        self.error = error

    def __call__(self, path, mode="r", *rest):
        if "x" in mode:
            raise self.error(13, "Permission denied", str(path))
        return open(path, mode, *rest)


def test_an_error_names_the_output_not_its_temporary_file(tmp_path, monkeypatch):
    monkeypatch.setattr("symrelu.files.writing.open", Refused(PermissionError), raising=False)
    message = r"^The output .*out\.csv cannot be written: Permission denied\. Choose another folder\.$"
    with pytest.raises(PermissionError, match=message):
        check_output(tmp_path / "out.csv")
    with pytest.raises(PermissionError, match=message), write_atomically(tmp_path / "out.csv"):
        pytest.fail("nothing can be written")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="requires a folder in which nobody can write")
def test_a_folder_in_which_nobody_can_write():
    with pytest.raises(OSError, match=r"The output /proc/x\.csv cannot be written"):
        check_output("/proc/x.csv")


def test_a_rename_that_fails_names_the_output(tmp_path):
    with (
        pytest.raises(OSError, match=r"The output .*out cannot be written: Is a directory"),
        write_atomically(tmp_path / "out"),
    ):
        (tmp_path / "out").mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
