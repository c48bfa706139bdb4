"""What takes the place of scikit-learn's callbacks in versions without them."""

import pytest
from sklearn.base import BaseEstimator

from symrelu.estimators.callbacks import FitTasks
from symrelu.estimators.without_callbacks import CallbackSupportMixin, with_callbacks


class Estimator(CallbackSupportMixin, BaseEstimator):
    """An estimator whose fit has three subtasks."""

    @with_callbacks
    def fit(self, X, y=None):
        """Fit nothing."""
        tasks = FitTasks(self, X, None)
        self.stops_ = [tasks.subtask("step", dict) for _ in range(3)]
        tasks.end()
        return self


def test_a_fit_runs_without_them():
    assert Estimator().fit([[1]]).stops_ == [False] * 3
    assert Estimator.fit.__doc__ == "Fit nothing."


def test_the_message_says_what_to_install():
    with pytest.raises(
        ImportError, match=r"needs scikit-learn 1.9 or newer, got .*pip install -U scikit-learn"
    ):
        Estimator().set_callbacks(object())
    estimator = Estimator()
    assert estimator.set_callbacks() is estimator
