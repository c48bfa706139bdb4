"""Observers of a fit: one keeps its history, one calls the user's callback.

Two more are in other modules: ``resuming.CheckpointWriter`` and ``narration.Narrator``.
"""

from __future__ import annotations

from collections.abc import Sequence

from symrelu.fit.loop import Callback, Fit, Observer
from symrelu.fitted.history import History, Record


class HistoryKeeper(Observer):
    """Keep a record of each iteration.

    Parameters
    ----------
    records : sequence of Record
        The records of the earlier run that this one resumes.
    """

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.records = list(records)

    def history(self) -> History:
        """Return the records so far as a History."""
        return History.from_records(self.records)

    def begin(self, fit: Fit) -> None:
        self._keep(fit.record)

    def step(self, fit: Fit) -> bool:
        self._keep(fit.record)
        return False

    def end(self, fit: Fit) -> None:
        self._keep(fit.record)  # Ctrl-C may have prevented the call of step

    def _keep(self, record: Record) -> None:
        # By iteration, not append: a resumed fit and end() present the last record a second time.
        self.records[record.iteration :] = [record]


class CallbackCaller(Observer):
    """Call a function after each step; the fit stops if it returns True.

    Parameters
    ----------
    callback : callable
        Called with a :class:`~symrelu.fit.loop.FitProgress`.
    """

    def __init__(self, callback: Callback) -> None:
        self.callback = callback

    def step(self, fit: Fit) -> bool:
        return bool(self.callback(fit.progress()))


def callers(callback: Callback | None) -> list[Observer]:
    """Return the observers that call a callback: none if there is no callback."""
    return [] if callback is None else [CallbackCaller(callback)]
