"""Block folders: what is written is read again, and anything else is refused with a reason."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from block_folders import random_similarity, whole
from helpers import damaged
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.files.block_folder import BlockFolder, BlockWriter, is_block_folder, unfinished_folder, verified
from symrelu.files.checks import DamagedFile
from symrelu.graphs import Labelled, write_blocks
from symrelu.kernels.block_grid import BlockGrid


@pytest.fixture
def folder(tmp_path):
    names = np.array([f"node {k}" for k in range(23)], object)
    return write_blocks(Labelled(random_similarity(23), names), tmp_path / "blocks", rows=7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 4, 23, 100])
def test_what_is_written_is_read(tmp_path, rows, dtype):
    M = random_similarity(23).astype(dtype)
    folder = write_blocks(sparse.csr_array(M), tmp_path / "blocks", rows=rows)
    assert_array_equal(whole(folder), M)
    assert folder.dtype == dtype
    assert folder.manifest.norm == pytest.approx(np.linalg.norm(M), rel=1e-6)
    assert folder.names() is None
    assert is_block_folder(folder)
    assert is_block_folder(tmp_path / "blocks")
    assert not is_block_folder(M)


def test_names_have_their_own_file(folder):
    assert folder.names()[:2].tolist() == ["node 0", "node 1"]
    assert json.loads((folder.path / "names.json").read_text())[22] == "node 22"


def test_every_file_is_on_the_disk_before_the_folder_appears(tmp_path, monkeypatch):
    """By the descriptor that wrote it: Windows refuses to sync one that was opened for reading."""
    synced = {}

    def fsync(descriptor):
        assert os.write(descriptor, b"") == 0  # an error unless it was opened for writing
        found = os.fstat(descriptor)
        synced[found.st_ino] = found.st_size
        assert not (tmp_path / "blocks").exists()

    monkeypatch.setattr(os, "fsync", fsync)
    names = np.array([f"node {k}" for k in range(23)], object)
    path = write_blocks(Labelled(random_similarity(23), names), tmp_path / "blocks", rows=7).path
    written = {one.name: one.stat() for one in path.iterdir()}
    assert {"names.json", "manifest.json", "block-0-1.npz"} <= set(written)
    assert synced == {one.st_ino: one.st_size for one in written.values()}


def test_blocks_without_entries_have_no_file(tmp_path):
    folder = write_blocks(np.diag([1.0, 2.0, 0.0, 3.0]), tmp_path / "blocks", rows=2)
    assert sorted(os.listdir(folder.path)) == ["block-0-0.npz", "block-1-1.npz", "manifest.json"]
    assert folder.read((0, 1)).nnz == 0


def test_a_damaged_block_is_refused(folder):
    path, record = folder.source((0, 1))
    content = path.read_bytes()
    for broken in damaged(content, 40, 20):
        path.write_bytes(broken)
        with pytest.raises(DamagedFile, match="checksum is wrong"):
            folder.read((0, 1))
        with pytest.raises(DamagedFile, match="checksum is wrong"):
            verified(path, record)
    path.write_bytes(content)
    assert folder.read((0, 1)).nnz == record.entries


def test_a_block_that_vanished_is_named(folder):
    (folder.path / "block-1-2.npz").unlink()
    with pytest.raises(DamagedFile, match=r"block-1-2\.npz of a block folder cannot be read: No such file"):
        folder.read((1, 2))
    with pytest.raises(DamagedFile, match=r"is not complete: its file block-1-2\.npz is missing"):
        BlockFolder.open(folder.path)


def test_valid_files_with_other_arrays_are_refused(tmp_path):
    """A folder can be made by anyone: compiled code must not read beyond the end of an array."""
    grid = BlockGrid(4, 4)
    with unfinished_folder(tmp_path / "bad") as unfinished:
        writer = BlockWriter(unfinished, grid, np.float64)
        block = sparse.csr_array(np.eye(4))
        block.indices[0] = 9
        writer.add((0, 0), block)
        writer.finish()
    with pytest.raises(DamagedFile, match="does not hold a block of shape"):
        BlockFolder.open(tmp_path / "bad").read((0, 0))


def test_an_error_while_writing_leaves_nothing(tmp_path):
    def interrupted():
        with unfinished_folder(tmp_path / "blocks") as unfinished:
            (unfinished / "block-0-0.npz").write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_no_folder_that_looks_complete(tmp_path):
    program = f"""
        import os, signal
        from symrelu.files.block_folder import BlockWriter
        from symrelu.graphs import write_blocks
        import numpy as np
        add = BlockWriter.add
        def add_and_die(self, block, matrix):
            add(self, block, matrix)
            if block == (1, 1):
                os.kill(os.getpid(), signal.SIGKILL)
        BlockWriter.add = add_and_die
        write_blocks(np.ones((9, 9)), {str(tmp_path / "blocks")!r}, rows=3)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "blocks").exists()
    (left,) = tmp_path.iterdir()
    with pytest.raises(ValueError, match=r"has no manifest\.json"):
        BlockFolder.open(left)


@pytest.mark.parametrize("make", ["file", "folder"])
def test_an_output_that_exists_is_refused_before_any_work(tmp_path, make):
    path = tmp_path / "blocks"
    if make == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        write_blocks(object(), path)


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "blocks").mkdir()
    assert_array_equal(whole(write_blocks(np.ones((3, 3)), tmp_path / "blocks")), np.ones((3, 3)))


def test_a_folder_without_a_parent_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"does not exist\. Create it first"):
        write_blocks(np.ones((3, 3)), tmp_path / "nowhere" / "blocks")
