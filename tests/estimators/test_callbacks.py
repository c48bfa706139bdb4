"""Callbacks of scikit-learn during a fit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from symrelu import SymReLU
from symrelu.datasets import make_relu_gram
from symrelu.fit.loop import FitProgress

ProgressBar = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9").ProgressBar


@pytest.fixture
def M():
    return make_relu_gram(40, 3, random_state=0)[0]


class Recorder:
    """A callback of scikit-learn's protocol that keeps what it is told, and stops at a step."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.calls = []
        self.scores = []
        self.supports = set()

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.calls.append(f"end {context.task_name}")
        if context.task_name == "step":
            self.scores.append(fitted_estimator.score(X))
            self.supports.add(fitted_estimator.solution_.support)
            assert fitted_estimator.n_iter_ == estimator.latest_record_.iteration
            assert fitted_estimator.diagonal_ in ("fit", "ignore")
            return estimator.latest_record_.iteration == self.stop_at
        return False

    def teardown(self, estimator, context):
        self.calls.append("teardown")


def test_callbacks_of_scikit_learn(M):
    recorder = Recorder()
    estimator = SymReLU(3, random_state=0).set_callbacks(recorder).fit(M)
    steps = ["begin step", "end step"] * estimator.n_iter_
    assert recorder.calls == ["setup", "begin fit", *steps, "end fit", "teardown"]
    assert recorder.scores[-1] > recorder.scores[0]
    assert_array_equal(estimator.embedding_, SymReLU(3, random_state=0).fit(M).embedding_)


def test_smaller_matrices_of_a_start_are_no_subtasks(M, monkeypatch):
    monkeypatch.setattr("symrelu.fit.levels.FEWEST_ITEMS", 20)
    monkeypatch.setattr("symrelu.problem.coarsening._MOST_POSITIVE", 1.0)
    recorder, levels = Recorder(), []
    monkeypatch.setattr(
        "symrelu.fit.loop.FitProgress",
        lambda *progress: levels.append(progress[-1]) or FitProgress(*progress),
    )
    estimator = SymReLU(2, init="multilevel", random_state=0).set_callbacks(recorder).fit(M)
    assert max(levels) > 0
    assert recorder.calls.count("end step") == estimator.n_iter_


def test_a_callback_stops_the_fit(M):
    recorder = Recorder(stop_at=2)
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        estimator = SymReLU(3, random_state=0).set_callbacks(recorder).fit(M)
    assert estimator.n_iter_ == 2
    assert recorder.calls[-1] == "teardown"


def test_callbacks_see_the_model_of_the_fit(M):
    recorder = Recorder()
    SymReLU(3, support="at_least", random_state=0).set_callbacks(recorder).fit(M)
    assert recorder.supports == {"at_least"}


def test_progress_bar(M, capsys):
    SymReLU(3, random_state=0).set_callbacks(ProgressBar()).fit(M)
    assert "SymReLU" in capsys.readouterr().out


def test_restarts_with_callbacks(M):
    """They run one after another, and a callback that stops a fit stops them all."""
    recorder = Recorder()
    model = SymReLU(2, n_init=2, random_state=0, gtol=1e-3)
    model.set_callbacks(recorder).fit(M)
    assert_array_equal(model.embedding_, SymReLU(2, n_init=2, random_state=0, gtol=1e-3).fit(M).embedding_)
    assert len(recorder.scores) > model.n_iter_
    stopping = Recorder(stop_at=1)
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        SymReLU(2, n_init=2, random_state=0).set_callbacks(stopping).fit(M)
    assert len(stopping.scores) == 1


def test_callbacks_of_a_graph_get_fitted_rows():
    graph = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
    recorder = Recorder()
    SymReLU(3, shrinkage=0.1, random_state=0).set_callbacks(recorder).fit(graph)
    assert recorder.scores[-1] > recorder.scores[0]


def test_callbacks_get_the_samples_and_a_whole_estimator():
    X = np.random.default_rng(0).standard_normal((40, 3))
    recorder = Recorder()
    SymReLU(3, affinity="self_tuning", random_state=0, gtol=1e-3).set_callbacks(recorder).fit(X)
    assert recorder.scores[-1] > recorder.scores[0]
