"""The entries of a sparse M on a GPU, in the arrangements that its kernels need."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from symrelu.operators.torch_rows import tensor

import torch  # isort: skip

# Rows of X that are sampled to count the positive zeros.
_SAMPLED_ROWS = 64


class Pattern:
    """Where the entries of M are that are not zeros, on the device.

    Parameters
    ----------
    M : csr_array of shape (n, n)
    unknown : csr_array of bool, or None
    device : torch.device

    Attributes
    ----------
    sample : tensor of int64
        Some rows.
    """

    def __init__(self, M: Any, unknown: Any | None, device: Any) -> None:
        self.n = n = M.shape[0]
        self._device = device
        unknown = sparse.csr_array((n, n), dtype=bool) if unknown is None else unknown
        if unknown.nnz:
            M = sparse.csr_array(M - M.multiply(unknown))
            M.eliminate_zeros()
        self._support = (*self._csr(M), tensor(M.data, device))
        self._unknown = self._csr(unknown)
        self._occupied = sparse.csr_array((M != 0) + unknown)
        self._tilings: dict[Any, Any] = {}
        rows = np.unique(np.linspace(0, n - 1, _SAMPLED_ROWS).astype(np.int64))
        self.sample = tensor(rows, device)
        known = self._occupied[rows].tocoo()
        self._known = tuple(tensor(part.astype(np.int64), device) for part in known.coords)

    def _csr(self, matrix: Any) -> tuple[Any, Any]:
        return (
            tensor(matrix.indptr.astype(np.int64), self._device),
            tensor(matrix.indices.astype(np.int32), self._device),
        )

    @cached_property
    def entries(self) -> list[Any]:
        """The support and the unobserved entries, as DeviceEntries."""
        from symrelu.kernels.device_rows import SUPPORT, UNKNOWN, DeviceEntries

        return [DeviceEntries.of(SUPPORT, *self._support), DeviceEntries.of(UNKNOWN, *self._unknown)]

    def known_in_sample(self, X: Any) -> Any:
        """Return how many entries of the sampled rows of X are positive where M is not zero."""
        return torch.count_nonzero(X[self._known] > 0)

    @cached_property
    def known(self) -> Any:
        """The entries that are not zeros of M, as i * n + j."""
        coordinates = self._occupied.tocoo().coords
        return tensor(coordinates[0].astype(np.int64) * self.n + coordinates[1], self._device)

    @cached_property
    def order(self) -> Any:
        """An order of the rows with most entries of M in few tiles."""
        return tensor(self._order.astype(np.int64), self._device)

    @cached_property
    def _order(self) -> np.ndarray:
        return reverse_cuthill_mckee(self._occupied, symmetric_mode=True)

    def left_out(self, tiling: Any) -> Any:
        """Return the entries that are not zeros of M, in the order of the rows, for a kernel."""
        from symrelu.kernels.device_products import tile_entries

        if tiling not in self._tilings:
            ordered = sparse.csr_array(self._occupied[self._order][:, self._order])
            self._tilings[tiling] = tile_entries(ordered.indptr, ordered.indices, tiling, self._device)
        return self._tilings[tiling]
