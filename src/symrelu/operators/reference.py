"""The formulas of the model written out on n x n arrays, as a reference for tests. Not for large matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.operators.base import Curvature, Evaluation
from symrelu.operators.host import HostOperator


class ReferenceOperator(HostOperator):
    """Every quantity of the model computed by its definition, using only functions of the array API.

    A subclass that overrides ``xp``, ``asarray`` and ``to_numpy`` runs on the arrays of another library.

    Parameters
    ----------
    M : ndarray of shape (n, n)
    observed : ndarray of bool of shape (n, n)
        False where the entry is unobserved.
    **settings
        signature, alpha, zero_weight and at_least of :class:`~symrelu.operators.base.Operator`.
    """

    holds_all_pairs = True

    def __init__(self, M: np.ndarray, observed: np.ndarray, **settings: Any) -> None:
        M = np.where(observed, M, M.dtype.type(0))
        norm = np.linalg.norm(M.astype(np.float64))
        super().__init__(n=len(M), dtype=M.dtype, norm=float(norm), **settings)
        self._M = self.asarray(M)
        # asarray returns floats of ``xp``; the comparison turns them into its booleans.
        self._observed = self.asarray(observed) > 0
        self._identity = self.asarray(np.eye(len(M)))
        self._unknown_diagonal = self.asarray(np.diag(~np.diag(observed))) > 0
        self._neighbours = [np.flatnonzero(row).tolist() for row in M]

    @classmethod
    def of(cls, M: Any, unknown: Any | None, **settings: Any) -> ReferenceOperator:
        """Return the operator of a checked matrix and its unobserved entries."""
        M = M if isinstance(M, np.ndarray) else M.toarray()
        observed = np.ones(M.shape, dtype=bool) if unknown is None else ~unknown.toarray()
        return cls(M, observed, **settings)

    def matmul(self, V: Any) -> Any:
        return self._M @ V

    @property
    def n_positive(self) -> int:
        return sum(map(len, self._neighbours))

    def imputed_matmul(self, V: Any, fill: float) -> Any:
        xp, M = self.xp, self._M
        imputed = xp.where((M == 0) & self._observed, xp.full_like(M, fill), M)
        largest = xp.broadcast_to(xp.max(M, axis=1)[:, None], M.shape)
        return xp.where(self._unknown_diagonal, largest, imputed) @ V

    def solve_rows(self, V: Any, ridge: Any, *right: Any) -> tuple[Any, ...]:
        xp = self.xp
        columns = xp.stack(right, axis=2)
        solutions = []
        for i, neighbours in enumerate(self._neighbours):
            part = xp.take(V, xp.asarray(neighbours, dtype=xp.int64, device=V.device), axis=0)
            solutions.append(xp.linalg.solve(part.T @ part + ridge, columns[i, ...]))
        found = xp.stack(solutions)
        return tuple(found[:, :, k] for k in range(len(right)))

    def curvature(self, U: Any, reach: float) -> Curvature:
        xp, M, s, w = self.xp, self._M, self.signature, self.zero_weight
        V = U * s
        X, residual = V @ U.T, self._residual(U)
        lengths = xp.sqrt(xp.sum(U * U, axis=1))
        width = reach * lengths[:, None] * lengths
        # How far X is from where the pair would have an excess, and which part of its weight is left there.
        distance = xp.where(M > 0, X - M if self.at_least else xp.zeros_like(X), -X)
        near = 1 - distance / xp.where(width > 0, width, xp.ones_like(width))
        part = xp.where(distance <= 0, xp.ones_like(X), xp.where(distance < width, near, xp.zeros_like(X)))
        weights = xp.where(M > 0, xp.ones_like(X), xp.full_like(X, w)) * part**2
        A = xp.where(self._observed & ((M > 0) | (-width < X)), weights, xp.zeros_like(X))

        def product(D: Any) -> Any:
            return 2 * ((A * (D @ V.T + V @ D.T)) @ V - residual @ (D * s)) + self.alpha * D

        def row_solver(ridge: float) -> Any:
            doubled = A * (1 + xp.eye(self.n, dtype=A.dtype, device=A.device))
            added = ridge * xp.eye(V.shape[1], dtype=A.dtype, device=A.device)

            def solve(G: Any) -> Any:
                blocks = (2 * (V.T * doubled[i, :]) @ V + added for i in range(self.n))
                return xp.stack([xp.linalg.solve(block, G[i, :]) for i, block in enumerate(blocks)])

            return solve

        return Curvature(product, row_solver)

    def _residual(self, U: Any) -> Any:
        return self._evaluate(U, self._identity).product

    def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
        xp, M, observed, w = self.xp, self._M, self._observed, self.zero_weight
        X = (U * self.signature) @ U.T
        zero = xp.zeros_like(X)
        above, below = xp.maximum(X, zero), xp.minimum(X, zero)
        residual = xp.where(M > 0, M - X, xp.where(observed, -w * above, zero))
        latent = xp.where(M > 0, M, xp.where(observed, below + (1 - w) * above, X))
        error = xp.where(observed, M - above, zero)
        free = ~observed
        if self.at_least:
            met = (M > 0) & (X > M)
            residual, error = xp.where(met, zero, residual), xp.where(met, zero, error)
            latent, free = xp.where(met, X, latent), free | met
        # Zero, or NaN if X is not finite at an entry that counts in no loss: a diverged fit must not look good.
        not_finite = 0 * self._sum(xp.where(free, X, zero))
        squares = xp.astype(residual, xp.float64) ** 2
        return Evaluation(
            product=None if V is None else residual @ V,
            # On the zeros the residual is w max(0, X), while the loss has w max(0, X)^2.
            latent_loss=self._sum(xp.where(M > 0, squares, squares / w)) / 2 + not_finite,
            loss=self._sum(xp.astype(error, xp.float64) ** 2) / 2 + not_finite,
            latent_norm_squared=self._sum(xp.astype(latent, xp.float64) ** 2),
            alignment=self._sum(xp.astype(residual, xp.float64) * xp.astype(X, xp.float64)),
            active_zeros=self._sum(xp.astype((M == 0) & observed & (X > 0), xp.float64)),
        )

    def _sum(self, A: Any) -> float:
        return float(self.xp.sum(A, dtype=self.xp.float64))
