"""Products of whole rows, with the bits of one machine, and their small systems, called in this process."""

import pickle

import numpy as np
import pytest
from block_folders import blocks_of, panels
from helpers import PROBLEMS, factor, sparse_
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.row_systems import whitening
from symrelu.operators.block_rows import load_rows, product_part, solve_part, warm_up_rows

PROBLEM = PROBLEMS["everything"]


@pytest.fixture
def data(tmp_path):
    return blocks_of(PROBLEM, tmp_path)


@pytest.fixture
def rows(data):
    """All rows of the matrix, by panel."""
    count = data.grid.panels
    blocks = {i: [(min(i, j), max(i, j)) for j in range(count)] for i in range(count)}
    return [load_rows(i, [data.order(block, shipped=i % 2 == 0) for block in blocks[i]]) for i in blocks]


def below_each_other(found, number):
    return np.concatenate([found[i][number] for i in sorted(found)])


@pytest.mark.parametrize("columns", [1, 3])
def test_products_have_the_bits_of_one_machine(data, rows, columns):
    grid, V, op = data.grid, factor(PROBLEM, 3, columns), sparse_(PROBLEM)
    parts = [product_part(some, panels(grid, V), grid=grid, with_zeros=True) for some in (rows[:2], rows[2:])]
    found = parts[0] | parts[1]
    assert_array_equal(below_each_other(found, 0), op.matmul(V))
    assert_array_equal(below_each_other(found, 1), op._not_zero @ V)
    (alone,) = {len(one) for one in product_part(rows, panels(grid, V), grid=grid, with_zeros=False).values()}
    assert alone == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_row_systems_are_those_of_one_machine_and_are_solved(data, rows, threads):
    grid, V, right = data.grid, factor(PROBLEM, 1), [factor(PROBLEM, 5), factor(PROBLEM, 6)]
    ridge = 0.3 * np.eye(4)
    sides = [panels(grid, one) for one in right]
    settings = {"grid": grid, "C": whitening(ridge), "threads": threads}
    found = solve_part(rows, panels(grid, V), *sides, **settings)
    support = (PROBLEM.M > 0) & ~PROBLEM.unknown
    for number, expected in enumerate(sparse_(PROBLEM).solve_rows(V, ridge, *right)):
        solutions = below_each_other(found, number)
        assert_allclose(solutions, expected, rtol=1e-12)
        for neighbours, x, b in zip(support, solutions, right[number], strict=True):
            system = V[neighbours].T @ V[neighbours] + ridge
            scale = np.linalg.norm(system, 2) * np.linalg.norm(x)
            assert np.linalg.norm(system @ x - b) <= 1e-14 * len(V) * scale  # the backward error


def test_rows_that_move_leave_behind_what_can_be_made_again(rows):
    assert rows[0].not_zero is rows[0].not_zero
    moved = pickle.loads(pickle.dumps(rows[0]))
    assert moved._not_zero is None
    assert_array_equal(moved.not_zero.toarray(), rows[0].not_zero.toarray())


def test_warming_up_takes_the_systems_of_rows():
    assert warm_up_rows(np.dtype(np.float64)) is None
