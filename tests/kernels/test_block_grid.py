"""The blocks of a matrix: all of them once, evenly shared, and sums that do not depend on the shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.block_grid import BlockGrid, add_up, panels_of, root_of, traffic


@given(n=st.integers(1, 60), rows=st.integers(1, 20), count=st.integers(1, 9))
def test_every_pair_of_rows_is_in_one_block_and_every_block_in_one_share(n, rows, count):
    grid = BlockGrid(n, rows)
    covered = np.zeros((n, n), int)
    for i, j in grid.blocks():
        covered[grid.panel(i), grid.panel(j)] += 1
        assert grid.shape((i, j)) == covered[grid.panel(i), grid.panel(j)].shape
    assert_array_equal(covered[np.triu_indices(n)], 1)
    assert sum(map(grid.pairs, grid.blocks())) == n * (n + 1) // 2
    shares = grid.shares(count)
    assert len(shares) == count
    assert [block for share in shares for block in share] == grid.blocks()


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_shares_cost_about_the_same(count):
    grid = BlockGrid(1000, 50)
    costs = [sum(map(grid.pairs, share)) for share in grid.shares(count)]
    assert max(costs) - min(costs) <= 2 * 50 * 50


def test_a_stronger_worker_gets_more():
    grid = BlockGrid(1000, 50)
    costs = [sum(map(grid.pairs, share)) for share in grid.shares(2, [1, 3])]
    assert 2.5 < costs[1] / costs[0] < 3.5


def test_a_share_touches_few_panels():
    """A share of 1/16 of 64 x 64 blocks along the curve is close to a square, not a strip."""
    touched = [len(panels_of(share)) for share in BlockGrid(64, 1).shares(16)]
    assert np.mean(touched) < 30  # a random share would touch nearly all


@given(leaves=st.integers(1, 33), parts=st.integers(1, 6), seed=st.integers(0, 1000))
def test_sums_have_the_same_bits_however_the_leaves_are_shared_out(leaves, parts, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((leaves, 3)) * 10.0 ** rng.integers(-8, 8, (leaves, 1))
    whole = root_of({(0, k): values[k].copy() for k in range(leaves)}, leaves)
    owner = rng.integers(0, parts, leaves)
    left = {}
    for part in range(parts):
        left |= add_up({(0, k): values[k].copy() for k in range(leaves) if owner[k] == part}, leaves)
    assert_array_equal(root_of(left, leaves), whole)
    assert_allclose(whole, values.sum(axis=0), rtol=1e-9, atol=1e-6)


def test_a_missing_leaf_is_an_error():
    with pytest.raises(ValueError, match="must make up a tree of 3 leaves"):
        root_of({(0, 0): 1.0, (0, 2): 1.0}, 3)


def test_traffic_by_the_formula_of_the_grid():
    grid = BlockGrid(1000, 125)
    assert traffic(grid, 1) == {"sent": 1000, "shared": 0, "returned": 1000}
    rows = [sum(traffic(grid, workers).values()) for workers in (1, 2, 4, 16)]
    assert rows == sorted(rows)
    # Four workers with about three quarters of the panels each: far from the eight times of a sum by the
    # driver.
    assert traffic(grid, 4)["returned"] <= 5000
