"""Progress and tables of experiments, run as a user runs them."""

import csv
import re

import pytest
from command_line import set_width, symrelu

from symrelu.cli import monitor


@pytest.mark.parametrize("width", [40, 80, 300])
def test_no_terminal_cuts_a_number(tmp_path, monkeypatch, capsys, short_fits, width):
    set_width(monkeypatch, width)
    code, out, _ = symrelu(monkeypatch, capsys, "reproduce", "synthetic", "--quick", "-o", tmp_path)
    assert code == 0
    assert "…" not in out
    lines = (tmp_path / "synthetic_step10_uniform_error.csv").read_text(encoding="utf-8").splitlines()
    for line in csv.DictReader(lines):
        mantissa, exponent = f"{float(line['mean']):.2e}".split("e")
        assert f"{mantissa}e{int(exponent)}" in out


def test_a_run_without_a_terminal_says_how_far_it_is(tmp_path, monkeypatch, capsys, no_data, short_fits):
    monkeypatch.setattr(monitor.CellProgress, "SECONDS_BETWEEN_LINES", 0.0)
    code, _, err = symrelu(monkeypatch, capsys, "reproduce", "real", "-o", tmp_path)
    assert code == 0
    assert re.search(r"\d/10 fits, \d+% of the work, 0:00:\d\d left", err)
