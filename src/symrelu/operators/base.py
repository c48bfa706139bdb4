"""The interface between solvers and a matrix M, whichever way M is represented.

This module does not depend on an array library. An operator names its own by ``xp``, ``asarray`` and
``to_numpy``; solvers use only those functions of ``op.xp`` that the array API standard (2024.12) defines.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


class EvaluationFailed(OSError):
    """A pass could not be made, for a reason outside of the computation, such as a cluster that went away.

    Attributes
    ----------
    outcome : Outcome or None
        How far the fit got, if the loop had a factor.
    history : HistoryKeeper or None
        The steps that led there.
    solution : Solution or None
        The same as a solution, if :func:`symrelu.decompose` ran the loop.
    """

    outcome: Any = None
    history: Any = None
    solution: Any = None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of one pass over all pairs at a factor U.

    Attributes
    ----------
    product : array of shape (n, columns), or None
        R(U) V, if V was given.
    latent_loss : float
        1/2 ||M - X||^2 over the support of M plus zero_weight / 2 ||max(0, X)||^2 over its zeros: what solvers
        minimise. With ``at_least``, support entries with X > M count in neither loss.
    loss : float
        1/2 ||M - max(0, X)||^2: the error of the model.
    latent_norm_squared : float
        ||W||^2 for W = X + R(U); at unobserved entries W = X.
    active_zeros : float
        Number of zeros of M with X > 0: the objective has curvature only there and on the support.
    alignment : float
        <R(U), X>.
    """

    product: Any
    latent_loss: float
    loss: float
    latent_norm_squared: float
    active_zeros: float = 0.0
    alignment: float = math.nan

    @property
    def latent_norm(self) -> float:
        """||W||."""
        return math.sqrt(self.latent_norm_squared)


@dataclass(frozen=True, eq=False)
class Curvature:
    """The second derivative of the objective at a factor U, and of what lies within reach of it.

    With V = U * signature and the weights A of the pairs (:meth:`Operator.curvature`), it is

        H[D] = -2 R(U) (D * signature) + 2 (A o (D V^T + V D^T)) V + alpha D.

    Attributes
    ----------
    product : callable
        Returns H[D] for an array D of the shape of U.
    row_solver : callable
        Takes a ridge > 0, and returns the function that solves, for each row i of an array of the shape of U,
        the system with the second derivative with respect to row i alone, without R and alpha but with the
        ridge: 2 sum_j a_ij v_j v_j^T + ridge, where j = i counts twice.
    """

    product: Callable[[Any], Any]
    row_solver: Callable[[float], Callable[[Any], Any]]


class Operator(ABC):
    """A similarity matrix M with its unobserved entries, its weights and the signs of the columns.

    With X = (U * signature) U^T, the residual R(U) is M - X on the support of M (with ``at_least``
    max(0, M - X)), -zero_weight max(0, X) on its zeros and 0 where the entry is unobserved. The product R(U) V
    is the only operation on n x n entries.

    Factors and all other arrays that are passed or returned are arrays of ``xp``; scalars are Python numbers.
    Only some representations implement ``n_positive``, ``imputed_matmul``, ``solve_rows`` and ``curvature``:
    see :meth:`offers`.

    Attributes
    ----------
    xp : module
        The array namespace of the factors.
    n : int
        Number of rows of M.
    dtype : numpy.dtype
        float32 or float64: the type of M and of the factors.
    norm : float
        Frobenius norm of M over the observed entries.
    alpha : float
        Tikhonov weight: the objective is ``latent_loss + alpha / 2 ||U||^2``.
    zero_weight : float
        Weight in (0, 1] of the zeros of M.
    at_least : bool
        Whether X >= M suffices on the support of M, instead of X = M.
    signs : ndarray of shape (rank,)
        The signs, +1 or -1, of the columns of U, on the host.
    signature : array of shape (rank,)
        The same as an array of ``xp``.
    evaluations : int
        Number of passes so far. A V with k times as many columns as U counts k times (rounded up).
    """

    xp: Any
    OPTIONAL: ClassVar[tuple[str, ...]] = ("n_positive", "imputed_matmul", "solve_rows", "curvature")
    holds_all_pairs: ClassVar[bool] = False  # whether n x n numbers are held, even for a sparse M
    has_local_matrix: ClassVar[bool] = (
        True  # whether this process has M, from which smaller matrices can be made
    )

    def __init__(
        self,
        *,
        n: int,
        dtype: np.dtype[Any],
        norm: float,
        signature: Any,
        alpha: float = 0.0,
        zero_weight: float = 1.0,
        at_least: bool = False,
    ) -> None:
        self.n = n
        self.dtype = np.dtype(dtype)
        self.norm = float(norm)
        self._set_model(signature, alpha, zero_weight, at_least)

    def _set_model(self, signature: Any, alpha: float, zero_weight: float, at_least: bool) -> None:
        # Signs of the dtype of M: float64 signs would turn float32 factors into float64 ones.
        self.signs = np.array(signature, self.dtype)
        self.signature = self.asarray(self.signs)
        self.alpha = float(alpha)
        self.zero_weight = float(zero_weight)
        self.at_least = bool(at_least)
        self.evaluations = 0

    @abstractmethod
    def asarray(self, A: np.ndarray) -> Any:
        """Return a host array of floats as an array of this operator, in its dtype."""

    @abstractmethod
    def to_numpy(self, A: Any) -> np.ndarray:
        """Return an array of this operator as a host array."""

    @property
    def rank(self) -> int:
        """Number of columns of a factor."""
        return len(self.signs)

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number of ``dtype``."""
        return float(np.finfo(self.dtype).eps)

    @classmethod
    def offers(cls, name: str) -> bool:
        """Return whether this representation has an attribute; those in ``OPTIONAL`` must be overridden."""
        # The base class defines these too, only to raise, so hasattr would always be true.
        if name in cls.OPTIONAL:
            return getattr(cls, name) is not getattr(Operator, name)
        return hasattr(cls, name)

    @abstractmethod
    def matmul(self, V: Any) -> Any:
        """Return M V, with zero in place of the unobserved entries."""

    @property
    def n_positive(self) -> int:
        """Number of observed positive entries of M."""
        raise self._unsupported("n_positive")

    def imputed_matmul(self, V: Any, fill: float) -> Any:
        """Return M V with ``fill`` in place of the zeros of M, without forming that matrix.

        Unobserved entries stay zero, except on the diagonal: an item is taken to be as similar to itself as to
        the item most similar to it.
        """
        raise self._unsupported("imputed_matmul")

    def solve_rows(self, V: Any, ridge: Any, *right: Any) -> tuple[Any, ...]:
        """Solve (sum of v_j v_j^T over the support of row i + ridge) x_i = b_i for each row i.

        Parameters
        ----------
        V : array of shape (n, rank)
        ridge : array of shape (rank, rank)
            Symmetric positive definite.
        *right : arrays of shape (n, rank)
            The b_i as rows; each array is a problem of its own, with the same matrices.

        Returns
        -------
        solutions : tuple of arrays of shape (n, rank)
        """
        raise self._unsupported("solve_rows")

    def curvature(self, U: Any, reach: float) -> Curvature | None:
        """Return the second derivative at U on the pairs that have curvature, or None if they are too many.

        The weight of a pair is 1 on the support, zero_weight on the zeros with X > 0, and 0 where the entry is
        unobserved. A zero with X = -b * norm(u_i) * norm(u_j) and b < reach has the weight
        zero_weight (1 - b / reach)^2, because a step can make it positive; with ``at_least``, so have support
        entries with X > M, from M on. Zeros in rows of U that are zero have no weight.

        Parameters
        ----------
        U : array of shape (n, rank)
        reach : float
        """
        raise self._unsupported("curvature")

    def _unsupported(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not implement {name}.")

    @abstractmethod
    def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
        """Make one pass at U."""

    def residual_product(self, U: Any, V: Any) -> Evaluation:
        """Return R(U) V with latent_loss, loss and ||W||^2, in one pass."""
        self._check_rows(U, V)
        # Rounded up: a wider product costs more, and counts of evaluations should be comparable.
        self.evaluations += -(-V.shape[1] // U.shape[1])
        return self._evaluate(U, V)

    def loss(self, U: Any) -> Evaluation:
        """Return latent_loss, loss and ||W||^2 without the product."""
        self._check_rows(U)
        self.evaluations += 1
        return self._evaluate(U, None)

    def _check_rows(self, *factors: Any) -> None:
        """Raise unless factors have a row for each row of M: compiled code would read beyond their end."""
        if any(A.shape[0] != self.n for A in factors):
            shapes = ", ".join(str(tuple(A.shape)) for A in factors)
            raise ValueError(f"The factors must have {self.n} rows, like M, got the shapes {shapes}.")

    def frozen(self, U: Any) -> Callable[[Any], Any]:
        """Return the function V -> R(U) V, for several V at the same U."""
        return lambda V: self.residual_product(U, V).product

    def with_signature(self, signature: Any) -> Operator:
        """Return an operator with other signs that shares the data, with its own count of evaluations."""
        return self.with_model(
            signature, alpha=self.alpha, zero_weight=self.zero_weight, at_least=self.at_least
        )

    def with_model(
        self, signature: Any, *, alpha: float = 0.0, zero_weight: float = 1.0, at_least: bool = False
    ) -> Operator:
        """Return an operator with another model that shares the data, with its own count of evaluations."""
        # A shallow copy shares the data, and everything that has been derived from it.
        other = copy.copy(self)
        other._set_model(signature, alpha, zero_weight, at_least)
        return other

    @classmethod
    def check_available(cls) -> None:  # most representations need no special machine
        """Raise unless this machine can hold such operators."""
        return None

    @classmethod
    def check_size(cls, n: int, rank: int) -> None:  # most representations have no limit but memory
        """Raise if factors with so many rows and columns are too large for such operators."""
        return None

    # Relative errors below this are noise. It is zero for operators whose passes are exact up to rounding.
    noise_floor: float = 0.0

    def approximate(self) -> Operator:
        """Return an operator for a fit that need not be exact, if there is a faster one, else this one."""
        return self

    def full_precision(self) -> AbstractContextManager[None]:
        """Return a context in which products of arrays are exact up to rounding, whatever the process allows.

        The methods of an operator need none; a solver also multiplies factors itself.
        """
        return nullcontext()

    def warm_up(self) -> None:  # noqa: B027  # most representations have nothing to compile
        """Compile what a pass needs, so that timings do not include compilation."""

    def warm_up_curvature(self) -> None:  # noqa: B027
        """Compile what :meth:`curvature` needs; called in addition for solvers that require it."""

    def serves(self, client: Any | None) -> bool:
        """Return whether this operator can be shared by models that run with a client of a cluster."""
        return client is None

    def release(self) -> None:  # noqa: B027  # most representations hold memory only
        """Let go of what the operator holds outside of this process. It cannot be used any more."""

    def inner(self, A: Any, B: Any) -> float:
        """Return the sum of A * B, summed in float64."""
        return float(self.xp.sum(A * B, dtype=self.xp.float64))

    def add_scaled(self, A: Any, weight: float, B: Any) -> Any:
        """Return A + weight * B."""
        return A + weight * B

    def inner_each(self, A: Any, others: Sequence[Any]) -> list[float]:
        """Return the sum of A * B for each B among others, summed in float64."""
        return [self.inner(A, B) for B in others]

    def combined(self, scale: float, A: Any, weights: Sequence[float], others: Sequence[Any]) -> Any:
        """Return scale * A plus the sum of weight * B over others."""
        out = scale * A
        for weight, B in zip(weights, others, strict=True):
            out = self.add_scaled(out, weight, B)
        return out

    def scale_columns(self, A: Any, weights: Any) -> Any:
        """Return A * weights, with one weight for each column."""
        return A * weights

    def gram(self, V: Any) -> Any:
        """Return V^T V."""
        return V.T @ V

    def relative_error(self, loss: float) -> float:
        """Return ||M - max(0, X)|| / ||M|| from ``loss``."""
        return math.sqrt(2.0 * loss) / self.norm if loss >= 0 else math.nan

    def signed(self, U: Any) -> Any:
        """Return U * signature."""
        # Without negative columns, the common case, this saves a copy.
        return U if (self.signs > 0).all() else self.scale_columns(U, self.signature)
