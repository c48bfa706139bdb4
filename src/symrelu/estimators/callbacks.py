"""Support for scikit-learn's experimental callbacks (``sklearn.callback``), all in this module.

A fit is a task, and each of its steps is a subtask; in a search for neighbours, each attempt is one. A hook can
ask for a ``fitted_estimator`` that can transform and score. For steps, the estimator has ``latest_record_``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symrelu.fit.loop import FitProgress
from symrelu.fitted.history import History, Status
from symrelu.fitted.models import SymmetricReLU
from symrelu.fitted.solution import Solution

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9
    from symrelu.estimators.without_callbacks import CallbackSupportMixin, with_callbacks

__all__ = ["CallbackSupportMixin", "FitTasks", "StepTasks", "with_callbacks"]


class FitTasks:
    """The callback tasks of one fit.

    Parameters
    ----------
    estimator : estimator with CallbackSupportMixin
        Its ``fit`` is decorated with ``with_callbacks``.
    X : matrix
        Passed to the hooks as X.
    max_subtasks : int or None
        Largest number of subtasks, if it is known.
    """

    def __init__(self, estimator: Any, X: Any, max_subtasks: int | None) -> None:
        self.estimator = estimator
        self.X = X
        self.fit_task = estimator._init_callback_context(max_subtasks=max_subtasks)
        self.fit_task.call_on_fit_task_begin(estimator=estimator, X=X)

    def subtask(self, name: str, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Call the hooks for a subtask; return True if one of them asks to stop.

        Parameters
        ----------
        name : str
        attributes : callable
            Returns the fitted attributes after this subtask. Called only if a hook asks for a fitted estimator.

        Returns
        -------
        stop : bool
        """
        task = self.fit_task.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return bool(
            task.call_on_fit_task_end(estimator=self.estimator, X=self.X, reconstruction_attributes=attributes)
        )

    def end(self) -> None:
        """Call the hooks for the end of the fit."""
        self.fit_task.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, reconstruction_attributes=lambda: {}
        )


class StepTasks(FitTasks):
    """The callback tasks of one fit by :func:`symrelu.decompose`, with a subtask for each step.

    The smaller matrices that a multilevel start fits are no subtasks: nobody knows how many steps they take.

    Parameters
    ----------
    estimator, X
        As for :class:`FitTasks`.
    max_iter : int
        Maximum number of steps.

    Attributes
    ----------
    settings : dict
        Settings of the fit that runs, among them those of its model.
    """

    def __init__(self, estimator: Any, X: Any, max_iter: int) -> None:
        super().__init__(estimator, X, max_iter)
        self.settings: dict[str, Any] = {}

    def step(self, progress: FitProgress) -> bool:
        """Call the hooks for a step; return True if one of them asks to stop."""
        self.estimator.latest_record_ = progress.record
        if progress.level:
            return False
        return self.subtask("step", lambda: self._attributes(progress))

    def _attributes(self, progress: FitProgress) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that stopped at this step."""
        record, settings = progress.record, self.settings
        solution = Solution(
            model=SymmetricReLU(
                progress.U,
                progress.signature,
                settings["alpha"],
                settings["zero_weight"],
                settings["support"],
            ),
            status=Status.CALLBACK,
            n_iter=record.iteration,
            n_evaluations=record.evaluations,
            relative_error=record.relative_error,
            norm=progress.norm,
            objective=record.objective,
            history=History.from_records([record]),  # the only record that FitProgress has
            solver="",
            diagonal=settings["diagonal"],
        )
        return fitted_attributes(solution)


def fitted_attributes(solution: Solution) -> dict[str, Any]:
    """Return the attributes that every fitted estimator has."""
    return {
        "solution_": solution,
        "embedding_": solution.U,
        "signature_": solution.signature,
        "relative_error_": solution.relative_error,
        "reconstruction_err_": solution.relative_error * solution.norm,
        "n_iter_": solution.n_iter,
        "converged_": solution.converged,
        "stop_reason_": solution.status.value,
        "history_": solution.history,
    }
