"""Cells, tables, figures and pages of the experiments, on problems that take milliseconds."""

import csv
import hashlib
import io
import json
import math
import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symrelu import Status, decompose, metrics
from symrelu.datasets import make_relu_gram, sources
from symrelu.experiments import (
    Ablation,
    Cell,
    CellResult,
    CellStore,
    Monitor,
    Real,
    Signed,
    Synthetic,
    cells,
    find_data_sets,
    paper,
    real,
    reproduce,
    run_cells,
    signed,
    synthetic,
)
from symrelu.experiments.cases import DigitsGraph, PublishedGraph, ReluGram, SampleGraph
from symrelu.experiments.cells import Failure, Refused
from symrelu.experiments.experiment import Experiment, Figure, cells_to_csv
from symrelu.experiments.figures import draw_momenta
from symrelu.experiments.methods import OURS, SYMANLS, SYMHALS, EigenvalueBound, ModelFit, ReluFit, aapb
from symrelu.experiments.tables import Entry, Table, fixed, scientific
from symrelu.fit.settings import Limits
from symrelu.solvers import AAPB

FEW = Limits(tol=1e-4, gtol=0.0, ftol=0.0, max_iter=5)
SMALL = ReluGram(30, 3, 0.1)
CELL = Cell(SMALL, 4, aapb(10.0), 0, FEW)
METHODS = (aapb(10.0), aapb(1.0, 0.0), SYMANLS, SYMHALS, EigenvalueBound())
CELLS = [Cell(SMALL, 4, method, seed, FEW) for seed in range(2) for method in METHODS]


class Journal(Monitor):
    """A monitor that keeps what it was told."""

    def __init__(self):
        self.stored = self.cells = None
        self.cost = self.spent = 0.0
        self.refusals, self.ends = [], []

    def begin(self, cells, stored, cost):
        self.cells, self.stored, self.cost = cells, stored, cost

    def refused(self, refused):
        self.refusals.append(refused)

    def advance(self, cost):
        self.spent += cost

    def ended(self, cell, result):
        self.ends.append((cell, result))


def numbers(results):
    """Return what does not depend on the clock."""
    return {
        cell: (result.status, result.n_iter, result.n_evaluations, result.relative_error)
        for cell, result in results.items()
    }


# --- cells ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_cell_is_the_fit_it_names(method):
    solution = Cell(SMALL, 4, method, 1, FEW).fit()
    M, _ = make_relu_gram(30, 3, shift=0.1, random_state=1)
    gram = (solution.U * solution.signature) @ solution.U.T
    model = np.maximum(0, gram) if isinstance(method, ReluFit) else gram
    assert solution.relative_error == pytest.approx(np.linalg.norm(M - model) / np.linalg.norm(M), rel=1e-10)
    assert solution.n_iter == (0 if isinstance(method, EigenvalueBound) else 5)


def test_no_symmetric_nmf_is_below_the_eigenvalue_bound():
    M = SMALL.load(0)
    values = np.linalg.eigvalsh(M)
    kept = np.maximum(values[-4:], 0)
    expected = math.sqrt(np.sum(values**2) - np.sum(kept**2)) / np.linalg.norm(M)
    bound = Cell(SMALL, 4, EigenvalueBound(), 0, FEW).fit().relative_error
    assert bound == pytest.approx(expected, rel=1e-10)
    many = replace(FEW, max_iter=300)
    for method in (SYMANLS, SYMHALS):
        assert Cell(SMALL, 4, method, 0, many).fit().relative_error >= bound


def test_cells_do_not_stop_by_the_clock():
    with pytest.raises(ValueError, match="not by the clock"):
        Cell(SMALL, 4, aapb(10.0), 0, Limits(max_time=1.0))


def test_a_saved_cell_comes_back(tmp_path):
    store = CellStore(tmp_path / "new" / "folder")
    assert store.load(CELL) is None
    result = CellResult.from_solution(CELL.fit())
    store.save(CELL, result)
    assert store.load(CELL) == result
    assert [path.name for path in store.folder.iterdir()] == [CELL.file_name]


OTHERS = {
    "case": replace(CELL, case=ReluGram(30, 3, 0.2)),
    "rank": replace(CELL, rank=5),
    "method": replace(CELL, method=aapb(10.0, 0.5)),
    "start": replace(CELL, method=replace(aapb(10.0), init="spectral")),
    "seed": replace(CELL, seed=1),
    "limits": replace(CELL, limits=replace(FEW, max_iter=6)),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_foreign_cell_is_refused(tmp_path, other):
    store = CellStore(tmp_path)
    assert store.path(other) != store.path(CELL)
    store.save(other, CellResult.from_solution(other.fit()))
    store.path(other).rename(store.path(CELL))
    refused = store.load(CELL)
    assert isinstance(refused, Refused)
    assert "other settings" in refused.reason


def test_a_cell_of_another_release_is_not_taken(tmp_path, monkeypatch):
    store = CellStore(tmp_path)
    store.save(CELL, CellResult.from_solution(CELL.fit()))
    monkeypatch.setattr(cells.symrelu, "__version__", "9.9")
    assert store.load(replace(CELL)) is None


def test_data_sets_of_other_files_are_other_cells():
    one = SampleGraph("ORL", "ORL", 400, "a" * 64, data_home="here")
    moved = replace(one, data_home="there")
    other = replace(one, sha256="b" * 64)
    assert replace(CELL, case=one).file_name == replace(CELL, case=moved).file_name
    assert replace(CELL, case=one).file_name != replace(CELL, case=other).file_name


@pytest.fixture(scope="module")
def stored_bytes(tmp_path_factory):
    store = CellStore(tmp_path_factory.mktemp("cells"))
    store.save(CELL, CellResult.from_solution(CELL.fit()))
    return store.path(CELL).read_bytes()


@given(data=st.data())
@settings(max_examples=150)
def test_damage_is_noticed(tmp_path_factory, stored_bytes, data):
    kind = data.draw(st.sampled_from(["cut", "changed", "replaced"]))
    if kind == "cut":
        damaged = stored_bytes[: data.draw(st.integers(0, len(stored_bytes) - 1))]
    elif kind == "changed":
        place = data.draw(st.integers(0, len(stored_bytes) - 1))
        byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != stored_bytes[place]))
        damaged = stored_bytes[:place] + bytes([byte]) + stored_bytes[place + 1 :]
    else:
        damaged = data.draw(st.binary(max_size=50))
    store = CellStore(tmp_path_factory.mktemp("damaged"))
    store.path(CELL).write_bytes(damaged)
    loaded = store.load(CELL)
    if isinstance(loaded, CellResult):  # white space between tokens, or 1e-05 written as 1E-05, is no damage
        assert json.loads(damaged) == json.loads(stored_bytes)
    else:
        assert isinstance(loaded, Refused)


WRONG = {
    "no object": lambda content: [content],
    "no format": lambda content: {**content, "format": "letter"},
    "version": lambda content: {**content, "version": 2},
    "no result": lambda content: {key: content[key] for key in content if key != "result"},
    "unknown field": lambda content: {**content, "result": {**content["result"], "colour": 1}},
    "missing field": lambda content: {**content, "result": {"status": "TOLERANCE"}},
    "status": lambda content: {**content, "result": {**content["result"], "status": "HAPPY"}},
    "error": lambda content: {**content, "result": {**content["result"], "relative_error": float("nan")}},
    "text": lambda content: {**content, "result": {**content["result"], "relative_error": "small"}},
    "count": lambda content: {**content, "result": {**content["result"], "n_iter": "many"}},
    "negative": lambda content: {**content, "result": {**content["result"], "n_evaluations": -5}},
    "seconds": lambda content: {**content, "result": {**content["result"], "seconds": float("inf")}},
    "truth": lambda content: {**content, "result": {**content["result"], "relative_error": True}},
    "machine": lambda content: {**content, "result": {**content["result"], "environment": []}},
    "no numbers": lambda content: {
        **content,
        "result": {**content["result"], "curves": {name: [None] for name in cells.CURVES}},
    },
    "curves": lambda content: {**content, "result": {**content["result"], "curves": {}}},
    "uneven": lambda content: {
        **content,
        "result": {**content["result"], "curves": {**content["result"]["curves"], "seconds": [1.0]}},
    },
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_content_is_refused_though_its_digest_agrees(tmp_path, stored_bytes, change):
    content = change(json.loads(stored_bytes))
    if isinstance(content, dict):
        content.pop("sha256")
        content["sha256"] = cells._digest(content)
    store = CellStore(tmp_path)
    store.path(CELL).write_text(json.dumps(content))
    assert isinstance(store.load(CELL), Refused)


def test_a_folder_in_place_of_a_cell_is_refused(tmp_path):
    store = CellStore(tmp_path)
    store.path(CELL).mkdir()
    assert isinstance(store.load(CELL), Refused)


# --- running -------------------------------------------------------------------------------------------------


@pytest.fixture
def fits(monkeypatch):
    """Count the fits that are made."""
    made = []
    original = Cell.fit

    def counted(cell, callback=None):
        made.append(cell)
        return original(cell, callback)

    monkeypatch.setattr(Cell, "fit", counted)
    return made


def test_a_second_run_fits_nothing(tmp_path, fits):
    store = CellStore(tmp_path)
    first, second = Journal(), Journal()
    results = run_cells(CELLS, store, monitor=first)
    assert fits == CELLS
    assert list(results) == CELLS
    assert run_cells(CELLS, store, monitor=second) == results
    assert fits == CELLS
    assert (first.cells, first.stored) == (len(CELLS), 0)
    assert (second.cells, second.stored, second.cost) == (len(CELLS), len(CELLS), 0)
    assert first.spent == pytest.approx(first.cost)
    assert [cell for cell, _ in first.ends] == CELLS


def test_only_what_is_missing_or_damaged_is_run(tmp_path, fits):
    store = CellStore(tmp_path)
    results = run_cells(CELLS, store)
    store.path(CELLS[1]).unlink()
    store.path(CELLS[2]).write_bytes(store.path(CELLS[2]).read_bytes()[:-10])
    store.path(CELLS[3]).rename(store.path(CELLS[4]))
    fits.clear()
    journal = Journal()
    again = run_cells(CELLS, store, monitor=journal)
    assert fits == CELLS[1:5]
    assert numbers(again) == numbers(results)
    assert [refused.path for refused in journal.refusals] == [store.path(CELLS[2]), store.path(CELLS[4])]
    assert run_cells(CELLS, store) == again


def test_a_stopped_run_goes_on(tmp_path, monkeypatch, fits):
    store = CellStore(tmp_path)
    original = ReluFit.fit

    def interrupted(method, M, rank, seed, limits, callback):
        if seed == 1:
            raise KeyboardInterrupt
        return original(method, M, rank, seed, limits, callback)

    with monkeypatch.context() as patch:
        patch.setattr(ReluFit, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_cells(CELLS, store)
    assert len(list(tmp_path.iterdir())) == len(METHODS)
    fits.clear()
    run_cells(CELLS, store)
    assert fits == CELLS[len(METHODS) :]


@pytest.mark.parametrize("method", [aapb(10.0), SYMANLS, SYMHALS], ids=lambda method: method.name)
def test_half_a_fit_is_no_result(method):
    """The loop returns the best factor on Ctrl-C; a cell must not keep it."""

    def press_ctrl_c(progress):
        if progress.record.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(CELL, method=method).fit(press_ctrl_c)


def test_one_failure_does_not_end_the_others(tmp_path):
    impossible = Cell(SMALL, 31, aapb(10.0), 0, FEW)
    journal = Journal()
    results = run_cells([impossible, CELL], CellStore(tmp_path), monitor=journal)
    assert list(results) == [CELL]
    (_, failure), _ = journal.ends
    assert isinstance(failure, Failure)
    assert "rank must be an integer from 1 to 30" in failure.message
    assert not CellStore(tmp_path).path(impossible).exists()


def test_processes_give_the_same_numbers(tmp_path):
    """On a graph whose norm has another last digit on two threads than on one."""
    impossible = Cell(SMALL, 31, aapb(10.0), 0, FEW)
    graph = [Cell(DigitsGraph(), 5, method, 0, FEW) for method in METHODS]
    journal = Journal()
    alone = run_cells(graph, CellStore(tmp_path / "alone"))
    together = run_cells([*graph, impossible], CellStore(tmp_path / "together"), jobs=2, monitor=journal)
    assert list(together) == graph
    assert numbers(together) == numbers(alone)
    assert len(journal.ends) == len(graph) + 1
    assert journal.spent == pytest.approx(journal.cost)
    assert run_cells(graph, CellStore(tmp_path / "together")) == together


def test_a_killed_process_is_explained(tmp_path):
    with pytest.raises(MemoryError, match="run the command again with fewer jobs"):
        run_cells([replace(CELL, method=Deadly()), CELL], CellStore(tmp_path), jobs=2)


@dataclass(frozen=True)
class Deadly:
    """A method that takes its process with it, as the system does when memory runs out."""

    name: str = "deadly"

    def fit(self, M, rank, seed, limits, callback):
        os._exit(9)

    def cost(self, n, rank):
        return 1.0


@pytest.mark.parametrize("jobs", [0, -1, 1.5])
def test_jobs_are_checked(tmp_path, jobs):
    with pytest.raises((ValueError, TypeError), match="jobs must be an integer"):
        run_cells([CELL], CellStore(tmp_path), jobs=jobs)


def test_a_full_disk_ends_the_run(tmp_path, monkeypatch, fits):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run_cells(CELLS, CellStore(tmp_path))
    assert len(fits) == 1
    assert not list(tmp_path.iterdir())


def test_cells_that_another_run_stored_meanwhile_are_taken(tmp_path, fits):
    store = CellStore(tmp_path)

    class Neighbour(Monitor):
        def begin(self, *numbers):
            run_cells(CELLS[:3], store)

    run_cells(CELLS, store, monitor=Neighbour())
    assert fits == CELLS


def test_a_graph_is_loaded_once_for_all_seeds(tmp_path, monkeypatch):
    from symrelu.experiments import cases

    loads = []
    original = DigitsGraph.load
    monkeypatch.setattr(DigitsGraph, "load", lambda case, seed: loads.append(seed) or original(case, seed))
    cases._load.cache_clear()
    few = replace(FEW, max_iter=1)
    run_cells([Cell(DigitsGraph(), 2, aapb(1.0), seed, few) for seed in range(3)], CellStore(tmp_path))
    assert loads == [0]


def test_names_are_not_part_of_a_cell():
    method = replace(CELL.method, name="another word for it")
    assert replace(CELL, method=method) == CELL
    assert replace(CELL, method=method).settings == CELL.settings
    assert Cell(ReluGram(30, 3, 0), 4, aapb(10.0), 0, FEW).settings["case"] == repr(ReluGram(30, 3, 0.0))


# --- tables --------------------------------------------------------------------------------------------------

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
        "Note. One seed. *: a fit ended worse than it began; its best factor is counted. "
        "In brackets: the paper.",
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
        r"Note. One seed. \*: a fit ended worse than it began; its best factor is counted. "
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


def test_csv_of_cells(tmp_path):
    results = run_cells(CELLS, CellStore(tmp_path))
    lines = list(csv.DictReader(io.StringIO(cells_to_csv(results))))
    assert len(lines) == len(CELLS)
    assert lines[0]["method"] == "AAPB, step 10"
    assert float(lines[0]["relative_error"]) == results[CELLS[0]].relative_error
    assert float(lines[0]["half_squared_error"]) == results[CELLS[0]].relative_error ** 2 / 2


# --- the experiments -----------------------------------------------------------------------------------------


def test_synthetic_has_the_papers_cells():
    full, quick = Synthetic(seeds=3, beside=2).cells(), Synthetic(quick=True).cells()
    assert len(set(full)) == 7 * 8 * (3 + 2 * 2) + 3 * 8 * 2
    assert len(quick) == 4 * 3 * 3 + 3 * 3
    assert set(quick) < set(full)
    ours = [cell for cell in full if cell.method in OURS]
    assert len(ours) == 3 * 8 * 2
    assert all(cell.limits.max_iter == (300 if cell in ours else 1000) for cell in full)
    assert all(cell.limits.tol == 1e-4 for cell in full)
    first = full[: 7 * 8 * 3]
    assert {(cell.method.solver.step_size, cell.method.init) for cell in first} == {(10.0, "uniform")}


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


@pytest.mark.parametrize("n_negative", [1, "auto"])
def test_a_fit_judged_by_hidden_pairs(n_negative):
    model = ModelFit("signed", n_negative=n_negative, diagonal="ignore", held_out=0.2)
    solution = Cell(SMALL, 4, model, 1, FEW).fit()
    M, mask = SMALL.load(1), metrics.random_mask(30, 0.2, random_state=1)
    same = decompose(M, 4, n_negative=n_negative, diagonal="ignore", mask=mask, random_state=1, **asdict(FEW))
    np.testing.assert_array_equal(solution.U, same.U)
    hidden = mask.toarray()
    X = (same.U * same.signature) @ same.U.T
    expected = np.linalg.norm((M - np.maximum(0, X))[hidden]) / np.linalg.norm(M[hidden])
    assert solution.relative_error == pytest.approx(expected, rel=1e-10)


def test_error_within_so_many_evaluations():
    result = CellResult.from_solution(CELL.fit())
    curves = {**result.curves, "evaluations": [1, 3, 4, 9], "relative_error": [0.9, 0.5, 0.6, 0.1]}
    within = replace(result, curves=curves).error_within
    assert [within(count) for count in (1, 2, 3, 8, 9, 100)] == [0.9, 0.9, 0.5, 0.5, 0.1, 0.1]


def test_ablation_changes_one_setting_at_a_time():
    from symrelu.experiments import ablation

    base = ablation.REPRODUCING
    assert base.solver == AAPB(step_size=10.0)
    changes = []
    for method in ablation.METHODS[1:-1]:
        changed = {
            name
            for name, value, reference in (
                ("step", method.solver.step_size, base.solver.step_size),
                ("safeguard", method.solver.safeguard, base.solver.safeguard),
                ("init", method.init, base.init),
                ("alpha", method.alpha, base.alpha),
            )
            if value != reference
        }
        assert len(changed) == 1, method.name
        changes += changed
    assert sorted(changes) == ["alpha", "alpha", "init", "init", "safeguard", "step", "step", "step"]


def test_tables_put_the_paper_beside_step_10_only():
    experiment = Synthetic(seeds=3, beside=2)
    result = CellResult.from_solution(CELL.fit())
    tables = experiment.tables(dict.fromkeys(experiment.cells(), result))
    assert [table.has_paper for table in tables] == [True, True] + [False] * 7
    uniform, normal = (dict(table.rows)["0.4"][1] for table in tables[:2])
    assert (uniform.paper, uniform.count) == (1.5e-3, 3)
    assert (normal.paper, normal.count) == (1.5e-3, 2)
    assert uniform.value == result.relative_error


def test_where_the_mean_curve_passes_a_value():
    result = CellResult.from_solution(CELL.fit())
    short = replace(result, curves={**result.curves, "relative_error": [1.0, 0.5, 0.1]})
    long = replace(result, curves={**result.curves, "relative_error": [1.0, 0.9, 0.8, 0.2, 0.1]})
    assert synthetic.first_at_or_below([short], 0.5) == 1
    assert synthetic.first_at_or_below([short, long], 0.45) == 2  # means 1, .7, .45, .15, .1
    assert synthetic.first_at_or_below([short, long], 0.05) is None
    assert synthetic.first_at_or_below([], 0.5) is None
    experiment = Synthetic(seeds=2, beside=1)
    table = experiment.tables(dict.fromkeys(experiment.cells(), long))[3]
    assert "passing" in table.name
    assert dict(table.rows)["0"][6].value == 4  # the paper has .18 there
    assert dict(table.rows)["0"][0] is None


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
    assert "is not the file it should be" in missing[0]
    assert "PIE.npz" in missing[1]


def test_a_data_file_that_changes_is_noticed(tmp_path):
    path = tmp_path / "ORL_64x64.mat"
    path.write_bytes(b"one")
    (case,), _ = find_data_sets(str(tmp_path), ["ORL"])
    path.write_bytes(b"two")
    with pytest.raises(ValueError, match="has changed since it was found"):
        case.load(0)


def test_titles_say_what_is_left_out():
    assert "7 momenta on 8 problems" in Synthetic().title
    assert "4 momenta on 3 problems (quick version)" in Synthetic(quick=True).title
    assert "6 of the paper's 6 sets are not in it" in Real().title
    assert "30 s" in " ".join(Synthetic().introduction())


def test_digits_graph_is_the_embedded_one():
    M = DigitsGraph().load(0)
    assert M.shape == (DigitsGraph().n,) * 2


@dataclass(frozen=True)
class Tiny(Experiment):
    """A table and a figure of six fits."""

    title = "Tiny <experiment>"

    def introduction(self):
        return ("One & two.",)

    def cells(self):
        return CELLS

    def tables(self, results):
        runs = [results[cell] for cell in CELLS[:2] if cell in results]
        entry = Entry.of(runs, lambda result: result.relative_error, 0.5)
        return [Table("tiny", "Error", "row", ("column",), (("0", (entry,)),), seeds=2)]

    def figures(self, results):
        return [Figure("tiny", "A <caption>.", draw_momenta({"panel": {0.5: ([results[CELL]], 0.3)}}))]


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


def test_the_page_needs_nothing_else(tmp_path):
    _, written = reproduce(Tiny(), tmp_path, command="symrelu reproduce <tiny>")
    page = written[0].read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|iframe)", page)
    assert set(re.findall(r'(?:src|href)="([^"]{0,22})', page)) == {"data:image/png;base64,"}
    assert "Tiny &lt;experiment&gt;" in page
    assert "symrelu reproduce &lt;tiny&gt;" in page
    for fact in ("numpy", "scipy", "processor", "threads", "seeds", "10 of 10", "paper 5.0e-1", "±"):
        assert fact in page
    assert "MAX_ITER 8" in page  # and two eigenvalue bounds


def test_jinja2_is_asked_for_before_the_work(tmp_path, monkeypatch, fits):
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install symrelu\[report\]"):
        reproduce(Tiny(), tmp_path)
    assert not fits


def test_figures_of_both_experiments_show_every_line():
    result = CellResult.from_solution(CELL.fit())
    experiment = Synthetic(seeds=2)
    (figure,) = experiment.figures(dict.fromkeys(experiment.cells(), result))
    for ax in figure.drawing.axes:
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"{m:g}" for m in paper.MOMENTA]
        assert ax.get_yscale() == "log"
        crosses = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "x"]
        assert len(crosses) == 7
    assert crosses[0] == 0.18  # the last panel is m=1000, p=0.08, r=150
    cases = tuple(SampleGraph(key, key, 100, "0" * 64) for key in paper.REAL_RANK)
    experiment = Real(cases)
    (figure,) = experiment.figures(dict.fromkeys(experiment.cells(), result))
    assert len(figure.drawing.axes) == 8
    titles = [ax.get_title().split(",")[0] for ax in figure.drawing.axes[:4]]
    assert titles == list(paper.REAL_FIGURE)
    for ax in figure.drawing.axes:
        low, high = ax.get_ylim()
        assert all(low <= line.get_ydata()[-1] <= high for line in ax.lines if len(line.get_xdata()) == 1)
    assert {ax.get_xlabel() for ax in figure.drawing.axes} == {"iterations", "seconds"}
    assert not experiment.figures({})


def test_lines_differ_without_colour():
    from symrelu.experiments.figures import _METHODS, _STYLES

    looks = [(str(style["linestyle"]), style.get("lw", 1.8)) for style in _METHODS.values()]
    assert len(set(looks)) == len(looks)
    assert len(set(map(str, _STYLES))) == len(paper.MOMENTA)


# --- what the paper says, in small ---------------------------------------------------------------------------


def test_momentum_saves_iterations_where_the_rank_is_exact(tmp_path):
    column = paper.SYNTHETIC_COLUMNS[0]
    experiment = Synthetic(seeds=1)
    cells_of_column = [
        experiment._cell(column, momentum, synthetic.SETTINGS[0], 0) for momentum in paper.MOMENTA
    ]
    results = run_cells(cells_of_column, CellStore(tmp_path)).values()
    assert all(result.status == "TOLERANCE" for result in results)
    iterations = [result.n_iter for result in results]
    assert iterations[:-1] == sorted(iterations[:-1], reverse=True)  # from .95 to 1 it may rise a little
    assert iterations[0] > 3 * iterations[-1]


def test_the_methods_rank_as_in_the_paper():
    few = replace(real.LIMITS, max_iter=40)
    runs = {cell.method.name: replace(cell, limits=few).fit() for cell in Real().cells()}
    M = DigitsGraph().load(0)
    error = {name: solution.half_squared_error for name, solution in runs.items()}
    aapb_ = runs["AAPB, step 10"]
    assert error["AAPB, step 10"] < error["APB, step 10"]
    assert error["APB, step 10"] < error["eigenvalue bound"] <= min(error["SymANLS"], error["SymHALS"])
    assert aapb_.relative_error == pytest.approx(metrics.relative_error(M, aapb_.U), rel=1e-9)


def test_synthetic_limits_are_the_papers():
    assert (synthetic.LIMITS.max_iter, synthetic.LIMITS.tol, synthetic.LIMITS.max_time) == (1000, 1e-4, None)
    assert Ablation().problems()[0][2] == synthetic.LIMITS
