"""Scores of a factor or of clusters, from the blocks of a worker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symrelu.kernels.block_grid import BlockGrid, Node, add_up
from symrelu.kernels.scores import pair_scores
from symrelu.kernels.threads import slices
from symrelu.operators.block_data import LoadedBlock
from symrelu.operators.block_tasks import Panels, on_worker

_ENTRY_BATCH = 65536


def _added(found: dict[int, np.ndarray], grid: BlockGrid) -> dict[Node, np.ndarray]:
    return add_up({(0, k): value for k, value in found.items()}, len(grid.blocks()))


@on_worker
def held_out_part(
    blocks: Sequence[LoadedBlock], U: Panels, *, grid: BlockGrid, signs: np.ndarray, at_least: bool
) -> dict[Node, np.ndarray]:
    """Return the sums of (M - max(0, X))^2 and M^2 over the masked entries of blocks.

    Parameters
    ----------
    blocks : sequence of LoadedBlock
        With the entries under the mask.
    U : mapping of int to ndarray
    grid : BlockGrid
    signs : ndarray of shape (rank,)
    at_least : bool

    Returns
    -------
    sums : dict of node to ndarray
    """
    numbers, found = {block: k for k, block in enumerate(grid.blocks())}, {}
    for one in blocks:
        i, j = one.block
        left, right = np.array(U[i]), np.array(U[j]) * signs
        rows, cols = (np.asarray(index) for index in one.unknown.tocoo().coords)
        sums = np.zeros(2)
        for batch in slices(len(rows), _ENTRY_BATCH):
            truth = np.asarray(one.M[rows[batch], cols[batch]], dtype=np.float64).ravel()
            error = truth - np.maximum(0, pair_scores(left, right, rows[batch], cols[batch]))
            if at_least:
                error[(truth > 0) & (error < 0)] = 0
            sums += np.sum(error**2), np.sum(truth**2)
        found[numbers[one.block]] = sums * (1 if i == j else 2)
    return _added(found, grid)


@on_worker
def modularity_part(
    blocks: Sequence[LoadedBlock], labels: Panels, *, grid: BlockGrid, count: int
) -> dict[Node, np.ndarray]:
    """Return the weight inside of clusters, and the sum of the degrees of each cluster, as far as blocks go.

    Parameters
    ----------
    blocks : sequence of LoadedBlock
    labels : mapping of int to ndarray
    grid : BlockGrid
    count : int
        Number of clusters.

    Returns
    -------
    sums : dict of node to ndarray of shape (1 + count,)
    """
    numbers, found = {block: k for k, block in enumerate(grid.blocks())}, {}
    for one in blocks:
        i, j = one.block
        entries = one.M.tocoo()
        rows, cols = entries.coords
        weights = entries.data.astype(np.float64)
        if i == j:
            weights[rows == cols] = 0
        first, second = labels[i][rows], labels[j][cols]
        degrees = np.bincount(first, weights, count)
        inside = weights[first == second].sum()
        if i != j:
            degrees, inside = degrees + np.bincount(second, weights, count), 2 * inside
        found[numbers[one.block]] = np.concatenate([[inside], degrees])
    return _added(found, grid)
