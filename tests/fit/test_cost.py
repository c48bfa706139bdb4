"""``estimate_cost``: the figures, how they are shown, and that nothing is fitted."""

import csv
import json
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from scipy import sparse

from symrelu import Cost, Problem, decompose, estimate_cost
from symrelu.fit import cost as module
from symrelu.fit import memory_check
from symrelu.fit.calibration import Seconds
from symrelu.graphs import write_blocks
from symrelu.kernels.threads import allowed_threads

M = sparse.csr_array(np.kron(np.eye(10), np.ones((4, 4))))


@pytest.fixture
def calibrated(monkeypatch):
    """Let the calibration give known seconds, and record the cases."""
    cases = []

    def calibrate(case, degrees):
        cases.append((case, degrees))
        return Seconds(tiles=2.0, support=0.5, solver=1.0)

    monkeypatch.setattr(module, "calibrate", calibrate)
    return cases


@pytest.mark.usefixtures("calibrated")
def test_figures():
    cost = estimate_cost(M, 3)
    assert (cost.n, cost.entries, cost.rank, cost.dtype) == (40, 160, 3, "float64")
    assert (cost.solver, cost.backend, cost.threads) == ("LBFGS", "sparse", allowed_threads())
    assert cost.seconds_per_evaluation == (1.5, 3.0)
    assert cost.evaluations == (20, 400)
    assert cost.fit_seconds == (30, 1200)
    assert cost.fits
    assert cost.memory.total < cost.available


@pytest.mark.usefixtures("calibrated")
def test_a_list_needs_scans():
    low, high = estimate_cost(M, 3, n_negative=1, backend="active").seconds_per_evaluation
    assert low == pytest.approx(1.5 + 2.0 * 0.25 * 0.012 / 0.216)
    assert high == 3.0


def test_the_real_calibration():
    cost = estimate_cost(M, 3)
    low, high = cost.seconds_per_evaluation
    assert 0 < low == high < 60


@pytest.mark.usefixtures("calibrated")
def test_limits_bound_the_range():
    # A step tries up to three factors.
    assert estimate_cost(M, 3, max_iter=99).evaluations == (20, 298)
    assert estimate_cost(M, 3, max_iter=4).evaluations == (5, 13)
    assert estimate_cost(M, 3, max_time=50).fit_seconds == (30, 50)
    assert estimate_cost(M, 3, solver="aapb").evaluations == (70, 1000)


@pytest.mark.usefixtures("calibrated")
def test_newton_has_fewer_and_longer_evaluations_than_lbfgs():
    lbfgs, newton = (estimate_cost(M, 3, solver=name, backend="active") for name in ("lbfgs", "newton"))
    assert newton.evaluations == (13, 270)
    ratios = np.divide(newton.seconds_per_evaluation, lbfgs.seconds_per_evaluation)
    np.testing.assert_allclose(ratios, (1.2, 2.5))
    # Other backends have to visit all pairs for the curvature.
    assert estimate_cost(M, 3, solver="newton", backend="sparse").evaluations == (13, 540)
    assert estimate_cost(M, 3, solver="newton", backend="sparse", max_iter=4).evaluations == (5, 17)


@pytest.mark.parametrize("table", ["newton/newton.csv", "scaling/sixteen_cores/scaling.csv"])
def test_ranges_hold_for_what_was_measured(table):
    """Oracle: the tables of the results that the ranges name."""
    with (Path(__file__).parents[2] / "results" / table).open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        low, high = module._EVALUATIONS[row.get("solver", "LBFGS")]
        counts = [int(value) for name, value in row.items() if name.startswith("evaluations") and value]
        assert all(low <= count <= high for count in counts)
    ends = {}
    for row in rows if "newton" in table else ():
        where = tuple(row[name] for name in ("graph", "n", "dtype", "start"))
        for target in ("0.001", "0.0001"):
            if row[f"cpu, {target}"]:
                per = float(row[f"cpu, {target}"]) / float(row[f"evaluations, {target}"])
                ends.setdefault((*where, target), {})[row["solver"]] = per
    low, high = module._NEWTON_PER_LBFGS
    assert all(low <= pair["Newton"] / pair["LBFGS"] <= high for pair in ends.values())


def test_as_if_the_type_or_the_threads_were_others(calibrated):
    double, single = estimate_cost(M, 3), estimate_cost(M, 3, dtype="float32", threads=7)
    assert single.memory.factors * 2 == double.memory.factors
    assert (single.dtype, single.threads) == ("float32", 7)
    assert calibrated[-1][0].dtype == np.float32
    assert estimate_cost(M, 3).threads == double.threads, "only for one call"


@pytest.mark.usefixtures("calibrated")
def test_another_type_chooses_the_backend_that_its_fit_has():
    wide = sparse.eye_array(2500, format="csr")
    for own, other in (("float64", "float32"), ("float32", "float64")):
        asked = estimate_cost(wide.astype(own), 32, n_negative=1, dtype=other)
        same = estimate_cost(wide.astype(other), 32, n_negative=1)
        assert (asked.backend, asked.dtype, asked.memory) == (same.backend, same.dtype, same.memory)
    assert {asked.backend, estimate_cost(wide.astype(own), 32, n_negative=1).backend} == {"active", "sparse"}


def test_a_matrix_packed_in_its_own_type_is_packed_again_in_another(calibrated):
    problem = Problem.of(M)
    problem.operator(np.ones(3))
    assert (
        estimate_cost(problem, 3).memory.matrix == 0 < estimate_cost(problem, 3, dtype="float32").memory.matrix
    )
    assert [case.packed for case, _ in calibrated] == [True, False]


def test_rows_are_counted_in_arrays_too(calibrated):
    dense = estimate_cost(M.toarray(), 3)
    assert (dense.backend, dense.entries) == ("dense", 160)
    np.testing.assert_array_equal(calibrated[-1][1], np.full(40, 4))


@pytest.mark.usefixtures("calibrated")
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"threads": 0}, ValueError, "threads must be an integer of at least 1, got 0"),
        ({"dtype": "int64"}, ValueError, "dtype must be one of 'float32', 'float64', got 'int64'"),
        ({"rank": 41}, ValueError, "rank must be an integer from 1 to 40"),
        ({"backend": "gpu"}, ValueError, "backend must be one of"),
        ({"init": "svd"}, ValueError, "init must be one of"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1"),
    ],
)
def test_settings_are_those_of_decompose(bad, error, message):
    with pytest.raises(error, match=message):
        estimate_cost(M, **{"rank": 3} | bad)


def test_it_takes_what_decompose_takes():
    of_a_fit, of_a_cost = (signature(function).parameters for function in (decompose, estimate_cost))
    assert {name: of_a_cost.get(name) for name in of_a_fit} == dict(of_a_fit)
    assert set(of_a_cost) - set(of_a_fit) == {"dtype", "threads"}


@pytest.mark.usefixtures("calibrated")
def test_settings_without_influence(tmp_path):
    path = tmp_path / "fit.ckpt"
    without = {"tol": 0.1, "gtol": 0, "ftol": 0, "zero_weight": 0.5, "support": "at_least", "alpha": 0.1}
    without |= {"random_state": 3, "callback": print, "checkpoint": path, "verbose": 2}
    assert estimate_cost(M, 3, **without).as_dict() == estimate_cost(M, 3).as_dict() | {"available": ANY}
    assert not path.exists()
    for name, bad in (("tol", -1), ("zero_weight", 2), ("verbose", "yes"), ("callback", 3)):
        with pytest.raises((TypeError, ValueError), match=name):
            estimate_cost(M, 3, **{name: bad})


@pytest.mark.usefixtures("calibrated")
def test_what_decompose_refuses_does_not_fit(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    monkeypatch.setattr(module, "calibrate", lambda *_: pytest.fail("a fit that is refused was timed"))
    cost = estimate_cost(M, 3)
    assert not cost.fits
    assert cost.seconds_per_evaluation is cost.fit_seconds is None
    assert dict(cost.rows())["an evaluation"] == "not measured"
    with pytest.raises(MemoryError, match=re.escape(str(cost.refusal))):
        decompose(M, 3)
    assert f"no. {cost.refusal}" in str(cost)


@pytest.mark.usefixtures("calibrated")
def test_few_steps_hold_few_arrays_and_little_missing_is_no_refusal(monkeypatch):
    assert estimate_cost(M, 3, max_iter=2).memory.factors == (2 * 2 + 7) * 40 * 3 * 8
    needed = estimate_cost(M, 3).memory.least
    for available, text in ((needed, "yes"), (needed - 1, "perhaps: "), (needed / 1.25 - 1, "no. A fit")):
        monkeypatch.setattr(memory_check, "available_memory", lambda available=available: int(available))
        cost = estimate_cost(M, 3)
        assert dict(cost.rows())["fits into memory"].startswith(text)
        assert cost.fits == (text[:2] != "no")


@pytest.mark.usefixtures("calibrated")
def test_what_is_available_may_be_unknown(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: None)
    cost = estimate_cost(M, 3)
    assert cost.fits
    assert "unknown available" in str(cost)


@pytest.mark.usefixtures("calibrated")
def test_the_problem_stays_as_it_was():
    problem = Problem.of(M)
    estimate_cost(problem, 3)
    assert not problem._packed


@pytest.mark.usefixtures("calibrated")
def test_text_card_and_json():
    cost = estimate_cost(M, 3, backend="active", init="multilevel")
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in str(cost).splitlines())
    assert lines["matrix"] == "40 x 40, 160 entries, float64"
    assert lines["an evaluation"] == "1.5 s to 3 s"
    assert lines["a fit of 20 to 400 evaluations"] == "31 s to 0:20:00"
    assert lines["fits into memory"] == "yes"
    assert "list of pairs, at most" in lines["of which"]
    assert "smaller matrices" not in lines["of which"]  # M has too few items for any
    html = cost._repr_html_()
    assert all(text in html for text in lines.values())
    plain = json.loads(json.dumps(cost.as_dict()))
    assert plain["memory"]["total"] == cost.memory.total
    assert plain["fit_seconds"] == [20 * cost.seconds_per_evaluation.low, 1200]
    assert plain["fits"] is True


def test_text_names_smaller_matrices():
    M = sparse.csr_array(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(1100, 1100)))
    assert "smaller matrices, at most" in str(estimate_cost(M, 3, backend="active", init="multilevel"))


def in_bytes(text):
    return sum(
        float(number) * {"k": 1e3, "M": 1e6}[unit] for number, unit in re.findall(r"([\d.]+) (\w)B", text)
    )


@pytest.mark.usefixtures("calibrated")
@pytest.mark.parametrize(
    "settings", [{}, {"backend": "active", "init": "multilevel"}, {"solver": "newton"}, {"init": "random"}]
)
@pytest.mark.parametrize("n", [10, 300])
def test_the_parts_of_the_memory_add_up(n, settings):
    """Oracle: the figures that are shown, to their three digits."""
    cost = estimate_cost(sparse.csr_array(np.kron(np.eye(n), np.ones((4, 4)))), 3, **settings)
    memory = cost.as_dict()["memory"]
    parts = ("matrix", "factors", "tiles", "pairs", "levels", "systems", "rest")
    assert sum(memory[name] for name in parts) == memory["total"]
    shown = dict(cost.rows())
    parts, _, less = shown["of which"].partition("; less ")
    total = shown["memory"].partition(" in addition")[0].rpartition("to ")[2]
    np.testing.assert_allclose(in_bytes(parts) - in_bytes(less), in_bytes(total), rtol=0.02)


@pytest.mark.usefixtures("calibrated")
def test_a_rest_of_the_memory_has_a_name():
    memory = estimate_cost(M, 3).memory
    larger = replace(memory, least=memory.least - memory.rest + 5_000_000)
    assert module._parts(larger).endswith(", the start and sorting 5 MB")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.00123, "1.2 ms"), (0.12, "0.12 s"), (9.94, "9.9 s"), (3661.2, "1:01:01")]
)
def test_durations(seconds, text):
    assert module._seconds(seconds) == text


def test_a_cluster_has_its_own_speed(tmp_path, calibrated):
    pytest.importorskip("distributed")
    write_blocks(M, tmp_path / "blocks")
    for source, settings in ((tmp_path / "blocks", {}), (M, {"backend": "dask"})):
        cost = estimate_cost(source, 3, **settings)
        assert isinstance(cost, Cost)
        assert (cost.backend, cost.entries, cost.memory.matrix) == ("dask", 160, 0)
        assert cost.seconds_per_evaluation is cost.fit_seconds is None
        assert "depends on the workers" in str(cost)
    assert not calibrated


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "fast"}, "precision='fast' is for backend='cuda', and this fit has backend='sparse'"),
        ({"backend": "torch", "solver": "newton"}, "Newton requires curvature"),
    ],
)
def test_what_no_backend_offers_is_refused_as_by_decompose(settings, message):
    if "backend" in settings:
        pytest.importorskip("torch")
    messages = []
    for function in (estimate_cost, decompose):
        with pytest.raises((TypeError, ValueError), match=message) as refused:
            function(M, 3, **settings)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
