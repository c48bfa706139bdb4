"""Who looks on at a fit, what is counted, and what is refused before it begins."""

from dataclasses import dataclass, fields

import numpy as np
import pytest
from example_solver import Descent, DescentState
from helpers import OPERATORS, PAPER_EXAMPLE, PROBLEMS, SOLVERS, run, runs_on, start
from numpy.testing import assert_array_equal

from symrelu import Status, decompose
from symrelu.baselines.linear import LinearModelOperator
from symrelu.fit import loop
from symrelu.fit.loop import Observer
from symrelu.fit.observers import HistoryKeeper
from symrelu.fit.settings import Limits
from symrelu.operators import DenseOperator, Operator
from symrelu.solvers import AAPB, LBFGS, Solver, State

NO_TESTS = {"tol": 0.0, "gtol": 0.0, "ftol": 0.0}


class Diary(Observer):
    """Writes down what it is told."""

    def __init__(self, name, pages, stop_at=None, error_at=None):
        self.name, self.pages, self.stop_at, self.error_at = name, pages, stop_at, error_at

    def begin(self, fit):
        self.pages.append((self.name, "begin", fit.now.n_iter))

    def step(self, fit):
        self.pages.append((self.name, "step", fit.now.n_iter))
        if fit.now.n_iter == self.error_at:
            raise ZeroDivisionError
        return fit.now.n_iter == self.stop_at

    def end(self, fit):
        self.pages.append((self.name, "end", fit.status))


def observed(*observers, max_iter=3):
    problem = PROBLEMS["plain"]
    limits = Limits(**NO_TESTS, max_iter=max_iter)
    return loop.run(OPERATORS["sparse"](problem), AAPB(), start(problem), limits, observers=observers)


def test_all_are_told_in_order():
    pages = []
    observed(Diary("a", pages), Diary("b", pages), max_iter=2)
    assert pages == [
        ("a", "begin", 0),
        ("b", "begin", 0),
        ("a", "step", 1),
        ("b", "step", 1),
        ("a", "step", 2),
        ("b", "step", 2),
        ("a", "end", Status.MAX_ITER),
        ("b", "end", Status.MAX_ITER),
    ]


def test_each_may_stop_and_the_others_are_told_of_that_step():
    pages = []
    outcome = observed(Diary("a", pages, stop_at=1), Diary("b", pages))
    assert (outcome.status, outcome.n_iter) == (Status.CALLBACK, 1)
    assert ("b", "step", 1) in pages


def test_an_error_of_one_is_no_secret_to_the_others():
    pages = []
    with pytest.raises(ZeroDivisionError):
        observed(Diary("a", pages), Diary("b", pages, error_at=2))
    assert pages[-2:] == [("a", "end", None), ("b", "end", None)]


def test_a_line_that_was_missed_is_made_good_at_the_end():
    class Forgetful(HistoryKeeper):
        def step(self, fit):
            return False if fit.now.n_iter == 3 else super().step(fit)

    history = Forgetful()
    observed(history)
    assert_array_equal(history.history().iteration, np.arange(4))


@pytest.mark.parametrize("name", SOLVERS)
def test_what_is_handed_out_is_on_the_host_and_no_part_of_the_fit(name):
    problem = PROBLEMS["signed"]
    op = OPERATORS["sparse"](problem)

    class Vandal(Observer):
        def step(self, fit):
            progress = fit.progress()
            progress.U[:], progress.signature[:] = np.nan, 0
            return False

    limits = Limits(**NO_TESTS, max_iter=4)
    outcome = loop.run(op, SOLVERS[name], start(problem), limits, observers=[Vandal()])
    assert_array_equal(outcome.U, run(op, SOLVERS[name], start(problem), limits).U)


# ------------------------------------------------------------------------------------ evaluations


def test_a_fit_counts_its_own_evaluations_on_an_operator_that_was_used():
    problem = PROBLEMS["plain"]
    op, U0 = OPERATORS["sparse"](problem), start(problem)
    limits = Limits(**NO_TESTS, max_iter=5)
    first = run(op, AAPB(), U0, limits)
    again = run(op, AAPB(), U0, limits)
    assert first.n_evaluations == again.n_evaluations == 6
    assert_array_equal(again.history.evaluations, np.arange(1, 7))
    assert op.evaluations == 12  # the operator counts all


@pytest.mark.parametrize("name", SOLVERS)
def test_a_resumed_fit_makes_no_pass_that_a_whole_one_does_not(name, tmp_path, monkeypatch):
    passes = []

    def counted(self, U, V, residual_product=Operator.residual_product):
        passes.append(V.shape[1] // U.shape[1])
        return residual_product(self, U, V)

    monkeypatch.setattr(Operator, "residual_product", counted)
    settings = {"solver": SOLVERS[name], "random_state": 0, **NO_TESTS}
    whole = decompose(PAPER_EXAMPLE, 2, max_iter=6, **settings)
    of_the_whole = sum(passes)
    passes.clear()
    for steps in (2, 4, 6, 6):
        resumed = decompose(PAPER_EXAMPLE, 2, max_iter=steps, checkpoint=tmp_path / "fit", **settings)
    assert sum(passes) == of_the_whole
    assert resumed.n_evaluations == whole.n_evaluations
    assert_array_equal(resumed.U, whole.U)


# ------------------------------------------------------------------------------- what is required


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_declare_state_and_requirements(name):
    solver, problem = SOLVERS[name], PROBLEMS["plain"]
    assert isinstance(solver, Solver)
    state = solver.init(OPERATORS["sparse"](problem), start(problem))
    assert type(state) is solver.State
    for operator in OPERATORS:
        offers = OPERATORS[operator](problem).offers
        assert all(map(offers, solver.requires)) is runs_on(name, operator)


def test_what_an_operator_does_not_offer_is_refused_before_the_fit():
    op = LinearModelOperator(np.eye(4), np.ones(2))
    assert not op.offers("solve_rows")
    message = (
        "LBFGS requires n_positive and solve_rows of the operator, which LinearModelOperator does not offer. "
        "Use another solver"
    )
    with pytest.raises(TypeError, match=message):
        loop.run(op, LBFGS(), np.ones((4, 2)), Limits())
    assert op.evaluations == 0
    for wish in ("solve_rows", "imputed_matmul"):
        with pytest.raises(NotImplementedError, match="LinearModelOperator does not"):
            getattr(op, wish)(*[None] * (3 if wish == "solve_rows" else 2))
    with pytest.raises(NotImplementedError, match="LinearModelOperator does not implement n_positive"):
        _ = op.n_positive


def test_a_start_is_refused_in_the_same_way():
    from symrelu.fit.starts import check_start_supported

    op = LinearModelOperator(np.eye(4), np.ones(2))
    with pytest.raises(
        TypeError, match=r"init='imputed' requires imputed_matmul and n_positive of the operator"
    ):
        check_start_supported(type(op), "imputed")
    check_start_supported(type(op), "spectral")
    check_start_supported(type(op), np.ones((4, 2)))


@dataclass(frozen=True)
class Plain:
    """A solver of a user that declares nothing."""

    def init(self, op, U0):
        state = SOLVERS["PALM"].init(op, U0)
        return State(**{field.name: getattr(state, field.name) for field in fields(State)})

    def step(self, op, state):
        return self.init(op, state.U * 0.99)


def test_a_solver_that_declares_nothing_fits_but_not_with_a_checkpoint(tmp_path):
    assert decompose(PAPER_EXAMPLE, 2, solver=Plain(), max_iter=3, **NO_TESTS).n_iter == 3
    with pytest.raises(TypeError, match=r"A checkpoint needs a solver that declares .* but Plain does not"):
        decompose(PAPER_EXAMPLE, 2, solver=Plain(), checkpoint=tmp_path / "fit")
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("backend", ["dense", "sparse", "reference", "torch"])
def test_the_solver_of_the_docs_fits_and_resumes(backend, tmp_path):
    settings = {"solver": Descent(), "random_state": 0, "backend": backend, "n_negative": 1, **NO_TESTS}
    whole = decompose(PAPER_EXAMPLE, 3, max_iter=20, **settings)
    assert (np.diff(whole.history.objective) < 0).all()
    for steps in (7, 20):
        resumed = decompose(PAPER_EXAMPLE, 3, max_iter=steps, checkpoint=tmp_path / "fit", **settings)
    assert_array_equal(resumed.U, whole.U)


@dataclass(frozen=True)
class Misdeclared(Descent):
    State = State


def test_a_state_that_could_not_be_read_again_is_refused_before_the_first_step(tmp_path):
    with pytest.raises(TypeError, match=r"Misdeclared declares State = State, which does not match its states"):
        decompose(PAPER_EXAMPLE, 2, solver=Misdeclared(), checkpoint=tmp_path / "fit")
    assert not (tmp_path / "fit").exists()


def test_annotations_that_cannot_be_read_are_named(tmp_path):
    class Hidden(DescentState):
        other: "NowhereToBeFound"  # noqa: F821

    Hidden = dataclass(frozen=True, eq=False, kw_only=True)(Hidden)

    @dataclass(frozen=True)
    class Unreadable(Descent):
        State = Hidden

        def init(self, op, U0):
            state = super().init(op, U0)
            return Hidden(other=1.0, **{f.name: getattr(state, f.name) for f in fields(state)})

    with pytest.raises(
        TypeError, match=r"annotations cannot be read \(name 'NowhereToBeFound' is not defined\)"
    ):
        decompose(PAPER_EXAMPLE, 2, solver=Unreadable(), checkpoint=tmp_path / "fit")


def test_auto_needs_what_the_imputed_start_does():
    from symrelu.fit.starts import check_start_supported

    op = LinearModelOperator(np.eye(4), np.ones(2))
    with pytest.raises(
        TypeError, match=r"n_negative='auto' requires imputed_matmul and n_positive .* Pass a number"
    ):
        check_start_supported(type(op), "random", "auto")


@dataclass(frozen=True)
class Wishful(Descent):
    requires = "solve_rows"


def test_a_single_wish_may_be_a_word():
    op = LinearModelOperator(np.eye(4), np.ones(2))
    with pytest.raises(TypeError, match="Wishful requires solve_rows of the operator"):
        loop.run(op, Wishful(), np.ones((4, 2)), Limits())


@pytest.mark.parametrize(
    ("missing", "settings", "message"),
    [
        ("solve_rows", {}, "LBFGS requires solve_rows of the operator, which DenseOperator does not offer"),
        ("imputed_matmul", {"solver": "aapb"}, "init='imputed' requires imputed_matmul of the operator"),
        (
            "n_positive",
            {"solver": "aapb", "init": "random", "n_negative": "auto"},
            "n_negative='auto' requires",
        ),
    ],
)
def test_decompose_refuses_what_is_missing_before_it_packs(missing, settings, message, monkeypatch):
    monkeypatch.setattr(DenseOperator, missing, getattr(Operator, missing), raising=False)
    monkeypatch.setattr(DenseOperator, "__init__", None)  # which nothing may call
    with pytest.raises(TypeError, match=message):
        decompose(PAPER_EXAMPLE, 2, **settings)


@dataclass(frozen=True, eq=False, kw_only=True)
class CountingState(DescentState):
    counts: object


@dataclass(frozen=True)
class Counting(Descent):
    """Holds integers on the device of the factors."""

    State = CountingState

    def init(self, op, U0):
        counts = op.xp.asarray([1, 2, 3], device=U0.device)
        state = super().init(op, U0)
        return CountingState(counts=counts, **{f.name: getattr(state, f.name) for f in fields(state)})

    def step(self, op, state):
        assert type(state.counts) is type(state.U)
        return self.init(op, state.U - 0.01 / op.norm * state.gradient)


@pytest.mark.parametrize("backend", ["dense", "torch"])
def test_other_arrays_of_a_state_come_back_as_what_they_were(backend, tmp_path):
    for steps in (2, 4):
        settings = {"solver": Counting(), "backend": backend, "max_iter": steps, "random_state": 0}
        assert decompose(PAPER_EXAMPLE, 2, checkpoint=tmp_path / "fit", **settings, **NO_TESTS).n_iter == steps
