"""The command line as a whole: its entry point, and how a run ends that cannot go on."""

import errno
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from command_line import symrelu

from symrelu import Solution, __version__, cli, decompose
from symrelu.cli import tables


def test_help_names_the_commands(monkeypatch, capsys):
    code, out, _ = symrelu(monkeypatch, capsys, "--help")
    assert code == 0
    commands = set(re.findall(r"^\W*(\w+) {2,}", out, flags=re.MULTILINE))
    assert {"demo", "fit", "reproduce"} <= commands


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_the_command_line_says_what_it_needs(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "symrelu.cli")
    with pytest.raises(SystemExit, match=r"needs typer and rich: pip install 'symrelu\[cli\]'\."):
        importlib.import_module("symrelu.cli")


def test_the_entry_point_is_installed(tmp_path):
    (entry,) = entry_points(group="console_scripts", name="symrelu")
    assert entry.value == "symrelu.cli:main"
    script = Path(sys.executable).with_name("symrelu")
    command = [script] if script.exists() else [sys.executable, "-m", "symrelu"]
    result = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"symrelu {__version__}\n", "")


def test_a_run_without_stdout(tmp_path, matrix_file, monkeypatch):
    options = ["-r", "2", "-o", str(tmp_path / "o.npz"), "--max-iter", "2"]
    monkeypatch.setattr(sys, "argv", ["symrelu", "fit", str(matrix_file), *options])
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert Solution.load(tmp_path / "o.npz").n_iter == 2


def test_an_unexpected_error_is_not_hidden(matrix_file, monkeypatch, capsys):
    def broken(*arguments, **settings):
        raise KeyError("a bug")

    monkeypatch.setattr(cli.fit, "decompose", broken)
    monkeypatch.setattr(sys, "argv", ["symrelu", "fit", str(matrix_file), "-r", "2", "-o", "o.npz"])
    with pytest.raises(KeyError, match="a bug"):  # Python then prints a traceback and exits with 1
        cli.main()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "Error: There is not enough memory. Use a part of the data"),
        (MemoryError("Unable to allocate 8 GiB"), "Error: Unable to allocate 8 GiB"),
        (OSError(errno.EIO, "Input/output error"), "Error: Input/output error. "),
        (ValueError(), "Error: ValueError"),
    ],
)
def test_every_error_has_a_message(error, message, tmp_path, matrix_file, monkeypatch, capsys):
    def fail(*arguments, **settings):
        raise error

    monkeypatch.setattr(cli.fit, "decompose", fail)
    code, out, err = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 2, "-o", tmp_path / "o.npz")
    assert (code, out) == (2, "")
    assert message in err


def test_ctrl_c_anywhere_ends_without_a_traceback(matrix_file, tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.fit, "read_input", interrupted)
    code, out, err = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 2, "-o", tmp_path / "o.npz")
    assert (code, out, err) == (130, "", "Interrupted.\n")


@pytest.mark.parametrize("place", ["in a step", "while a table is written"])
def test_sigterm_cleans_up(place, tmp_path, matrix_file, monkeypatch, capsys):
    def terminated(file, columns):
        file.write(b"node,")
        signal.raise_signal(signal.SIGTERM)

    def at_step_three(*arguments, callback, **settings):
        def step(progress):
            callback(progress)
            if progress.record.iteration == 3:
                signal.raise_signal(signal.SIGTERM)

        return decompose(*arguments, callback=step, **settings)

    if place == "in a step":
        monkeypatch.setattr(cli.fit, "decompose", at_step_three)
    else:
        monkeypatch.setitem(tables._WRITERS, ".csv", terminated)
    before = signal.getsignal(signal.SIGTERM)
    files = ["-o", tmp_path / "u.csv", "--checkpoint", tmp_path / "fit.ckpt"]
    code, out, err = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 2, *files, "--quiet")
    assert (code, out, err) == (143, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.ckpt", "matrix.npz"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_command_line_runs_in_other_threads_too(capsys, monkeypatch):
    ends = []

    def run():
        with pytest.raises(SystemExit) as end:
            cli.main()
        ends.append(end.value.code)

    monkeypatch.setattr(sys, "argv", ["symrelu", "--version"])
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ends == [0]


FIT = [sys.executable, "-m", "symrelu", *["fit", "matrix.npz", "-r", "2", "-o", "o.npz", "--max-iter", "3"]]


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path, matrix_file):
    """The results are on disk by then."""
    process = subprocess.Popen(FIT, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=120) == cli.BROKEN_PIPE_CODE
    assert Solution.load(tmp_path / "o.npz").n_iter == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_results_that_cannot_be_printed_are_an_error(tmp_path, matrix_file):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*FIT, "--json"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert result.returncode == 2
    assert "Error: No space left on device." in result.stderr
    assert "Exception ignored" not in result.stderr


def test_a_full_disk_is_named(tmp_path, matrix_file, monkeypatch, capsys):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numpy.savez", full)
    monkeypatch.setattr("numpy.savez_compressed", full)
    output = tmp_path / "o.npz"
    code, out, err = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 2, "-o", output, "--max-iter", 3)
    assert (code, out) == (2, "")
    assert "o.npz could not be written: No space left on device." in err
    assert [path.name for path in tmp_path.iterdir()] == ["matrix.npz"]


def test_numbers_that_json_does_not_know_are_null(tmp_path, matrix_file, monkeypatch, capsys):
    monkeypatch.setattr(cli.fit.Problem, "parameters_per_pair", lambda self, rank: float("nan"))
    options = ["-r", 2, "-o", tmp_path / "o.npz", "--max-iter", 3, "--json"]
    code, out, _ = symrelu(monkeypatch, capsys, "fit", matrix_file, *options)
    assert code == 0

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    found = json.loads(out, parse_constant=refuse)
    assert found["parameters_per_pair"] is None
    assert found["status"] == "max_iter"
    assert found["plot"] is None
    assert found["held_out_error"] is None
    assert found["output"] == str(tmp_path / "o.npz")
