"""The benchmarks run, on sizes that say nothing."""

import importlib
import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy import sparse

FOLDER = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="benchmarks/ is part of the repository only")


# Those that start processes are processes themselves. The others are called, since an import takes seconds.
PROCESSES = {
    "memory.py --n 300 --rank 3 --steps 1": "MB",
    "cost.py --sizes 300 --rank 3 --steps 2 --dtypes float64 --backends active": "| 300 | float64 |  active |",
    f"never_loses.py {FOLDER.parent} --problems tiny --rounds 1 --iterations 9": "| m=60",
    "reading.py --edges 300 --rounds 1 --output out.json": "| pandas  |",
    (
        "usefulness.py --tasks images communities --data digits karate --seeds 1 --jobs 2 --output out "
        "--store values.csv --methods 'control: linkage on M' Louvain"
    ): "| control: linkage on M | 0.887",
}
CALLS = {
    "evaluation.py --sizes 60 --rank 3 --rounds 1 --threads 1": "/ bare",
    "evaluation.py --sizes 60 --rank 3 --rounds 1 --threads 1 --tiles 16 32": "tile 16",
    "transform.py --n 200 --new 100 --rank 3": "in evaluations",
    "report.py --sizes 60 --rounds 1 --no-browser --output out": "| 60 | 133 | equal weights | 6",
    "rank.py --tasks synthetic --n 30 --seeds 1 --max-iter 5 --output out": "| n=30, p=0.1 | 0 |",
    (
        "neighbors.py --tasks recall --data digits --ranks 4 8 --methods eigsh 'Laplacian eigenmaps' "
        "--store records.jsonl --output out"
    ): "| eigsh, r = 8 | 0.10",
    (
        "usefulness.py --tasks links --data hubs --methods 'resource allocation' 'preferential attachment' "
        "--seeds 1 --store values.csv --output out"
    ): "| resource allocation | 0.6",
    (
        "newton.py --sizes 200 --graphs plane --starts imputed --dtypes float64 --repeats 1 --output out"
    ): "plane,200,float64,imputed,Newton,",
    "scaling.py --problems plane:300:.1 blocks:300:.5 --rank 4 --output out": "| plane | 300 | ",
    "starts.py --problems digits --starts imputed --output out": "'problem': 'digits', 'n': 1797",
    "solvers.py --problems tiny --seeds 1 --iterations 30 --output out": "geometric mean",
}


@pytest.mark.parametrize("command", PROCESSES)
def test_benchmark_runs(tmp_path, command):
    script, *options = shlex.split(command)
    result = subprocess.run(
        [sys.executable, str(FOLDER / script), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert PROCESSES[command] in result.stdout


@pytest.fixture
def call_benchmark(tmp_path, monkeypatch):
    """A function that calls a script with its options, in an empty folder."""

    def call(command):
        script, *options = shlex.split(command)
        monkeypatch.setattr(sys, "argv", [str(FOLDER / script), *options])
        importlib.import_module(script.removesuffix(".py")).main()

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)
    return call


@pytest.mark.filterwarnings("ignore")  # as in a process of its own
@pytest.mark.parametrize("command", CALLS)
def test_benchmark_can_be_called(command, call_benchmark, capsys):
    call_benchmark(command)
    assert CALLS[command] in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_backends_are_compared(call_benchmark, capsys, monkeypatch):
    pytest.importorskip("torch")
    command = "gpu_equality.py --nodes 60 --rank 3 --steps 2 --fit-steps 2 --output out"
    call_benchmark(command)
    assert "All differences are within their bounds" in capsys.readouterr().out
    path = Path("out/equality.json")
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    backends = {row["backend"] for row in rows}  # with a GPU, "cuda" too
    assert "torch" in backends
    assert {row["of"] for row in rows if row["difference"] == "not offered"} == {"newton"}
    table = Path("out/equality.csv").read_text(encoding="utf-8").splitlines()
    assert "objective,newton,float64,torch,not offered,1e-08,plain" in table
    # What a run leaves that was cut off is completed by the next one.
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "rows": rows[:5]}), encoding="utf-8")
    call_benchmark(f"{command} --dtypes float64")
    dtypes = [row["dtype"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    assert dtypes == 5 * ["float32"] + [row["dtype"] for row in rows if row["dtype"] == "float64"]
    bounds = importlib.import_module("gpu_equality").BOUNDS
    monkeypatch.setitem(bounds["objective"], "float32", -1.0)
    with pytest.raises(SystemExit) as end:
        call_benchmark(command)
    assert end.value.code == 1
    broken, total = 16 * len(backends), 240 * len(backends)
    assert f"{broken} of {total} differences are above their bounds" in capsys.readouterr().out


def test_rows_of_an_earlier_run_are_replaced(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    scaling = importlib.import_module("scaling")
    problem = {"problem": "plane", "n": 9, "rank": 3, "dtype": "float64", "target": 0.1}
    old = {**problem, "run": "old"}
    others = [{**old, "n": 8}, {**old, "target": 0.2}, {**old, "rank": 4}, {**old, "dtype": "float32"}]
    new = [{**problem, "run": "new", "way": way} for way in scaling.WAYS]
    rows = [old, *others]
    for row in new:
        rows = [*scaling.without_earlier(rows, row), row]
    assert rows == others + new


@pytest.fixture
def imports(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("imports")


def test_ratios_of_imports_are_those_of_the_same_round(imports):
    times = {name: [1.0, 2.0, 4.0] for name in imports.PROGRAMS} | {"import symrelu": [0.5, 0.5, 8.0]}
    row = next(row for row in imports.rows(times) if row["program"] == "import symrelu")
    assert row == {
        "program": "import symrelu",
        "seconds": 0.5,
        "ratio": 0.5,
        "to": "import sklearn.base, numba",
    }
    assert set(imports.RATIOS) | set(imports.RATIOS.values()) == set(imports.PROGRAMS)


def test_a_program_that_fails_is_not_timed(imports):
    trees = {"here": FOLDER.parent}
    assert 0 < imports.seconds(imports.Program("import sys"), trees) < 60
    with pytest.raises(SystemExit, match="ended with status 3"):
        imports.seconds(imports.Program("import sys; sys.exit(3)"), trees)


@pytest.fixture
def neighbors(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("neighbors")


def recall_by_sorting(A, scores):
    """The recall of each node by its definition, for scores without ties."""
    shares = []
    for node in np.flatnonzero(A.any(axis=1)):
        others = [j for j in np.argsort(-scores[node]) if j != node]
        shares.append(np.mean(A[node, others[: np.count_nonzero(A[node])]] > 0))
    return shares


@pytest.mark.parametrize("memory", [0.001, 1024])  # MiB: a row at a time, and all at once
@pytest.mark.parametrize("kind", ["InnerProducts", "Distances"])
def test_recall_counts_the_best_scores_of_every_node(neighbors, kind, memory):
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((50, 50)) < 0.1, 1)
    A = (A | A.T) * rng.random()
    A[7] = A[:, 7] = 0  # a node without neighbours does not count
    U, V = rng.standard_normal((2, 50, 3))
    if kind == "InnerProducts":
        embedding, scores = neighbors.InnerProducts(U, V), U @ V.T
    else:
        embedding, scores = neighbors.Distances(U), -np.linalg.norm(U[:, None] - U, axis=2)
    expected, degrees = recall_by_sorting(A, scores), np.count_nonzero(A, axis=1)
    with sklearn.config_context(working_memory=memory):
        found = neighbors.recall(sparse.csr_array(A), embedding)
    assert_allclose(found.of_nodes, np.mean(expected))
    assert_allclose(found.of_links, np.average(expected, weights=degrees[degrees > 0]))
    assert_allclose(found.whole_nodes, np.mean(np.equal(expected, 1)))


def test_recall_of_ties_is_that_of_a_random_order(neighbors):
    """With equal scores everywhere, as many neighbours are found as by guessing."""
    A = np.zeros((20, 20))
    A[0, 1:6] = A[1:6, 0] = 1
    found = neighbors.recall(sparse.csr_array(A), neighbors.Distances(np.zeros((20, 2))))
    assert_allclose(found.of_nodes, (5 / 19 + 5 * 1 / 19) / 6)
    scores, best = np.zeros(20), [3, 4]
    scores[best] = 1
    assert neighbors.expected_hits(scores, np.array([3, 5, 6])) == 1 + 2 * 1 / 18
    assert neighbors.expected_hits(scores, np.array([3, 4])) == 2
    assert neighbors.expected_hits(scores, np.array([5])) == 0


def test_rows_of_lpca_share_fits(neighbors):
    rows = [key for key in neighbors.METHODS if key.startswith("LPCA")]
    jobs = list(neighbors.jobs(["digits"], rows, [8, 16], 1, ["recall"]))
    assert [job.columns for job in jobs] == [4, 8, 16]


@pytest.fixture
def tasks(monkeypatch):
    """A function that imports a module of the benchmark of usefulness."""
    monkeypatch.syspath_prepend(FOLDER)
    return lambda name: importlib.import_module(f"tasks.{name}")


@pytest.fixture
def graph():
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((30, 30)) < 0.2, 1).astype(float)
    half[0] = half[:, 0] = 0  # a node without a link
    return half + half.T


def test_netmf_is_its_formula(tasks, graph):
    degree = graph.sum(axis=1)
    inverse = np.diag(np.divide(1, degree, where=degree > 0, out=np.zeros(30)))
    powers = [np.linalg.matrix_power(inverse @ graph, t) for t in (1, 2, 3)]
    expected = np.log(np.maximum(degree.sum() / 3 * sum(powers) @ inverse, 1))
    assert_allclose(tasks("netmf").netmf_matrix(sparse.csr_array(graph), 3), expected, atol=1e-12)


def test_katz_counts_all_paths(tasks, graph):
    links = tasks("links")
    i, j = np.triu_indices(30, 1)
    beta = 0.5 / np.linalg.eigvalsh(graph)[-1]
    expected = np.linalg.inv(np.eye(30) - beta * graph)[i, j]
    found = links.katz(sparse.csr_array(graph), i, j, seed=0)["beta 0.5 / λ"]
    assert_allclose(found, expected, atol=1e-7)


def test_the_linear_control_has_no_relu(tasks, graph):
    """Its loss is a weighted sum of squares of M - X over all pairs of different items."""
    rng = np.random.default_rng(1)
    U, signature = rng.standard_normal((30, 3)), np.array([1.0, 1.0, -1.0])
    op = tasks("controls").WithoutReLU(sparse.csr_array(graph), signature=signature, alpha=0.0, zero_weight=0.1)
    residual = graph - (U * signature) @ U.T
    weights = np.where(graph > 0, 1.0, 0.1) * (1 - np.eye(30))
    found = op._evaluate(U, U)
    assert_allclose(found.loss, np.sum(weights * residual**2) / 2)
    assert_allclose(found.product, (weights * residual) @ U)


def test_the_best_setting_is_that_of_the_mean(tasks):
    report, base = tasks("report"), tasks("base")
    task = base.Task("t", ("d",), ("m",), None, None, (), hindsight="a")
    values = {("x", "a"): (0.9, 0.1), ("y", "a"): (0.6, 0.6), ("x", "b"): (1, 1), ("y", "b"): (0, 0.5)}
    records = [
        {"task": "t", "data": "d", "method": "m", "seed": seed, "setting": s, "measure": measure} | rest
        for (s, measure), found in values.items()
        for seed, rest in enumerate({"value": value, "seconds": 1} for value in found)
    ]
    lines = report.summarise(task, records)
    assert {(line.setting, line.measure, line.mean) for line in lines} == {("y", "a", 0.6), ("y", "b", 0.25)}


@pytest.mark.filterwarnings("ignore")
def test_fuzzer_runs_every_check(call_benchmark, capsys):
    """A run by hand says whether the fits pass; this one that every check is made, and the fuzzer works."""
    with pytest.raises(SystemExit) as end:
        call_benchmark("fuzz.py --fits 10 --seed 4 --output fuzz.json")
    summary = json.loads(Path("fuzz.json").read_text(encoding="utf-8"))
    assert end.value.code == (1 if summary["failures"] else 0)
    assert "| history |" in capsys.readouterr().out
    assert summary["checks"]["finished"] == {"passed": 10}, summary["failures"]
    assert all(counts.get("passed", 0) + counts.get("failed", 0) for counts in summary["checks"].values())


def test_rows_of_the_same_versions_are_kept(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(FOLDER)
    gpu = importlib.import_module("gpu")
    path, now = tmp_path / "fits.json", {"torch": "2"}
    rows = [{"n": 1, "seconds": 3.0}, {"n": 2, "seconds": 4.0}]
    assert gpu.with_earlier(path, rows, ("n",), now) == rows
    gpu.write_json(path, {"environment": now, "rows": rows})
    again = [{"n": 1, "seconds": 2.0}]
    assert gpu.with_earlier(path, again, ("n",), now) == [rows[1], *again]
    assert gpu.with_earlier(path, again, ("n",), {"torch": "3"}) == again


def test_fits_that_are_compared_have_the_same_steps(monkeypatch):
    """In "auto" precision, a GPU makes steps that are not counted before those that are."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(FOLDER)
    equality, asked = importlib.import_module("gpu_equality"), []

    def solved(M, rank, **settings):
        asked.append((settings["backend"], settings.get("precision")))
        return SimpleNamespace(relative_error=0.5)

    monkeypatch.setattr(equality, "decompose", solved)
    case = equality.Case("plain", None, 2)
    for backend in ("sparse", "cuda"):
        case.final_error("lbfgs", backend, None, 30)
    assert asked == [("sparse", None), ("cuda", "high")]
