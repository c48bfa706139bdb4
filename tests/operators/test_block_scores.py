"""Scores from blocks."""

import numpy as np
from block_folders import random_similarity
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu import metrics
from symrelu.files.block_folder import write_matrix
from symrelu.kernels.block_grid import root_of
from symrelu.operators.block_data import BlockData, load_block
from symrelu.operators.block_scores import held_out_part, modularity_part


def test_scores_of_all_blocks(tmp_path):
    M, rng = random_similarity(25, density=0.6), np.random.default_rng(0)
    folder = write_matrix(sparse.csr_array(M), tmp_path / "matrix", rows=8)
    mask = metrics.random_mask(25, 0.3, random_state=0)
    masks = write_matrix(mask, tmp_path / "mask", rows=8)
    grid, leaves = folder.grid, len(folder.grid.blocks())

    def loaded(data):
        return [load_block(data.order(block, shipped=False)) for block in grid.blocks()]

    def panels(A):
        return {i: A[grid.panel(i)] for i in range(grid.panels)}

    labels = rng.integers(0, 4, 25)
    inside, *degrees = root_of(
        modularity_part(loaded(BlockData(folder)), panels(labels), grid=grid, count=4), leaves
    )
    total = sum(degrees)
    assert_allclose(inside / total - np.sum((np.array(degrees) / total) ** 2), metrics.modularity(M, labels))

    U, signs = rng.standard_normal((25, 3)), np.array([1.0, 1.0, -1.0])
    for support in ("equal", "at_least"):
        found = held_out_part(
            loaded(BlockData(folder, masks, only_masked=True)),
            panels(U),
            grid=grid,
            signs=signs,
            at_least=support == "at_least",
        )
        wrong, squares = root_of(found, leaves)
        expected = metrics.held_out_error(M, U, signs, mask=mask, support=support)
        assert_allclose(np.sqrt(wrong / squares), expected, rtol=1e-12)
