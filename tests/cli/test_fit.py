"""The command ``fit``, run as a user runs it."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from command_line import symrelu
from scipy import sparse

from symrelu import Solution, Status, cli, decompose, metrics
from symrelu.datasets import make_relu_gram
from symrelu.fit import levels, memory_check
from symrelu.graphs import self_tuning_graph

PNG = b"\x89PNG"


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
    assert "the relative error reached tol" in out


def test_a_fit_that_stops_before_its_matrix_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(levels, "FEWEST_ITEMS", 60)
    path, checkpoint = tmp_path / "graph.npz", tmp_path / "fit.ckpt"
    sparse.save_npz(path, self_tuning_graph(np.random.default_rng(0).random((300, 2)), 4))
    options = ["-r", 3, "--init", "multilevel", "--max-time", 1e-9, "--checkpoint", checkpoint]
    first = ["fit", path, *options, "-o", tmp_path / "fit.npz"]
    code, out, _ = symrelu(monkeypatch, capsys, *first)
    assert code == 0
    shown = " ".join(out.split())
    assert "--max-time was reached at level" in shown
    assert "of the multilevel start, before M itself was fitted" in shown
    assert (
        "it is a guess. Give it more time. It can be resumed from its checkpoint with a larger --max-time"
        in shown
    )
    assert shown.endswith(f"Next: symrelu resume {checkpoint} --max-time 2")
    assert Solution.load(tmp_path / "fit.npz").level > 0
    code, out, _ = symrelu(monkeypatch, capsys, "resume", checkpoint, "--max-time", 60, "--json")
    assert code == 0
    assert json.loads(out)["level"] == 0


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(["--max-time", 1e-9], "0 (1 evaluation)"), (["--max-iter", 1], "1 (2 evaluations)")],
)
def test_evaluations_are_counted(limit, shown, matrix_file, call):
    code, out, _ = call("fit", matrix_file, "-r", 2, *limit, "-o", "o.npz")
    assert code == 0
    assert f" iterations {shown} " in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "dtype", "backend"),
    [
        ([], "float64", "sparse"),
        (["--backend", "active", "--n-negative", 1], "float64", "active"),
        (["--backend", "dense"], "float32", "dense, float32"),
    ],
)
def test_the_backend_is_named(options, dtype, backend, tmp_path, matrix_file, call):
    sparse.save_npz(tmp_path / "m.npz", sparse.load_npz(matrix_file).astype(dtype))
    arguments = ["fit", "m.npz", "-r", 3, "--max-iter", 2, "-o", "o.npz", *options]
    code, out, _ = call(*arguments)
    assert code == 0
    assert f" backend {backend} " in " ".join(out.split())
    found = json.loads(call(*arguments, "--json")[1])
    assert (found["backend"], found["precision"], found["dtype"]) == (backend.split(",")[0], "auto", dtype)


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


def test_a_dry_run_says_what_a_fit_costs(tmp_path, matrix_file, script):
    done = script("fit", matrix_file, "--rank", 3, "--backend", "active", "--max-iter", 40, "--dry-run")
    assert done.code == 0, done.err
    shown = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "model rank 3, LBFGS, backend active" in " ".join(shown)
    assert any(line.startswith("memory ") and "in addition to M" in line for line in shown)
    assert any(line.startswith("a fit of 20 to 121 evaluations ") for line in shown)
    assert "fits into memory yes" in shown
    assert list(tmp_path.iterdir()) == [matrix_file]


def test_a_dry_run_as_json(matrix_file, monkeypatch, capsys):
    code, out, _ = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 3, "--dry-run", "--json")
    figures = json.loads(out)
    assert code == 0
    expected = {"command": "fit", "dry_run": True, "nodes": 60, "rank": 3, "backend": "sparse", "fits": True}
    assert {name: figures[name] for name in expected} == expected
    assert figures["memory"]["total"] >= figures["memory"]["factors"] == 27 * 60 * 3 * 8
    low, high = figures["seconds_per_evaluation"]
    assert 0 < low == high
    assert figures["fit_seconds"] == pytest.approx([20 * low, 400 * high])


def test_what_does_not_fit_into_memory(matrix_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    code, out, _ = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 3, "--dry-run", "--json")
    assert code == 2
    assert json.loads(out)["fits"] is False
    assert "--backend dask on a cluster" in json.loads(out)["refusal"]
    output = tmp_path / "fit.npz"
    code, _, error = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 3, "-o", output)
    assert code == 2
    assert "A fit of 60 items with rank 3 needs" in error
    assert "1 kB are available" in error
    assert "--backend dask on a cluster" in error
    assert not output.exists()


def test_a_fit_must_write_something(matrix_file, monkeypatch, capsys):
    code, _, error = symrelu(monkeypatch, capsys, "fit", matrix_file, "-r", 3)
    assert code == 2
    assert "pass --output fit.npz, or --dry-run" in error


@pytest.mark.parametrize(("loops", "expected"), [(0.0, "ignore"), (1.0, "fit")])
def test_the_diagonal_may_be_left_to_the_data(loops, expected, tmp_path, monkeypatch, capsys):
    ring = np.roll(np.eye(30), 1, axis=0) + np.roll(np.eye(30), -1, axis=0) + loops * np.eye(30)
    np.save(tmp_path / "m.npy", ring)
    options = ["-r", 2, "--diagonal", "auto", "--max-iter", 5, "--held-out", 0.1, "--seed", 0]
    code, _, _ = symrelu(monkeypatch, capsys, "fit", tmp_path / "m.npy", "-o", tmp_path / "o.npz", *options)
    assert code == 0
    assert Solution.load(tmp_path / "o.npz").diagonal == expected


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
    assert "held-out pairs" not in plain
    assert "add --held-out 0.1" in signed
    assert f"{metrics.parameters_per_pair(sparse.load_npz(matrix_file), 4):.3g}" in signed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npz", "--rank", "2", "-o", "x.npz"], "The file missing.npz does not exist"),
        (["matrix.npz", "--rank", "0", "-o", "x.npz"], "rank must be an integer of at least 1"),
        (["matrix.npz", "--rank", "2", "-o", "no/x.npz"], "/no does not exist. Create it"),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--plot", "no/x.png"], "/no does not exist. Create it"),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--solver", "aapb", "--momentum", "2"],
            "AAPB(momentum=...) must be in [0, 1]",
        ),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--step-size", "10"],
            "--step-size is not an option of the solver 'lbfgs'. Leave it out, or pass --solver aapb.",
        ),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--momentum", "0.5"],
            "Leave it out, or pass --solver aapb, eigen or palm.",
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
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--n-negative", "few"], "--n-negative must be 'auto' or"),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.npz", "--n-negative", "2"],
            "--n-negative must be an integer from",
        ),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--precision", "fast"], "Leave --precision out, or pass"),
        (["matrix.npz", "--rank", "2", "-o", "matrix.npz"], "must be different files"),
        (["matrix.npz", "--rank", "2", "-o", "x.npz", "--plot", "./x.npz"], "must be different files"),
        (["matrix.npz", "--rank", "2", "-o", "x" * 300], "is longer than"),
        (
            ["matrix.npz", "--rank", "2", "-o", "x.xlsx"],
            "x.xlsx must end in .npz for the Solution, or in .csv, .tsv, .parquet or .json for a table, got",
        ),
        (["matrix.npz", "--rank", "2", "-o", "fit"], "fit must end in .npz"),
        (["letter.npz", "--rank", "2", "-o", "x.npz"], "letter.npz is not a readable npz file"),
        (["letter.docx", "--rank", "2", "-o", "x.npz"], "extension '.docx'"),
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
    (tmp_path / "letter.docx").write_text("Dear reader")
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


def test_warnings_are_sentences(tmp_path, matrix_file, monkeypatch, capsys):
    def fail(*arguments, **named):
        raise OSError("the disk is full")

    monkeypatch.setattr("symrelu.fit.checkpoint.write_atomically", fail)
    fit = ("fit", matrix_file, "-r", 2, "-o", tmp_path / "o.npz", "--checkpoint", tmp_path / "a\x1b[31m")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = symrelu(monkeypatch, capsys, *fit, "--max-iter", 1)
    assert code == 0
    assert "Warning: The checkpoint " in err
    assert r"a\x1b[31m could not be written: the disk is full. The fit continues" in err


def test_plot_without_matplotlib_is_refused_before_the_fit(tmp_path, matrix_file, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = symrelu(
        monkeypatch, capsys, "fit", matrix_file, "--rank", 2, "-o", tmp_path / "o.npz", "--plot", "p.png"
    )
    assert code == 2
    assert "pip install 'symrelu[plot]'" in err
    assert not (tmp_path / "o.npz").exists()


def test_interrupt_before_the_first_evaluation(tmp_path, matrix_file, monkeypatch, capsys):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.fit, "decompose", interrupted)
    code, _, err = symrelu(monkeypatch, capsys, "fit", matrix_file, "--rank", 2, "-o", tmp_path / "o.npz")
    assert code == 130
    assert err == "Interrupted: nothing was written.\n"


def test_an_interrupt_without_a_result_names_the_checkpoint(tmp_path, matrix_file, monkeypatch, capsys):
    checkpoint = tmp_path / "f.ckpt"
    call = (
        "fit",
        matrix_file,
        "--rank",
        2,
        "--max-iter",
        3,
        "-o",
        tmp_path / "o.npz",
        "--checkpoint",
        checkpoint,
    )
    assert symrelu(monkeypatch, capsys, *call)[0] == 0

    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.fit, "decompose", interrupted)
    code, _, err = symrelu(monkeypatch, capsys, *call)
    assert code == 130
    assert err.endswith(f"Interrupted: nothing was written.\nNext: symrelu resume {checkpoint}\n")


def test_ctrl_c_keeps_the_best_factor(tmp_path):
    M, _ = make_relu_gram(50, 3, shift=0.1, random_state=0)
    np.save(tmp_path / "m.npy", M)
    options = ["--rank=5", "-o", "fit.npz", "--max-iter=100000000", "--tol=0", "--gtol=0", "--ftol=0"]
    program = """
import signal
from symrelu import cli, decompose

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


def test_a_checkpointed_fit_goes_on(tmp_path, matrix_file, monkeypatch, capsys):
    output, checkpoint = tmp_path / "fit.npz", tmp_path / "fit.ckpt"
    fit = ("fit", matrix_file, "--rank", 2, "-o", output, "--seed", 1, "--checkpoint", checkpoint)
    code, _, err = symrelu(monkeypatch, capsys, *fit, "--max-iter", 3)
    assert (code, "resuming" in err) == (0, False)
    code, _, err = symrelu(monkeypatch, capsys, *fit, "--max-iter", 8)
    assert code == 0
    assert "Note: resuming the fit of" in err
    assert "fit.ckpt, at step 3" in err
    code, out, _ = symrelu(monkeypatch, capsys, *fit, "--max-iter", 8, "--json")
    assert json.loads(out)["advice"].startswith("The fit had ended before, so that no step was made.")
    expected = decompose(sparse.load_npz(matrix_file), 2, random_state=1, max_iter=8)
    np.testing.assert_array_equal(Solution.load(output).U, expected.U)
    code, _, err = symrelu(monkeypatch, capsys, *fit, "--alpha", 1)
    assert code == 2
    assert "it was written with --alpha 0.0, this fit has --alpha 1.0" in " ".join(err.split())


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
