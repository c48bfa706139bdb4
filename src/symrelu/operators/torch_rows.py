"""M on a torch device, in blocks of rows: dense, or sparse as its entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse

from symrelu.operators.dense import UNKNOWN

# Numbers in a block of X, and in the systems that are solved at once: 4 MB in float64, to stay in the caches.
BLOCK = 1 << 19
# The same on a GPU, which needs more work at once: a quarter of a gigabyte in float32.
BLOCK_ON_DEVICE = 1 << 26


def numbers_at_once(device: Any) -> int:
    """Return how many numbers a block should have."""
    return BLOCK if device.type == "cpu" else BLOCK_ON_DEVICE


class Entries(NamedTuple):
    """The entries that are not zeros of M in a block of rows, by their index in the flattened block."""

    support: Any  # indices of the positive entries
    values: Any  # M at these
    hidden: Any  # indices of the unobserved entries


class Rows(ABC):
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
        self._diagonal_is_unknown = tensor(unknown.diagonal(), device)

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
        return float(torch.stack(list(self._squares())).sum()) ** 0.5

    def _squares(self) -> Iterator[Any]:
        """Yield parts of the sum of squares of M."""
        for block in self.blocks():
            yield square_sum(self.entries(*block).values)

    @cached_property
    def unknown_diagonal(self) -> Any:
        """The largest entry of each row whose diagonal entry is unobserved, else zero."""
        return torch.cat([self._largest(*block) for block in self.blocks()]) * self._diagonal_is_unknown

    def _largest(self, first: int, last: int) -> Any:
        places, values, _ = self.entries(first, last)
        # Rows without entries keep this zero.
        nothing = torch.zeros(last - first, dtype=values.dtype, device=self.device)
        return nothing.scatter_reduce(0, places // self.n, values, "amax")

    def neighbours(self, rank: int) -> Iterable[tuple[Any, Any]]:
        """Return batches of rows, with the column indices of their support.

        Rows of similar length share a batch, because shorter ones are padded, with the index n. The gathered
        rows of a matrix with ``rank`` columns take at most as many numbers as a block, unless a single row
        takes more.
        """
        indptr, indices = self.support
        numbers = numbers_at_once(self.device)
        lengths = np.diff(indptr)
        order = np.argsort(lengths, kind="stable")
        sizes = np.maximum(lengths[order], rank) * rank
        first = 0
        while first < self.n:
            # Later rows are longer, and all are padded to the last one: its length decides how many fit.
            most = min(first + max(1, numbers // sizes[first]), self.n)
            last = first + max(1, min(most - first, numbers // sizes[most - 1]))
            rows = tensor(order[first:last], self.device)
            steps = torch.arange(int(lengths[order[last - 1]]), device=self.device)
            begin = tensor(indptr[order[first:last]], self.device)[:, None]
            missing = steps >= tensor(lengths[order[first:last]], self.device)[:, None]
            places = torch.where(missing, 0, begin + steps)
            columns = indices[places] if len(indices) else places
            yield rows, torch.where(missing, self.n, columns).to(torch.int32)
            first = last


class SparseRows(Rows):
    """A sparse M: its entries, sorted by row."""

    def __init__(self, M: Any, unknown: Any, height: int, device: Any) -> None:
        super().__init__(unknown, height, device)
        if unknown.nnz:
            M = sparse.csr_array(M - M.multiply(unknown))
            M.eliminate_zeros()
        self._M = coordinates(M, M.data, device)
        self._support = sparse_tensor(self._M.indices(), np.ones_like(M.data), M.shape, device)
        self._hidden = coordinates(unknown, np.ones(unknown.nnz, M.dtype), device)
        self._batches: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
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

    def neighbours(self, rank: int) -> Iterable[tuple[Any, Any]]:
        # Kept for the next step: there are not many more indices than entries.
        key = rank, numbers_at_once(self.device)
        found = self._batches.get(key)
        if found is None:
            found = list(super().neighbours(rank))
            self._batches.clear()
            self._batches[key] = found
        return found

    def _squares(self) -> Iterator[Any]:
        yield square_sum(self._M.values())  # in one go: there may be as many blocks as rows


class DenseRows(Rows):
    """A dense M, with a negative number at the unobserved entries."""

    def __init__(self, M: np.ndarray, unknown: Any, height: int, device: Any) -> None:
        super().__init__(unknown, height, device)
        self._coded = tensor(M, device)
        rows, cols = (tensor(places, device) for places in unknown.nonzero())
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


def inner(a: Any, b: Any) -> Any:
    """Return <a, b> in float64."""
    return torch.dot(a.reshape(-1).double(), b.reshape(-1).double())


def square_sum(a: Any) -> Any:
    return inner(a, a)


def coordinates(pattern: Any, values: np.ndarray, device: Any) -> Any:
    """Return the sparse tensor with the given values at the stored entries of a canonical csr_array."""
    places = tensor(np.stack(pattern.tocoo().coords).astype(np.int64), device)
    return sparse_tensor(places, values, pattern.shape, device)


def sparse_tensor(places: Any, values: np.ndarray, shape: tuple[int, int], device: Any) -> Any:
    with torch.sparse.check_sparse_tensor_invariants(True):  # some releases warn unless it is set
        return torch.sparse_coo_tensor(places, tensor(values, device), shape, is_coalesced=True)


def tensor(array: np.ndarray, device: Any) -> Any:
    """Return a copy of a host array on the device (a copy, because torch does not support read-only arrays).

    The memory order is kept: the last digits of a product depend on it, and a resumed fit must be identical.
    """
    return torch.from_numpy(np.array(array, order="K")).to(device)
