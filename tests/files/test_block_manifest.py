"""The manifest: folders that are damaged, foreign, incomplete or newer are refused with a reason."""

import hashlib
import json

import numpy as np
import pytest
from block_folders import random_similarity
from helpers import damaged

from symrelu.files.block_folder import BlockFolder
from symrelu.files.block_manifest import MANIFEST, Totals, read_manifest
from symrelu.graphs import write_blocks


@pytest.fixture
def path(tmp_path):
    return write_blocks(random_similarity(20), tmp_path / "blocks", rows=8).path


def rewrite(path, **changes):
    """Change entries of a manifest, with a checksum that fits."""
    content = json.loads((path / MANIFEST).read_text())
    content.pop("sha256")
    content |= changes
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (path / MANIFEST).write_text(json.dumps({**content, "sha256": digest}))


def test_what_the_manifest_says(path):
    M = random_similarity(20)
    content = json.loads((path / MANIFEST).read_text())
    assert (content["format"], content["version"], content["shape"]) == ("symrelu blocks", 1, [20, 20])
    assert (content["byte_order"], content["index_type"], content["dtype"]) == ("little", "int32", "float64")
    assert content["norm"] == pytest.approx(np.linalg.norm(M), rel=1e-14)
    off = M[~np.eye(20, dtype=bool)]
    assert content["off_diagonal"]["entries"] == np.count_nonzero(off)
    assert content["off_diagonal"]["largest"] == off.max()
    assert content["diagonal"]["squares"] == pytest.approx(np.sum(np.diag(M) ** 2), rel=1e-14)
    assert content["units"] == 0
    (block,) = (one for one in content["blocks"] if (one["row"], one["column"]) == (0, 1))
    assert (block["entries"], block["largest"]) == (np.count_nonzero(M[:8, 8:16]), M[:8, 8:16].max())
    assert read_manifest(path).grid.panels == 3


def test_units_are_those_of_a_fit(tmp_path):
    folder = write_blocks(1e-200 * np.eye(3), tmp_path / "tiny")
    assert folder.manifest.units == -333  # 1e-200 is about 2.5 * 4^-333


def test_every_damaged_manifest_is_refused(path):
    content = (path / MANIFEST).read_bytes()
    for broken in damaged(content, 200, 40):
        (path / MANIFEST).write_bytes(broken)
        with pytest.raises(ValueError, match=r"manifest\.json|newer version"):
            read_manifest(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "written by a newer version of symrelu: its format is 2"),
        ({"format": "tar"}, "it is something else"),
        ({"byte_order": "big"}, "little-endian"),
        ({"shape": [20, 21]}, "must be square"),
        ({"rows": 0}, "must be square, of a known type and have rows"),
        ({"dtype": "object"}, "of a known type"),
        ({"surprise": 1}, "its entries must be"),
        ({"blocks": []}, "do not have the entries that it counts"),
        ({"diagonal": {"entries": 4, "largest": 9.0, "squares": 1.0}}, "do not have the (entries|largest)"),
    ],
)
def test_other_manifests_are_refused(path, changes, reason):
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=reason):
        read_manifest(path)


def test_files_outside_of_the_folder_are_refused(path):
    blocks = json.loads((path / MANIFEST).read_text())["blocks"]
    blocks[0]["file"] = "../other.npz"
    rewrite(path, blocks=blocks)
    with pytest.raises(ValueError, match="must be in the folder itself"):
        read_manifest(path)


def test_a_file_of_another_size_is_noticed_at_once(path):
    with open(path / "block-0-1.npz", "ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match=r"is damaged: its file block-0-1\.npz has"):
        BlockFolder.open(path)


def test_what_is_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        BlockFolder.open(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match="is a file, not a folder"):
        BlockFolder.open(tmp_path / "file")
    with pytest.raises(ValueError, match=r"is a folder, not a file.*this one has no manifest"):
        BlockFolder.open(tmp_path)


def test_totals_add_up():
    assert Totals.of(np.array([1.0, 3.0])).plus(Totals.of(np.array([2.0])), 2) == Totals(4, 3.0, 18.0)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e308, 5e-324])
def test_squares_of_huge_and_tiny_entries_are_numbers(tmp_path, size):
    """They overflowed to Infinity, which is not JSON, or vanished."""
    M = size * (np.ones((5, 5)) - np.eye(5))
    path = write_blocks(M, tmp_path / "blocks", rows=2).path
    content = json.loads((path / MANIFEST).read_text(), parse_constant=pytest.fail)
    largest = np.finfo(float).max
    assert content["norm"] == (
        pytest.approx(20**0.5 * size, rel=1e-14, abs=5e-324) if size < 1e308 else largest
    )
    assert read_manifest(path).norm == content["norm"]


def test_totals_of_other_units_add_up():
    both = Totals.of(np.array([1e200, 3e200])).plus(Totals.of(np.array([2e150]))).plus(Totals.of(np.ones(2)), 2)
    assert (both.entries, both.largest) == (7, 3e200)
    assert both.norm == pytest.approx(10**0.5 * 1e200, rel=1e-14)
    assert Totals().plus(Totals.of(np.array([3e-200, 4e-200]))).norm == pytest.approx(5e-200, rel=1e-14)
