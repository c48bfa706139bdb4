"""Checks of output files, and errors that name them."""

import errno

import pytest

from symrelu.cli.outputs import check_files, naming_output


def test_files_must_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = tmp_path / "a", tmp_path / "b"
    check_files((a, None), (b, None))
    with pytest.raises(ValueError, match=r"must be different files, but a is given twice"):
        check_files((tmp_path / "a",), (type(a)("a"),))
    with pytest.raises(ValueError, match="given twice"):
        check_files((), (a, a))


def test_an_output_must_be_writable(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"does not exist\. Create it"):
        check_files((), (tmp_path / "no" / "file",))


def test_an_error_of_the_operating_system_names_the_file(tmp_path):
    path = tmp_path / "table.csv"
    message = r"table\.csv could not be written: No space left on device\."
    with pytest.raises(OSError, match=message), naming_output(path):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [OSError("says it all"), OSError(errno.EACCES, "Permission denied", "there")])
def test_an_error_with_a_name_is_kept(error, tmp_path):
    with pytest.raises(OSError, match=r"all|denied") as caught, naming_output(tmp_path):
        raise error
    assert caught.value is error
