"""The memory of a fit: counted before, and compared with what a fit allocates."""

import gc
import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems_of_size import CASE, graph, memory
from scipy import sparse

from symrelu import AAPB, LBFGS, PALM, Eigen, Newton, Problem, decompose
from symrelu.fit.memory_model import _BYTES_OF_A_LISTED_ENTRY, memory_of
from symrelu.kernels.memory import in_words
from symrelu.kernels.pair_curvature import curved_pairs
from symrelu.kernels.pair_lists import most_entries, scan_again, scan_all
from symrelu.kernels.pair_passes import Entries
from symrelu.kernels.row_references import new_references
from symrelu.kernels.streaming import _new_desk, _new_pass
from symrelu.kernels.threads import at_most_threads
from symrelu.kernels.tiles import tile_side
from symrelu.kernels.vectors import compile_for

SOLVERS = {"lbfgs": LBFGS(), "aapb": AAPB(), "palm": PALM(), "eigen": Eigen(), "newton": Newton()}
STEPS = {"tol": 0, "gtol": 0, "ftol": 0, "max_iter": 5, "random_state": 0}
SHORT = LBFGS(memory=3)  # full after so few steps
NEWTON = Newton(memory=3, switch=0.9)  # its own steps begin when the memory is full


def allocated(M, rank, **settings):
    """Return the peak of what a fit allocates, in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        decompose(M, rank, **{**STEPS, **settings})
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """One thread, and everything compiled: compiling needs memory too."""
    with at_most_threads(1):
        for dtype in ("float32", "float64"):
            compile_for(np.dtype(dtype))
            M = graph(300, 5, dtype)
            for solver in SOLVERS:
                decompose(M, 3, solver=solver, max_iter=2)
            decompose(M, 3, backend="active", n_negative=1, max_iter=2)
            decompose(M, 3, solver=Newton(switch=9.0), diagonal="ignore", n_negative=1, max_iter=40)
            decompose(M.toarray(), 3, max_iter=2)
        decompose(graph(1100, 10), 3, init="multilevel", max_iter=2)
        yield


# Wide factors, for which those count, and narrow ones, for which the entries of M do.
@pytest.mark.parametrize(
    ("n", "degree", "rank", "settings"),
    [
        (1500, 10, 24, {"solver": SHORT}),
        (1500, 10, 24, {"solver": SHORT, "diagonal": "ignore", "n_negative": 1}),
        (1500, 10, 24, {"solver": LBFGS(), "max_iter": 2}),
        (1500, 10, 24, {"solver": NEWTON, "diagonal": "ignore", "n_negative": 1, "max_iter": 25}),
        (1500, 10, 24, {"solver": "aapb"}),
        (1500, 10, 24, {"solver": "palm", "init": "random"}),
        (2500, 10, 32, {"solver": "eigen"}),
        (1500, 120, 2, {"solver": SHORT}),
        (1500, 120, 2, {"solver": SHORT, "diagonal": "ignore"}),
        (1500, 120, 2, {"init": "random", "solver": "palm"}),
        (600, 60, 8, {"solver": SHORT, "backend": "dense"}),
        (600, 60, 8, {"solver": SHORT, "backend": "dense", "diagonal": "ignore"}),
    ],
)
@pytest.mark.parametrize(("dtype", "index"), [("float64", "int64"), ("float32", "int32")])
def test_a_fit_allocates_what_was_announced(n, degree, rank, settings, dtype, index):
    M = graph(n, degree, dtype, index)
    counted = {name: value for name, value in settings.items() if name != "diagonal"}
    announced = memory(Problem.of(M, None, settings.get("diagonal", "fit")), rank, **counted).total
    assert 1 / 1.25 <= allocated(M, rank, **settings) / announced <= 1.2


def test_newton_holds_systems_only_in_steps_of_its_own():
    M, settings = graph(1500, 10), {"solver": NEWTON, "n_negative": 1, "max_iter": 8}
    announced = memory(Problem.of(M), 24, **settings)
    assert announced.systems == (24 // 2 + 6) * 24 * 1500 * 8
    assert announced.total == announced.matrix + announced.factors + announced.systems  # without tiles
    assert 1 / 1.25 <= allocated(M, 24, **settings) / announced.least <= 1.2


@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
def test_a_fit_of_an_array(diagonal):
    M = graph(900, 60).toarray()
    announced = memory(Problem.of(M, None, diagonal), 32, solver=SHORT).total
    assert 1 / 1.25 <= allocated(M, 32, solver=SHORT, diagonal=diagonal) / announced <= 1.2


@pytest.mark.parametrize("extra", [{"backend": "active"}, {"init": "multilevel"}])
def test_what_depends_on_the_fit_lies_between_the_ends(extra):
    M = graph(1100, 10)
    announced = memory(Problem.of(M, None, "ignore"), 16, n_negative=1, solver=SHORT, **extra)
    assert announced.least < announced.total
    used = allocated(M, 16, n_negative=1, diagonal="ignore", solver=SHORT, **extra)
    assert 0.8 * announced.least <= used <= 1.2 * announced.total


PROGRAM = """
import ctypes, gc, json
from pathlib import Path
import numpy as np
from scipy import sparse
from symrelu import Problem, decompose
from symrelu.fit.memory_model import _BYTES_OF_A_LISTED_ENTRY, Case, memory_of
from symrelu.fit.settings import Model, Run, Start

def ring(n, width):
    rows = np.repeat(np.arange(n), width)
    cols = (rows + np.tile(np.arange(1, width + 1), n)) % n
    upper = sparse.csr_array((np.ones(len(rows)), (rows, cols)), shape=(n, n))
    return sparse.csr_array(upper + upper.T)

def resident(entry):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(entry))

steps = {"tol": 0, "gtol": 0, "ftol": 0, "random_state": 0, "init": "random", "max_iter": 12}
decompose(ring(300, 3), 3, **steps)
M = ring(5000, 5)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)  # what compiling left free
Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
before = resident("VmRSS")
decompose(M, 64, **steps)
rise = resident("VmHWM") - before
announced = memory_of(Case.of(Problem.of(M), Model(rank=64), Start(init="random"), Run())).total
print(json.dumps({"rise": rise, "announced": announced}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="others cannot forget an earlier peak")
def test_the_peak_of_a_process():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    figures = json.loads(done.stdout or f'"{done.stderr}"')
    assert 0.7 * figures["announced"] <= figures["rise"] <= 1.2 * figures["announced"]


def size(*arrays):
    return sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "rank"), [(40, 3), (700, 7), (700, 40)])
def test_parts_are_those_of_the_arrays(n, rank, dtype):
    """Oracle: the arrays themselves."""
    problem = Problem.of(graph(n, 6, dtype, "int64"))
    counted = memory(problem, rank)
    assert counted.factors == (2 * 10 + 7) * n * rank * np.dtype(dtype).itemsize
    U = np.zeros((n, rank), dtype)
    desk = _new_desk(_new_pass(U, U, U, True, tile_side(n, rank)))
    assert counted.tiles == size(*desk)
    op = problem.operator(np.ones(rank))
    not_zero = op._not_zero
    kept = size(not_zero.data, not_zero.indices, not_zero.indptr, op.support[1])
    support, _ = op._packed()
    kept += size(support.start, support.rows, support.cols, support.values)
    assert counted.matrix == pytest.approx(kept, rel=0.02)


def test_a_matrix_that_is_packed_already_counts_as_nothing():
    problem = Problem.of(graph(500, 60))
    before = memory(problem, 2)
    problem.operator(np.ones(2))
    after = memory(problem, 2)
    assert before.matrix > after.matrix == 0
    assert before.factors == after.factors


def test_lists_and_levels_count_only_where_they_can_exist():
    problem = Problem.of(graph(500, 6))
    assert memory(problem, 2).pairs == memory(problem, 2).levels == 0
    assert memory(problem, 2, backend="active").pairs == 15 * most_entries(500, 2)
    assert memory(problem, 2, init="multilevel").levels == 0
    assert memory(Problem.of(graph(1100, 6)), 2, init="multilevel").levels > 0


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_list_counts_what_scans_hold(share):
    """Oracle: what is allocated, at the largest shares of the rows that are scanned again."""
    n, rank, rng = 3000, 8, np.random.default_rng(0)
    references, known = new_references(rng.standard_normal((n, rank)), np.ones(rank)), sparse.csr_array((n, n))
    rows = np.flatnonzero(rng.random(n) < share)
    old = scan_all(references, 0.0, known, n * n)
    scan_again(old, rows, references, 0.0, known, n * n)  # compiles
    for scan in (
        lambda: scan_all(references, 0.0, known, n * n),
        lambda: scan_again(old, rows, references, 0.0, known, n * n),
    ):
        tracemalloc.start()
        new = scan()
        peak = tracemalloc.get_traced_memory()[1] + 4 * len(old.indices)
        tracemalloc.stop()
        assert peak <= _BYTES_OF_A_LISTED_ENTRY * len(new.indices)
    assert peak >= 0.75 * _BYTES_OF_A_LISTED_ENTRY * len(new.indices)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_newton_counts_what_collecting_its_pairs_holds(dtype):
    """Oracle: what is allocated, if all listed pairs have curvature."""
    n, rng = 1500, np.random.default_rng(0)
    U, signs = rng.random((n, 8)).astype(dtype), np.ones(8, dtype)
    nothing = Entries(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, dtype))
    listed = scan_all(new_references(U, signs), 0.0, sparse.csr_array((n, n)), n * n)
    weights = {"zero_weight": dtype(1), "at_least": False}
    curved_pairs(U, signs, nothing, listed, 0.1, **weights)  # compiles
    tracemalloc.start()
    pairs = curved_pairs(U, signs, nothing, listed, 0.1, **weights)
    held = tracemalloc.get_traced_memory()[1] + 4 * len(listed.indices)
    tracemalloc.stop()
    assert len(pairs.indices) == len(listed.indices) == n * n
    case = replace(CASE, n=n, solver=Newton(), backend="active", dtype=np.dtype(dtype))
    counted = memory_of(case).pairs / most_entries(n, CASE.rank)
    assert 0.75 <= held / len(listed.indices) / counted <= 1.02


@given(
    n=st.integers(2000, 10**7),
    rank=st.integers(1, 512),
    degree=st.integers(1, 100),
    solver=st.sampled_from(list(SOLVERS.values())),
    backend=st.sampled_from(["sparse", "dense", "active", "torch", "reference", "dask"]),
    init=st.sampled_from(["imputed", "spectral", "random", "multilevel", "array"]),
    hidden=st.booleans(),
)
def test_more_needs_more_memory(n, rank, degree, solver, backend, init, hidden):
    case = replace(
        CASE, n=n, rank=rank, entries=n * degree, hidden=n * hidden, solver=solver, backend=backend, init=init
    )
    counted = memory_of(case)
    assert 0 < counted.least <= counted.total
    larger = [
        replace(case, n=2 * n, entries=2 * case.entries, hidden=2 * case.hidden),
        replace(case, rank=2 * rank),
        replace(case, entries=2 * case.entries),
        replace(case, threads=2),
    ]
    for other in map(memory_of, larger):
        assert other.least >= counted.least
        assert other.total >= counted.total
    assert memory_of(replace(case, dtype=np.dtype("float32"))).factors * 2 == counted.factors


class Stepless:
    """A solver that does not say how many arrays it holds."""

    def init(self, op, U0):
        raise AssertionError

    def step(self, op, state):
        raise AssertionError


def test_a_solver_that_does_not_say_what_it_holds():
    assert memory_of(replace(CASE, solver=Stepless())).factors == 16 * 3000 * 8 * 8


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 kB"), (1500, "1.5 kB"), (2.5e6, "2.5 MB"), (1.234e9, "1.23 GB"), (3e12, "3 TB")]
)
def test_bytes_in_words(count, text):
    assert in_words(count) == text
