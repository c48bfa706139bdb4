"""The loop: limits, history, callbacks, accidents."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import PAPER_EXAMPLE, SOLVERS, run
from numpy.testing import assert_allclose, assert_array_equal
from scripted_solver import Scripted, problem_and_start

import symrelu
from symrelu import decompose
from symrelu.fit import loop, stopping
from symrelu.fit.loop import Fit
from symrelu.fit.settings import Limits
from symrelu.fitted.history import Status
from symrelu.kernels.threads import allowed_threads, single_threaded_blas
from symrelu.solvers import AAPB, LBFGS, PALM

pytestmark = pytest.mark.blas_threads

NO_TESTS = {"tol": 0.0, "gtol": 0.0, "ftol": 0.0}


def test_a_met_test_returns_the_factor_that_met_it_and_a_limit_the_best():
    op, U0 = problem_and_start()
    small = 0.5 * (1e-6 * op.norm) ** 2
    objectives, losses = (3.0, 1.0, 2.0), (9e9, 9e9, small)
    solution = run(op, Scripted(objectives, losses=losses), U0, Limits(gtol=0, ftol=0))
    assert solution.status is Status.TOLERANCE
    assert (solution.U == 2.0).all()
    solution = run(op, Scripted(objectives), U0, Limits(**NO_TESTS, max_iter=2))
    assert (solution.U == 1.0).all()


def test_a_met_test_goes_before_the_callback():
    op, U0 = problem_and_start()
    losses = (9e9, 0.0)
    solution = run(
        op, Scripted((1.0, 1.0), losses=losses), U0, Limits(gtol=0, ftol=0), callback=lambda progress: True
    )
    assert solution.status is Status.TOLERANCE


def test_compiles_before_the_clock_starts():
    op, U0 = problem_and_start()
    order = []
    op.warm_up = lambda: order.append("warm up")

    class Watched(AAPB):
        def init(self, op, U0):
            order.append("init")
            return super().init(op, U0)

    run(op, Watched(), U0, Limits(max_iter=1))
    assert order == ["warm up", "init"]


@pytest.mark.parametrize("max_iter", [1, 7])
def test_stops_at_max_iter(max_iter):
    op, U0 = problem_and_start()
    solution = run(op, AAPB(), U0, Limits(**NO_TESTS, max_iter=max_iter))
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == max_iter
    assert not solution.converged
    assert len(solution.history) == max_iter + 1


def test_stops_at_max_time():
    op, U0 = problem_and_start()
    solution = run(op, AAPB(), U0, Limits(**NO_TESTS, max_iter=10**9, max_time=0.05))
    assert solution.status is Status.MAX_TIME
    assert solution.history.seconds[-1] >= 0.05
    assert solution.history.seconds[-2] < 0.05


def test_returns_the_best_factor_by_objective():
    op, U0 = problem_and_start()
    solution = run(op, Scripted((5.0, 1.0, 3.0, 4.0)), U0, Limits(**NO_TESTS, max_iter=3))
    assert (solution.U == 1.0).all()
    assert solution.objective == 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_objective_ends_with_the_best_finite_factor(bad):
    op, U0 = problem_and_start()
    solution = run(op, Scripted((5.0, 4.0, 7.0, bad)), U0, Limits(**NO_TESTS))
    assert solution.status is Status.NON_FINITE
    assert (solution.U == 1.0).all()
    assert solution.n_iter == 2


def test_non_finite_factor_is_noticed_though_the_objective_is_finite():
    op, U0 = problem_and_start()
    solution = run(op, Scripted((5.0, 4.0, 3.0), nan_factor_at=2), U0, Limits(**NO_TESTS))
    assert solution.status is Status.NON_FINITE
    assert (solution.U == 1.0).all()


def test_divergence_is_reported_without_warnings():
    op, U0 = problem_and_start("dense data")
    solution = run(op, AAPB(step_size=1000.0), U0, Limits(**NO_TESTS))
    assert solution.status is Status.NON_FINITE
    assert np.isfinite(solution.U).all()
    assert "step_size" in solution.status.advice


def test_non_finite_start_is_an_error():
    op, U0 = problem_and_start()
    with pytest.raises(FloatingPointError, match="not finite at the starting factor"):
        run(op, AAPB(), U0 * 1e200, Limits())


def test_keyboard_interrupt_returns_the_best_so_far():
    op, U0 = problem_and_start()
    solution = run(op, Scripted((5.0, 1.0, 3.0), stop_at=3), U0, Limits(**NO_TESTS))
    assert solution.status is Status.INTERRUPTED
    assert (solution.U == 1.0).all()


def test_keyboard_interrupt_in_a_callback_returns_the_best_so_far():
    op, U0 = problem_and_start()

    def callback(progress):
        if progress.record.iteration == 4:
            raise KeyboardInterrupt

    solution = run(op, AAPB(), U0, Limits(**NO_TESTS), callback=callback)
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter == 4


def test_other_errors_are_not_swallowed():
    op, U0 = problem_and_start()
    with pytest.raises(ZeroDivisionError):
        run(op, Scripted((5.0, 1.0), stop_at=2, error=ZeroDivisionError), U0, Limits(**NO_TESTS))


@pytest.mark.parametrize("answer", [True, np.True_])
def test_callback_sees_every_step_and_stops(answer):
    op, U0 = problem_and_start()
    seen = []

    def callback(progress):
        seen.append((progress.record.iteration, progress.record.relative_error, progress.U.copy()))
        return answer if progress.record.iteration == 5 else None

    solution = run(op, AAPB(momentum=0.0), U0, Limits(**NO_TESTS), callback=callback)
    assert solution.status is Status.CALLBACK
    assert [iteration for iteration, _, _ in seen] == [1, 2, 3, 4, 5]
    assert_allclose([error for _, error, _ in seen], solution.history.relative_error[1:])
    assert_array_equal(seen[-1][2], solution.U)


def test_changing_what_a_callback_gets_changes_nothing():
    op, U0 = problem_and_start()

    def vandal(progress):
        progress.U[:] = np.nan

    plain = run(op, AAPB(), U0, Limits(**NO_TESTS, max_iter=5))
    assert_array_equal(run(op, AAPB(), U0, Limits(**NO_TESTS, max_iter=5), callback=vandal).U, plain.U)


def test_history_tells_what_happened():
    op, U0 = problem_and_start("everything")
    solution = run(op, AAPB(), U0, Limits(**NO_TESTS, max_iter=30))
    history = solution.history
    assert_array_equal(history.iteration, np.arange(31))
    assert_array_equal(history.evaluations, np.arange(1, 32))
    assert (np.diff(history.seconds) > 0).all()
    first = op.loss(U0)
    assert_allclose(history.latent_loss[0], first.latent_loss)
    assert_allclose(history.relative_error[0], np.sqrt(2 * first.loss) / op.norm)
    assert_allclose(history.objective[0], first.latent_loss + op.alpha / 2 * np.sum(U0**2))
    assert_allclose(solution.objective, history.objective.min())
    assert solution.n_evaluations == 31


# ------------------------------------------------------- Ctrl-C at every line of a step (issue 11.4)

PACKAGE = str(Path(symrelu.__file__).parent)

# A signal is never handled between a lock and the block that it guards, but a trace function is called there:
# an exception of it would leave the lock taken for ever.
LOCKED = {
    function.__code__
    for function in (
        single_threaded_blas.__enter__,
        single_threaded_blas._leave,
        single_threaded_blas.__del__,
        allowed_threads,
    )
}


class Interrupter:
    """Raise KeyboardInterrupt at the k-th line of the package that is run between ``start`` and ``stop``."""

    def __init__(self, k):
        self.k = k
        self.lines, self.active = [], False

    def __enter__(self):
        self.before = sys.gettrace()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.active = True
        sys.settrace(self.call)

    def stop(self):
        self.active = False
        sys.settrace(self.before)

    def call(self, frame, event, argument):
        ours = frame.f_code.co_filename.startswith(PACKAGE) and frame.f_code not in LOCKED
        return self.line if ours else None

    def line(self, frame, event, argument):
        if event == "line" and self.active:
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.lines) == self.k:
                raise KeyboardInterrupt
        return self.line


def interrupted_fit(path, k, monkeypatch, **settings):
    """Fit with a checkpoint and Ctrl-C at line k of the third step. Return the lines of that step, as run."""
    steps = []

    def counted(self, move, advance=Fit.advance):
        steps.append(move)
        if len(steps) == 4:  # the first one is the start
            interrupter.start()
        return advance(self, move)

    def told(self, observers, tell=Fit.notify):
        try:
            return tell(self, observers)
        finally:
            interrupter.stop()

    with monkeypatch.context() as patch, Interrupter(k) as interrupter:
        patch.setattr(Fit, "advance", counted)
        patch.setattr(Fit, "notify", told)
        decompose(PAPER_EXAMPLE, 2, checkpoint=path, **settings)
    return interrupter.lines


def scaled_gradients(**settings):
    """Return the number that is compared with gtol, after each step."""
    values = []

    def keep(progress):
        values.append(progress.record.gradient_norm / (2 * progress.norm * np.linalg.norm(progress.U)))

    decompose(PAPER_EXAMPLE, 2, callback=keep, **settings)
    return values


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Ctrl-C inside a __del__ is lost
@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize(
    "solver", [LBFGS(), AAPB(), PALM(momentum=1.0)], ids=lambda solver: type(solver).__name__
)
def test_ctrl_c_at_any_line_of_a_step_leaves_a_fit_that_resumes_to_the_same_end(
    solver, confirmed, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "fsync", lambda file: None)  # nobody pulls the plug here
    # Without a clock, equal states are equal files, and it is enough to resume from one of them.
    for module in (loop, stopping):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    init = np.random.default_rng(1).random((len(PAPER_EXAMPLE), 2))
    settings = {"solver": solver, "init": init, "max_iter": 6, **NO_TESTS}
    if confirmed:  # the third step is the first whose gradient is small enough to be looked at twice
        first, second, third, *_ = scaled_gradients(**settings)
        assert third < min(first, second)
        settings["gtol"] = third * 1.01
    whole = decompose(PAPER_EXAMPLE, 2, **settings)
    path = tmp_path / "fit"
    lines = interrupted_fit(path, 0, monkeypatch, **settings)
    assert len(lines) > 30
    # Most lines are run many times, those of the products of vectors: the first and the last time are enough.
    numbered = list(enumerate(lines, start=1))
    first, last = ({line: k for k, line in order} for order in (reversed(numbered), numbered))
    resumed_from = set()
    for k in sorted({*first.values(), *last.values()}):
        path.unlink(missing_ok=True)
        interrupted_fit(path, k, monkeypatch, **settings)
        if (left := path.read_bytes()) in resumed_from:
            continue
        resumed_from.add(left)
        resumed = decompose(PAPER_EXAMPLE, 2, checkpoint=path, **settings)
        assert_array_equal(resumed.U, whole.U, err_msg=f"line {k}")
        for name, column in resumed.history.as_dict().items():
            assert_array_equal(column, getattr(whole.history, name), err_msg=f"line {k}, {name}")
        assert (resumed.status, resumed.n_evaluations) == (whole.status, whole.n_evaluations), f"line {k}"
    assert len(resumed_from) > 1  # the step was lost at some lines, and kept at others
    with ThreadPoolExecutor(1) as others:  # who would wait for ever if Ctrl-C had left a lock taken
        assert others.submit(single_threaded_blas._lock.acquire, timeout=10).result()
        others.submit(single_threaded_blas._lock.release).result()


# ---------------------------------------------------------- starts without measure (found by the fuzzer)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("size", [1e3, 1e5, 1e7, 1e11, 1e13])
def test_a_vast_start_in_float32_ends_honestly(name, size):
    M, U0 = np.ones((3, 3), np.float32), size * np.array([[1.0], [2.0], [3.0]])
    if size > 1e12:  # its gradient overflows
        with pytest.raises(FloatingPointError, match=r"not finite at the starting factor. Scale init down"):
            decompose(M, 1, init=U0, solver=SOLVERS[name], max_iter=60)
        return
    solution = decompose(M, 1, init=U0, solver=SOLVERS[name], max_iter=60)
    assert np.isfinite(solution.U).all()
    assert not solution.converged or solution.relative_error < 0.5
