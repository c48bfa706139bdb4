"""The matrices that experiments fit."""

import pytest
from numpy.testing import assert_array_equal

from symrelu.datasets import load_digits_graph
from symrelu.experiments import find_data_sets
from symrelu.experiments.cases import DigitsGraph


def test_a_data_file_that_changes_is_noticed(tmp_path):
    path = tmp_path / "ORL_64x64.mat"
    path.write_bytes(b"one")
    (case,), _ = find_data_sets(str(tmp_path), ["ORL"])
    path.write_bytes(b"two")
    with pytest.raises(ValueError, match="has changed since it was found"):
        case.load(0)


def test_digits_graph_is_the_embedded_one():
    M, expected = DigitsGraph().load(0), load_digits_graph()[0]
    assert M.shape == (DigitsGraph().n,) * 2
    for part in ("indptr", "indices", "data"):
        assert_array_equal(getattr(M, part), getattr(expected, part))
