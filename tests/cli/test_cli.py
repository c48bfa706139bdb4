"""The command line, run as a user runs it."""

import csv
import importlib
import io as streams
import os
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from example_experiment import make_ranks
from rich.console import Console
from scipy import io, sparse
from typer.testing import CliRunner

from symrelu import AAPB, LBFGS, PALM, Eigen, Solution, Status, cli, decompose, metrics
from symrelu.cli import screen
from symrelu.datasets import make_relu_gram
from symrelu.experiments import real, signed, synthetic
from symrelu.experiments.cases import ReluGram
from symrelu.experiments.registry import REGISTERED, Quick, register_experiment

PNG = b"\x89PNG"


@pytest.fixture
def matrix_file(tmp_path):
    M, _ = make_relu_gram(60, 3, random_state=0)
    path = tmp_path / "matrix.npz"
    sparse.save_npz(path, sparse.csr_array(M))
    return path


def symrelu(monkeypatch, capsys, *arguments):
    """Run ``symrelu ARGUMENTS`` in this process; return exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["symrelu", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    captured = capsys.readouterr()
    return end.value.code, captured.out, captured.err


def test_fit_writes_the_solution_of_decompose(tmp_path, matrix_file, monkeypatch, capsys):
    output, plot = tmp_path / "fit.npz", tmp_path / "curve.png"
    code, out, _ = symrelu(
        monkeypatch, capsys, "fit", matrix_file, "--rank", 3, "-o", output, "--plot", plot, "--seed", 1
    )
    assert code == 0
    expected = decompose(sparse.load_npz(matrix_file), 3, random_state=1)
    np.testing.assert_array_equal(Solution.load(output).U, expected.U)
    assert plot.read_bytes()[:4] == PNG
    assert f"{expected.relative_error:.6g}" in out
    assert "relative_error fell to tol" in out


def test_every_option_reaches_decompose(tmp_path, matrix_file, monkeypatch, capsys):
    mask = tmp_path / "mask.mtx"
    io.mmwrite(mask, sparse.coo_array(np.eye(60)[::-1]))  # MatrixMarket stores 0 and 1
    received = {}

    def spy(M, rank, **settings):
        received.update(settings, M=M, rank=rank)
        return decompose(M, rank, max_iter=1, random_state=0)

    monkeypatch.setattr(cli.fit, "decompose", spy)
    arguments = [
        "--rank",
        "4",
        "--n-negative",
        "1",
        "--diagonal",
        "ignore",
        "--zero-weight",
        "0.5",
        "--alpha",
        "0.1",
        "--init",
        "spectral",
        "--solver",
        "aapb",
        "--step-size",
        "3",
        "--momentum",
        "0.5",
        "--safeguard",
        "--tol",
        "1e-3",
        "--gtol",
        "1e-5",
        "--ftol",
        "1e-7",
        "--max-iter",
        "9",
        "--max-time",
        "8",
        "--seed",
        "2",
        "--backend",
        "sparse",
        "--checkpoint",
        str(tmp_path / "c.npz"),
    ]
    code, _, _ = symrelu(
        monkeypatch, capsys, "fit", matrix_file, "-o", tmp_path / "o.npz", "--mask", mask, *arguments
    )
    assert code == 0
    assert received.pop("M").mask.dtype == bool
    received.pop("callback")
    assert received == {
        "rank": 4,
        "solver": AAPB(step_size=3.0, momentum=0.5, safeguard=True),
        "n_negative": 1,
        "diagonal": "ignore",
        "zero_weight": 0.5,
        "alpha": 0.1,
        "init": "spectral",
        "tol": 1e-3,
        "gtol": 1e-5,
        "ftol": 1e-7,
        "max_iter": 9,
        "max_time": 8.0,
        "random_state": 2,
        "backend": "sparse",
        "checkpoint": tmp_path / "c.npz",
    }


@pytest.mark.parametrize(
    ("arguments", "solver"),
    [
        ([], LBFGS()),
        (["--memory", "5"], LBFGS(memory=5)),
        (["--solver", "eigen", "--sweeps", "2", "--momentum", "0.5"], Eigen(momentum=0.5, sweeps=2)),
        (["--solver", "palm", "--momentum", "1"], PALM(momentum=1.0)),
        (["--solver", "aapb", "--step-size", "adaptive"], AAPB(step_size="adaptive")),
        (["--solver", "aapb", "--no-safeguard"], AAPB()),
    ],
)
def test_solver_options(tmp_path, matrix_file, monkeypatch, capsys, arguments, solver):
    output = tmp_path / "o.npz"
    code, _, _ = symrelu(
        monkeypatch, capsys, "fit", matrix_file, "-r", 3, "-o", output, "--max-iter", 2, *arguments
    )
    assert code == 0
    assert Solution.load(output).solver == repr(solver)


def test_the_number_of_negative_columns_may_be_left_to_the_data(tmp_path, monkeypatch, capsys):
    M, _ = make_relu_gram(100, 4, shift=0.1, random_state=0)
    np.save(tmp_path / "m.npy", M)
    code, out, _ = symrelu(
        monkeypatch,
        capsys,
        "fit",
        tmp_path / "m.npy",
        "-r",
        5,
        "--n-negative",
        "auto",
        "-o",
        tmp_path / "o.npz",
    )
    assert code == 0
    assert "1 negative column" in out


def test_a_second_fit_is_judged_by_hidden_pairs(tmp_path, matrix_file, monkeypatch, capsys):
    mask_file, output = tmp_path / "mask.npz", tmp_path / "o.npz"
    unknown = metrics.random_mask(60, 0.1, random_state=5)
    sparse.save_npz(mask_file, unknown)
    options = ["-r", 4, "--n-negative", 1, "--seed", 3, "--mask", mask_file, "--max-iter", 20]
    code, out, _ = symrelu(monkeypatch, capsys, "fit", matrix_file, "-o", output, "--held-out", 0.2, *options)
    assert code == 0
    M = sparse.load_npz(matrix_file)
    hidden = metrics.random_mask(60, 0.2, random_state=3).toarray() & ~unknown.toarray()
    settings = {"n_negative": 1, "random_state": 3, "max_iter": 20}
    judged = decompose(M, 4, mask=hidden | unknown.toarray(), **settings)
    error = metrics.held_out_error(M, judged.U, judged.signature, mask=hidden)
    assert f"{error:.6g} (of a second fit" in " ".join(out.split())
    shown = decompose(M, 4, mask=unknown, **settings)
    np.testing.assert_array_equal(Solution.load(output).U, shown.U)


def test_a_second_fit_that_is_interrupted_judges_nothing(tmp_path, matrix_file, monkeypatch, capsys):
    def interrupted(problem, **settings):
        solution = decompose(problem, **settings)
        return solution if problem.mask is None else replace(solution, status=Status.INTERRUPTED)

    monkeypatch.setattr(cli.fit, "decompose", interrupted)
    output = tmp_path / "o.npz"
    code, out, _ = symrelu(
        monkeypatch, capsys, "fit", matrix_file, "-r", 3, "-o", output, "--held-out", 0.1, "--max-iter", 2
    )
    assert code == 130
    assert "not measured: interrupted" in out
    assert Solution.load(output).n_iter == 2


def test_a_signed_fit_says_that_hidden_pairs_were_not_asked(tmp_path, matrix_file, monkeypatch, capsys):
    options = ["fit", matrix_file, "-r", 4, "-o", tmp_path / "o.npz", "--max-iter", 3]
    _, plain, _ = symrelu(monkeypatch, capsys, *options)
    _, signed, _ = symrelu(monkeypatch, capsys, *options, "--n-negative", 1)
    assert "hidden pairs" not in plain
    assert "add --held-out 0.1" in signed
    assert f"{metrics.parameters_per_pair(sparse.load_npz(matrix_file), 4):.3g}" in signed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npz", "--rank", "2", "-o", "x.npz"], "There is no file missing.npz"),
        (["matrix.npz", "--rank", "0", "-o", "x.npz"], "rank must be an integer of at least 1"),
        (["matrix.npz", "--rank", "2", "-o", "no/x.npz"], "/no does not exist. Create it"),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--plot", "no/x.png"], "/no does not exist. Create it"),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--solver", "aapb", "--momentum", "2"],
            "AAPB(momentum=...) must be in [0, 1]",
        ),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--step-size", "10"],
            "--step-size is no option of the solver 'lbfgs'. Leave it out, or pass --solver aapb.",
        ),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--solver", "aapb", "--step-size", "long"],
            "AAPB(step_size=...) must be a positive number or 'adaptive', got 'long'",
        ),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--held-out", "1"],
            "fraction must be a number in (0, 0.99]",
        ),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--held-out", "1e-9"], "must hide at least one pair"),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--solver", "sgd"], "solver must be one of 'aapb'"),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--n-negative", "few"], "n_negative must be 'auto' or"),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--n-negative", "2"],
            "n_negative must be an integer from",
        ),
        (["matrix.npz", "--rank", "2", "-o", "matrix.npz"], "must be different files"),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--plot", "./x.npz"], "must be different files"),
        (["matrix.npz", "--rank", "2", "-o", "x" * 300], "is longer than"),
        (["letter.npz", "--rank", "2", "-o", "x.npz"], "letter.npz is not a readable npz file"),
        (["letter.txt", "--rank", "2", "-o", "x.npz"], "the ending '.txt' is not known"),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--mask", "weights.npz"], "mask must be boolean"),
        # issue 11.13
        (["number.npy", "--rank", "2", "-o", "x.npz"], "must hold a matrix, got an array of shape ()"),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--mask", "number.npy"],
            "must hold a matrix, got an array",
        ),
        (["blocks.npz", "--rank", "2", "-o", "x.npz"], "got data of shape (1, 1, 0)"),
        (["rows.mtx", "--rank", "2", "-o", "x.npz"], "fits of a 1000000000 x 1000000000 matrix need 200.0 GB"),
    ],
)
def test_errors_are_sentences(tmp_path, matrix_file, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.npz").write_text("Dear reader")
    (tmp_path / "weights.npz").write_bytes(matrix_file.read_bytes())
    (tmp_path / "letter.txt").write_text("Dear reader")
    np.save(tmp_path / "number.npy", 3.0)
    parts = {"data": np.ones((1, 1, 0)), "indices": [0], "indptr": [0, 1], "shape": (1, 0)}
    np.savez(tmp_path / "blocks.npz", format="bsr", **parts)
    header = "%%MatrixMarket matrix coordinate real symmetric"
    (tmp_path / "rows.mtx").write_text(f"{header}\n1000000000 1000000000 1\n1 1 1\n")
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 16 * 10**9)
    code, _, err = symrelu(monkeypatch, capsys, "fit", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "x.npz").exists()


def test_a_failed_fit_keeps_the_old_output(tmp_path, matrix_file, monkeypatch, capsys):
    output = tmp_path / "fit.npz"
    output.write_bytes(b"precious")
    code, _, _ = symrelu(monkeypatch, capsys, "fit", matrix_file, "--rank", 99, "-o", output)
    assert code == 2
    assert output.read_bytes() == b"precious"


def test_names_with_brackets_are_printed_as_they_are(tmp_path, matrix_file, monkeypatch, capsys):
    output = tmp_path / "a[b]c[/d].npz".replace("/", "")
    code, out, _ = symrelu(monkeypatch, capsys, "fit", matrix_file, "--rank", 2, "-o", output, "--max-iter", 1)
    assert code == 0
    assert "[b]" in out.replace("\n", "")
    assert Solution.load(output).n_iter == 1


NAMES = {  # and what the terminal gets to see of them
    "a$_{$b.npz": "a$_{$b.npz",
    "unclosed $.npz": "unclosed $.npz",
    ":smile:.npz": ":smile:.npz",
    "[red]a[/].npz".replace("/", ""): "[red]a[].npz",
    "\x1b]0;title\x07\x1b[31m.npz": r"\x1b]0;title\x07\x1b[31m.npz",
    "two\nlines\r.npz": r"two\nlines\r.npz",
    "\u202eright to left.npz": r"\u202eright to left.npz",
    "back\\slash\\[b].npz": "back\\slash\\[b].npz",
    "\N{GRINNING FACE}.npz": "\N{GRINNING FACE}.npz",
    os.fsdecode(b"\xff.npz"): r"\udcff.npz",
}


@pytest.mark.parametrize("name", NAMES, ids=NAMES.values())
def test_names_reach_terminal_and_picture_as_they_are(tmp_path, matrix_file, monkeypatch, capsys, name):
    """issue 11.13: they are neither markup, nor emoji, nor formulas, nor commands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(matrix_file.read_bytes())
    output = f"out {name}"
    fit = ("fit", name, "--rank", 2, "-o", output, "--max-iter", 1)
    code, out, err = symrelu(monkeypatch, capsys, *fit, "--plot", "p.png")
    assert (code, err) == (0, "")
    assert f"out {NAMES[name]}" in out.replace("\n" + " " * 20, "")
    assert (tmp_path / "p.png").read_bytes()[:4] == PNG
    (tmp_path / name).unlink()
    code, _, err = symrelu(monkeypatch, capsys, *fit)
    assert (code, err) == (2, f"Error: There is no file {NAMES[name]}.\n")


@pytest.mark.parametrize("name", NAMES, ids=NAMES.values())
def test_names_in_the_progress_bar(monkeypatch, name):
    terminal = streams.StringIO()
    console = Console(file=terminal, force_terminal=True, width=200, color_system=None, emoji=False)
    monkeypatch.setattr(screen, "console", console)
    with screen.fit_progress(name, 1):
        pass
    assert NAMES[name] in terminal.getvalue()


def test_warnings_are_sentences(tmp_path, matrix_file, monkeypatch, capsys):
    def fail(*arguments, **named):
        raise OSError("the disk is full")

    monkeypatch.setattr("symrelu.fit.checkpoint.write_atomically", fail)
    fit = ("fit", matrix_file, "-r", 2, "-o", tmp_path / "o.npz", "--checkpoint", tmp_path / "a\x1b[31m")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = symrelu(monkeypatch, capsys, *fit, "--max-iter", 1)
    assert code == 0
    assert err.startswith("Warning: The checkpoint ")
    assert r"a\x1b[31m could not be written: the disk is full. The fit goes on" in err


def test_plot_without_matplotlib_is_refused_before_the_fit(tmp_path, matrix_file, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = symrelu(
        monkeypatch, capsys, "fit", matrix_file, "--rank", 2, "-o", tmp_path / "o.npz", "--plot", "p.png"
    )
    assert code == 2
    assert "pip install symrelu[plot]" in err
    assert not (tmp_path / "o.npz").exists()


def test_interrupt_before_the_first_evaluation(tmp_path, matrix_file, monkeypatch, capsys):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.fit, "decompose", interrupted)
    code, _, err = symrelu(monkeypatch, capsys, "fit", matrix_file, "--rank", 2, "-o", tmp_path / "o.npz")
    assert code == 130
    assert "nothing was written" in err


def test_help_names_the_commands(monkeypatch, capsys):
    code, out, _ = symrelu(monkeypatch, capsys, "--help")
    assert code == 0
    assert "demo" in out
    assert "fit" in out


def test_ctrl_c_keeps_the_best_factor(tmp_path):
    M, _ = make_relu_gram(50, 3, shift=0.1, random_state=0)
    np.save(tmp_path / "m.npy", M)
    options = ["--rank=5", "-o", "fit.npz", "--max-iter=100000000", "--tol=0", "--gtol=0", "--ftol=0"]
    program = """
import signal
from symrelu import cli, decompose

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without it

def interrupted(*arguments, callback, **settings):
    def press_ctrl_c(progress):
        callback(progress)
        if progress.record.iteration == 7:
            signal.raise_signal(signal.SIGINT)
    return decompose(*arguments, callback=press_ctrl_c, **settings)

cli.fit.decompose = interrupted
cli.main()
"""
    command = [sys.executable, "-c", program, "fit", "m.npy", *options]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 130, result.stderr
    assert "the fit was interrupted" in result.stdout
    solution = Solution.load(tmp_path / "fit.npz")
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter == 7


def test_demo(tmp_path, monkeypatch, capsys):
    from symrelu.cli import demo

    monkeypatch.setattr(demo, "ITERATIONS", 15)
    code, out, _ = symrelu(monkeypatch, capsys, "demo", "--output", tmp_path / "demo.png")
    assert code == 0
    assert "truncated eigendecomposition" in out
    assert "numbers for each positive pair" in out
    assert (tmp_path / "demo.png").read_bytes()[:4] == PNG


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("SYMRELU_DATA", raising=False)


@pytest.fixture
def short_fits(monkeypatch):
    """Let the experiments make five iterations."""
    for module in (real, synthetic):
        monkeypatch.setattr(module, "LIMITS", replace(module.LIMITS, max_iter=5))


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
    assert f"Computed anew: {cell}: it cannot be read" in err


def test_reproduce_synthetic_quick(tmp_path, monkeypatch, capsys, short_fits):
    arguments = ["reproduce", "synthetic", "--quick", "-o", tmp_path, "--jobs", 2]
    code, out, _ = symrelu(monkeypatch, capsys, *arguments)
    assert code == 0
    assert "45 of 45 fits are stored" in out
    assert "Relative error, step 10, uniform random start" in out
    assert (tmp_path / "synthetic_step10_uniform_error.csv").exists()
    assert (tmp_path / "synthetic_step1_uniform_iterations.csv").exists()


@pytest.mark.parametrize("width", [40, 80, 300])
def test_no_terminal_cuts_a_number(tmp_path, monkeypatch, capsys, short_fits, width):
    monkeypatch.setattr(screen.console, "width", width, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = symrelu(monkeypatch, capsys, "reproduce", "synthetic", "--quick", "-o", tmp_path)
    assert code == 0
    assert "…" not in out
    lines = (tmp_path / "synthetic_step10_uniform_error.csv").read_text(encoding="utf-8").splitlines()
    for line in csv.DictReader(lines):
        mantissa, exponent = f"{float(line['mean']):.2e}".split("e")
        assert f"{mantissa}e{int(exponent)}" in out


def test_letters_that_the_terminal_does_not_know(tmp_path, no_data):
    program = """
from dataclasses import replace
from symrelu import cli
from symrelu.experiments import real
real.LIMITS = replace(real.LIMITS, max_iter=1)
cli.main()
"""
    command = [sys.executable, "-c", program, "reproduce", "real", "-o", str(tmp_path)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "SYMRELU_DATA": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "10 of 10 fits are stored" in result.stdout


def test_a_run_without_a_terminal_says_how_far_it_is(tmp_path, monkeypatch, capsys, no_data, short_fits):
    monkeypatch.setattr(screen.CellProgress, "SECONDS_BETWEEN_LINES", 0.0)
    code, _, err = symrelu(monkeypatch, capsys, "reproduce", "real", "-o", tmp_path)
    assert code == 0
    assert re.search(r"\d/10 fits, \d+% of the work, left 0:00:\d\d", err)


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
    assert str(refused) == "--quick has its own choice of --highest, --seeds: give one or the other."
    assert one_command("--highest", 0).exit_code == 2


def test_an_option_must_be_declared():
    def make(quick: Quick = False, colour: str = "red"):
        raise AssertionError

    with pytest.raises(TypeError, match=r"parameter colour of make must .* an Option, got <class 'str'>"):
        cli.reproduce.add_command(typer.Typer(), "name", make)


def test_two_experiments_cannot_have_one_name():
    with pytest.raises(ValueError, match=r"symrelu.experiments.real has 'real' already"):
        register_experiment("real")(make_ranks)
    assert REGISTERED["real"] is real.make_real


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


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_the_command_line_says_what_it_needs(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "symrelu.cli")
    with pytest.raises(SystemExit, match=r"needs typer and rich: pip install 'symrelu\[cli\]'\."):
        importlib.import_module("symrelu.cli")


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
        (["real", "--quick", "--seeds", "3"], "--quick has its own choice of --seeds"),
        (["synthetic", "--quick", "--beside", "3"], "--quick has its own choice of --beside"),
        (["synthetic", "-o", "file"], "The output folder file is a file. Name a folder."),
        (["synthetic", "-o", "file/below"], "The output folder file/below cannot be made: Not a directory."),
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
def test_ctrl_c_keeps_the_cells_that_ended(tmp_path, jobs):
    """Stopped after the first cell, the run says how to go on, and goes on."""
    program = """
import os, signal, sys, time
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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without it
    synthetic.QUICK_COLUMNS = synthetic.paper.SYNTHETIC_COLUMNS[:1]
    synthetic.LIMITS = replace(synthetic.LIMITS, max_iter=200)
    if sys.argv.pop() == "stop":
        Thread(target=press_ctrl_c, daemon=True).start()
    cli.main()
"""
    script = tmp_path / "program.py"
    script.write_text(program)
    options = ["reproduce", "synthetic", "--quick", "-o", "out", f"--jobs={jobs}"]
    command = [sys.executable, str(script), *options]
    result = subprocess.run(
        [*command, "stop"], cwd=tmp_path, capture_output=True, text=True, start_new_session=True, timeout=120
    )
    assert result.returncode == 130, result.stderr
    assert "the same command goes on from there." in result.stderr
    assert "Traceback" not in result.stderr
    stored = len(list((tmp_path / "out" / "cells").glob("*.json")))
    assert 1 <= stored < 15
    assert not list((tmp_path / "out" / "cells").glob(".symrelu*"))
    result = subprocess.run([*command, "go on"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert f"{stored} of 15 fits were stored by an earlier run" in result.stderr
    assert "15 of 15 fits are stored" in result.stdout


def test_a_checkpointed_fit_goes_on(tmp_path, matrix_file, monkeypatch, capsys):
    output, checkpoint = tmp_path / "fit.npz", tmp_path / "fit.ckpt"
    fit = ("fit", matrix_file, "--rank", 2, "-o", output, "--seed", 1, "--checkpoint", checkpoint)
    code, _, _ = symrelu(monkeypatch, capsys, *fit, "--max-iter", 3)
    assert code == 0
    code, _, _ = symrelu(monkeypatch, capsys, *fit, "--max-iter", 8)
    assert code == 0
    expected = decompose(sparse.load_npz(matrix_file), 2, random_state=1, max_iter=8)
    np.testing.assert_array_equal(Solution.load(output).U, expected.U)
    code, _, err = symrelu(monkeypatch, capsys, *fit, "--alpha", 1)
    assert code == 2
    assert "it was written with alpha=0.0, this fit has alpha=1.0" in " ".join(err.split())


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e200])
def test_what_stands_at_unknown_entries_does_not_matter(value, tmp_path, monkeypatch, capsys):  # issue 11.1
    factor = np.random.default_rng(0).standard_normal((15, 3))
    M, mask = np.maximum(0, factor @ factor.T), np.zeros((15, 15), bool)
    mask[0, 3] = mask[3, 0] = True
    np.save(tmp_path / "mask.npy", mask)
    told = []
    for name, unknown in (("plain", 0.0), ("odd", value)):
        np.save(tmp_path / f"{name}.npy", np.where(mask | np.eye(15, dtype=bool), unknown, M))
        files = [tmp_path / f"{name}.npy", "--mask", tmp_path / "mask.npy", "-o", tmp_path / f"{name}.npz"]
        settings = ["--rank", 2, "--diagonal", "ignore", "--seed", 0, "--held-out", 0.1]
        code, output, _ = symrelu(monkeypatch, capsys, "fit", *files, *settings)
        assert code == 0
        told.append([line for line in output.splitlines() if "per pair" in line or "error" in line])
    assert len(told[0]) >= 4
    assert told[0] == told[1]
    factors = [Solution.load(tmp_path / f"{name}.npz").U for name in ("plain", "odd")]
    assert np.array_equal(*factors)
