"""The history of a fit, one record per iteration, and the reason why it stopped."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from symrelu.plots.cards import card, curve
from symrelu.plots.convergence import plot_convergence


class Status(enum.Enum):
    """Why a fit stopped. The value is the cause; ``advice`` says what to try next."""

    TOLERANCE = "relative_error reached tol"
    GRADIENT = "the gradient fell below gtol"
    PLATEAU = "the objective no longer changed by more than ftol"
    ROUNDING = "rounding errors prevent further progress"
    VANISHED = "the factor became zero"
    MAX_ITER = "max_iter was reached"
    MAX_TIME = "max_time was reached"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "the fit was interrupted"
    NON_FINITE = "the iteration diverged to non-finite numbers"

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        return _TEXTS_OF_0_1_0.get(value)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        """Pickle by name: the texts may be reworded."""
        return getattr, (Status, self.name)

    @property
    def converged(self) -> bool:
        """Whether the fit met a convergence test, rather than reaching a limit or failing."""
        return self in (Status.TOLERANCE, Status.GRADIENT, Status.PLATEAU)

    @property
    def advice(self) -> str:
        """What to try next."""
        return _ADVICE[self]


def stop_reason(status: Status, level: int = 0) -> str:
    """Return why a fit stopped, and at which level if that was before M itself was fitted.

    Parameters
    ----------
    status : Status
    level : int, default=0
        As in :class:`symrelu.Solution`.

    Returns
    -------
    reason : str
    """
    where = f" at level {level} of the multilevel start, before M itself was fitted" if level else ""
    return f"{status.value}{where}"


def advice_after(status: Status, level: int = 0) -> str:
    """Return what to try next after a fit that stopped at a level; the arguments are as above."""
    return _ADVICE_BEFORE_M if level else status.advice


_ADVICE_BEFORE_M = (
    "U was fitted to a smaller matrix and only scaled to M: it is a guess. Give the fit more time; with "
    "checkpoint=, the same call resumes where the fit stopped."
)


# Pickles of 0.1.0 hold these texts in place of the names.
_TEXTS_OF_0_1_0: dict[object, Status] = {
    "relative_error fell to tol": Status.TOLERANCE,
    "the iteration left the finite numbers": Status.NON_FINITE,
}

_ADVICE = {
    Status.TOLERANCE: "The requested accuracy was reached. Lower tol for a closer fit.",
    Status.GRADIENT: (
        "The factor is stationary up to gtol; lower gtol to continue. If the error is too high, raise the "
        "rank, try another init or random_state, or a richer model (diagonal='ignore', n_negative=1)."
    ),
    Status.PLATEAU: (
        "Further steps of this solver change little; set ftol=0 to continue. If the error is too high, raise "
        "the rank, try another init or random_state, or a richer model (diagonal='ignore', n_negative=1)."
    ),
    Status.ROUNDING: (
        "The entries of X are small differences of large products, which are not exact enough. Pass M as "
        "float64 (M.astype(numpy.float64)); if it already is, raise the rank, or keep U small with alpha > 0."
    ),
    Status.VANISHED: (
        "U = 0 is a stationary point for every M. Lower alpha, which shrinks U; if alpha is 0, try another "
        "init or random_state."
    ),
    Status.MAX_ITER: (
        "Raise max_iter, continue from this factor with init=U, or accept a looser fit with a larger gtol "
        "or ftol."
    ),
    Status.MAX_TIME: "Raise max_time, or continue from this factor with init=U.",
    Status.CALLBACK: "Continue from this factor with init=U.",
    Status.INTERRUPTED: "The best factor so far was kept. Continue from it with init=U.",
    Status.NON_FINITE: (
        "The best finite factor was kept. With AAPB, lower step_size (it is safe up to 1), or scale "
        "down the starting factor."
    ),
}


COUNTS = ("iteration", "evaluations")  # the integer columns of a history


class Record(NamedTuple):
    """One row of a history.

    Attributes
    ----------
    iteration, evaluations : int
    seconds, relative_error, latent_loss, objective, gradient_norm : float
        As in :class:`History`.
    """

    iteration: int
    evaluations: int
    seconds: float
    relative_error: float
    latent_loss: float
    objective: float
    gradient_norm: float


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """The course of a fit, one array per column; row 0 is the starting factor.

    Attributes
    ----------
    iteration, evaluations : ndarray of int
        Number of steps, and of passes over the pairs, so far.
    seconds : ndarray of float
        Time spent in the solver, without compilation and recording.
    relative_error : ndarray of float
        ||M - max(0, X)|| / ||M||.
    latent_loss, objective, gradient_norm : ndarray of float
        1/2 ||R(U)||^2, the same plus alpha/2 ||U||^2, and the norm of its gradient (for AAPB, at the
        extrapolated point), in the units of M. They can overflow to infinity or underflow to zero;
        relative_error cannot.
    """

    iteration: np.ndarray
    evaluations: np.ndarray
    seconds: np.ndarray
    relative_error: np.ndarray
    latent_loss: np.ndarray
    objective: np.ndarray
    gradient_norm: np.ndarray

    @classmethod
    def from_records(cls, records: list[Record]) -> History:
        """Convert records to columns."""
        columns = zip(*records, strict=True) if records else ((),) * len(Record._fields)
        arrays = (
            np.array(column, dtype=np.int64 if name in COUNTS else np.float64)
            for name, column in zip(Record._fields, columns, strict=True)
        )
        return cls(*arrays)

    def records(self) -> list[Record]:
        """Return the records, one for each row."""
        return [Record(*line) for line in zip(*(c.tolist() for c in self.as_dict().values()), strict=True)]

    def __len__(self) -> int:
        return len(self.iteration)

    def __repr__(self) -> str:
        if not len(self):
            return "History(empty)"
        return (
            f"History({len(self)} records, relative_error {self.relative_error[0]:.3g} -> "
            f"{self.relative_error[-1]:.3g} in {self.seconds[-1]:.3g} s)"
        )

    def _repr_html_(self) -> str:
        """The card that notebooks show."""
        if not len(self):
            return card("History", [("records", 0)])
        rows = [
            ("records", len(self)),
            ("evaluations", int(self.evaluations[-1])),
            ("relative error", f"{self.relative_error[0]:.3g} → {self.relative_error[-1]:.3g}"),
            ("seconds", f"{self.seconds[-1]:.3g}"),
        ]
        return card("History", rows, curve=self._curve())

    def _curve(self) -> str:
        """The error against the evaluations, as a small picture for notebooks."""
        return curve(self.evaluations, self.relative_error, "relative error against evaluations, logarithmic")

    def plot(self, ax: Any | None = None) -> Any:
        """Plot relative_error against evaluations.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new pyplot figure by default.

        Returns
        -------
        ax : matplotlib Axes
        """
        return plot_convergence(self, ax)

    def as_dict(self) -> dict[str, np.ndarray]:
        """Return the columns by name, in a form that ``pandas.DataFrame`` accepts."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
