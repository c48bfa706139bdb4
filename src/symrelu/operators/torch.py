"""M on a torch device: plain tensor operations on one block of rows at a time.

X = A B^T is formed for a block of rows, the entries that are not zeros of M are overwritten in it, and the
block is multiplied before the next one is formed. A sparse M stays sparse; nothing is n x n unless M is dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.tiles import Sums
from symrelu.operators.base import Evaluation, Operator
from symrelu.operators.tiled import evaluation_of
from symrelu.operators.torch_precision import (  # explains what is missing
    full_float32,
    namespace,
    undisturbed,
)
from symrelu.operators.torch_rows import (
    DenseRows,
    Entries,
    Rows,
    SparseRows,
    inner,
    numbers_at_once,
    square_sum,
    tensor,
)

import torch  # isort: skip


class TorchOperator(Operator):
    """A dense or sparse M as torch tensors, compared with X one block of rows at a time.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
        If sparse, canonical (sorted, no duplicates) with positive stored entries. Copied to the device.
    unknown : csr_array of bool, or None
        True where the entry is unobserved.
    tile : int, optional
        Rows per block. By default a block has half a million numbers, on a GPU 64 million.
    device : str or torch.device, default="cpu"
        Device of the tensors.
    **settings
        signature, alpha, zero_weight and at_least of :class:`~symrelu.operators.base.Operator`.
    """

    xp = namespace

    def __init__(
        self,
        M: Any,
        unknown: Any | None = None,
        *,
        tile: int | None = None,
        device: Any = "cpu",
        **settings: Any,
    ) -> None:
        self.device = torch.device(device)
        n = M.shape[0]
        rows = SparseRows if sparse.issparse(M) else DenseRows
        unknown = sparse.csr_array((n, n), dtype=bool) if unknown is None else unknown
        self._rows = rows(M, unknown, tile or max(1, numbers_at_once(self.device) // n), self.device)
        super().__init__(n=n, dtype=M.dtype, norm=self._rows.norm(), **settings)

    @classmethod
    def of(cls, M: Any, unknown: Any | None, **settings: Any) -> TorchOperator:
        """Return the operator of a checked matrix and its unobserved entries."""
        return cls(M, unknown, **settings)

    def asarray(self, A: np.ndarray) -> Any:
        return tensor(np.asarray(A, self.dtype), self.device)

    def to_numpy(self, A: Any) -> np.ndarray:
        return A.detach().cpu().numpy()

    def full_precision(self) -> AbstractContextManager[None]:
        return full_float32()

    @undisturbed
    def gram(self, V: Any) -> Any:
        return super().gram(V)

    @undisturbed
    def matmul(self, V: Any) -> Any:
        return self._rows.matmul(V)

    @property
    def n_positive(self) -> int:
        return self._rows.n_positive

    @undisturbed
    def imputed_matmul(self, V: Any, fill: float) -> Any:
        zeros_matmul = torch.sum(V, dim=0) - self._rows.occupied_matmul(V)
        return self._rows.matmul(V) + fill * zeros_matmul + self._rows.unknown_diagonal[:, None] * V

    @undisturbed
    def solve_rows(self, V: Any, ridge: Any, *right: Any) -> tuple[Any, ...]:
        columns = torch.stack(right, dim=2)
        solution = torch.empty_like(columns)
        padded = torch.cat([V, torch.zeros_like(V[:1])])  # what is missing in a row of a batch is zero
        failures = []
        for rows, neighbours in self._rows.neighbours(V.shape[1]):
            parts = padded[neighbours]
            # cholesky would raise for the whole batch; cholesky_ex reports which systems failed.
            factors, failed = torch.linalg.cholesky_ex(parts.mT @ parts + ridge)
            solution[rows] = torch.cholesky_solve(columns[rows], factors)
            failures.append(failed > 0)
        # One transfer to the host, not one for each batch: they wait for the device.
        spoilt = torch.stack([failed.any() for failed in failures]).tolist()
        if any(spoilt):
            batches = zip(self._rows.neighbours(V.shape[1]), failures, spoilt, strict=True)
            for (rows, neighbours), failed, wanted in batches:
                if wanted:
                    parts, rows = padded[neighbours[failed]], rows[failed]
                    factors = factorised(parts.mT @ parts + ridge)
                    solution[rows] = torch.cholesky_solve(columns[rows], factors)
        return solution.unbind(2)

    def inner_each(self, A: Any, others: Sequence[Any]) -> list[float]:
        # Again one transfer for all.
        return torch.stack([torch.sum(A * B, dtype=torch.float64) for B in others]).tolist() if others else []

    def combined(self, scale: float, A: Any, weights: Sequence[float], others: Sequence[Any]) -> Any:
        out = scale * A
        for weight, B in zip(weights, others, strict=True):
            out.add_(B, alpha=weight)
        return out

    @undisturbed
    def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
        product, sums = stream(U, self.signed(U), V, self._rows, self.zero_weight, self.at_least)
        return evaluation_of(self, product, sums)


def stream(
    A: Any, B: Any, V: Any | None, data: Rows, zero_weight: float, at_least: bool
) -> tuple[Any | None, Sums]:
    """Return R V and the sums of squares, where R is the residual at X = A B^T, block by block."""
    product = None if V is None else torch.empty((A.shape[0], V.shape[1]), dtype=A.dtype, device=A.device)
    sums = []
    for first, last in data.blocks():
        X = A[first:last] @ B.T
        excess, block_sums = _excess(X, data.entries(first, last), zero_weight, at_least)
        sums.append(block_sums)
        if product is not None:
            product[first:last] = -(excess @ V)
    # One transfer to the host per pass, not per block: each one waits for the device.
    return product, Sums(*torch.stack(sums).sum(dim=0).tolist())


def _excess(X: Any, entries: Entries, zero_weight: float, at_least: bool) -> tuple[Any, Any]:
    """Return the excess of a block of X, which is overwritten, and its part of :class:`Sums`."""
    block = X.view(-1)
    x = block[entries.support]
    gap = x - entries.values
    error = x.clamp(min=0) - entries.values
    free = square_sum(block[entries.hidden])
    if at_least:
        met = gap > 0
        free = free + square_sum(x[met]) - square_sum(entries.values[met])
        gap, error = gap.masked_fill(met, 0.0), error.masked_fill(met, 0.0)
    # Entries that are not zeros of M are set to zero before the ReLU; the support is restored after it.
    block[entries.support] = 0.0
    block[entries.hidden] = 0.0
    above, below = X.clamp(min=0), X.clamp(max=0)
    sums = Sums(
        fit=square_sum(gap),
        error=square_sum(error),
        positive=square_sum(above),
        negative=square_sum(below),
        free=free,
        active=torch.count_nonzero(above > 0).double(),
        inner=-inner(gap, x),
    )
    excess = above.mul_(zero_weight)
    excess.view(-1)[entries.support] = gap
    return excess, torch.stack(sums)


def factorised(systems: Any) -> Any:
    """Return Cholesky factors in which nonpositive pivots are replaced by infinity.

    That unknown is then zero in every solution, as in :func:`symrelu.kernels.row_systems.factorise`.
    """
    factors = torch.zeros_like(systems)
    for j in range(systems.shape[-1]):
        explained = factors[:, j:, :j] @ factors[:, j, :j, None]
        column = systems[:, j:, j] - explained[..., 0]
        pivot = torch.where(column[:, 0] > 0, column[:, 0].sqrt(), torch.inf)
        factors[:, j:, j] = column / pivot[:, None]
        factors[:, j, j] = pivot
    return factors
