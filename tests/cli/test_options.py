"""Options of the command line."""

import numpy as np
import pytest
from command_line import symrelu
from scipy import io, sparse

from symrelu import AAPB, LBFGS, PALM, Checkpoint, Eigen, Solution, cli, decompose


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
        "checkpoint": Checkpoint(tmp_path / "c.npz"),
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
