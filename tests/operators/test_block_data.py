"""Blocks as workers load them."""

import contextlib
import pickle
import tempfile

import numpy as np
import pytest
from block_folders import blocks_of
from helpers import PROBLEMS
from numpy.testing import assert_array_equal

from symrelu.operators.block_data import BlockData, load_block, temporary_folder

PROBLEM = PROBLEMS["everything"]


@pytest.fixture
def data(tmp_path):
    return blocks_of(PROBLEM, tmp_path)


def test_a_block_that_moves_leaves_its_packed_entries_behind(data):
    block = load_block(data.order((0, 1), shipped=False))
    block.tiles(4, 1.0, False)
    moved = pickle.loads(pickle.dumps(block))
    assert moved._packed is None
    assert_array_equal(moved.M.toarray(), block.M.toarray())


@pytest.mark.parametrize("only_masked", [False, True])
def test_masked_entries_are_left_out_or_alone_kept(data, only_masked):
    data = BlockData(data.folder, data.mask, only_masked=only_masked, exponent=1)
    rows, cols = data.grid.panel(1), data.grid.panel(2)
    kept = PROBLEM.unknown if only_masked else ~PROBLEM.unknown
    loaded = load_block(data.order((1, 2), shipped=False))
    assert_array_equal(loaded.M.toarray(), np.where(kept, PROBLEM.M, 0)[rows, cols] / 4)
    assert_array_equal(loaded.unknown.toarray(), PROBLEM.unknown[rows, cols])


def test_an_ignored_diagonal_is_unobserved(data):
    data = BlockData(data.folder, ignore_diagonal=True)
    loaded = load_block(data.order((1, 1), shipped=True))
    assert_array_equal(loaded.unknown.toarray(), np.eye(7, dtype=bool))
    assert not loaded.M.diagonal().any()
    assert not load_block(data.order((0, 1), shipped=False)).unknown.nnz


def test_a_temporary_folder_is_kept_only_if_it_was_filled(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder() as folder:
        (folder / "file").write_text("")
    with contextlib.suppress(KeyboardInterrupt), temporary_folder():
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [folder]
