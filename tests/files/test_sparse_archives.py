"""Sparse npz files in parts."""

import numpy as np
import pytest
from block_folders import random_similarity
from helpers import damaged
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.files import sparse_archives
from symrelu.files.sparse_archives import sparse_npz_parts


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_all_entries_come(tmp_path, monkeypatch, kind, compressed):
    monkeypatch.setattr(sparse_archives, "_ENTRIES_OF_A_PART", 7)
    M = np.triu(random_similarity(15)).astype(np.float32)
    sparse.save_npz(tmp_path / "m.npz", sparse.coo_array(M).asformat(kind), compressed=compressed)
    shape, dtype, parts = sparse_npz_parts(tmp_path / "m.npz")
    found = np.zeros(shape, dtype)
    for rows, cols, values in parts:
        assert len(rows) <= 7
        found[rows, cols] += values
    assert_array_equal(found, M)
    assert dtype == np.float32


def read_all(path):
    return list(sparse_npz_parts(path)[2])


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    sparse.save_npz(path, sparse.csr_array(random_similarity(9)), compressed=False)
    content, entries, refused = path.read_bytes(), read_all(path), 0
    for broken in damaged(content, 150, 50):
        path.write_bytes(broken)
        try:
            found = read_all(path)
        except ValueError:
            refused += 1
        else:  # the bit has no meaning
            assert_array_equal(found, entries)
    assert refused > 100


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"a": np.eye(3)}, "must hold a scipy sparse matrix"),
        ({"shape": [2, 2], "data": [1.0], "format": "bsr"}, "in csr, csc or coo format"),
        ({"shape": [2, 2], "data": [1.0], "indices": [5], "indptr": [0, 1, 1]}, "outside of the matrix"),
        ({"shape": [2, 2], "data": [1.0], "indices": [0], "indptr": [0, 2, 1]}, "does not belong"),
        ({"shape": [2, 2], "data": [1.0, 2.0], "indices": [0], "indptr": [0, 1, 1]}, "equally many"),
    ],
)
def test_other_archives_are_refused(tmp_path, arrays, reason):
    np.savez(tmp_path / "m.npz", **{name: np.array(value) for name, value in arrays.items()})
    with pytest.raises(ValueError, match=reason):
        read_all(tmp_path / "m.npz")
