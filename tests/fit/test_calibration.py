"""The calibration: what is timed, at which sizes, and how it is scaled. The clock is a counter here."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from symrelu import AAPB, LBFGS, PALM, Eigen, Newton, Problem
from symrelu.fit import calibration as module
from symrelu.fit.calibration import RowWork, Seconds, _free, _growing, _operator, calibrate
from symrelu.fit.memory_model import Case
from symrelu.fit.settings import Model, Run, Start
from symrelu.operators import operator_class

SOLVERS = [LBFGS(memory=2), Newton(memory=2), AAPB(), AAPB(safeguard=True), PALM(momentum=1.0), Eigen(sweeps=2)]


def ring(n, width=2):
    rows = np.repeat(np.arange(n), width)
    cols = (rows + np.tile(np.arange(1, width + 1), n)) % n
    upper = sparse.csr_array((np.ones(len(rows)), (rows, cols)), shape=(n, n))
    return sparse.csr_array(upper + upper.T)


def case_of(M, rank=3, *, n_negative=0, **run):
    problem = Problem.of(M)
    return Case.of(problem, Model(rank=rank, n_negative=n_negative), Start(), Run(**run))


@pytest.fixture
def counted(monkeypatch):
    """A clock that advances by a second whenever someone looks."""
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=itertools.count().__next__))


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_the_work_of_the_systems(rank):
    degrees = np.array([0, 1, 3, 4, 9, 30])
    total = 0.0
    for k in degrees:
        side = min(k, rank)
        formed = k * k * rank / 2 if k < rank else k * rank * rank / 2
        total += formed + side**3 / 6 + 4 * k * rank
    assert RowWork.of(degrees, rank) == (6, 47, pytest.approx(total))


def test_the_size_is_doubled_until_a_run_is_long_enough():
    sizes = []

    def timed(size):
        sizes.append(size)
        return 10.0 * size, size / 1000

    assert _growing(case_of(ring(5000)), timed, 1.5) == 20_000
    assert sizes == [500, 1000, 2000]
    sizes.clear()
    assert _growing(case_of(ring(700)), timed, 1.5) == 7000
    assert sizes == [500, 700], "no larger than M"


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(("backend", "support"), [("sparse", 16), ("active", 4)])
def test_passes_scale_with_pairs_and_lists_with_entries(backend, support):
    M = ring(2000)
    seconds = calibrate(case_of(M, backend=backend), np.diff(M.indptr))
    assert seconds.tiles == (2000 / 500) ** 2
    assert seconds.support == pytest.approx(support, rel=0.01)
    # Of the counts of a step, one belongs to its systems; both grow with the rows.
    assert seconds.solver == pytest.approx(3 * 4, rel=0.02)


@pytest.mark.usefixtures("counted")
def test_hubs_have_larger_systems():
    M = ring(2000)
    even = calibrate(case_of(M, 8), np.diff(M.indptr)).solver
    degrees = np.where(np.arange(2000) < 20, 202, 2)  # as many entries
    assert calibrate(case_of(M, 8), degrees).solver > even


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("backend", ["sparse", "dense", "reference"])
def test_solvers_make_steps_with_passes_that_cost_nothing(solver, backend):
    op = _free(operator_class(backend)).of(
        ring(40).toarray() if backend != "sparse" else ring(40), None, signature=[1, 1, -1]
    )
    U = np.random.default_rng(0).standard_normal((40, 3))
    states = [solver.init(op, U)]
    for _ in range(6):
        states.append(solver.step(op, states[-1]))
    objectives = [state.objective for state in states]
    assert np.isfinite(objectives).all()
    assert objectives[-1] < objectives[0]
    assert op.evaluations >= 7
    if isinstance(solver, LBFGS | Newton):  # whose steps are those of LBFGS here
        assert len(states[-1].steps) == solver.memory, "else its two loops would be too short"


def test_the_function_of_the_steps_has_the_gradient_it_says():
    op = _free(operator_class("sparse")).of(ring(12), None, signature=[1, -1])
    rng = np.random.default_rng(0)
    U, D = rng.standard_normal((2, 12, 2))
    gradient = -2 * op.residual_product(U, U).product * op.signature
    rise = op.loss(U + 1e-6 * D).latent_loss - op.loss(U - 1e-6 * D).latent_loss
    assert rise / 2e-6 == pytest.approx(np.sum(gradient * D), rel=1e-6)


def test_one_matrix_for_all_rows_where_the_fit_has_one(monkeypatch):
    solved = []
    kind = operator_class("sparse")
    original = kind.solve_rows
    monkeypatch.setattr(kind, "solve_rows", lambda self, *a: solved.append(1) or original(self, *a))
    dense = np.ones((60, 60))
    for M, expected in ((sparse.csr_array(dense), False), (ring(60), True)):
        solved.clear()
        calibrate(case_of(M, 4), np.diff(M.indptr))
        assert bool(solved) == expected


def test_data_are_of_the_same_kind():
    case = case_of(ring(2000).astype(np.float32), 9, backend="active")
    op = _operator(case, 500, 4.0)
    assert type(op).__name__ == "ActiveOperator"
    assert op.dtype == np.float32
    assert op.n_positive == pytest.approx(2000, rel=0.05)
    tiled = _operator(case, 500, 4.0, tiled=True)
    assert type(tiled).__name__ == "SparseOperator"
    assert tiled.side == operator_class("sparse")(ring(2000), signature=np.ones(9)).side


@pytest.mark.parametrize("backend", ["sparse", "active", "dense", "torch", "reference"])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_every_backend_and_tiny_matrices(backend, n):
    if backend == "torch":
        pytest.importorskip("torch")
    M = sparse.csr_array(np.ones((n, n)))
    seconds = calibrate(case_of(M, 1, backend=backend), np.diff(M.indptr))
    assert isinstance(seconds, Seconds)
    assert all(0 <= part < 60 for part in seconds)
    assert seconds.support <= seconds.tiles


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("backend", ["sparse", "active"])
def test_factors_with_many_columns_are_timed_with_fewer(backend, monkeypatch):
    """Else a rank near n would take the time and the memory of the fit itself."""
    ranks = []

    def watched(case, size, *arguments, **settings):
        ranks.append(case.rank)
        return _operator(case, size, *arguments, **settings)

    monkeypatch.setattr(module, "_operator", watched)
    M = ring(2000)
    monkeypatch.setattr(module, "_MOST_COLUMNS", 4)
    few, many = (calibrate(case_of(M, rank, backend=backend), np.diff(M.indptr)) for rank in (4, 12))
    assert set(ranks) == {4}
    assert many.tiles == 3 * few.tiles
    assert many.support == pytest.approx(3 * few.support)
    assert 3 * few.solver < many.solver < 10 * few.solver
