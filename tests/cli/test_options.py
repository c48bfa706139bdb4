"""Options of the command line."""

from pathlib import Path

import numpy as np
import pytest
from command_line import set_width, symrelu
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu import AAPB, LBFGS, PALM, Checkpoint, Eigen, Solution, cli, decompose
from symrelu.cli.commands import load_command


@pytest.mark.parametrize("command", ["fit", "embed", "links", "cluster", "neighbors"])
def test_an_infinite_time_is_no_limit(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "graph.csv").write_text("a,b\nb,c\nc,a\nc,d\nd,e\n")
    few = {"fit": ["-r", 2, "--checkpoint", tmp_path / "c.ckpt"], "cluster": ["--clusters", 2]}
    arguments = [tmp_path / "graph.csv", "-o", tmp_path / "out.csv", "--max-time", "inf", *few.get(command, [])]
    assert symrelu(monkeypatch, capsys, command, *arguments)[0] == 0


def test_every_option_reaches_decompose(tmp_path, matrix_file, monkeypatch, capsys):
    mask = tmp_path / "mask.mtx"
    io.mmwrite(mask, sparse.coo_array(np.eye(60)[::-1]))  # MatrixMarket stores 0 and 1
    received = {}

    def spy(M, rank, **settings):
        received.update(settings, M=M, rank=rank)
        return decompose(M, rank, max_iter=1, random_state=0)

    monkeypatch.setattr(cli.fit, "decompose", spy)
    options = (
        "--rank 4 --n-negative 1 --diagonal ignore --zero-weight 0.5 --support at_least --alpha 0.1 "
        "--init spectral --solver aapb --step-size 3 --momentum 0.5 --safeguard --tol 1e-3 --gtol 1e-5 "
        "--ftol 1e-7 --max-iter 9 --max-time 8 --seed 2 --backend sparse"
    )
    arguments = ["--mask", mask, "--checkpoint", tmp_path / "c.npz", *options.split()]
    code, _, _ = symrelu(monkeypatch, capsys, "fit", matrix_file, "-o", tmp_path / "o.npz", *arguments)
    assert code == 0
    assert received.pop("M").mask.dtype == bool
    received.pop("callback")
    assert received == {
        "rank": 4,
        "solver": AAPB(step_size=3.0, momentum=0.5, safeguard=True),
        "n_negative": 1,
        "diagonal": "ignore",
        "zero_weight": 0.5,
        "support": "at_least",
        "alpha": 0.1,
        "init": "spectral",
        "tol": 1e-3,
        "gtol": 1e-5,
        "ftol": 1e-7,
        "max_iter": 9,
        "max_time": 8.0,
        "random_state": 2,
        "backend": "sparse",
        "precision": "auto",
        "client": None,
        "checkpoint": Checkpoint(tmp_path / "c.npz"),
        "verbose": 0,
    }


FITTING = ("embed", "cluster", "links", "neighbors", "evaluate", "rank", "fit", "report")


@pytest.mark.parametrize("command", FITTING)
def test_commands_are_reproducible_by_default(command, monkeypatch, capsys):
    """Without --seed, each call gave another result."""
    (seed,) = (option for option in load_command(command).params if option.name == "random_state")
    assert seed.default == 0
    set_width(monkeypatch, 120)
    _, out, _ = symrelu(monkeypatch, capsys, command, "--help")
    (line,) = (line for line in out.splitlines() if line.split()[1:2] == ["--seed"])
    assert "[default: 0]" in line


def test_two_calls_without_a_seed_have_the_same_result(matrix_file, call):
    for output in ("a.csv", "b.csv"):
        assert call("embed", matrix_file, "--components", 2, "--max-iter", 3, "-o", output)[0] == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_a_checkpoint_of_a_fit_without_a_seed_is_resumed(matrix_file, call):
    fit = ("fit", matrix_file, "--rank", 2, "-o", "fit.npz", "--checkpoint", "fit.ckpt")
    assert call(*fit, "--max-iter", 3)[0] == 0
    assert call("resume", "fit.ckpt", "--max-iter", 6)[0] == 0
    expected = decompose(sparse.load_npz(matrix_file), 2, random_state=0, max_iter=6)
    assert_array_equal(Solution.load("fit.npz").U, expected.U)


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
