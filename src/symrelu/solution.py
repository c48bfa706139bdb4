"""What a fit returns: how it went, why it stopped, and the fitted model."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symrelu.files import check_names, read_header, read_npz, write_aside
from symrelu.fitted import FittedModel, Linear, OneFactor, SymmetricReLU, TwoFactor, answered_by_the_model
from symrelu.validation import check_choice, check_integer, check_number

FORMAT = "symrelu.Solution"
FORMAT_VERSION = 1

_OF_SOME_MODELS = ("transform", "score", "canonicalize", "V")


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
class Solution:
    """How a fit went, and the model that came out of it.

    Attributes
    ----------
    model : FittedModel
        The fitted model: :class:`~symrelu.fitted.SymmetricReLU` from :func:`symrelu.decompose` and the
        estimators, :class:`~symrelu.fitted.TwoFactor` from 3B-NMD, :class:`~symrelu.fitted.Linear` from the
        other baselines.
    status : Status
        Why the fit stopped; ``status.value`` is the cause and ``status.advice`` what to try.
    n_iter, n_evaluations : int
        Steps, and passes over the pairs, that were made.
    relative_error : float
        ||M - max(0, X)|| / ||M|| at U, over the observed entries; ||M - X|| / ||M|| of a model without a ReLU.
    norm : float
        ||M|| over the observed entries.
    objective : float
        1/2 ||R(U)||^2 + alpha/2 ||U||^2 at U; of a baseline, its own objective.
    history : History
        What happened at each iteration.
    solver : str
        The solver, as it prints.
    diagonal : {"fit", "ignore"}
        Whether the diagonal of M was data or unknown.

    Notes
    -----
    The solution answers for its model: what every model has is listed below, and what only some have is there
    exactly where the model has it, so that ``hasattr`` tells.

    ``transform(M_new, mask=None)``, ``score(M_new, mask=None)``
        Rows of new items, and how well the model explains them: of a ``SymmetricReLU``, see
        :meth:`symrelu.fitted.SymmetricReLU.transform` and :meth:`symrelu.fitted.SymmetricReLU.score`.
    ``canonicalize()``
        The solution whose factor depends on X alone: of a ``SymmetricReLU`` and a ``Linear``, see
        :meth:`symrelu.fitted.OneFactor.canonicalize`. The objective follows ||U||.
    ``V``
        The right factor of a ``TwoFactor``.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu import decompose
    >>> from symrelu.baselines import truncated_eigen
    >>> M = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    >>> solution = decompose(M, 3, random_state=0)
    >>> solution.model
    SymmetricReLU(n=3, rank=3, n_negative=0)
    >>> solution.transform(M[:2]).shape
    (2, 3)
    >>> hasattr(truncated_eigen(M, 3), "transform")
    False
    """

    model: FittedModel
    status: Status
    n_iter: int
    n_evaluations: int
    relative_error: float
    norm: float
    objective: float
    history: History
    solver: str
    diagonal: str = "fit"

    @classmethod
    def of(
        cls, outcome: Any, model: FittedModel, *, history: History, solver: str, diagonal: str = "fit"
    ) -> Solution:
        """Return the solution of a fit that ended with these numbers and this model.

        Parameters
        ----------
        outcome : Solution, or whatever has its numbers
            Its ``status``, ``n_iter``, ``n_evaluations``, ``relative_error``, ``norm`` and ``objective`` are
            taken.
        model : FittedModel
        history : History
        solver : str
        diagonal : {"fit", "ignore"}, default="fit"
        """
        return cls(
            model=model,
            status=outcome.status,
            n_iter=outcome.n_iter,
            n_evaluations=outcome.n_evaluations,
            relative_error=outcome.relative_error,
            norm=outcome.norm,
            objective=outcome.objective,
            history=history,
            solver=solver,
            diagonal=diagonal,
        )

    @property
    def converged(self) -> bool:
        """Whether a stopping test was met."""
        return self.status.converged

    @property
    def half_squared_error(self) -> float:
        """relative_error^2 / 2: what the paper's table of real data shows."""
        return self.relative_error**2 / 2

    @property
    def U(self) -> np.ndarray:
        """The factor, of shape (n, rank)."""
        return self.model.U

    @property
    def signature(self) -> np.ndarray:
        """Signs of the columns, +1 or -1."""
        return self.model.signature

    @property
    def rank(self) -> int:
        """Number of columns of U."""
        return self.model.rank

    @property
    def n_negative(self) -> int:
        """Number of columns that enter X with a minus sign."""
        return self.model.n_negative

    @property
    def alpha(self) -> float:
        """Tikhonov weight of the fit; 0 in a model that has none."""
        return getattr(self.model, "alpha", 0.0)

    @property
    def zero_weight(self) -> float:
        """Weight of the zeros of M; 1 in a model that has none."""
        return getattr(self.model, "zero_weight", 1.0)

    @answered_by_the_model
    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        return self.model.score_pairs(i, j)

    @answered_by_the_model
    def reconstruct(self, rows: Any) -> np.ndarray:
        return self.model.reconstruct(rows)

    @answered_by_the_model
    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self.model.top_k(nodes, k, exclude=exclude)

    if TYPE_CHECKING:  # what only some models have

        def transform(self, M_new: Any, mask: Any | None = None) -> np.ndarray: ...

        def score(self, M_new: Any, mask: Any | None = None) -> float: ...

        def canonicalize(self) -> Solution: ...

        @property
        def V(self) -> np.ndarray: ...
    else:

        def __getattr__(self, name: str) -> Any:
            """Return what only some models have, or raise a sentence where this one does not have it."""
            if name not in _OF_SOME_MODELS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if not hasattr(self.model, name):
                raise AttributeError(
                    f"This solution is of the model {type(self.model).__name__} ({self.model.formula}), "
                    f"which has no {name}."
                )
            return self._canonicalized if name == "canonicalize" else getattr(self.model, name)

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *(name for name in _OF_SOME_MODELS if hasattr(self.model, name))}

    def __repr__(self) -> str:
        return (
            f"Solution(n={len(self.U)}, rank={self.rank}, n_negative={self.n_negative}, "
            f"relative_error={self.relative_error:.4g}, n_iter={self.n_iter}, status={self.status.name})"
        )

    def _canonicalized(self) -> Solution:
        """Return the solution whose factor depends on X alone, so that runs can be compared.

        See :meth:`symrelu.fitted.OneFactor.canonicalize`. The objective follows ||U||, which falls.
        """
        assert isinstance(self.model, OneFactor)
        model = self.model.canonicalize()
        if self.alpha == 0 or not np.isfinite(self.objective):
            return replace(self, model=model)
        root = np.sqrt(self.alpha / 2)  # within the objective: its square is finite
        before, after = (np.sum((root * A.astype(np.float64)) ** 2) for A in (self.U, model.U))
        return replace(self, model=model, objective=float(self.objective + (after - before)))

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
            "relu": self.model.relu,
        }
        columns = {f"history_{name}": column for name, column in self.history.as_dict().items()}
        arrays: dict[str, Any] = {"U": self.U, "signature": self.signature, **columns}
        if hasattr(self.model, "V"):
            arrays["V"] = self.model.V
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
    header = {name: check(name, numbers[name]) for name, check in _CHECKS.items()}
    of_model = {name: header.pop(name) for name in ("alpha", "zero_weight", "relu")}
    solution = Solution(model=_model(arrays, **of_model), history=history_of(arrays), **header)
    kept = {"alpha": solution.alpha, "zero_weight": solution.zero_weight, "relu": solution.model.relu}
    for name, value in of_model.items():
        if kept[name] != value:
            raise ValueError(f"{name} = {value} does not go with the model {type(solution.model).__name__}")
    if not np.array_equal(solution.signature, arrays["signature"]):
        raise ValueError("signature must be all ones next to two factors")
    return solution


def _model(arrays: dict[str, np.ndarray], alpha: float, zero_weight: float, relu: bool) -> FittedModel:
    U, signature = _factor("U", arrays["U"]), _floats("signature", arrays["signature"])
    if "V" in arrays:
        return TwoFactor(U, _factor("V", arrays["V"]))
    return SymmetricReLU(U, signature, alpha, zero_weight) if relu else Linear(U, signature)


def _factor(name: str, array: np.ndarray) -> np.ndarray:
    array = _floats(name, array)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


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
