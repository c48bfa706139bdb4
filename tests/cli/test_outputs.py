"""Checks of output files, and errors that name them."""

import errno
from pathlib import Path

import pytest

from symrelu.cli import outputs
from symrelu.cli.outputs import check_archive_output, check_files, naming_output


def test_files_must_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = tmp_path / "a", tmp_path / "b"
    check_files((a, None), (b, None))
    with pytest.raises(ValueError, match=r"must be different files, but a is given twice"):
        check_files((tmp_path / "a",), (type(a)("a"),))
    with pytest.raises(ValueError, match=r"inputs and outputs must be different files, .* given twice"):
        check_files((), (a, a))
    with pytest.raises(ValueError, match="given twice"):
        check_files((), (a,), plot=a)
    with pytest.raises(ValueError, match=r"^The inputs must be different files, .* Pass another file\.$"):
        check_files((a, a), ())


def test_plots_are_checked(tmp_path, monkeypatch):
    def missing():
        raise ImportError("no matplotlib")

    monkeypatch.setattr(outputs, "check_plots", missing)
    check_files((), (tmp_path / "a",))
    with pytest.raises(ImportError, match="no matplotlib"):
        check_files((), (), plot=tmp_path / "curve.png")


@pytest.mark.parametrize("name", [None, "model.npz", "MODEL.NPZ"])
def test_archives_have_their_extension(name, tmp_path):
    check_archive_output(None if name is None else tmp_path / name, "the model")


@pytest.mark.parametrize(
    ("name", "got"), [("m.csv", "'.csv'"), ("model", "'no extension'"), ("m.npz.gz", "'.gz'")]
)
def test_archives_under_other_extensions_are_refused(name, got, tmp_path):
    with pytest.raises(ValueError, match=rf"{name} must end in \.npz for the model, got {got}"):
        check_archive_output(tmp_path / name, "the model")


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


def test_stdin_and_stdout_are_not_one_file_given_twice():
    with pytest.raises(ValueError, match=r"stdin \(-\) cannot be read"):
        check_files((Path("-"),), (Path("-"),))
