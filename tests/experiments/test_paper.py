"""What the paper prints: complete tables, and numbers that agree with each other."""

import math

import pytest

from symrelu.datasets import sources
from symrelu.experiments import paper


def test_the_synthetic_table_is_complete():
    pairs = {(momentum, column) for momentum in paper.MOMENTA for column in paper.SYNTHETIC_COLUMNS}
    assert set(paper.SYNTHETIC_ERROR) == pairs
    assert all(0 < error < 1 for error in paper.SYNTHETIC_ERROR.values())


@pytest.mark.parametrize("column", paper.SYNTHETIC_COLUMNS)
def test_momentum_never_makes_a_printed_error_much_worse(column):
    """The claim of the table. The first column stops at the tolerance, so that its digits say nothing."""
    errors = [paper.SYNTHETIC_ERROR[momentum, column] for momentum in paper.MOMENTA]
    if column == paper.SYNTHETIC_COLUMNS[0]:
        assert max(errors) <= paper.TOL
    else:
        assert errors == sorted(errors, reverse=True)


def test_matrices_with_a_shift_are_those_of_the_table():
    assert set(paper.SHIFTED) == {column[:3] for column in paper.SYNTHETIC_COLUMNS if column[2] > 0}
    assert set(paper.SYNTHETIC_FIGURE) <= set(paper.SYNTHETIC_COLUMNS)


def test_the_table_of_real_data_names_the_sets_of_the_loaders():
    assert set(paper.REAL_RANK) == set(paper.REAL_HALF_SQUARED_ERROR) == set(sources.SAMPLES)
    assert set(paper.REAL_FIGURE) <= set(paper.REAL_RANK)


@pytest.mark.parametrize("name", paper.REAL_RANK)
def test_ranks_are_numbers_of_classes(name):
    assert {source.classes for source in sources.SAMPLES[name]} == {paper.REAL_RANK[name]}


@pytest.mark.parametrize("name", paper.REAL_HALF_SQUARED_ERROR)
def test_printed_numbers_of_real_data_can_be_half_squared_errors(name):
    """No relative error of a fit that beats the zero matrix is above 1, so that e^2 / 2 is below 1/2."""
    printed = paper.REAL_HALF_SQUARED_ERROR[name]
    assert printed["AAPB"] <= printed["APB"] <= min(printed["SymANLS"], printed["SymHALS"])
    assert all(math.sqrt(2 * value) < 1 for value in printed.values())
