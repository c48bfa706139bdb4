"""The same model without the ReLU, and eigenvectors, to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.fit.loop import run
from symrelu.fit.settings import Limits
from symrelu.fit.starts import start
from symrelu.operators import SparseOperator
from symrelu.operators.base import Evaluation
from symrelu.solvers import LBFGS


class WithoutReLU(SparseOperator):
    """The linear model: a zero of M requires X = 0, not X <= 0. The diagonal is unobserved."""

    def __init__(self, M: Any, **settings: Any) -> None:
        n = M.shape[0]
        super().__init__(M, sparse.eye_array(n, dtype=bool, format="csr"), **settings)
        self.rows = np.repeat(np.arange(n), np.diff(self._M.indptr))

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        """Evaluate the residual M - X on the support, -w X on the zeros and 0 on the diagonal."""
        M, w, A = self._M, self.zero_weight, U * self.signature
        X = np.einsum("kr,kr->k", A[self.rows], U[M.indices])
        own = np.einsum("kr,kr->k", A, U)
        correction = sparse.csr_array((M.data - X + w * X, M.indices, M.indptr), shape=M.shape)
        squares = np.sum((A.T @ A) * (U.T @ U)) - np.sum(X**2) - np.sum(own**2)
        loss = float(np.sum((M.data - X) ** 2) + w * squares) / 2
        product = None if V is None else correction @ V - w * (A @ (U.T @ V)) + w * own[:, None] * V
        zeros = self.n**2 - self.n - M.nnz
        return Evaluation(product, loss, loss, self.norm**2, active_zeros=zeros)


def linear_fit(
    M: Any, rank: int, *, n_negative: int, alpha: float, zero_weight: float, init: Any, max_iter: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor and signs that an estimator would find without the ReLU, all else equal."""
    signature = np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)
    op = WithoutReLU(M, signature=signature, alpha=alpha, zero_weight=zero_weight)
    return run(op, LBFGS(), start(op, init, seed), Limits(max_iter=max_iter)).U, signature


def eigenpairs(M: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenpairs of M, because ARPACK misses copies of repeated eigenvalues."""
    return np.linalg.eigh(M.toarray())


def normalised(graph: Any, regularization: float = 1.0) -> tuple[Any, np.ndarray]:
    """Return D^-1/2 B D^-1/2 with D = degree + a multiple of the mean degree, and the roots of D."""
    degree = graph.sum(axis=1)
    roots = np.sqrt(degree + regularization * degree.mean())
    inverse = sparse.diags_array(np.divide(1, roots, where=roots > 0, out=np.zeros_like(roots)))
    return sparse.csr_array(inverse @ graph @ inverse), roots
