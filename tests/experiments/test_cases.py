"""The matrices that experiments fit."""

import pytest

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
    M = DigitsGraph().load(0)
    assert M.shape == (DigitsGraph().n,) * 2
