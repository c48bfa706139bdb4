"""What the tests of block folders share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files.block_folder import write_matrix
from symrelu.operators.block_data import BlockData


def whole(folder: Any) -> np.ndarray:
    """Return the matrix of a block folder as an array."""
    grid = folder.grid
    matrix = np.zeros(folder.shape, folder.dtype)
    for i, j in grid.blocks():
        block = folder.read((i, j)).toarray()
        matrix[grid.panel(i), grid.panel(j)] = block
        matrix[grid.panel(j), grid.panel(i)] = block.T
    return matrix


def random_similarity(n: int, seed: int = 0, density: float = 0.2) -> np.ndarray:
    """Return a symmetric nonnegative matrix with some zeros and a partly positive diagonal."""
    rng = np.random.default_rng(seed)
    M = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density))
    return M + np.triu(M, 1).T


def blocks_of(problem: Any, path: Any, rows: int = 7) -> BlockData:
    """Return a problem of the tables as block folders."""
    folder = write_matrix(sparse.csr_array(problem.M), path / "matrix", rows=rows)
    return BlockData(folder, write_matrix(sparse.csr_array(problem.unknown), path / "mask", rows=rows))


def panels(grid: Any, A: np.ndarray) -> dict[int, np.ndarray]:
    """Return the panels of a factor."""
    return {i: A[grid.panel(i)] for i in range(grid.panels)}
