"""Whole rows of a matrix on a worker, for products with M and for the small systems of rows.

A row is added up from its first entry to its last, as on one machine. So a product has the same bits there, and
so do the eigenvectors of a start: ARPACK would turn another rounding into another search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.block_grid import BlockGrid
from symrelu.kernels.row_systems import solve_systems
from symrelu.kernels.sparse_products import sparse_product
from symrelu.kernels.vectors import product
from symrelu.operators.block_data import BlockOrder, load_block
from symrelu.operators.block_tasks import Panels, on_worker


class PanelRows:
    """The rows of a panel, whose columns are numbered anew: only those with entries are needed.

    Parameters
    ----------
    panel : int
    M : csr_array of shape (height, n)
        The observed positive entries.
    unknown : csr_array of bool of shape (height, n)
        The unobserved ones.
    """

    def __init__(self, panel: int, M: Any, unknown: Any) -> None:
        self.panel = panel
        self.columns, numbers = np.unique(np.concatenate([M.indices, unknown.indices]), return_inverse=True)
        numbers = numbers.astype(np.int32)
        own, others = numbers[: M.nnz], numbers[M.nnz :]
        shape = (M.shape[0], len(self.columns))
        self.M = sparse.csr_array((M.data, own, M.indptr), shape=shape)
        self.unknown = sparse.csr_array((unknown.data, others, unknown.indptr), shape=shape)
        self._not_zero: Any | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_not_zero": None}  # another worker makes it itself

    @property
    def not_zero(self) -> Any:
        """A sparse matrix with 1 where M is positive or unobserved."""
        if self._not_zero is None:
            ones = np.ones(self.M.nnz, self.M.dtype)
            support = sparse.csr_array((ones, self.M.indices, self.M.indptr), shape=self.M.shape)
            self._not_zero = support + self.unknown.astype(self.M.dtype) if self.unknown.nnz else support
        return self._not_zero

    def rows_of(self, V: Panels, grid: BlockGrid) -> np.ndarray:
        """Return the rows of V that belong to the columns."""
        cuts = np.searchsorted(self.columns, np.arange(1, grid.panels) * grid.rows)
        parts = np.split(self.columns, cuts)
        rows = [V[i][part - i * grid.rows] for i, part in enumerate(parts)]
        return np.ascontiguousarray(np.concatenate(rows))


def load_rows(panel: int, orders: Sequence[BlockOrder]) -> PanelRows:
    """Read the rows of a panel from the files of all its blocks.

    Parameters
    ----------
    panel : int
    orders : sequence of BlockOrder
        In the order of the panels on the other side.

    Returns
    -------
    rows : PanelRows
    """
    blocks = [load_block(order) for order in orders]
    parts = [(one.M, one.unknown) if one.block[0] == panel else (one.M.T, one.unknown.T) for one in blocks]
    return PanelRows(panel, *(_side_by_side(matrices) for matrices in zip(*parts, strict=True)))


def _side_by_side(matrices: Sequence[Any]) -> Any:
    rows = sparse.csr_array(sparse.hstack(matrices, format="csr"))
    rows.sort_indices()
    return rows


@on_worker
def product_part(
    panels: Sequence[PanelRows], V: Panels, *, grid: BlockGrid, with_zeros: bool
) -> dict[int, list[np.ndarray]]:
    """Return the rows of M V of some panels; and of N V, where N is 1 where M is positive or unobserved.

    Parameters
    ----------
    panels : sequence of PanelRows
    V : mapping of int to ndarray
        All panels.
    grid : BlockGrid
    with_zeros : bool
        Whether N V is needed.

    Returns
    -------
    products : dict of int to list of ndarray
    """
    products = {}
    for one in panels:
        rows = one.rows_of(V, grid)
        matrices = [one.M, one.not_zero] if with_zeros else [one.M]
        products[one.panel] = [sparse_product(matrix, rows) for matrix in matrices]
    return products


@on_worker
def solve_part(
    panels: Sequence[PanelRows],
    V: Panels,
    *right: Panels,
    grid: BlockGrid,
    C: np.ndarray,
) -> dict[int, list[np.ndarray]]:
    """Solve the small systems of the rows of some panels.

    Parameters
    ----------
    panels : sequence of PanelRows
    V : mapping of int to ndarray
        All panels.
    *right : mapping of int to ndarray
        The same panels of the right-hand sides.
    grid : BlockGrid
    C : ndarray of shape (rank, rank)
        That of the ridge: see :func:`symrelu.kernels.row_systems.whitening`.

    Returns
    -------
    solutions : dict of int to list of ndarray
    """
    C = np.array(C)
    solutions = {}
    for one in panels:
        W = product(one.rows_of(V, grid), C)
        sides = [np.array(side[one.panel]) for side in right]
        solutions[one.panel] = list(solve_systems(one.M.indptr.astype(np.int64), one.M.indices, W, C, sides))
    return solutions


def warm_up_rows(dtype: Any) -> None:
    """Compile what the systems of rows need, with data of one row.

    Parameters
    ----------
    dtype : dtype

    Returns
    -------
    None
    """
    grid, one = BlockGrid(1, 1), np.ones((1, 1), dtype)
    rows = PanelRows(0, sparse.csr_array((1, 1), dtype=dtype), sparse.csr_array((1, 1), dtype=bool))
    for right in ([{0: one}], [{0: one}, {0: one}]):
        solve_part([rows], {0: one}, *right, grid=grid, C=one)
