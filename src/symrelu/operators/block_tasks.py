"""What a worker of a cluster computes with its blocks: plain functions of blocks and panels of factors.

A *panel* is the part of a factor that belongs to a panel of rows of the grid. Each function takes the blocks
of one worker, and returns what they add to the panels of a product as nodes of the tree of
:func:`symrelu.kernels.block_grid.add_up`, already added up as far as this worker has both neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.files.block_manifest import Totals
from symrelu.kernels.block_grid import Block, BlockGrid, Node, add_up
from symrelu.kernels.row_systems import solve_rows
from symrelu.kernels.sparse_products import sparse_product
from symrelu.kernels.streaming import stream, stream_both_sides
from symrelu.kernels.threads import allowed_threads, at_most_threads, run_tasks, single_threaded_blas, slices
from symrelu.kernels.tiles import tile_side
from symrelu.operators.block_data import BlockOrder, LoadedBlock, load_block

Panels = Mapping[int, np.ndarray]
_ROWS_AT_ONCE = 256  # rows whose small systems are solved in one call


class Part(NamedTuple):
    """What one worker adds to a result."""

    panels: dict[int, dict[Node, np.ndarray]]  # nodes of the tree of each panel
    sums: dict[Node, np.ndarray]  # nodes of the tree of all blocks


def on_worker(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a task: BLAS has one thread, and passes as many as the worker has."""

    @functools.wraps(function)
    def run(*arguments: Any, threads: int = 1, **settings: Any) -> Any:
        with single_threaded_blas(), at_most_threads(threads):
            return function(*arguments, **settings)

    return run


def _own(panels: Panels) -> dict[int, np.ndarray]:
    """Return copies of what was sent, which may be read-only: kernels would be compiled anew for that."""
    return {i: np.array(panel, order="C") for i, panel in panels.items()}


class _Sum:
    """The nodes of a worker, added up as they come."""

    def __init__(self, grid: BlockGrid) -> None:
        self.grid = grid
        self.numbers = {block: k for k, block in enumerate(grid.blocks())}
        self.panels: dict[int, dict[Node, np.ndarray]] = {}
        self.sums: dict[Node, np.ndarray] = {}

    def add(self, panel: int, leaf: int, product: np.ndarray) -> None:
        nodes = self.panels.setdefault(panel, {})
        self.panels[panel] = add_up({**nodes, (0, leaf): product}, self.grid.panels)

    def part(self) -> Part:
        return Part(self.panels, add_up(self.sums, len(self.numbers)))


@on_worker
def residual_part(
    blocks: Sequence[LoadedBlock],
    U: Panels,
    V: Panels | None,
    *,
    grid: BlockGrid,
    signs: np.ndarray,
    zero_weight: float,
    at_least: bool,
    with_product: bool,
) -> Part:
    """Return what blocks add to R(U) V and to the sums of a pass.

    Parameters
    ----------
    blocks : sequence of LoadedBlock
    U, V : mapping of int to ndarray
        Panels of the factors; without V, it is U.
    grid : BlockGrid
    signs : ndarray of shape (rank,)
    zero_weight : float
    at_least, with_product : bool

    Returns
    -------
    part : Part
    """
    U = _own(U)
    V = U if V is None else _own(V)
    total = _Sum(grid)
    side = tile_side(min(grid.rows, grid.n), len(signs))
    for one in blocks:
        i, j = one.block
        data, right = one.tiles(side, zero_weight, at_least), U[j] * signs
        if i == j:
            product, sums = stream(U[i], right, V[i] if with_product else None, data, symmetric=True, side=side)
            found = [(i, i, product)]
        else:
            first, second = (V[j], V[i]) if with_product else (None, None)
            product, mirrored, sums = stream_both_sides(U[i], right, first, second, data, side=side)
            found = [(i, j, product), (j, i, mirrored)]
        total.sums[0, total.numbers[one.block]] = np.array(sums)
        for panel, leaf, excess_product in found if with_product else ():
            assert excess_product is not None
            total.add(panel, leaf, np.negative(excess_product, out=excess_product))
    return total.part()


@on_worker
def product_part(blocks: Sequence[LoadedBlock], V: Panels, *, grid: BlockGrid, fill: float | None) -> Part:
    """Return what blocks add to M V, or to (M - fill (1 where M is not zero)) V.

    Parameters
    ----------
    blocks : sequence of LoadedBlock
    V : mapping of int to ndarray
    grid : BlockGrid
    fill : float or None

    Returns
    -------
    part : Part
    """
    V = _own(V)
    total = _Sum(grid)
    for one in blocks:
        i, j = one.block
        matrices = [one.M] if fill is None else _without_fill(one, fill)
        total.add(i, j, _added([sparse_product(matrix, V[j]) for matrix in matrices]))
        if i != j:
            total.add(j, i, _added([matrix.T @ V[i] for matrix in matrices]))
    return total.part()


def _without_fill(one: LoadedBlock, fill: float) -> list[Any]:
    M = one.M
    lowered = sparse.csr_array((M.data - M.dtype.type(fill), M.indices, M.indptr), shape=M.shape)
    if not one.unknown.nnz:
        return [lowered]
    gap = one.unknown.astype(M.dtype)
    gap.data[:] = -fill
    return [lowered, gap]


def _added(products: list[np.ndarray]) -> np.ndarray:
    return products[0] if len(products) == 1 else products[0] + products[1]


class Survey(NamedTuple):
    """What the operator must know of the observed entries of some blocks."""

    totals: dict[Block, Totals]  # of the block itself, not of the one below the diagonal
    maxima: dict[int, np.ndarray]  # of the rows of each panel, as far as these blocks go


@on_worker
def survey_part(blocks: Sequence[LoadedBlock], *, grid: BlockGrid, with_maxima: bool) -> Survey:
    """Return number, largest and squares of the observed entries of blocks, and the maxima of their rows.

    Parameters
    ----------
    blocks : sequence of LoadedBlock
    grid : BlockGrid
    with_maxima : bool

    Returns
    -------
    survey : Survey
    """
    maxima: dict[int, np.ndarray] = {}
    for one in blocks if with_maxima else ():
        for panel, axis in zip(one.block, (1, 0), strict=True):
            largest = one.M.max(axis=axis).toarray()
            known = maxima.setdefault(panel, np.zeros(grid.height(panel), one.M.dtype))
            np.maximum(known, largest, out=known)
    return Survey({one.block: Totals.of(one.M.data) for one in blocks}, maxima)


class PanelSupport:
    """Where the rows of a panel are positive, for their small systems.

    Parameters
    ----------
    panel : int
    rows : csr_array of shape (height, n)
    """

    def __init__(self, panel: int, rows: Any) -> None:
        self.panel = panel
        self.indptr = rows.indptr.astype(np.int64)
        # Only these rows of V are needed, and numbered anew.
        self.columns, local = np.unique(rows.indices, return_inverse=True)
        self.indices = local.astype(np.int32)

    def rows_of(self, V: Panels, grid: BlockGrid) -> np.ndarray:
        """Return the rows of V that the systems need."""
        cuts = np.searchsorted(self.columns, np.arange(1, grid.panels) * grid.rows)
        parts = np.split(self.columns, cuts)
        return np.concatenate([V[i][part - i * grid.rows] for i, part in enumerate(parts)])


def load_support(panel: int, orders: Sequence[BlockOrder]) -> PanelSupport:
    """Read the support of a panel from the files of all its blocks.

    Parameters
    ----------
    panel : int
    orders : sequence of BlockOrder
        In the order of the panels on the other side.

    Returns
    -------
    support : PanelSupport
    """
    parts = []
    for order in orders:
        M = load_block(order).M
        parts.append(M if order.block[0] == panel else sparse.csr_array(M.T))
    rows = sparse.csr_array(sparse.hstack(parts, format="csr"))
    rows.sort_indices()
    return PanelSupport(panel, rows)


@on_worker
def solve_part(
    supports: Sequence[PanelSupport],
    V: Panels,
    right: Sequence[Panels],
    *,
    grid: BlockGrid,
    ridge: np.ndarray,
    inverse: np.ndarray,
) -> dict[int, list[np.ndarray]]:
    """Solve the small systems of the rows of some panels.

    Parameters
    ----------
    supports : sequence of PanelSupport
    V : mapping of int to ndarray
        All panels.
    right : sequence of mappings of int to ndarray
        The panels of the right-hand sides.
    grid : BlockGrid
    ridge, inverse : ndarray of shape (rank, rank)
        The ridge, and its inverse.

    Returns
    -------
    solutions : dict of int to list of ndarray
    """
    ridge, inverse = np.array(ridge), np.array(inverse)
    solutions = {}
    for one in supports:
        rows = np.ascontiguousarray(one.rows_of(V, grid))
        T = rows @ inverse
        sides = tuple(np.array(panels[one.panel], order="C") for panels in right)
        found = tuple(map(np.empty_like, sides))
        work = functools.partial(_solve, one, rows, ridge, inverse, T, sides, found)
        run_tasks(work, slices(grid.height(one.panel), _ROWS_AT_ONCE), workers=allowed_threads())
        solutions[one.panel] = list(found)
    return solutions


def _solve(
    one: PanelSupport, V: Any, ridge: Any, inverse: Any, T: Any, right: Any, out: Any, rows: slice
) -> None:
    solve_rows(rows.start, rows.stop, one.indptr, one.indices, V, ridge, inverse, T, right, out)


@on_worker
def warm_up(dtype: Any) -> None:
    """Compile what a fit needs, with data of one row.

    Parameters
    ----------
    dtype : dtype

    Returns
    -------
    None
    """
    grid, one = BlockGrid(2, 1), np.ones((1, 1), dtype)
    empty = sparse.csr_array((1, 1), dtype=dtype), sparse.csr_array((1, 1), dtype=bool)
    blocks = [LoadedBlock(block, *empty) for block in grid.blocks()]
    settings = {"grid": grid, "signs": np.ones(1, dtype), "zero_weight": 1.0, "at_least": False}
    residual_part(blocks, {0: one, 1: one}, None, with_product=True, **settings)
    support = PanelSupport(0, sparse.csr_array((1, 2), dtype=dtype))
    for right in ([{0: one}], [{0: one}, {0: one}]):
        solve_part([support], {0: one, 1: one}, right, grid=grid, ridge=one, inverse=one)
