"""``--dry-run`` of the commands that fit: the figures, and that nothing is fitted or written."""

import json

import numpy as np
import pytest
from scipy import sparse

from symrelu import LinkPredictor, estimate_cost
from symrelu.fit import cost as module
from symrelu.fit import memory_check
from symrelu.fit.calibration import Seconds
from symrelu.graphs import read_graph, write_blocks

COMMANDS = {
    "fit": ["--rank", 4],
    "embed": ["--components", 4],
    "links": ["--components", 4],
    "cluster": ["--clusters", 4],
}


@pytest.fixture(autouse=True)
def calibrated(monkeypatch):
    monkeypatch.setattr(module, "calibrate", lambda case, degrees: Seconds(tiles=2.0, support=0.5, solver=1.0))


@pytest.fixture
def nothing_is_fitted(monkeypatch):
    def fitted(*arguments, **settings):
        raise AssertionError("nothing must be fitted")

    for place in ("symrelu.cli.fit", "symrelu.estimators.base"):
        monkeypatch.setattr(f"{place}.decompose", fitted)


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_fitted_or_written(command, matrix_file, tmp_path, call):
    further = {"links": []}.get(command, ["--checkpoint", tmp_path / "c.ckpt"])
    arguments = [matrix_file, *COMMANDS[command], "-o", tmp_path / "out.csv", *further, "--dry-run"]
    code, out, err = call(command, *arguments)
    assert (code, err) == (0, "")
    shown = " ".join(out.split())
    assert "memory" in shown
    assert "fits into memory yes" in shown
    assert list(tmp_path.iterdir()) == [matrix_file]


def test_the_figures_are_those_of_estimate_cost(matrix_file, call):
    cost = estimate_cost(read_graph(matrix_file), 4, n_negative="auto", diagonal="auto")
    code, out, _ = call("embed", matrix_file, "--components", 4, "--dry-run", "--json")
    found = json.loads(out)
    expected = cost.as_dict()
    assert (code, found["command"], found["dry_run"], found["number_of_fits"]) == (0, "embed", True, 1)
    for name in ("entries", "rank", "backend", "memory", "evaluations", "fit_seconds", "fits"):
        assert found[name] == expected[name]


def test_several_fits_are_counted(matrix_file, call):
    shown = " ".join(call("links", matrix_file, "--dry-run")[1].split())
    assert "number of fits 5; the figures are those of each" in shown
    assert "a fit of 20 to 61 evaluations" in shown  # these fits make 20 steps
    found = json.loads(call("fit", matrix_file, "-r", 3, "--held-out", 0.1, "--dry-run", "--json")[1])
    assert found["number_of_fits"] == 2


def test_clusters_have_a_cost_for_each_method(matrix_file, call):
    arguments = ["cluster", matrix_file, "--clusters", 4, "--dry-run"]
    found = json.loads(call(*arguments, "--json")[1])
    methods = found["methods"]
    assert found["fits"] is True
    assert {name: (one["rank"], one["number_of_fits"]) for name, one in methods.items()} == {
        "linkage": (10, 1),
        "directions": (16, 5),
    }
    shown = " ".join(call(*arguments)[1].split())
    assert "method linkage" in shown
    assert "method directions" in shown


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize("number", [[], ["--clusters", "auto"]])
def test_the_cost_of_choosing_a_number_of_clusters(number, matrix_file, call):
    arguments = ["cluster", matrix_file, *number, "--dry-run"]
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    shown = " ".join(out.split())
    assert (
        "method at first, the choice of a number of clusters number of fits at most 10, with at most 16 columns"
        in shown
    )
    assert "method directions number of fits 5, with at most 16 columns: the figures are those of the" in shown
    methods = json.loads(call(*arguments, "--json")[1])["methods"]
    assert list(methods) == ["choice", "linkage", "directions"]
    assert all(one["at_most"] for one in methods.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_what_does_not_fit_into_memory(command, matrix_file, monkeypatch, call):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    code, out, _ = call(command, matrix_file, *COMMANDS[command], "--dry-run", "--json")
    assert (code, json.loads(out)["fits"]) == (2, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "matrix.npz", "--components", "auto"], "--components must be given as a number"),
        (["embed", "matrix.npz", "--components", 61], "--components must be an integer from 1 to 60"),
        (["links", "model.npz"], "--dry-run must be left out, because model.npz is a saved model"),
    ],
)
def test_what_cannot_be_estimated(arguments, message, matrix_file, tmp_path, call):
    LinkPredictor(2, max_iter=1, n_init=1, random_state=0).fit(sparse.load_npz(matrix_file)).save(
        tmp_path / "model.npz"
    )
    code, out, err = call(*arguments, "--dry-run")
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_workers_and_folders(matrix_file, tmp_path, call):
    pytest.importorskip("distributed", reason="the backend needs dask")
    write_blocks(sparse.csr_array(np.kron(np.eye(5), np.ones((4, 4)))), tmp_path / "blocks")
    for arguments in (
        ["embed", tmp_path / "blocks", "--components", 2, "--workers", 2],
        ["embed", matrix_file, "--workers", 2],
        ["cluster", matrix_file, "--clusters", 2, "--method", "linkage", "--workers", 2],
        ["links", matrix_file, "--scheduler", "tcp://127.0.0.1:9"],
    ):
        code, out, err = call(*arguments, "--dry-run")
        assert code == 0, err
        assert "depends on the workers" in out


LESS = "499 or less"
FLOAT32 = "a FILE in float32"
PALM, DASK = "--solver palm (fewer arrays)", "--backend dask on a cluster"
SHORT = "--memory 3 (fewer past steps)"


@pytest.mark.parametrize(
    ("command", "remedies"),
    [
        ("fit --rank 500 -o o.npz", f"--rank {LESS}, {FLOAT32}, {SHORT}, {PALM} or {DASK}"),
        ("fit --rank 500 --memory 3 -o o.npz", f"--rank {LESS}, {FLOAT32}, {PALM} or {DASK}"),
        ("rank --ranks 500", f"--ranks {LESS}, {FLOAT32}, {SHORT}, {PALM} or {DASK}"),
        # The others have no --memory.
        ("embed --components 500 -o v.csv", f"--components {LESS}, {FLOAT32}, {PALM} or {DASK}"),
        ("cluster --clusters 500", f"--components 99 or less, {FLOAT32}, {PALM} or {DASK}"),
        ("links --components 500", f"--components {LESS}, {FLOAT32}, {PALM} or {DASK}"),
        ("evaluate --components 500", f"--components {LESS}, {FLOAT32}, {PALM} or {DASK}"),
        # These have no --solver, and no --backend or none for a cluster.
        ("neighbors --components 500", f"--components {LESS}"),
        ("neighbors --components 500 --backend dense", f"--components {LESS} or --backend sparse"),
        ("neighbors --components 2", "a machine with more memory"),  # it begins with more columns than that
        ("report --components 500 -o o.html", f"--components {LESS} or {FLOAT32}"),
    ],
)
def test_what_to_do_about_memory_is_in_options_of_the_command(command, remedies, monkeypatch, call):
    path = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(3000, 3000))
    sparse.save_npz("path.npz", path.tocsr())
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    monkeypatch.setattr(memory_check, "_fits", lambda *_: True)  # every remedy is enough
    code, out, err = call(*command.split(), "path.npz")
    assert (code, out) == (2, "")
    assert err.split("Use ")[1].strip() == f"{remedies}."


def test_a_fit_that_resumes_has_its_settings(matrix_file, monkeypatch, call):
    assert call("fit", matrix_file, "-r", 3, "--max-iter", 1, "--checkpoint", "c.ckpt", "-o", "o.npz")[0] == 0
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    code, out, err = call("resume", "c.ckpt", "--max-iter", 9)
    assert (code, out) == (2, "")
    assert err.strip().endswith("Use a machine with more memory.")


def test_a_dry_run_advises_what_the_command_has(matrix_file, monkeypatch, call):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    refusal = json.loads(call("embed", matrix_file, "--components", 60, "--dry-run", "--json")[1])["refusal"]
    assert refusal.endswith(f" Use {DASK}.")  # nothing else would help
