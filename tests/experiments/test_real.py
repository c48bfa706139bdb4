"""The experiment on real data: its cells, its tables, its data files."""

import hashlib
from dataclasses import replace

import pytest
from small_cells import CELL

from symrelu import metrics
from symrelu.datasets import sources
from symrelu.experiments import CellResult, Real, Synthetic, find_data_sets, paper, real
from symrelu.experiments.cases import DigitsGraph, SampleGraph
from symrelu.experiments.methods import aapb


def test_real_has_the_papers_cells():
    cases = tuple(SampleGraph(key, key, 100, "0" * 64) for key in paper.REAL_RANK)
    experiment = Real(cases, seeds=2)
    assert len(set(experiment.cells())) == 7 * 10 * 2
    assert all(cell.limits.max_iter == 100 for cell in experiment.cells())
    printed = {
        (case.key, name): real.printed_value(case, method)
        for case in cases
        for name, method in real.PAPER_METHODS.items()
    }
    assert printed["PIE", "AAPB"] == 0.30
    assert printed["TDT2", "SymANLS"] == 0.48
    assert real.printed_value(cases[0], aapb(1.0)) is None
    assert real.printed_value(real.DIGITS, aapb(10.0)) is None


def test_missing_data_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SYMRELU_DATA", raising=False)
    cases, missing = find_data_sets()
    assert cases == ()
    assert len(missing) == 6
    assert "set the environment variable SYMRELU_DATA" in missing[0]
    _, (sentence,) = find_data_sets(str(tmp_path), ["PIE"])
    assert "PIE.npz" in sentence
    assert "published at http" in sentence
    assert f"Not run. {sentence}" in Real(missing=(sentence,)).introduction()


def test_a_reconstruction_is_called_one_wherever_it_is_printed(tmp_path, monkeypatch):
    (tmp_path / "COIL100_7178.npz").write_bytes(b"images")
    (reconstruction,) = (s for s in sources.SAMPLES["COIL100"] if s.sha256)
    known = replace(reconstruction, sha256=hashlib.sha256(b"images").hexdigest())
    monkeypatch.setitem(sources.SAMPLES, "COIL100", (sources.SAMPLES["COIL100"][0], known))
    (case,), _ = find_data_sets(str(tmp_path), ["COIL100"])
    experiment = Real((case,))
    result = CellResult.from_solution(CELL.fit())
    results = dict.fromkeys(experiment.cells(), result)
    for table in experiment.tables(results):
        assert "reconstruction" in table.rows[0][0]
    assert all("reconstruction" in cell.case.name for cell in results if cell.case == case)
    (figure,) = experiment.figures(results)
    assert "reconstruction" in figure.drawing.axes[0].get_title()


def test_a_wrong_data_file_is_named_before_the_work(tmp_path):
    (tmp_path / "ORL.npz").write_bytes(b"something else")
    (tmp_path / "PIE.npz").mkdir()
    cases, missing = find_data_sets(str(tmp_path), ["ORL", "PIE"])
    assert cases == ()
    assert "must have the SHA-256" in missing[0]
    assert "PIE.npz" in missing[1]


def test_titles_say_what_is_left_out():
    assert "7 momenta on 8 problems" in Synthetic().title
    assert "4 momenta on 3 problems (quick version)" in Synthetic(quick=True).title
    assert "6 of the paper's 6 sets are not in it" in Real().title
    assert "30 s" in " ".join(Synthetic().introduction())


def test_the_methods_rank_as_in_the_paper():
    few = replace(real.LIMITS, max_iter=40)
    runs = {cell.method.name: replace(cell, limits=few).fit() for cell in Real().cells()}
    M = DigitsGraph().load(0)
    error = {name: solution.half_squared_error for name, solution in runs.items()}
    aapb_ = runs["AAPB, step 10"]
    assert error["AAPB, step 10"] < error["APB, step 10"]
    assert error["APB, step 10"] < error["eigenvalue bound"] <= min(error["SymANLS"], error["SymHALS"])
    assert aapb_.relative_error == pytest.approx(metrics.relative_error(M, aapb_.U), rel=1e-9)
