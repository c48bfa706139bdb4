"""M on a torch device: plain tensor operations on one block of rows at a time.

X = A B^T is formed for a block of rows, the entries that are not zeros of M are overwritten in it, and the
block is multiplied before the next one is formed. A sparse M stays sparse; nothing is n x n unless M is dense.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from symrelu.kernels.tiles import Sums
from symrelu.operators.base import Evaluation, Operator
from symrelu.operators.dense import UNKNOWN
from symrelu.operators.tiled import evaluation_of

try:
    import array_api_compat.torch
    import torch
except ImportError as missing:
    raise ImportError(
        "backend='torch' needs torch and array-api-compat: pip install 'symrelu[torch]'."
    ) from missing

# Numbers in a block of X, and in the systems that are solved at once: 4 MB in float64.
BLOCK = 1 << 19

Method = TypeVar("Method", bound=Callable[..., Any])
# Otherwise tensors that require gradients would make torch record every pass.
without_gradients: Callable[[Method], Method] = torch.no_grad()


class TorchOperator(Operator):
    """A dense or sparse M as torch tensors, compared with X one block of rows at a time.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
        If sparse, canonical (sorted, no duplicates) with positive stored entries. Copied to the device.
    unknown : csr_array of bool, or None
        True where the entry is unobserved.
    tile : int, optional
        Rows per block. By default a block has about half a million numbers.
    device : str or torch.device, default="cpu"
        Device of the tensors.
    **settings
        signature, alpha, zero_weight and at_least of :class:`~symrelu.operators.base.Operator`.
    """

    xp = array_api_compat.torch

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
        rows = _SparseRows if sparse.issparse(M) else _DenseRows
        unknown = sparse.csr_array((n, n), dtype=bool) if unknown is None else unknown
        self._rows = rows(M, unknown, tile or max(1, BLOCK // n), self.device)
        super().__init__(n=n, dtype=M.dtype, norm=self._rows.norm(), **settings)

    @classmethod
    def of(cls, M: Any, unknown: Any | None, **settings: Any) -> TorchOperator:
        """Return the operator of a checked matrix and its unobserved entries."""
        return cls(M, unknown, **settings)

    def asarray(self, A: np.ndarray) -> Any:
        return _tensor(np.asarray(A, self.dtype), self.device)

    def to_numpy(self, A: Any) -> np.ndarray:
        return A.detach().cpu().numpy()

    @without_gradients
    def matmul(self, V: Any) -> Any:
        return self._rows.matmul(V)

    @property
    def n_positive(self) -> int:
        return self._rows.n_positive

    @without_gradients
    def imputed_matmul(self, V: Any, fill: float) -> Any:
        zeros_matmul = torch.sum(V, dim=0) - self._rows.occupied_matmul(V)
        return self._rows.matmul(V) + fill * zeros_matmul + self._rows.unknown_diagonal[:, None] * V

    @without_gradients
    def solve_rows(self, V: Any, ridge: Any, *right: Any) -> tuple[Any, ...]:
        columns = torch.stack(right, dim=2)
        solution = torch.empty_like(columns)
        for rows, neighbours, missing in self._rows.neighbours(V.shape[1]):
            # Indexing has made a copy, so the padding can be cleared in place.
            parts = V[neighbours].masked_fill_(missing[:, :, None], 0.0)
            solution[rows] = _solve_definite(parts.mT @ parts + ridge, columns[rows])
        return solution.unbind(2)

    @without_gradients
    def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
        product, sums = stream(U, self.signed(U), V, self._rows, self.zero_weight, self.at_least)
        return evaluation_of(self, product, sums)


class Entries(NamedTuple):
    """The entries that are not zeros of M in a block of rows, by their index in the flattened block."""

    support: Any  # indices of the positive entries
    values: Any  # M at these
    hidden: Any  # indices of the unobserved entries


class _Rows(ABC):
    """Access to M in blocks of rows, on the device.

    Parameters
    ----------
    unknown : csr_array of bool
    height : int
        Rows per block.
    device : torch.device
    """

    def __init__(self, unknown: Any, height: int, device: Any) -> None:
        self.n = unknown.shape[0]
        self.height = height
        self.device = device
        self._diagonal_is_unknown = _tensor(unknown.diagonal(), device)

    @abstractmethod
    def entries(self, first: int, last: int) -> Entries:
        """Return the entries that are not zeros of M in rows ``first`` to ``last`` (exclusive)."""

    @abstractmethod
    def matmul(self, V: Any) -> Any:
        """Return M V."""

    @abstractmethod
    def occupied_matmul(self, V: Any) -> Any:
        """Return the product of V with the matrix that is 1 where M is positive or unobserved, else 0."""

    @property
    @abstractmethod
    def support(self) -> tuple[np.ndarray, Any]:
        """The positive entries of M in CSR form: ``indptr`` on the host and ``indices`` on the device."""

    @property
    def n_positive(self) -> int:
        return int(self.support[0][-1])

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the first row of each block, and the first row after the block."""
        for first in range(0, self.n, self.height):
            yield first, min(first + self.height, self.n)

    def norm(self) -> float:
        """Return the Frobenius norm of M."""
        # Summed on the device, so that only one number per norm crosses to the host.
        squares = [_square_sum(self.entries(*block).values) for block in self.blocks()]
        return float(torch.stack(squares).sum()) ** 0.5

    @cached_property
    def unknown_diagonal(self) -> Any:
        """The largest entry of each row whose diagonal entry is unobserved, else zero."""
        return torch.cat([self._largest(*block) for block in self.blocks()]) * self._diagonal_is_unknown

    def _largest(self, first: int, last: int) -> Any:
        places, values, _ = self.entries(first, last)
        # Rows without entries keep this zero.
        nothing = torch.zeros(last - first, dtype=values.dtype, device=self.device)
        return nothing.scatter_reduce(0, places // self.n, values, "amax")

    def neighbours(self, rank: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield batches of rows, with the column indices of their support and a mask of the padding.

        Rows of similar length share a batch, because shorter ones are padded. The gathered rows of a matrix
        with ``rank`` columns take at most ``BLOCK`` numbers, unless a single row takes more.
        """
        indptr, indices = self.support
        lengths = np.diff(indptr)
        order = np.argsort(lengths, kind="stable")
        sizes = np.maximum(lengths[order], rank) * rank
        first = 0
        while first < self.n:
            # Later rows are longer, and all are padded to the last one: its length decides how many fit.
            most = min(first + max(1, BLOCK // sizes[first]), self.n)
            last = first + max(1, min(most - first, BLOCK // sizes[most - 1]))
            rows = order[first:last]
            steps = np.arange(lengths[rows[-1]])
            missing = steps >= lengths[rows][:, None]
            places = np.where(missing, 0, indptr[rows][:, None] + steps)
            yield (
                _tensor(rows, self.device),
                indices[_tensor(places, self.device)],
                _tensor(missing, self.device),
            )
            first = last


class _SparseRows(_Rows):
    """A sparse M: its entries, sorted by row."""

    def __init__(self, M: Any, unknown: Any, height: int, device: Any) -> None:
        super().__init__(unknown, height, device)
        if unknown.nnz:
            M = sparse.csr_array(M - M.multiply(unknown))
            M.eliminate_zeros()
        self._M = _coordinates(M, M.data, device)
        self._support = _sparse(self._M.indices(), np.ones_like(M.data), M.shape, device)
        self._hidden = _coordinates(unknown, np.ones(unknown.nnz, M.dtype), device)
        self._indptr, self._hidden_indptr = M.indptr.astype(np.int64), unknown.indptr.astype(np.int64)

    def entries(self, first: int, last: int) -> Entries:
        part = slice(self._indptr[first], self._indptr[last])
        hidden = slice(self._hidden_indptr[first], self._hidden_indptr[last])
        return Entries(
            self._places(self._M, part, first),
            self._M.values()[part],
            self._places(self._hidden, hidden, first),
        )

    def _places(self, matrix: Any, part: slice, first: int) -> Any:
        rows, cols = matrix.indices()[:, part]
        return (rows - first) * self.n + cols

    def matmul(self, V: Any) -> Any:
        return self._M @ V

    def occupied_matmul(self, V: Any) -> Any:
        return self._support @ V + self._hidden @ V

    @property
    def support(self) -> tuple[np.ndarray, Any]:
        return self._indptr, self._M.indices()[1]


class _DenseRows(_Rows):
    """A dense M, with a negative number at the unobserved entries."""

    def __init__(self, M: np.ndarray, unknown: Any, height: int, device: Any) -> None:
        super().__init__(unknown, height, device)
        self._coded = _tensor(M, device)
        rows, cols = (_tensor(places, device) for places in unknown.nonzero())
        self._coded[rows, cols] = UNKNOWN

    def entries(self, first: int, last: int) -> Entries:
        coded = self._coded[first:last].reshape(-1)
        support = torch.nonzero(coded > 0)[:, 0]
        return Entries(support, coded[support], torch.nonzero(coded < 0)[:, 0])

    def matmul(self, V: Any) -> Any:
        parts = [self._coded[first:last].clamp(min=0) @ V for first, last in self.blocks()]
        return torch.cat(parts)

    def occupied_matmul(self, V: Any) -> Any:
        parts = [(self._coded[first:last] != 0).to(V.dtype) @ V for first, last in self.blocks()]
        return torch.cat(parts)

    # Counting needs no list of the support, which may be as large as M.
    @cached_property
    def n_positive(self) -> int:
        return sum(int(torch.count_nonzero(self._coded[slice(*block)] > 0)) for block in self.blocks())

    @cached_property
    def support(self) -> tuple[np.ndarray, Any]:
        places = [torch.nonzero(self._coded[slice(*block)] > 0) for block in self.blocks()]
        counts = [torch.count_nonzero(self._coded[slice(*block)] > 0, dim=1) for block in self.blocks()]
        indptr = np.concatenate([[0], torch.cat(counts).cumsum(0).cpu().numpy()])
        return indptr, torch.cat([block[:, 1].to(torch.int32) for block in places])


def stream(
    A: Any, B: Any, V: Any | None, data: _Rows, zero_weight: float, at_least: bool
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
    free = _square_sum(block[entries.hidden])
    if at_least:
        met = gap > 0
        free = free + _square_sum(x[met]) - _square_sum(entries.values[met])
        gap, error = gap.masked_fill(met, 0.0), error.masked_fill(met, 0.0)
    # Entries that are not zeros of M are set to zero before the ReLU; the support is restored after it.
    block[entries.support] = 0.0
    block[entries.hidden] = 0.0
    above, below = X.clamp(min=0), X.clamp(max=0)
    sums = Sums(
        fit=_square_sum(gap),
        error=_square_sum(error),
        positive=_square_sum(above),
        negative=_square_sum(below),
        free=free,
        active=torch.count_nonzero(above > 0).double(),
        inner=-_inner(gap, x),
    )
    excess = above.mul_(zero_weight)
    excess.view(-1)[entries.support] = gap
    return excess, torch.stack(sums)


def _inner(a: Any, b: Any) -> Any:
    """Return <a, b> in float64."""
    return torch.dot(a.reshape(-1).double(), b.reshape(-1).double())


def _square_sum(a: Any) -> Any:
    return _inner(a, a)


def _solve_definite(systems: Any, right: Any) -> Any:
    """Solve positive definite systems; :func:`_factorised` handles those that rounding has made indefinite."""
    # cholesky would raise for the whole batch; cholesky_ex reports which systems failed.
    factors, failures = torch.linalg.cholesky_ex(systems)
    spoilt = torch.nonzero(failures)[:, 0]
    if len(spoilt):
        factors[spoilt] = _factorised(systems[spoilt])
    return torch.cholesky_solve(right, factors)


def _factorised(systems: Any) -> Any:
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


def _coordinates(pattern: Any, values: np.ndarray, device: Any) -> Any:
    """Return the sparse tensor with the given values at the stored entries of a canonical csr_array."""
    places = _tensor(np.stack(pattern.tocoo().coords).astype(np.int64), device)
    return _sparse(places, values, pattern.shape, device)


def _sparse(places: Any, values: np.ndarray, shape: tuple[int, int], device: Any) -> Any:
    with torch.sparse.check_sparse_tensor_invariants(True):  # some releases warn unless it is set
        return torch.sparse_coo_tensor(places, _tensor(values, device), shape, is_coalesced=True)


def _tensor(array: np.ndarray, device: Any) -> Any:
    """Return a copy of a host array on the device (a copy, because torch does not support read-only arrays).

    The memory order is kept: the last digits of a product depend on it, and a resumed fit must be identical.
    """
    return torch.from_numpy(np.array(array, order="K")).to(device)
