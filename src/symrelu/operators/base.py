"""What a solver may ask of a matrix: the contract behind which every representation hides."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels import tiles
from symrelu.kernels.rows import solve_rows
from symrelu.kernels.threads import allowed_threads, run_rounds


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one pass over the pairs gives at a factor U.

    Attributes
    ----------
    product : ndarray of shape (n, columns), or None
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

    Attributes
    ----------
    n : int
        Number of rows of M.
    dtype : numpy.dtype
        float32 or float64: the type of M, and of the factors that are passed in.
    xp : module
        The array namespace of the factors.
    norm : float
        Frobenius norm of M over the observed entries.
    alpha : float
        Tikhonov weight: the objective is ``latent_loss + alpha / 2 ||U||^2``.
    zero_weight : float
        Weight in (0, 1] of the zeros of M.
    signature : ndarray of shape (rank,)
        The signs, +1 or -1, of the columns of U.
    evaluations : int
        Passes made so far. A V wider than U counts by its columns.
    """

    xp: Any = np
    _unknown: Any | None = None  # csr_array of bool

    def __init__(
        self,
        *,
        n: int,
        dtype: np.dtype[Any],
        norm: float,
        signature: np.ndarray,
        alpha: float = 0.0,
        zero_weight: float = 1.0,
    ) -> None:
        self.n = n
        self.dtype = np.dtype(dtype)
        self.norm = float(norm)
        self.signature = np.asarray(signature, self.dtype)
        self.alpha = float(alpha)
        self.zero_weight = float(zero_weight)
        self.evaluations = 0

    @property
    def rank(self) -> int:
        """Number of columns of a factor."""
        return len(self.signature)

    @abstractmethod
    def matmul(self, V: Any) -> Any:
        """Return M V, unknown entries of M taken as zero."""

    @property
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Where M is positive and observed: ``indptr`` (int64) and ``indices`` (int32) of the rows (CSR)."""
        raise NotImplementedError(f"{type(self).__name__} does not tell its support.")

    def imputed_matmul(self, V: Any, fill: float) -> Any:
        """Return M V with ``fill`` in place of the zeros of M, without forming that matrix.

        Unknown entries stay zero, except on the diagonal: an item is taken to be as similar to itself as to the
        item most similar to it.
        """
        filled = self.matmul(V) + fill * (V.sum(axis=0) - self._not_zero @ V)
        return filled if self._unknown is None else filled + self._unknown_diagonal[:, None] * V

    @cached_property
    def _not_zero(self) -> Any:
        """One where M is positive or unknown."""
        indptr, indices = self.support
        ones = np.ones(len(indices), self.dtype)
        support = sparse.csr_array((ones, indices, indptr), shape=(self.n, self.n))
        return support if self._unknown is None else support + self._unknown.astype(self.dtype)

    @cached_property
    def _unknown_diagonal(self) -> Any:
        """The largest entry of each row whose diagonal entry is unknown, else zero."""
        assert self._unknown is not None
        return np.where(self._unknown.diagonal(), self.row_maxima(), self.dtype.type(0))

    def row_maxima(self) -> Any:
        """Return the largest observed entry of each row."""
        raise NotImplementedError(f"{type(self).__name__} does not tell its largest entries.")

    def solve_rows(self, V: Any, ridge: Any, right: Any) -> Any:
        """Solve (sum of v_j v_j^T over the support of row i + ridge) x_i = b_i for each row i.

        Parameters
        ----------
        V : ndarray of shape (n, rank)
        ridge : ndarray of shape (rank, rank)
            Symmetric positive definite.
        right : ndarray of shape (n, rank, columns)

        Returns
        -------
        solution : ndarray of shape (n, rank, columns)
        """
        indptr, indices = self.support
        right = np.ascontiguousarray(right.transpose(0, 2, 1))
        inverse = np.linalg.inv(ridge)
        T, Z = V @ inverse, right @ inverse
        solution = np.empty_like(right)
        sharing = self.n * V.shape[1] ** 2 >= tiles.MIN_WORK_TO_SHARE
        workers = min(allowed_threads(), self.n) if sharing else 1
        bounds = np.linspace(0, self.n, workers + 1).astype(np.int64)

        def work(_: int, parts: Sequence[int]) -> None:
            for part in parts:
                first, last = bounds[part], bounds[part + 1]
                solve_rows(indptr, indices, V, ridge, T, Z, right, solution, first, last)

        run_rounds(lambda: [range(workers)], work, workers)
        return solution.transpose(0, 2, 1)

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
        other.signature = np.asarray(signature, self.dtype)
        other.alpha = float(alpha)
        other.zero_weight = float(zero_weight)
        other.evaluations = 0
        return other

    def warm_up(self) -> None:  # noqa: B027  # most representations have nothing to compile
        """Compile what a pass needs, so that no clock measures the compiler."""

    def relative_error(self, loss: float) -> float:
        """Return ||M - max(0, X)|| / ||M|| from ``loss``."""
        return math.sqrt(2.0 * loss) / self.norm if loss >= 0 else math.nan

    def signed(self, U: Any) -> Any:
        """Return U * signature."""
        return U if (self.signature > 0).all() else U * self.signature
