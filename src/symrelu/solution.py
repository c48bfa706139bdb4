"""What a fit returns: the factor, why it stopped, and how it went."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from symrelu.canonical import canonical_factor
from symrelu.files import check_names, read_header, read_npz, write_aside
from symrelu.kernels.threads import single_threaded_blas
from symrelu.queries import Queries
from symrelu.transform import explained_squares, transform_rows
from symrelu.validation import check_choice, check_integer, check_number, check_rows

FORMAT = "symrelu.Solution"
FORMAT_VERSION = 1


class Status(enum.Enum):
    """Why a fit stopped. The value is the cause; ``advice`` says what to try."""

    TOLERANCE = "relative_error fell to tol"
    GRADIENT = "the gradient fell below gtol"
    PLATEAU = "the objective no longer changed by more than ftol"
    ROUNDING = "rounding hides what further steps would gain"
    VANISHED = "the factor became zero"
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
    Status.VANISHED: (
        "Every fit stands still at U = 0, whatever M is. Lower alpha, which shrinks U; if it is 0, try another "
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


_COUNTS = ("iteration", "evaluations")  # the columns of a history that are integers


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
        columns = zip(*records, strict=True) if records else ((),) * len(Record._fields)
        arrays = (
            np.array(column, dtype=np.int64 if name in _COUNTS else np.float64)
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
        if self.alpha == 0 or not np.isfinite(self.objective):
            return replace(self, U=U)
        root = np.sqrt(self.alpha / 2)  # within the objective: its square is finite
        before, after = (np.sum((root * A.astype(np.float64)) ** 2) for A in (self.U, U))
        return replace(self, U=U, objective=float(self.objective + (after - before)))

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

        The file is written atomically: what was there before is lost only to a complete new file.
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
            np.savez(file, allow_pickle=False, solution=np.array(json.dumps(numbers)), **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Solution:
        """Read what :meth:`save` wrote, in this release or an earlier one; anything else is refused.

        The file is validated before it is believed: it takes no more memory than its size on disk, and what it
        holds has to be the Solution of a fit. The error names the file and what is wrong with it.
        """
        arrays = read_npz(path, "Solution")
        if "solution" not in arrays:
            raise ValueError(f"{path} is not a saved Solution: it has no entry 'solution'.")
        try:
            return _from_arrays(arrays)
        except (TypeError, ValueError) as error:
            reason = str(error).rstrip(".")
            raise ValueError(f"{path} is not a Solution this version can read: {reason}.") from error


def _from_arrays(arrays: dict[str, np.ndarray]) -> Solution:
    """Return the solution of an archive, or raise a sentence on what is not one."""
    numbers = read_header(arrays, "solution")
    if numbers.pop("format", None) != FORMAT:
        raise ValueError("its format is not " + FORMAT)
    version = numbers.pop("version", None)
    if version != FORMAT_VERSION:
        raise ValueError(f"its version is {version}, this release reads {FORMAT_VERSION}")
    check_names("its header", numbers, set(_CHECKS))
    columns = {f"history_{field.name}" for field in fields(History)}
    check_names("it", arrays, {"solution", "U", "signature", *columns}, optional=("V",))
    U = _factor("U", arrays["U"])
    V = _factor("V", arrays["V"]) if "V" in arrays else None
    if V is not None and V.shape != U.shape:
        raise ValueError(f"V of shape {V.shape} does not go with U of shape {U.shape}")
    return Solution(
        U=U,
        signature=_signature(arrays["signature"], U),
        V=V,
        history=history_of(arrays),
        **{name: check(name, numbers[name]) for name, check in _CHECKS.items()},
    )


def _factor(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must be a matrix, got shape {array.shape}")
    array = _floats(name, array)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


def _signature(signature: np.ndarray, U: np.ndarray) -> np.ndarray:
    if signature.shape != U.shape[1:]:
        raise ValueError(f"U of shape {U.shape} does not go with a signature of shape {signature.shape}")
    signature = _floats("signature", signature)
    if not np.isin(signature, (-1, 1)).all():
        raise ValueError(f"signature must be +1 or -1 for each column, got {signature.tolist()}")
    return signature


def _floats(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of float32 or float64 in the byte order of this machine."""
    dtype = array.dtype.newbyteorder("=")
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must hold float32 or float64, got {array.dtype}")
    return array.astype(dtype, copy=False)


def history_of(arrays: Mapping[str, np.ndarray]) -> History:
    """Return the history of an archive, whose columns are called ``history_...``, or raise a sentence.

    Parameters
    ----------
    arrays : dict of str to ndarray

    Returns
    -------
    history : History
    """
    columns = {field.name: arrays[f"history_{field.name}"] for field in fields(History)}
    shapes = {column.shape for column in columns.values()}
    if len(shapes) != 1 or len(shapes.pop()) != 1:
        raise ValueError("its history is not a table: the columns must have one length")
    return History(**{name: _column(name, column) for name, column in columns.items()})


def _column(name: str, column: np.ndarray) -> np.ndarray:
    return _counts(name, column) if name in _COUNTS else _measures(name, column)


def _counts(name: str, column: np.ndarray) -> np.ndarray:
    """Return a column of integers, which 0.1.0 wrote as floats."""
    if column.dtype.kind not in "iuf":
        raise TypeError(f"history_{name} must hold integers, got {column.dtype}")
    whole = (column >= 0) & (column < 2**53) & (column == np.floor(column))
    if not whole.all():
        raise ValueError(f"history_{name} must hold whole numbers >= 0, got {column[~whole][0]}")
    return column.astype(np.int64)


def _measures(name: str, column: np.ndarray) -> np.ndarray:
    """Return a column of numbers; those in the units of M may be infinite, and a gradient unknown (NaN)."""
    column = _floats(f"history_{name}", column)
    finite = name in ("seconds", "relative_error")
    allowed = (column >= 0) & (np.isfinite(column) | (not finite))
    if name == "gradient_norm":  # inf - inf, in the last step of a fit that diverged
        allowed |= np.isnan(column)
    if not allowed.all():
        wanted = "finite numbers >= 0" if finite else "numbers >= 0"
        raise ValueError(f"history_{name} must hold {wanted}, got {column[~allowed][0]}")
    return column


def _status(name: str, value: Any) -> Status:
    return Status[check_choice(name, value, tuple(Status.__members__))]


def _count(name: str, value: Any) -> int:
    return check_integer(name, value, 0, 2**63 - 1)


def _norm(name: str, value: Any) -> float:
    """Return a number in the units of M, which may be beyond the range of floats."""
    return math.inf if value == math.inf else check_number(name, value)


def _objective(name: str, value: Any) -> float:
    """Return the same; rounding in ``canonicalize`` may leave it a little below 0."""
    return math.inf if value == math.inf else check_number(name, value, -math.inf)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r}")
    return value


def _diagonal(name: str, value: Any) -> str:
    return check_choice(name, value, ("fit", "ignore"))


def _weight(name: str, value: Any) -> float:
    return check_number(name, value, 0, 1, low_included=False)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, got {value!r}")
    return value


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "alpha": check_number,
    "status": _status,
    "n_iter": _count,
    "n_evaluations": _count,
    "relative_error": check_number,
    "norm": _norm,
    "objective": _objective,
    "solver": _text,
    "diagonal": _diagonal,
    "zero_weight": _weight,
    "relu": _flag,
}
