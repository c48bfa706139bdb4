"""What workers compute, called in this process: the parts of all shares add up to what one machine computes."""

import numpy as np
import pytest
from block_folders import blocks_of, panels
from helpers import PROBLEMS, factor, reference
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels import threads
from symrelu.kernels.block_grid import panels_of, root_of
from symrelu.operators.block_data import load_block
from symrelu.operators.block_tasks import on_worker, residual_part, survey_part, warm_up

PROBLEM = PROBLEMS["everything"]


@pytest.fixture
def data(tmp_path):
    return blocks_of(PROBLEM, tmp_path)


def assembled(grid, parts):
    rows = []
    for i in range(grid.panels):
        nodes = {node: value for part in parts for node, value in part.panels.get(i, {}).items()}
        rows.append(root_of(nodes, grid.panels))
    return np.concatenate(rows)


def residual(data, count, U, V, **more):
    """Return the parts of a pass in so many shares."""
    grid = data.grid
    settings = {"signs": PROBLEM.signature, "zero_weight": PROBLEM.zero_weight, "at_least": False}
    parts = []
    for share in grid.shares(count):
        blocks = [load_block(data.order(block, shipped=False)) for block in share]
        needed = {i: panel for i, panel in panels(grid, U).items() if i in panels_of(share)}
        parts.append(
            residual_part(blocks, needed, panels(grid, V), grid=grid, with_product=True, **settings, **more)
        )
    return parts


def test_parts_of_any_shares_add_up_to_the_same_bits(data):
    U, V = factor(PROBLEM, 1), factor(PROBLEM, 2, 3)
    one = residual(data, 1, U, V)
    expected = reference(PROBLEM).residual_product(U, V)
    assert_allclose(assembled(data.grid, one), expected.product, rtol=1e-12, atol=1e-12)
    for count in (2, 3, 7):
        parts = residual(data, count, U, V, threads=2)
        assert_array_equal(assembled(data.grid, parts), assembled(data.grid, one))
        nodes = {node: sums for part in parts for node, sums in part.sums.items()}
        assert_array_equal(
            root_of(nodes, len(data.grid.blocks())), root_of(one[0].sums, len(data.grid.blocks()))
        )


def test_survey_counts_the_observed_entries(data):
    blocks = [load_block(data.order(block, shipped=False)) for block in data.grid.blocks()]
    totals, maxima = survey_part(blocks, grid=data.grid, with_maxima=True)
    observed = np.where(PROBLEM.unknown, 0, PROBLEM.M)
    assert sum((1 + (i < j)) * one.entries for (i, j), one in totals.items()) == np.count_nonzero(observed)
    assert_array_equal(np.concatenate([maxima[i] for i in range(data.grid.panels)]), observed.max(axis=1))


def test_a_task_has_the_threads_of_its_worker_and_blas_has_one():
    seen = on_worker(lambda: (threads.allowed_threads(), threads._current_threads()))(threads=3)
    assert seen[0] == 3
    assert set(seen[1]) == {1}


def test_warming_up_takes_a_pass():
    assert warm_up(np.dtype(np.float64)) is None
