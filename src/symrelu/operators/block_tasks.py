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
from symrelu.kernels.streaming import stream, stream_both_sides
from symrelu.kernels.threads import at_most_threads, single_threaded_blas
from symrelu.kernels.tiles import tile_side
from symrelu.operators.block_data import LoadedBlock

Panels = Mapping[int, np.ndarray]


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


@on_worker
def warm_up(dtype: Any) -> None:
    """Compile what a pass needs, with data of one row.

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
