"""What a solver may ask of a matrix: the contract behind which every representation hides.

Nothing here knows which arrays the factors are. An operator says so by ``xp``, ``asarray`` and ``to_numpy``;
solvers call ``op.xp`` with what the array API standard (2024.12) has, and nothing else.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one pass over the pairs gives at a factor U.

    Attributes
    ----------
    product : array of shape (n, columns), or None
        R(U) V, where V was given.
    latent_loss : float
        1/2 ||R(U)||^2 (its part off the support multiplied by the zero weight): what solvers lower.
    loss : float
        1/2 ||M - max(0, X)||^2: what the model is judged by.
    latent_norm_squared : float
        ||W||^2 for W = X + R(U); unknown entries count with W = X.
    active_zeros : float
        How many zeros of M have X > 0: there, and on the support, the objective has curvature.
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


class Operator(ABC):
    """The problem: a similarity matrix M with its unknown entries, weights and signs.

    With X = (U * signature) U^T, the residual R(U) is M - X on the support of M, -zero_weight max(0, X) on
    its zeros and 0 where the entry is unknown. Everything that touches n x n entries is R(U) V.

    Factors, and all that is passed in and given back in their place, are arrays of ``xp``; numbers are plain
    ones. What only some representations can do (``n_positive``, ``imputed_matmul``, ``solve_rows``) is offered
    by those that define it: see :meth:`offers`.

    Attributes
    ----------
    xp : module
        The array namespace of the factors.
    n : int
        Number of rows of M.
    dtype : numpy.dtype
        float32 or float64: the type of M, and of the factors that are passed in.
    norm : float
        Frobenius norm of M over the observed entries.
    alpha : float
        Tikhonov weight: the objective is ``latent_loss + alpha / 2 ||U||^2``.
    zero_weight : float
        Weight in (0, 1] of the zeros of M.
    signs : ndarray of shape (rank,)
        The signs, +1 or -1, of the columns of U, on the host.
    signature : array of shape (rank,)
        The same as an array of ``xp``.
    evaluations : int
        Passes made so far. A V wider than U counts by its columns.
    """

    xp: Any
    OPTIONAL: ClassVar[tuple[str, ...]] = ("n_positive", "imputed_matmul", "solve_rows")
    holds_all_pairs: ClassVar[bool] = False  # n x n numbers, even where M is sparse

    def __init__(
        self,
        *,
        n: int,
        dtype: np.dtype[Any],
        norm: float,
        signature: Any,
        alpha: float = 0.0,
        zero_weight: float = 1.0,
    ) -> None:
        self.n = n
        self.dtype = np.dtype(dtype)
        self.norm = float(norm)
        self._set_model(signature, alpha, zero_weight)

    def _set_model(self, signature: Any, alpha: float, zero_weight: float) -> None:
        self.signs = np.array(signature, self.dtype)
        self.signature = self.asarray(self.signs)
        self.alpha = float(alpha)
        self.zero_weight = float(zero_weight)
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
        """Return whether this representation has something; of what is optional, only some define it."""
        if name in cls.OPTIONAL:
            return getattr(cls, name) is not getattr(Operator, name)
        return hasattr(cls, name)

    @abstractmethod
    def matmul(self, V: Any) -> Any:
        """Return M V, unknown entries of M taken as zero."""

    @property
    def n_positive(self) -> int:
        """Number of positive entries of M that are observed."""
        raise self._does_not("count its positive entries")

    def imputed_matmul(self, V: Any, fill: float) -> Any:
        """Return M V with ``fill`` in place of the zeros of M, without forming that matrix.

        Unknown entries stay zero, except on the diagonal: an item is taken to be as similar to itself as to the
        item most similar to it.
        """
        raise self._does_not("put numbers in place of zeros")

    def solve_rows(self, V: Any, ridge: Any, right: Any) -> Any:
        """Solve (sum of v_j v_j^T over the support of row i + ridge) x_i = b_i for each row i.

        Parameters
        ----------
        V : array of shape (n, rank)
        ridge : array of shape (rank, rank)
            Symmetric positive definite.
        right : array of shape (n, rank, columns)

        Returns
        -------
        solution : array of shape (n, rank, columns)
        """
        raise self._does_not("solve systems of its rows")

    def _does_not(self, wish: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not {wish}.")

    @abstractmethod
    def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
        """Make one pass at U."""

    def residual_product(self, U: Any, V: Any) -> Evaluation:
        """Return R(U) V with latent_loss, loss and ||W||^2, all from one pass."""
        self.evaluations += -(-V.shape[1] // U.shape[1])
        return self._evaluate(U, V)

    def loss(self, U: Any) -> Evaluation:
        """Return latent_loss, loss and ||W||^2 without the product."""
        self.evaluations += 1
        return self._evaluate(U, None)

    def frozen(self, U: Any) -> Callable[[Any], Any]:
        """Return the function V -> R(U) V, for many V at one U."""
        return lambda V: self.residual_product(U, V).product

    def with_signature(self, signature: Any) -> Operator:
        """Return the same data under other signs, sharing memory, with a count of its own."""
        return self.with_model(signature, alpha=self.alpha, zero_weight=self.zero_weight)

    def with_model(self, signature: Any, *, alpha: float = 0.0, zero_weight: float = 1.0) -> Operator:
        """Return the same data under another model, sharing memory, with a count of its own."""
        other = copy.copy(self)
        other._set_model(signature, alpha, zero_weight)
        return other

    def warm_up(self) -> None:  # noqa: B027  # most representations have nothing to compile
        """Compile what a pass needs, so that no clock measures the compiler."""

    def relative_error(self, loss: float) -> float:
        """Return ||M - max(0, X)|| / ||M|| from ``loss``."""
        return math.sqrt(2.0 * loss) / self.norm if loss >= 0 else math.nan

    def signed(self, U: Any) -> Any:
        """Return U * signature."""
        return U if (self.signs > 0).all() else U * self.signature
