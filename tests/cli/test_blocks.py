"""``symrelu blocks``, and fits of what it writes."""

import json
import logging
from contextlib import contextmanager
from importlib import import_module

import pytest
from block_folders import whole

from symrelu import Solution
from symrelu.files.block_folder import BlockFolder
from symrelu.graphs import read_graph

EDGES = "from,to,weight\nann,bob,2\nbob,cid,0.5\nann,bob,1\ncid,dan,1\n"


def test_blocks_of_a_list_of_edges(call, tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    code, out, err = call("blocks", "edges.csv", "-o", "graph", "--rows", 2, "--duplicates", "sum", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert (result["nodes"], result["entries"], result["blocks"]) == (4, 6, 3)
    assert "1 repeated edge was added" in err
    expected = read_graph(tmp_path / "edges.csv", duplicates="sum").matrix.toarray()
    assert (whole(BlockFolder.open(tmp_path / "graph")) == expected).all()
    code, _, err = call("blocks", "edges.csv", "-o", "graph")
    assert code == 2
    assert "exists already" in err


def test_invalid_edges_are_refused(call, tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    code, _, err = call("blocks", "edges.csv", "-o", "graph")
    assert code == 2
    assert "is given 2 times" in err
    assert not (tmp_path / "graph").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_best_factor_is_saved_if_the_cluster_fails(call, tmp_path, matrix_file, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    # Seconds until it gives up.
    monkeypatch.setattr(import_module("symrelu.operators.cluster_workers"), "PATIENCE", 1.0)
    monkeypatch.setattr(import_module("symrelu.operators.cluster_clients"), "_CONNECTING", 4.0)
    assert call("blocks", matrix_file, "-o", "m", "--rows", 25)[0] == 0
    quiet = {"processes": False, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **quiet) as workers:

        @contextmanager
        def closing(*_):
            yield lambda progress: progress.record.iteration == 3 and workers.close() and False

        monkeypatch.setattr("symrelu.cli.fit.fit_progress", closing)
        fit = ("--rank", 3, "--seed", 0, "--init", "random", "--tol", 0, "-o", "fit.npz")
        code, out, err = call("fit", "m", *fit, "--scheduler", workers.scheduler_address)
    assert (code, out) == (2, "")
    assert "the best factor so far is in fit.npz" in err
    assert "run the fit again" in err
    assert Solution.load(tmp_path / "fit.npz").n_iter == 3


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_is_fitted_on_workers_of_this_machine(call, tmp_path, matrix_file, monkeypatch):
    pytest.importorskip("distributed", reason="dask is not installed")
    assert call("blocks", matrix_file, "-o", "m", "--rows", 25)[0] == 0
    fit = ("fit", "m", "--rank", 3, "--max-iter", 5, "--seed", 0, "--init", "random", "-o", "fit.npz", "--json")
    code, _, err = call(*fit, "--workers", 1, "--checkpoint", "fit.ckpt")
    assert code == 0, err
    local = ("fit", matrix_file, *fit[2:-2], "local.npz")
    assert call(*local)[0] == 0
    one, other = Solution.load(tmp_path / "fit.npz"), Solution.load(tmp_path / "local.npz")
    assert one.relative_error == pytest.approx(other.relative_error, rel=1e-8)
    # It can be resumed on another cluster: the address is asked, not the workers of before.
    monkeypatch.setattr(import_module("symrelu.operators.cluster_clients"), "_CONNECTING", 0.2)
    code, _, err = call("resume", "fit.ckpt", "--max-iter", 9, "--scheduler", "tcp://127.0.0.1:1")
    assert code == 2
    assert "No scheduler answers at 'tcp://127.0.0.1:1'" in err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("embed", "m", "-o", "e.csv"), "m is a block folder, which is fitted on a cluster. Pass --workers 4"),
        (("embed", "m", "-o", "e.csv", "--workers", 1, "--duplicates", "sum"), "have no meaning for it"),
        (("links", "m", "-o", "l.csv"), "which only 'symrelu fit' and 'symrelu embed' can fit"),
        (("report", "m", "-o", "r.html"), "which only 'symrelu fit' and 'symrelu embed' can fit"),
    ],
)
def test_folders_that_a_command_cannot_fit_are_refused(call, matrix_file, arguments, reason):
    assert call("blocks", matrix_file, "-o", "m", "--rows", 25)[0] == 0
    code, _, err = call(*arguments)
    assert code == 2
    assert reason in " ".join(err.split())
