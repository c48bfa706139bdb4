"""The multilevel start: what it gives, counts, says and survives."""

import logging
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
import pytest
from helpers import OPERATORS, SOLVERS, random_problem, runs_on
from numpy.testing import assert_allclose, assert_array_equal
from same_fits import assert_same
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from symrelu import LBFGS, Checkpoint, Problem, Solution, Status, SymReLU, decompose
from symrelu.fit import levels as module
from symrelu.fit.levels import Levels
from symrelu.fit.loop import run
from symrelu.fit.settings import Limits
from symrelu.graphs import self_tuning_graph
from symrelu.kernels import threads
from symrelu.operators import EvaluationFailed, Operator
from symrelu.problem import coarsening

M = self_tuning_graph(np.random.default_rng(0).random((300, 2)), 8)
FIT = {"init": "multilevel", "n_negative": 1, "diagonal": "ignore", "random_state": 0}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "FEWEST_ITEMS", 60)
    monkeypatch.setattr(coarsening, "_MOST_POSITIVE", 1.0)  # so small a matrix is never sparse


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.ckpt"


def operators_of(rank=6, **fit):
    """Return a solution, and the operators of the matrices that the fit went through, the smallest first."""
    operators = []

    def noted(op, *arguments, **named):
        operators.append(op)
        return run(op, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "run", noted)
        solution = decompose(M, rank, **{**FIT, **fit})
    return solution, operators


def sizes_of(rank=6):
    return [op.n for op in operators_of(rank, max_iter=1)[1]]


def test_levels_go_from_the_smallest_to_the_matrix():
    sizes = sizes_of()
    assert sizes[-1] == 300
    assert sizes[0] <= 60
    assert len(sizes) == 4
    assert all(small < 0.8 * large for small, large in pairwise(sizes))


def test_the_rank_bounds_the_smallest_matrix():
    assert sizes_of(rank=6)[0] >= 24
    assert sizes_of(rank=19)[0] >= 76
    assert sizes_of(rank=38) == [300]


def test_it_needs_fewer_evaluations_than_the_imputed_start():
    solution = decompose(M, 12, tol=1e-3, **FIT)
    imputed = decompose(M, 12, tol=1e-3, **{**FIT, "init": "imputed"})
    assert solution.status is imputed.status is Status.TOLERANCE
    assert solution.n_evaluations < imputed.n_evaluations


def test_a_small_matrix_gets_the_imputed_start(monkeypatch):
    monkeypatch.setattr(module, "FEWEST_ITEMS", 300)
    solution = decompose(M, 6, max_iter=5, **FIT)
    imputed = decompose(M, 6, max_iter=5, **{**FIT, "init": "imputed"})
    assert_array_equal(solution.U, imputed.U)
    assert solution.n_evaluations == imputed.n_evaluations


def lines_of(caplog, **settings):
    """Return what a fit logs, without what it says of compilation and of its backend."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "symrelu"):
        decompose(M, 6, verbose=1, **{"max_iter": 2, **FIT, **settings})
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if not line.startswith(("compiling", "backend="))]


def test_a_smaller_matrix_does_not_reach_the_tolerance_of_the_fit(caplog):
    ends = [line for line in lines_of(caplog, tol=1e-6) if "relative error" in line]
    levels, last = [line for line in ends if line.startswith("level")], ends[-1]
    assert levels
    assert all("the work of" in line and "reached tol" not in line for line in levels)
    assert any("close enough for a start" in line for line in levels)
    assert last.startswith("max_iter was reached after 2 steps (")
    assert "the work of" not in last


def test_a_start_without_smaller_matrices_is_announced(caplog, monkeypatch):
    assert not any("init=" in line for line in lines_of(caplog))
    monkeypatch.setattr(module, "FEWEST_ITEMS", 300)
    small = (
        "init='multilevel' is the same as 'imputed' here: M has 300 items, and only matrices of more than 300"
    )
    assert lines_of(caplog)[0].startswith(small)
    assert not any("init=" in line for line in lines_of(caplog, init="imputed"))
    monkeypatch.setattr(module, "FEWEST_ITEMS", 60)
    monkeypatch.setattr(coarsening, "_MOST_ITEMS", 0.0)  # as if too few items could be merged
    assert "init='multilevel' is the same as 'imputed' here: no smaller matrix" in lines_of(caplog)[0]


def test_same_seed_same_factor_on_any_number_of_threads(monkeypatch):
    first = decompose(M, 6, max_iter=5, **FIT)
    monkeypatch.setattr(threads, "MIN_WORK_OF_A_THREAD", 10**18)  # one thread
    assert_array_equal(decompose(M, 6, max_iter=5, **FIT).U, first.U)
    assert (decompose(M, 6, max_iter=5, **{**FIT, "random_state": 1}).U != first.U).any()


def test_random_states_other_than_integers():
    for state in (None, np.random.default_rng(0), np.random.RandomState(0)):
        assert decompose(M, 6, max_iter=20, **{**FIT, "random_state": state}).relative_error < 0.5


# ------------------------------------------------------------------------------------------- evaluations


def test_passes_over_smaller_matrices_count_by_their_pairs():
    """The passes that the operators have counted, each divided by its part of the pairs."""
    solution, (*smaller, op) = operators_of(max_iter=5, tol=0)
    before = sum(other.evaluations * other.n**2 for other in smaller) / op.n**2
    assert solution.n_evaluations == int(np.ceil(before + op.evaluations))
    assert_array_equal(solution.history.evaluations, np.ceil(before + np.arange(1, 7)))
    assert solution.n_iter == 5
    assert_array_equal(solution.history.iteration, np.arange(6))
    assert (np.diff(solution.history.seconds) >= 0).all()
    assert solution.history.seconds[0] > 0


def test_the_error_is_that_of_the_matrix():
    solution = decompose(M, 6, max_iter=3, **FIT)
    X = (solution.U * solution.signature) @ solution.U.T
    off = ~np.eye(300, dtype=bool)
    error = np.linalg.norm((M.toarray() - np.maximum(0, X))[off]) / np.linalg.norm(M.toarray())
    assert_allclose(solution.relative_error, error, rtol=1e-10)


# ------------------------------------------------------------------------------------- every combination


@pytest.mark.parametrize(
    ("name", "backend"),
    [case for case in product(SOLVERS, ["dense", "sparse", "reference", "torch"]) if runs_on(*case)],
)
def test_every_solver_with_every_backend(name, backend, monkeypatch):
    monkeypatch.setattr(module, "_LOOSE", Limits(max_iter=5))  # the paper's solvers would take all steps
    solution = decompose(M, 4, solver=SOLVERS[name], backend=backend, max_iter=2, tol=0, **FIT)
    assert np.isfinite(solution.U).all()
    assert solution.history.objective[-1] < solution.history.objective[0] < solution.norm**2


@pytest.mark.parametrize("name", OPERATORS)
def test_a_start_is_an_array_of_the_operator(name):
    made = random_problem(0, n=90, rank=3, n_negative=1, ignore_diagonal=True)
    op = OPERATORS[name](made)
    levels = Levels(Problem.of(made.M, diagonal="ignore"), op, "sparse", multilevel=True)
    stage = levels.first_stage(0)
    small_op = levels.operator(stage.level)
    U = np.random.default_rng(0).standard_normal((small_op.n, 3))
    outcome = run(small_op, SOLVERS["PALM"], U, module._LOOSE, stage=stage)
    U0 = levels.start_from(outcome, 0)
    assert isinstance(U0, type(op.asarray(np.ones((90, 3)))))
    assert op.loss(U0).loss < op.norm**2


@pytest.mark.parametrize(
    "settings",
    [
        {"n_negative": 0, "diagonal": "fit"},
        {"n_negative": 3},
        {"n_negative": "auto"},
        {"alpha": 0.05},
        {"zero_weight": 0.1},
        {"support": "at_least", "alpha": 0.01},
        {"mask": np.add.outer(np.arange(300), np.arange(300)) % 7 == 0},
    ],
    ids=lambda settings: ", ".join(settings),
)
def test_models(settings):
    solution = decompose(M, 6, max_iter=30, **{**FIT, **settings})
    imputed = decompose(M, 6, max_iter=30, **{**FIT, **settings, "init": "imputed"})
    assert solution.objective < 1.5 * imputed.objective
    assert_array_equal(solution.signature, imputed.signature)


def test_masked_entries_do_not_matter():
    mask = np.add.outer(np.arange(300), np.arange(300)) % 7 == 0
    first = decompose(M.toarray(), 6, max_iter=3, mask=mask, **FIT)
    other = decompose(np.where(mask, 5.0, M.toarray()), 6, max_iter=3, mask=mask, **FIT)
    assert_array_equal(first.U, other.U)


def test_float32():
    single = decompose(M.astype(np.float32), 6, max_iter=3, **FIT)
    assert single.U.dtype == np.float32
    assert_allclose(single.relative_error, decompose(M, 6, max_iter=3, **FIT).relative_error, rtol=0.05)


@pytest.mark.parametrize("k", [-200, 1, 200])
def test_scaling_by_a_power_of_4_is_exact(k):
    first = decompose(M, 6, max_iter=5, **FIT)
    other = decompose(M * 4.0**k, 6, max_iter=5, **FIT)
    if abs(k) == 1:
        assert_allclose(other.relative_error, first.relative_error, rtol=1e-6)
    assert other.relative_error < 0.5
    assert np.isfinite(other.U).all()


def star(n):
    A = np.zeros((n, n))
    A[0, 1:] = A[1:, 0] = 1
    return A


AWKWARD = {
    "star": star(300),
    "complete": 1 - np.eye(150),
    "path": np.eye(300, k=1) + np.eye(300, k=-1),
    "two components and isolated nodes": np.kron(np.diag([1.0, 1.0, 0.0]), star(100)),
    "single edges": np.kron(np.eye(75), star(2)),
    "triangles": np.kron(np.eye(100), 1 - np.eye(3)),
}


@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(name, diagonal):
    fit = {**FIT, "diagonal": diagonal, "max_iter": 30}
    solution = decompose(sparse.csr_array(AWKWARD[name]), 6, **fit)
    imputed = decompose(sparse.csr_array(AWKWARD[name]), 6, **{**fit, "init": "imputed"})
    assert solution.relative_error < imputed.relative_error + 0.1


def test_the_estimator():
    model = SymReLU(6, init="multilevel", random_state=0, tol=0.1).fit(M)
    assert model.embedding_.shape == (300, 6)


# -------------------------------------------------------------------------------- progress and early ends


def test_callbacks_name_the_level_and_get_a_row_for_each_item():
    seen = []
    decompose(M, 6, max_iter=2, tol=0, callback=seen.append, **FIT)
    steps = [progress.level for progress in seen]
    assert steps == sorted(steps, reverse=True)
    assert set(steps) == {0, 1, 2, 3}
    assert {progress.U.shape for progress in seen} == {(300, 6)}
    counts = [progress.record.evaluations for progress in seen]
    assert counts == sorted(counts)
    # Items that were merged point in the same direction.
    first = seen[0].U / np.linalg.norm(seen[0].U, axis=1, keepdims=True)
    assert len(np.unique(first.round(10), axis=0)) < 70


def test_lines_name_the_level(caplog):
    with caplog.at_level(logging.INFO, "symrelu"):
        decompose(M, 6, max_iter=2, tol=0, verbose=2, **FIT)
    lines = [record.getMessage() for record in caplog.records]
    sizes = sizes_of()
    for level, n in zip((3, 2, 1), sizes, strict=False):
        assert any(
            line.startswith(f"level {level} ({n} of 300 items): step 1: relative error") for line in lines
        )
    assert lines[-1].startswith("max_iter was reached after 2 steps")


def stop_at(level, step, action):
    def callback(progress):
        if (progress.level, progress.record.iteration) == (level, step):
            return action()
        return None

    return callback


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize(
    ("action", "status"), [(interrupt, Status.INTERRUPTED), (lambda: True, Status.CALLBACK)]
)
def test_a_fit_that_is_stopped_returns_a_factor_of_the_matrix(level, action, status):
    solution = decompose(M, 6, tol=1e-6, callback=stop_at(level, 2, action), **FIT)
    assert solution.status is status
    assert solution.U.shape == (300, 6)
    assert solution.n_iter == (0 if level else 2)
    assert len(solution.history) == solution.n_iter + 1
    again = decompose(M, 6, tol=1e-6, max_iter=1, **{**FIT, "init": solution.U})
    assert_allclose(again.history.relative_error[0], solution.relative_error, rtol=1e-10)
    assert solution.relative_error <= 1  # what was found so far is no worse than nothing
    assert solution.level == level


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_negative": 0, "diagonal": "fit"},
        {"backend": "torch"},
        {"mask": np.add.outer(np.arange(300), np.arange(300)) % 7 == 0},
    ],
    ids=lambda settings: ", ".join(settings) or "defaults",
)
def test_a_factor_of_a_smaller_matrix_is_scaled_to_the_matrix(settings):
    """Scaling it further, up or down, gives no lower objective."""
    if settings.get("backend") == "torch":
        pytest.importorskip("torch", reason="the backend needs torch")
    fit = {**FIT, **settings}
    solution = decompose(M, 6, callback=stop_at(3, 1, lambda: True), **fit)
    assert solution.relative_error <= 1
    for scale in (0.9, 1.1):
        other = decompose(M, 6, max_iter=1, **{**fit, "init": scale * solution.U})
        assert other.history.objective[0] > solution.objective


@pytest.mark.parametrize(
    "settings", [{"support": "at_least"}, {"zero_weight": 0.1}, {"zero_weight": 1e-6}, {"alpha": 0.05}]
)
@pytest.mark.parametrize("level", [1, 3])
def test_a_factor_of_a_smaller_matrix_is_no_worse_than_none(settings, level):
    solution = decompose(M, 6, callback=stop_at(level, 1, lambda: True), **FIT, **settings)
    assert 0.1 < solution.relative_error <= 1


def test_a_factor_that_points_away_from_the_matrix_becomes_zero():
    op = Problem.of(M, diagonal="ignore").operator(np.array([1.0, -1.0]))
    away = np.column_stack([np.zeros(300), np.ones(300)])
    assert not module._closest_multiple(op, away).any()
    assert not module._closest_multiple(op, np.zeros((300, 2))).any()


def test_the_pass_that_scales_a_factor_counts():
    solution, (*_, op) = operators_of(callback=stop_at(3, 1, lambda: True))
    assert op.n == 300
    assert op.evaluations == 2
    assert 2 < solution.n_evaluations <= 4


def let_fail(name, error, monkeypatch):
    """Let a kind of passes over M fail; those over smaller matrices do not."""
    original = getattr(Operator, name)

    def failing(op, *arguments):
        if op.n == 300:
            raise error
        return original(op, *arguments)

    monkeypatch.setattr(Operator, name, failing)


def stopped_at_a_level():
    """Return a fit that a callback stops at level 2, also if it fails after that, and the progress there."""
    seen = []

    def stop(progress):
        seen.append(progress)
        return (progress.level, progress.record.iteration) == (2, 3)

    try:
        return decompose(M, 6, callback=stop, **FIT), seen[-1]
    except EvaluationFailed as failure:
        return failure.solution, seen[-1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, EvaluationFailed])
def test_a_failure_while_a_factor_is_scaled_leaves_it_as_it_is(error, monkeypatch):
    let_fail("loss", error, monkeypatch)
    solution, _ = stopped_at_a_level()
    assert (solution.status, solution.level) == (Status.CALLBACK, 2)
    again = decompose(M, 6, max_iter=1, **{**FIT, "init": solution.U})
    assert_allclose(again.history.relative_error[0], solution.relative_error, rtol=1e-10)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_the_seconds_of_the_pass_that_scales_a_factor_count(error, monkeypatch):
    original = Operator.loss

    def slow(op, U):
        time.sleep(0.2)
        if error is not None:
            raise error
        return original(op, U)

    monkeypatch.setattr(Operator, "loss", slow)
    solution, last = stopped_at_a_level()
    assert solution.history.seconds[0] >= last.record.seconds + 0.2


@pytest.mark.parametrize("error", [KeyboardInterrupt, EvaluationFailed])
def test_a_failure_in_the_last_pass_keeps_the_factor_of_the_level(error, monkeypatch):
    """Its error and its history are those of the smaller matrix."""
    let_fail("residual_product", error, monkeypatch)
    solution, last = stopped_at_a_level()
    assert (solution.status, solution.level, last.level) == (Status.INTERRUPTED, 2, 2)
    assert_allclose(solution.U, last.U, rtol=1e-5)  # passes in float32
    assert solution.relative_error == last.record.relative_error
    assert (solution.n_iter, len(solution.history)) == (3, 4)


@pytest.mark.parametrize("error", [KeyboardInterrupt, EvaluationFailed])
def test_two_failures_after_the_start_of_a_level_keep_the_factor_before(error, monkeypatch):
    """The first one is in the start of level 0, the second one in what ends the fit."""
    let_fail("residual_product", error, monkeypatch)
    try:
        solution = decompose(M, 6, max_iter=2, **FIT)
    except EvaluationFailed as failure:
        solution = failure.solution
    assert (solution.status, solution.level, solution.U.shape) == (Status.INTERRUPTED, 1, (300, 6))
    assert len(solution.history) == solution.n_iter + 1 > 1


def test_a_solution_says_that_the_matrix_was_not_fitted(tmp_path):
    solution = decompose(M, 6, callback=stop_at(2, 3, lambda: True), **FIT)
    assert solution.level == 2
    reason = "the callback asked to stop at level 2 of the multilevel start, before M itself was fitted"
    assert solution.stop_reason == reason
    assert "checkpoint" in solution.advice
    assert "init=U" not in solution.advice
    assert "level=2" in repr(solution)
    assert reason in solution._repr_html_()
    solution.save(tmp_path / "fit.npz")
    assert Solution.load(tmp_path / "fit.npz").level == 2


def test_a_solution_of_the_matrix_itself_says_nothing_of_levels():
    solution = decompose(M, 6, max_iter=2, tol=0, **FIT)
    assert solution.level == 0
    assert (solution.stop_reason, solution.advice) == (solution.status.value, solution.status.advice)
    assert "level" not in repr(solution)


def test_a_factor_of_a_smaller_matrix_may_be_close_enough():
    solution = decompose(M, 6, tol=0.99, callback=stop_at(2, 3, lambda: True), **FIT)
    assert (solution.status, solution.level) == (Status.TOLERANCE, 0)


def test_lines_say_that_the_matrix_was_not_fitted(caplog):
    with caplog.at_level(logging.INFO, "symrelu"):
        solution = decompose(M, 6, verbose=1, callback=stop_at(2, 3, lambda: True), **FIT)
    *_, end, advice = (record.getMessage() for record in caplog.records)
    assert end.startswith(f"{solution.stop_reason} (")
    assert advice == solution.advice


def test_the_warning_of_an_estimator_says_that_the_matrix_was_not_fitted():
    model = SymReLU(6, init="multilevel", random_state=0, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="at level 3 of the multilevel start, before M itself"):
        model.fit(M)
    assert "before M itself was fitted" in model.stop_reason_


@dataclass(frozen=True)
class Stopping(LBFGS):
    """A solver whose first pass, or first step, over a matrix of some size fails once."""

    size: int = 0
    error: type[BaseException] = KeyboardInterrupt
    at: str = "init"
    failed: list[int] = field(default_factory=list, repr=False, compare=False)

    def _fail(self, op, at):
        if (op.n, at) == (self.size, self.at) and not self.failed:
            self.failed.append(op.n)
            raise self.error

    def init(self, op, U0):
        self._fail(op, "init")
        return super().init(op, U0)

    def step(self, op, state):
        if state.steps:
            self._fail(op, "step")
        return super().step(op, state)


@pytest.mark.parametrize("place", ["init", "operator", "start_from"])
@pytest.mark.parametrize("level", [2, 1, 0])
def test_an_interrupt_between_levels_keeps_the_factor_of_the_last_one(level, place, path, monkeypatch):
    sizes = sizes_of()[::-1]
    solver = Stopping(size=sizes[level] if place == "init" else 0)
    if place != "init":
        original, seen = getattr(Levels, place), []

        def interrupted(self, *arguments):
            if arguments[-1] == level and not seen:
                seen.append(level)
                raise KeyboardInterrupt
            return original(self, *arguments)

        monkeypatch.setattr(Levels, place, interrupted)
    fit = {**FIT, "max_iter": 4, "checkpoint": path}
    solution = decompose(M, 6, solver=solver, **fit)
    assert solution.status is Status.INTERRUPTED
    assert (solution.U.shape, solution.n_iter, len(solution.history)) == ((300, 6), 0, 1)
    assert (solution.relative_error < 1, solution.level) == (True, level + 1)
    assert_array_equal(decompose(M, 6, solver=solver, **fit).U, decompose(M, 6, max_iter=4, **FIT).U)


def test_an_interrupt_before_there_is_a_factor_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        decompose(M, 6, solver=Stopping(size=sizes_of()[0]), **FIT)


@pytest.mark.parametrize("level", [3, 1, 0])
def test_a_failure_has_the_history_of_its_level(level):
    solver = Stopping(size=sizes_of()[::-1][level], error=EvaluationFailed, at="step")
    with pytest.raises(EvaluationFailed) as failed:
        decompose(M, 6, solver=solver, tol=0, **FIT)
    solution = failed.value.solution
    assert solution.U.shape == (300, 6)
    assert len(solution.history) == solution.n_iter + 1 == 2
    assert solution.history.relative_error[-1] == solution.relative_error


def test_time_is_limited_at_every_level():
    solution = decompose(M, 6, tol=0, gtol=0, ftol=0, max_time=1e-9, **FIT)
    assert solution.status is Status.MAX_TIME
    assert solution.n_iter == 0
    assert solution.U.shape == (300, 6)


# --------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("random_state", [0, None])
def test_a_checkpoint_resumes_at_its_level(level, random_state, path, tmp_path):
    """The file as it is in the middle is what ``kill -9`` would leave."""
    middle = tmp_path / "middle.ckpt"
    settings = {**FIT, "random_state": random_state}

    def keep():
        shutil.copy(path, middle)

    whole = decompose(
        M,
        6,
        max_iter=6,
        tol=0,
        checkpoint=Checkpoint(path, every=0),
        callback=stop_at(level, 4, keep),
        **settings,
    )
    resumed = decompose(M, 6, max_iter=6, tol=0, checkpoint=middle, **settings)
    assert_same(whole, resumed)
    assert_array_equal(whole.U, resumed.U)


@pytest.mark.parametrize("action", [interrupt, lambda: True])
def test_a_fit_stopped_at_a_level_goes_on_there(action, path):
    decompose(M, 6, max_iter=6, checkpoint=path, callback=stop_at(2, 3, action), **FIT)
    resumed = decompose(M, 6, max_iter=6, checkpoint=path, **FIT)
    assert_array_equal(resumed.U, decompose(M, 6, max_iter=6, **FIT).U)


def test_a_fit_that_resumes_says_where(path, caplog):
    decompose(M, 6, checkpoint=path, callback=stop_at(2, 3, lambda: True), **FIT)
    resumed, *others = lines_of(caplog, checkpoint=path)
    assert resumed.startswith(f"resuming from the checkpoint {path} at level 2, step 3: relative error ")
    assert not any(line.startswith("resuming") for line in others)


def test_limits_may_change(path):
    decompose(M, 6, max_iter=3, tol=0, checkpoint=path, **FIT)
    resumed = decompose(M, 6, max_iter=7, tol=0, checkpoint=path, **FIT)
    assert_same(decompose(M, 6, max_iter=7, tol=0, **FIT), resumed)


def test_a_level_that_does_not_exist_is_refused(path, monkeypatch):
    decompose(M, 6, checkpoint=path, callback=stop_at(3, 3, lambda: True), **FIT)
    monkeypatch.setattr(module, "FEWEST_ITEMS", 200)
    with pytest.raises(ValueError, match=r"its level is 3, and this fit has 1\. Delete the file"):
        decompose(M, 6, checkpoint=path, **FIT)


KILLED = """
import os, signal, sys
import numpy as np
from symrelu import Checkpoint, decompose
from symrelu.fit import levels
from symrelu.graphs import self_tuning_graph
from symrelu.problem import coarsening

levels.FEWEST_ITEMS, coarsening._MOST_POSITIVE = 60, 1.0
M = self_tuning_graph(np.random.default_rng(0).random((300, 2)), 8)

def kill(progress):
    if (progress.level, progress.record.iteration) == (1, 4):
        os.kill(os.getpid(), signal.SIGKILL)

decompose(M, 6, init="multilevel", n_negative=1, diagonal="ignore", random_state=0, max_iter=6,
          checkpoint=Checkpoint(sys.argv[1], every=0), callback=kill)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_killed_inside_a_level(path):
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -9
    resumed = decompose(M, 6, max_iter=6, checkpoint=path, **FIT)
    whole = decompose(M, 6, max_iter=6, **FIT)
    assert_array_equal(resumed.U, whole.U)
    assert_same(whole, resumed)
