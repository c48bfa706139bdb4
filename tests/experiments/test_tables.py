"""Tables of results in all formats."""

import csv
import io
import math
from dataclasses import replace

import pytest
from small_cells import CELL

from symrelu import Status
from symrelu.experiments import Cell, CellResult, real
from symrelu.experiments.cases import DigitsGraph
from symrelu.experiments.methods import aapb
from symrelu.experiments.tables import Entry, Table, fixed, scientific

TABLE = Table(
    "example",
    "Error & more",
    "p",
    ("r̄=10, 50 %", "a|b"),
    (
        ("0", (Entry(0.00241, 1e-5, 5, 0, 0.0024), None)),
        ("x_1", (Entry(0.5, math.nan, 1, 1), Entry(123.4))),
    ),
    note="Note.",
)


def test_markdown():
    assert TABLE.to_markdown().splitlines() == [
        "### Error & more",
        "",
        r"| p | r̄=10, 50 % | a\|b |",
        "|---|---:|---:|",
        "| 0 | 2.41e-3 (2.4e-3) | n/a |",
        "| x_1 | 5.00e-1* | 1.23e2 |",
        "",
        "Note. One seed. *: a fit ended worse than it began; its best factor is used. In brackets: the paper.",
    ]


def test_rst():
    assert TABLE.to_rst().splitlines() == [
        ".. list-table:: Error & more",
        "   :name: example",
        "   :header-rows: 1",
        "",
        "   * - p",
        "     - r̄=10, 50 %",
        "     - a|b",
        "   * - 0",
        "     - 2.41e-3 (2.4e-3)",
        "     - n/a",
        "   * - x_1",
        r"     - 5.00e-1\*",
        "     - 1.23e2",
        "",
        r"Note. One seed. \*: a fit ended worse than it began; its best factor is used. "
        "In brackets: the paper.",
    ]


def test_latex():
    text = TABLE.to_latex()
    assert r"\caption{Error \& more. Note. One seed." in text
    assert r"p & $\bar{r}$=10, 50 \% & a|b \\" in text
    assert r"x\_1 & 5.00e-1* & 1.23e2 \\" in text
    assert text.count("{") == text.count("}")


def test_csv_has_full_precision():
    lines = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert [line["row"] for line in lines] == ["0", "x_1", "x_1"]
    assert float(lines[0]["mean"]) == 0.00241
    assert float(lines[0]["standard deviation"]) == 1e-5
    assert lines[0]["paper"] == "0.0024"
    assert lines[1]["standard deviation"] == lines[1]["paper"] == ""


def test_entries_are_means_over_seeds():
    result = CellResult.from_solution(CELL.fit())
    runs = [replace(result, relative_error=error) for error in (0.1, 0.3)]
    entry = Entry.of(runs, lambda result: result.relative_error, 0.2)
    assert entry == Entry(0.2, math.sqrt(0.02), 2, 0, 0.2)
    lost = replace(result, status=Status.NON_FINITE.name)
    assert Entry.of([result, lost], lambda result: 1.0).ran_away == 1
    assert Entry.of([], lambda result: 1.0) is None


def test_a_fit_that_ends_worse_than_it_began_has_a_star():
    """Step 10 from a uniform start on this graph: the best factor is an early one, the last error 1e90."""
    cell = Cell(DigitsGraph(), real.DIGITS_RANK, aapb(10.0, init="uniform"), 0, real.LIMITS)
    result = CellResult.from_solution(cell.fit())
    assert result.status == "MAX_ITER"
    assert result.curves["relative_error"][-1] > 1e3
    assert result.ran_away
    entry = Entry.of([result], lambda result: result.relative_error)
    table = replace(TABLE, rows=(("0", (entry, None)),))
    assert table.text(entry).endswith("*")
    assert "ended worse than it began" in table.legend
    assert not CellResult.from_solution(CELL.fit()).ran_away


def test_entries_with_too_few_seeds_are_marked():
    table = replace(TABLE, seeds=2, rows=(("0", (Entry(0.5, 0.1, 2), Entry(0.5, 0.1, 1))),))
    assert [table.text(entry) for entry in table.rows[0][1]] == ["5.00e-1", "5.00e-1†"]
    assert table.legend == "Note. Mean over 2 seeds. †: fits are missing."


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [(scientific(2), 9.999e-5, "1.00e-4"), (scientific(1), 0.16, "1.6e-1"), (fixed(2), 0.145, "0.14")],
)
def test_formats(form, value, text):
    assert form(value) == text
