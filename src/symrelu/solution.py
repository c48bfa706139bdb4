"""What a fit returns: the factor, why it stopped, and how it went."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from symrelu.canonical import canonical_factor
from symrelu.files import damage_named, open_npz, write_aside
from symrelu.kernels.threads import single_threaded_blas
from symrelu.queries import Queries
from symrelu.transform import explained_squares, transform_rows
from symrelu.validation import check_rows

FORMAT = "symrelu.Solution"
FORMAT_VERSION = 1


class Status(enum.Enum):
    """Why a fit stopped. The value is the cause; ``advice`` says what to try."""

    TOLERANCE = "relative_error fell to tol"
    GRADIENT = "the gradient fell below gtol"
    PLATEAU = "the objective no longer changed by more than ftol"
    ROUNDING = "rounding hides what further steps would gain"
    MAX_ITER = "max_iter was reached"
    MAX_TIME = "max_time was reached"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "the fit was interrupted"
    NON_FINITE = "the iteration left the finite numbers"

    @property
    def converged(self) -> bool:
        """Whether a stopping test was met, rather than a limit or an accident."""
        return self in (Status.TOLERANCE, Status.GRADIENT, Status.PLATEAU)

    @property
    def advice(self) -> str:
        """What to try."""
        return _ADVICE[self]


_ADVICE = {
    Status.TOLERANCE: "The fit is as close as was asked. Lower tol for a closer one.",
    Status.GRADIENT: (
        "The factor is stationary up to gtol; lower gtol to go on. If the error is too high, raise the rank, "
        "try another init or random_state, or a richer model (diagonal='ignore', n_negative=1)."
    ),
    Status.PLATEAU: (
        "More steps of this solver change little; set ftol=0 to go on. If the error is too high, raise the "
        "rank, try another init or random_state, or a richer model (diagonal='ignore', n_negative=1)."
    ),
    Status.ROUNDING: (
        "The entries of X are small differences of large products, and those are not exact enough. Pass M as "
        "float64 (M.astype(numpy.float64)); if it is, raise the rank, or keep U small by alpha > 0."
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


class Record(NamedTuple):
    """One line of a history."""

    iteration: int
    evaluations: int
    seconds: float
    relative_error: float
    latent_loss: float
    objective: float
    gradient_norm: float


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What happened at each iteration, one array a column; row 0 is the start.

    Attributes
    ----------
    iteration, evaluations : ndarray of int
        Steps, and passes over the pairs, made so far.
    seconds : ndarray of float
        Time spent in the solver; compiling and recording are not in it.
    relative_error : ndarray of float
        ||M - max(0, X)|| / ||M||.
    latent_loss, objective, gradient_norm : ndarray of float
        1/2 ||R(U)||^2, the same plus alpha/2 ||U||^2, and the norm of its gradient (of AAPB: at the
        extrapolated point), in the units of M. Beyond the range of floats they become infinite or zero;
        relative_error does not.
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
        """Turn lines into columns."""
        types = Record.__annotations__
        columns = zip(*records, strict=True) if records else ((),) * len(Record._fields)
        arrays = (
            np.array(column, dtype=np.int64 if types[name] in ("int", int) else np.float64)
            for name, column in zip(Record._fields, columns, strict=True)
        )
        return cls(*arrays)

    def records(self) -> list[Record]:
        """Return the lines."""
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

    def as_dict(self) -> dict[str, np.ndarray]:
        """Return the columns by name, as ``pandas.DataFrame`` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Queries):
    """A fitted decomposition M ~ max(0, (U * signature) U^T).

    Attributes
    ----------
    U : ndarray of shape (n, rank)
        The factor.
    signature : ndarray of shape (rank,)
        The signs of its columns: +1, and -1 for the last ``n_negative``.
    alpha : float
        Tikhonov weight of the fit.
    status : Status
        Why the fit stopped; ``status.value`` is the cause and ``status.advice`` what to try.
    n_iter, n_evaluations : int
        Steps, and passes over the pairs, that were made.
    relative_error : float
        ||M - max(0, X)|| / ||M|| at U, over the observed entries.
    norm : float
        ||M|| over the observed entries.
    objective : float
        1/2 ||R(U)||^2 + alpha/2 ||U||^2 at U.
    history : History
        What happened at each iteration.
    solver : str
        The solver, as it prints.
    diagonal : {"fit", "ignore"}
        Whether the diagonal of M was data or unknown.
    zero_weight : float
        Weight of the zeros of M.
    V : ndarray of shape (n, rank), or None
        Right factor of a model max(0, U V^T), which only the baseline 3B-NMD has; None where
        X = (U * signature) U^T.
    relu : bool
        Whether the model is max(0, X), as it is but for some baselines, or X itself.

    Notes
    -----
    The baselines return the same object. All but 3B-NMD have no ReLU: ``relative_error`` and ``objective``
    are those of their own models.
    """

    U: np.ndarray
    signature: np.ndarray
    alpha: float
    status: Status
    n_iter: int
    n_evaluations: int
    relative_error: float
    norm: float
    objective: float
    history: History
    solver: str
    diagonal: str = "fit"
    zero_weight: float = 1.0
    V: np.ndarray | None = None
    relu: bool = True

    @property
    def converged(self) -> bool:
        """Whether a stopping test was met."""
        return self.status.converged

    @property
    def half_squared_error(self) -> float:
        """relative_error^2 / 2: what the paper's table of real data shows."""
        return self.relative_error**2 / 2

    @property
    def rank(self) -> int:
        """Number of columns of U."""
        return int(self.U.shape[1])

    @property
    def n_negative(self) -> int:
        """Number of columns that enter X with a minus sign."""
        return int(np.sum(self.signature < 0))

    @property
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        return self.U, self.U * self.signature if self.V is None else self.V

    def __repr__(self) -> str:
        return (
            f"Solution(n={len(self.U)}, rank={self.rank}, n_negative={self.n_negative}, "
            f"relative_error={self.relative_error:.4g}, n_iter={self.n_iter}, status={self.status.name})"
        )

    def transform(self, M_new: Any, mask: Any | None = None) -> np.ndarray:
        """Return the factor rows of new items from their similarities to the fitted ones.

        Each is the minimum of a convex problem, that of a row of the fit with the other rows held; where it is
        not unique, the one of least norm. A fitted item gets its own row back, up to what the fit lacked in
        convergence; with ``diagonal="ignore"`` its own entry has to be masked.

        Parameters
        ----------
        M_new : sparse matrix, sparse array or array-like of shape (n_new, n)
        mask : sparse or dense bool matrix of shape (n_new, n), optional
            True where a similarity is unknown. A zero says X <= 0, an unknown entry says nothing.

        Returns
        -------
        U_new : ndarray of shape (n_new, rank)
        """
        self._require_relu_model("transform")
        return self._transformed(*check_rows(M_new, len(self.U), mask))

    def _transformed(self, M_new: Any, mask: Any | None) -> np.ndarray:
        with single_threaded_blas():
            return transform_rows(
                M_new, self.U, self.signature, alpha=self.alpha, zero_weight=self.zero_weight, mask=mask
            )

    def score(self, M_new: Any, mask: Any | None = None) -> float:
        """Return how much of new rows the model explains: 1 - ||M_new - max(0, X_new)||^2 / ||M_new||^2.

        Parameters
        ----------
        M_new : sparse matrix, sparse array or array-like of shape (n_new, n)
        mask : sparse or dense bool matrix of shape (n_new, n), optional
            True where a similarity is unknown.

        Returns
        -------
        score : float
            1 is exact; 0 is no better than predicting zero everywhere.
        """
        self._require_relu_model("score")
        M_new, mask = check_rows(M_new, len(self.U), mask)
        return explained_squares(M_new, self._transformed(M_new, mask), self.U * self.signature, mask)

    def canonicalize(self) -> Solution:
        """Return the same X by a factor that depends on X alone, so that runs can be compared.

        Its columns are the eigenvectors of X times the root of the size of their eigenvalues, those of each
        sign by falling size, the entry of largest magnitude positive. Where eigenvalues are equal, they can
        still turn.
        """
        self._require_one_factor("canonicalize")
        U = canonical_factor(self.U, self.signature)
        change = float(np.sum(U.astype(np.float64) ** 2) - np.sum(self.U.astype(np.float64) ** 2))
        return replace(self, U=U, objective=self.objective + self.alpha / 2 * change)

    def _require_relu_model(self, wish: str) -> None:
        self._require_one_factor(wish)
        if not self.relu:
            raise ValueError(
                f"{wish} is of the model max(0, X), but this solution is of M ~ X, without a ReLU."
            )

    def _require_one_factor(self, wish: str) -> None:
        if self.V is not None:
            raise ValueError(f"{wish} needs a symmetric X, but this solution has two factors, U and V.")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the solution to an npz file (arrays and JSON, no pickle).

        The file is written aside and renamed: what was there before is lost only to a complete new file.
        """
        numbers = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "alpha": self.alpha,
            "status": self.status.name,
            "n_iter": self.n_iter,
            "n_evaluations": self.n_evaluations,
            "relative_error": self.relative_error,
            "norm": self.norm,
            "objective": self.objective,
            "solver": self.solver,
            "diagonal": self.diagonal,
            "zero_weight": self.zero_weight,
            "relu": self.relu,
        }
        columns = {f"history_{name}": column for name, column in self.history.as_dict().items()}
        arrays: dict[str, Any] = {"U": self.U, "signature": self.signature, **columns}
        if self.V is not None:
            arrays["V"] = self.V
        with write_aside(path) as file:
            np.savez(file, solution=np.array(json.dumps(numbers)), **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Solution:
        """Read what :meth:`save` wrote; anything else is refused with a reason."""
        with open_npz(path) as content:
            if "solution" not in content:
                raise ValueError(f"{path} is not a saved Solution: it has no entry 'solution'.")
            with damage_named(path, "Solution"):
                arrays = {name: content[name] for name in content.files}
        try:
            return _from_arrays(arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a Solution this version can read: {error}.") from error


def _from_arrays(content: dict[str, Any]) -> Solution:
    numbers = json.loads(str(content["solution"]))
    if numbers.pop("format", None) != FORMAT:
        raise ValueError("its format is not " + FORMAT)
    version = numbers.pop("version", None)
    if version != FORMAT_VERSION:
        raise ValueError(f"its version is {version}, this release reads {FORMAT_VERSION}")
    history = History(**{field.name: content[f"history_{field.name}"] for field in fields(History)})
    U, signature, V = content["U"], content["signature"], content.get("V")
    if U.ndim != 2 or signature.shape != (U.shape[1],):
        raise ValueError(f"U of shape {U.shape} does not go with a signature of shape {signature.shape}")
    if V is not None and V.shape != U.shape:
        raise ValueError(f"V of shape {V.shape} does not go with U of shape {U.shape}")
    status = Status[numbers.pop("status")]
    return Solution(U=U, signature=signature, status=status, history=history, V=V, **numbers)
