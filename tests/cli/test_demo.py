"""What the demo claims is computed."""

import pytest
from command_line import symrelu
from numpy.testing import assert_allclose

from symrelu import metrics
from symrelu.cli import demo


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "ITERATIONS", 40)
        yield demo.run_demo()


def test_models_beat_the_eigendecomposition_also_on_held_out_pairs(result):
    eigen, paper, signed, shrunk = result.rows
    assert signed.relative_error < shrunk.relative_error < paper.relative_error < eigen.relative_error
    assert shrunk.held_out_error < signed.held_out_error < paper.held_out_error < eigen.held_out_error


def test_rows_are_true(result):
    name, solution = next(iter(result.solutions.items()))
    assert result.rows[1].name == name
    assert_allclose(result.rows[1].relative_error, metrics.relative_error(result.M, solution.U))


PNG = b"\x89PNG"


def test_demo(tmp_path, monkeypatch, capsys):
    from symrelu.cli import demo

    monkeypatch.setattr(demo, "ITERATIONS", 15)
    code, out, _ = symrelu(monkeypatch, capsys, "demo", "--output", tmp_path / "demo.png")
    assert code == 0
    assert "truncated eigendecomposition" in out
    assert "parameters for each positive pair" in out
    assert (tmp_path / "demo.png").read_bytes()[:4] == PNG
