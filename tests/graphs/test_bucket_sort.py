"""Entries sorted by block on disk."""

import numpy as np
from numpy.testing import assert_array_equal

from symrelu.graphs.bucket_sort import Buckets, Combination
from symrelu.graphs.pairs import Rules
from symrelu.kernels.block_grid import BlockGrid


def test_both_directions_of_a_pair_are_in_one_bucket_in_their_order(tmp_path):
    buckets = Buckets(tmp_path, 3)
    buckets.add(np.array([5, 0, 1]), np.array([1, 1, 5]), np.array([1.0, 2.0, 3.0]))
    buckets.add(np.array([1, 8]), np.array([5, 8]), np.array([4.0, 5.0]))
    rows, cols, values = buckets.read((0, 1))
    assert_array_equal(rows, [5, 1, 1])
    assert_array_equal(cols, [1, 5, 5])
    assert_array_equal(values, [1, 3, 4])
    assert buckets.largest == 5
    assert [len(buckets.read(block)[0]) for block in ((0, 0), (2, 2), (1, 2))] == [1, 1, 0]


def test_notes_count_over_all_blocks(tmp_path):
    buckets = Buckets(tmp_path, 2)
    loops = np.array([0, 1, 2, 2])
    buckets.add(loops, loops, np.ones(4))
    combination = Combination(Rules("sum", "keep", "max"), is_list=True, dtype=np.dtype(float))
    matrices = dict(combination.blocks(buckets, BlockGrid(3, 2), "abc"))
    assert matrices[1, 1].toarray() == [[2.0]]
    assert combination.notes() == ("4 self loops are on the diagonal", "1 repeated edge was added")
