"""What the tests of block folders share."""

from __future__ import annotations

from typing import Any

import numpy as np


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
