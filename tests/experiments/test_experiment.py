"""A whole experiment writes everything."""

import csv
import io
import xml.etree.ElementTree as ElementTree

from small_cells import CELLS, Tiny

from symrelu.experiments import CellStore, reproduce, run_cells
from symrelu.experiments.experiment import cells_to_csv


def test_csv_of_cells(tmp_path):
    results = run_cells(CELLS, CellStore(tmp_path))
    lines = list(csv.DictReader(io.StringIO(cells_to_csv(results))))
    assert len(lines) == len(CELLS)
    assert lines[0]["method"] == "AAPB, step 10"
    assert float(lines[0]["relative_error"]) == results[CELLS[0]].relative_error
    assert float(lines[0]["half_squared_error"]) == results[CELLS[0]].relative_error ** 2 / 2


def test_reproduce_writes_everything(tmp_path):
    folder = tmp_path / "a" / "b"
    tables, written = reproduce(Tiny(), folder, command="symrelu reproduce <tiny>")
    assert {path.name for path in written} == {
        "index.html",
        "cells.csv",
        "tables.md",
        "tables.tex",
        "tiny.csv",
        "tiny.rst",
        "tiny.png",
        "tiny.svg",
    }
    assert tables[0].to_markdown() in (folder / "tables.md").read_text()
    assert (folder / "tiny.png").read_bytes()[:4] == b"\x89PNG"
    assert ElementTree.parse(folder / "tiny.svg").getroot().tag.endswith("svg")
    before = {path.name: path.read_bytes() for path in written}
    reproduce(Tiny(), folder, command="symrelu reproduce <tiny>")
    assert {path.name: path.read_bytes() for path in written} == before
