"""Fits that are killed resume, to the same factor."""

import os
import subprocess
import sys
from dataclasses import dataclass, fields

import numpy as np
import pytest
from helpers import SOLVERS
from numpy.testing import assert_allclose, assert_array_equal
from same_fits import assert_same
from scipy import sparse

from symrelu import Checkpoint, Status, SymReLU, decompose
from symrelu.datasets import make_relu_gram
from symrelu.solvers import State

M, _ = make_relu_gram(60, 4, random_state=0)
FIT = {"random_state": 0, "tol": 0, "gtol": 0, "ftol": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.ckpt"


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_two_halves_are_a_whole(name, kind, path):
    whole = decompose(kind(M), 3, solver=SOLVERS[name], max_iter=20, **FIT)
    decompose(kind(M), 3, solver=SOLVERS[name], max_iter=9, checkpoint=path, **FIT)
    second = decompose(kind(M), 3, solver=SOLVERS[name], max_iter=20, checkpoint=path, **FIT)
    assert_same(whole, second)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_negative": "auto", "diagonal": "ignore"},
        {"mask": np.eye(60, dtype=bool), "alpha": 0.1, "zero_weight": 0.5},
        {"mask": np.eye(60, dtype=bool), "zero_weight": 0.5, "support": "at_least"},
        {"init": np.random.default_rng(0).standard_normal((60, 3))},
    ],
    ids=["signed", "mask", "at least", "array"],
)
def test_settings_are_those_of_the_first_half(settings, path):
    whole = decompose(M, 3, max_iter=12, **FIT, **settings)
    decompose(M, 3, max_iter=5, checkpoint=path, **FIT, **settings)
    assert_same(whole, decompose(M, 3, max_iter=12, checkpoint=path, **FIT, **settings))


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_scales(scale, path):
    whole = decompose(M * scale, 3, max_iter=12, **FIT)
    decompose(M * scale, 3, max_iter=5, checkpoint=path, **FIT)
    again = decompose(M * scale, 3, max_iter=12, checkpoint=path, **FIT)
    assert_array_equal(again.U, whole.U)


def test_float32(path):
    single = M.astype(np.float32)
    decompose(single, 3, max_iter=5, checkpoint=path, **FIT)
    again = decompose(single, 3, max_iter=9, checkpoint=path, **FIT)
    assert again.U.dtype == np.float32
    assert_array_equal(again.U, decompose(single, 3, max_iter=9, **FIT).U)


def test_a_finished_fit_is_not_made_again(path):
    first = decompose(M, 4, random_state=0, checkpoint=path)
    assert first.status is Status.TOLERANCE
    calls = []
    again = decompose(M, 4, random_state=0, checkpoint=path, callback=calls.append)
    assert_same(first, again)
    assert not calls
    # A smaller tolerance resumes from there.
    assert decompose(M, 4, random_state=0, checkpoint=path, tol=1e-6).n_iter > first.n_iter


def test_time_counts_from_the_first_half(path):
    decompose(M, 3, max_iter=5, checkpoint=path, **FIT)
    again = decompose(M, 3, max_time=1e-9, checkpoint=path, **FIT)
    assert again.status is Status.MAX_TIME
    assert again.n_iter == 5


def test_interruption_is_written(path):
    def interrupt(progress):
        if progress.record.iteration == 4:
            raise KeyboardInterrupt

    stopped = decompose(M, 3, max_iter=12, checkpoint=path, callback=interrupt, **FIT)
    assert stopped.status is Status.INTERRUPTED
    again = decompose(M, 3, max_iter=12, checkpoint=path, **FIT)
    assert_same(decompose(M, 3, max_iter=12, **FIT), again)


def test_written_as_often_as_asked(path, monkeypatch):
    written = []
    monkeypatch.setattr("symrelu.fit.checkpoint.CheckpointFile.write", lambda self, snapshot: written.append(1))
    decompose(M, 3, max_iter=7, checkpoint=Checkpoint(path, every=0), **FIT)
    assert len(written) == 8  # before each step, and at the end
    written.clear()
    decompose(M, 3, max_iter=7, checkpoint=path, **FIT)
    assert len(written) == 1


KILLED = """
import os, signal, sys, time
import numpy as np
from symrelu import AAPB, LBFGS, Checkpoint, decompose
from symrelu.datasets import make_relu_gram

M, _ = make_relu_gram(60, 4, random_state=0)
name, path, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
solver = {"AAPB": AAPB(), "LBFGS": LBFGS()}[name]
settings = dict(solver=solver, random_state=0, tol=0, gtol=0, ftol=0)
decompose(M, 3, max_iter=1, **settings)  # compiled before the first fork
rng = np.random.default_rng(0)
for _ in range(20):
    child = os.fork()
    if child == 0:
        decompose(M, 3, max_iter=steps, checkpoint=Checkpoint(path, every=0), **settings)
        os._exit(0)
    time.sleep(rng.uniform(0, 0.3))
    os.kill(child, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")
@pytest.mark.parametrize(("name", "steps"), [("AAPB", 100_000), ("LBFGS", 100_000)])
def test_kill_at_any_moment(name, steps, path):
    """Killed twenty times: while it computes, while it writes, before it has written anything."""
    command = [sys.executable, "-c", KILLED, name, str(path), str(steps)]
    ends = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(ends) == 20
    assert set(ends) == {"-9"}
    left = [file.name for file in path.parent.iterdir()]
    assert len(left) <= 2  # at most one that was not finished
    with np.load(path) as content:  # it got somewhere, and not to the end
        reached = len(content["history_iteration"])
    assert 5 < reached < steps
    solver = SOLVERS[name]
    again = decompose(M, 3, solver=solver, max_iter=reached + 20, checkpoint=path, **FIT)
    whole = decompose(M, 3, solver=solver, max_iter=reached + 20, **FIT)
    assert_allclose(again.U, whole.U, rtol=0, atol=1e-12)
    assert again.n_evaluations == whole.n_evaluations
    assert len(again.history) == reached + 21
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@dataclass(frozen=True, eq=False, kw_only=True)
class OddState(State):
    odd: object


@dataclass(frozen=True)
class Odd:
    """A solver of a user, with something odd in its state."""

    State = OddState

    kind: str = "int64"

    def init(self, op, U0):
        state = SOLVERS["PALM"].init(op, U0)
        base = {field.name: getattr(state, field.name) for field in fields(State)}
        return OddState(odd=ODD[self.kind], **base)

    def step(self, op, state):
        return self.init(op, state.U * 0.99)


ODD = {
    "int64": np.int64(3),
    "bool": np.bool_(True),
    "float64": np.float64(2.0),
    "inf": np.array([np.inf]),
    "dict": {},
    "None": None,
    "objects": np.array([None]),
}


@pytest.mark.parametrize("kind", ODD)
def test_solvers_of_users(kind, path):
    if kind in ("dict", "None", "objects"):
        with pytest.raises(
            TypeError, match="A checkpoint can hold only arrays and numbers, but odd of OddState is a"
        ):
            decompose(M, 3, solver=Odd(kind), checkpoint=path)
        return
    decompose(M, 3, solver=Odd(kind), max_iter=3, checkpoint=path, **FIT)
    again = decompose(M, 3, solver=Odd(kind), max_iter=6, checkpoint=path, **FIT)
    assert_same(decompose(M, 3, solver=Odd(kind), max_iter=6, **FIT), again)


def test_a_solver_must_say_what_it_is(path):
    class Nameless(Odd):
        __repr__ = object.__repr__

    with pytest.raises(ValueError, match="A checkpoint needs a solver whose repr shows its settings"):
        decompose(M, 3, solver=Nameless(), checkpoint=path)


def test_estimator(path):
    whole = SymReLU(3, random_state=0, max_iter=500, tol=0, gtol=1e-4).fit(M)
    settings = {"random_state": 0, "tol": 0, "gtol": 1e-4, "checkpoint": path}
    with pytest.warns(UserWarning, match="max_iter was reached"):
        SymReLU(3, max_iter=3, **settings).fit(M)
    assert_allclose(SymReLU(3, max_iter=500, **settings).fit(M).embedding_, whole.embedding_, atol=1e-12)
