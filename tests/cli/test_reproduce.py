"""The commands of ``reproduce``, run as a user runs them."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from command_line import symrelu
from example_experiment import make_ranks
from typer.testing import CliRunner

from symrelu import cli
from symrelu.experiments import real, signed, synthetic
from symrelu.experiments.cases import ReluGram

PNG = b"\x89PNG"


def test_reproduce_real_without_data_runs_the_digits(tmp_path, monkeypatch, capsys, no_data, short_fits):
    output = tmp_path / "real"
    code, out, err = symrelu(monkeypatch, capsys, "reproduce", "real", "-o", output)
    assert code == 0
    assert err.count("Not run.") == 6
    assert "set the environment variable SYMRELU_DATA" in err
    assert "digits" in out
    assert "10 of 10 fits are stored" in out
    page = (output / "index.html").read_text(encoding="utf-8")
    assert page.count("Not run.") == 6
    assert f"symrelu reproduce real -o {output}" in page
    assert (output / "figure2.png").read_bytes()[:4] == PNG
    (cell, *_) = sorted((output / "cells").iterdir())
    cell.write_text("{")
    code, out, err = symrelu(monkeypatch, capsys, "reproduce", "real", "-o", output)
    assert code == 0
    assert "9 of 10 fits were stored by an earlier run" in err
    assert f"Computed again: {cell}: it cannot be read" in err


def test_reproduce_synthetic_quick(tmp_path, monkeypatch, capsys, short_fits):
    arguments = ["reproduce", "synthetic", "--quick", "-o", tmp_path, "--jobs", 2]
    code, out, _ = symrelu(monkeypatch, capsys, *arguments)
    assert code == 0
    assert "45 of 45 fits are stored" in out
    assert "Relative error, step 10, uniform random start" in out
    assert (tmp_path / "synthetic_step10_uniform_error.csv").exists()
    assert (tmp_path / "synthetic_step1_uniform_iterations.csv").exists()


def test_reproduce_ablation(tmp_path, monkeypatch, capsys, no_data, short_fits):
    code, out, err = symrelu(monkeypatch, capsys, "reproduce", "ablation", "--seeds", 1, "-o", tmp_path)
    assert code == 0
    assert err.count("Not run.") == 2
    assert "spectral start" in out


def test_reproduce_signed(tmp_path, monkeypatch, capsys, no_data):
    for name in ("LIMITS", "GRAPH_LIMITS"):
        monkeypatch.setattr(signed, name, replace(signed.LIMITS, max_iter=2))
    monkeypatch.setattr(signed, "SHIFTED", ((ReluGram(40, 3, 0.1), 4),))
    code, out, err = symrelu(monkeypatch, capsys, "reproduce", "signed", "--quick", "-o", tmp_path)
    assert code == 0
    assert err.count("Not run.") == 2
    assert "14 of 14 fits are stored" in out
    assert "hidden pairs" in (tmp_path / "signed_graphs_error.csv").read_text(encoding="utf-8")
    code, _, err = symrelu(monkeypatch, capsys, "reproduce", "signed", "--only", "karate", "-o", tmp_path)
    assert code == 2
    assert "--only must be one of 'ORL'" in err
    assert "'polblogs', got 'karate'" in err


@pytest.fixture
def one_command():
    """The command line of an experiment that is in no file of the package."""
    app = typer.Typer()
    app.callback()(lambda: None)
    cli.reproduce.add_command(app, "ranks", make_ranks)

    def run(*arguments):
        return CliRunner().invoke(app, ["ranks", *map(str, arguments)], env={"COLUMNS": "200"})

    return run


def test_a_registered_experiment_is_a_command(tmp_path, one_command):
    for number, options in ((2, ["--highest", 1, "--seeds", 1]), (4, ["--quick"])):  # two are stored already
        result = one_command(*options, "-o", tmp_path)
        assert result.exit_code == 0, result.output
        assert len(list((tmp_path / "cells").glob("*.json"))) == number
    assert "Errors by rank" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_what_quick_chooses_cannot_be_given_with_it(one_command):
    refused = one_command("--quick", "--seeds", 3, "--highest", 2).exception
    assert str(refused) == "--quick sets --highest, --seeds itself: pass one or the other."
    assert one_command("--highest", 0).exit_code == 2


def test_a_new_file_is_a_new_command(tmp_path):
    """The whole package is copied, one file is added, and nothing else is touched."""
    package = tmp_path / "symrelu"
    shutil.copytree(Path(cli.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(__file__).parents[1] / "example_experiment.py", package / "experiments" / "ranks.py")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    command = [sys.executable, "-m", "symrelu", "reproduce", "ranks", "--help"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    for shown in ("python -m symrelu reproduce ranks", "Two solvers on a small matrix", "--highest", "--jobs"):
        assert shown in result.stdout


def test_a_failed_cell_is_named_and_the_rest_written(tmp_path, monkeypatch, capsys, no_data, short_fits):
    monkeypatch.setattr(real, "DIGITS_RANK", 2000)
    code, out, err = symrelu(monkeypatch, capsys, "reproduce", "real", "-o", tmp_path)
    assert code == 1
    assert (
        "Failed: digits, rank 2000, SymANLS, seed 0: ValueError: rank must be an integer from 1 to 1797" in err
    )
    assert "0 of 10 fits are stored. 10 failed, see above." in out
    assert (tmp_path / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["real", "--only", "MNIST"], "--only must be one of"),
        (["real", "--data", "nowhere"], "The data directory nowhere does not exist."),
        (["real", "--quick", "--seeds", "3"], "--quick sets --seeds itself"),
        (["synthetic", "--quick", "--beside", "3"], "--quick sets --beside itself"),
        (["synthetic", "-o", "file"], "The output folder file is a file. Choose another name."),
        (["synthetic", "-o", "file/below"], "The output folder file/below cannot be created: Not a directory."),
    ],
)
def test_reproduce_refuses_before_the_work(tmp_path, monkeypatch, capsys, no_data, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("precious")
    code, _, err = symrelu(monkeypatch, capsys, "reproduce", *arguments)
    assert code == 2
    assert message in err
    assert (tmp_path / "file").read_text() == "precious"
    assert not (tmp_path / "reproduction").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_the_cells_that_ended(tmp_path, monkeypatch, capsys, jobs):
    """Stopped after the first cell, the run says how to resume it, and is resumed."""
    program = """
import os, signal, time
from pathlib import Path
from dataclasses import replace
from threading import Thread
from symrelu import cli
from symrelu.experiments import synthetic

def press_ctrl_c():
    while not list(Path("out/cells").glob("*.json")):
        time.sleep(0.01)
    os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    synthetic.QUICK_COLUMNS = synthetic.paper.SYNTHETIC_COLUMNS[:1]
    synthetic.LIMITS = replace(synthetic.LIMITS, max_iter=40)
    Thread(target=press_ctrl_c, daemon=True).start()
    cli.main()
"""
    script = tmp_path / "program.py"
    script.write_text(program)
    options = ["reproduce", "synthetic", "--quick", "-o", "out"]
    command = [sys.executable, str(script), *options, f"--jobs={jobs}"]
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, start_new_session=True, timeout=120
    )
    assert result.returncode == 130, result.stderr
    assert "run the same command again to resume." in result.stderr
    assert "Traceback" not in result.stderr
    stored = len(list((tmp_path / "out" / "cells").glob("*.json")))
    assert 1 <= stored < 15
    assert not list((tmp_path / "out" / "cells").glob(".symrelu*"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(synthetic, "QUICK_COLUMNS", synthetic.paper.SYNTHETIC_COLUMNS[:1])
    monkeypatch.setattr(synthetic, "LIMITS", replace(synthetic.LIMITS, max_iter=40))
    code, out, err = symrelu(monkeypatch, capsys, *options)
    assert code == 0
    assert f"{stored} of 15 fits were stored by an earlier run" in err
    assert "15 of 15 fits are stored" in out
