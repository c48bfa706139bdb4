"""The experiment with negative columns."""

from dataclasses import replace

import pytest
from small_cells import CELL

from symrelu import metrics
from symrelu.experiments import CellResult, Signed, signed
from symrelu.experiments.cases import DigitsGraph, PublishedGraph, SampleGraph


def test_signed_judges_every_fit_by_hidden_pairs_too():
    cases = (SampleGraph("ORL", "ORL", 100, "0" * 64), PublishedGraph("cora", 2708))
    experiment = Signed(cases, seeds=2)
    cells = experiment.cells()
    assert len(set(cells)) == len(cells) == 3 * 3 * 2 * 2 + 3 * 4 * 2
    shown = [cell for cell in cells if not cell.method.held_out]
    assert [replace(cell.method, held_out=0.1) for cell in shown] == [
        cell.method for cell in cells if cell.method.held_out
    ]
    assert {cell.case.name: cell.rank for cell in cells if not cell.case.random} == {
        "ORL": 40,
        "digits": 10,
        "cora": 32,
    }
    assert Signed(quick=True).title == "The signed model (quick version)"


def test_signed_tables_put_numbers_per_pair_and_hidden_pairs_beside_each_error():
    experiment = Signed(quick=True)
    result = CellResult.from_solution(CELL.fit())
    results = {cell: replace(result, relative_error=k / 64) for k, cell in enumerate(experiment.cells())}
    matrices, graphs, *evaluations = experiment.tables(results)
    assert matrices.columns[0] == graphs.columns[0] == "numbers per pair"
    assert graphs.columns[1::2] == tuple(model.name for model in signed.GRAPH_MODELS)
    (row,) = graphs.rows
    assert row[0] == "digits, n=1797, r=10"
    assert row[1][0].value == pytest.approx(metrics.parameters_per_pair(DigitsGraph().load(0), 10))
    assert [entry.value * 64 for entry in row[1][1:]] == list(range(18, 26))
    assert all(entry.value == result.n_evaluations for table in evaluations for entry in table.rows[0][1])
    assert experiment.figures(results) == []
