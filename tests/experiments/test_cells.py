"""Cells: stored, checked, run in turn or in processes, resumed."""

import json
import os
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cells import CELL, CELLS, FEW, METHODS, SMALL

from symrelu.experiments import Cell, CellResult, CellStore, Monitor, cells, run_cells
from symrelu.experiments.cases import DigitsGraph, ReluGram, SampleGraph
from symrelu.experiments.cells import Failure, Refused
from symrelu.experiments.methods import SYMANLS, SYMHALS, ReluFit, aapb
from symrelu.fit.settings import Limits


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


def test_cells_do_not_stop_by_the_clock():
    with pytest.raises(ValueError, match=r"must not have a time limit, got max_time=1.0"):
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
    cases._load_cached.cache_clear()
    few = replace(FEW, max_iter=1)
    run_cells([Cell(DigitsGraph(), 2, aapb(1.0), seed, few) for seed in range(3)], CellStore(tmp_path))
    assert loads == [0]


def test_names_are_not_part_of_a_cell():
    method = replace(CELL.method, name="another word for it")
    assert replace(CELL, method=method) == CELL
    assert replace(CELL, method=method).settings == CELL.settings
    assert Cell(ReluGram(30, 3, 0), 4, aapb(10.0), 0, FEW).settings["case"] == repr(ReluGram(30, 3, 0.0))


def test_error_within_so_many_evaluations():
    result = CellResult.from_solution(CELL.fit())
    curves = {**result.curves, "evaluations": [1, 3, 4, 9], "relative_error": [0.9, 0.5, 0.6, 0.1]}
    within = replace(result, curves=curves).error_within
    assert [within(count) for count in (1, 2, 3, 8, 9, 100)] == [0.9, 0.9, 0.5, 0.5, 0.1, 0.1]
