"""Observers of a fit: one keeps its history, one calls the user's callback.

Two more have files of their own: ``resuming.CheckpointWriter`` and ``progress.Narrator``.
"""

from __future__ import annotations

from collections.abc import Sequence

from symrelu.fit.loop import Callback, Fit, Observer
from symrelu.fitted.history import History, Record


class HistoryKeeper(Observer):
    """Keeps a line for each iteration.

    Parameters
    ----------
    records : sequence of Record
        The lines of the earlier run that this one resumes.
    """

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.records = list(records)

    def history(self) -> History:
        """Return the lines so far as columns."""
        return History.from_records(self.records)

    def begin(self, fit: Fit) -> None:
        self._keep(fit.record)

    def step(self, fit: Fit) -> bool:
        self._keep(fit.record)
        return False

    def end(self, fit: Fit) -> None:
        self._keep(fit.record)  # which Ctrl-C may have kept from being told

    def _keep(self, record: Record) -> None:
        self.records[record.iteration :] = [record]


class CallbackCaller(Observer):
    """Calls a function after each step; the fit stops if it returns True.

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
    """Return who calls a callback: nobody where there is none."""
    return [] if callback is None else [CallbackCaller(callback)]
