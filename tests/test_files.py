"""Reading matrices: every format, and every way a file can be wrong."""

import gzip
import os

import numpy as np
import pytest
from helpers import refusal
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu import decompose
from symrelu.files import check_output, read_matrix, write_aside

M = np.array([[0.0, 2.0, 0.0], [2.0, 1.0, 0.5], [0.0, 0.5, 0.0]])


def write_npz_sparse(path):
    sparse.save_npz(path, sparse.csr_array(M))


def write_npz_plain_csr(path):
    csr = sparse.csr_array(M)
    np.savez(path, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape)


def write_gzip(path):
    with gzip.open(path, "wb") as file:
        io.mmwrite(file, sparse.coo_array(M))


WRITERS = {
    "sparse.npz": write_npz_sparse,
    "old.npz": lambda path: sparse.save_npz(path, sparse.coo_matrix(M)),
    "parts.npz": write_npz_plain_csr,
    "dense.npz": lambda path: np.savez(path, anything=M),
    "dense.npy": lambda path: np.save(path, M),
    "sparse.mtx": lambda path: io.mmwrite(path, sparse.coo_array(M)),
    "symmetric.mtx": lambda path: io.mmwrite(path, sparse.coo_array(M), symmetry="symmetric"),
    "dense.mtx": lambda path: io.mmwrite(path, M),
    "sparse.mtx.gz": write_gzip,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    matrix = read_matrix(path)
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, M)
    assert sparse.issparse(matrix) == ("dense" not in name)


@pytest.mark.parametrize("name", WRITERS)
def test_truncated_files_say_so(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - len(whole) // 3])
    with pytest.raises(ValueError, match=rf"{name}.*damaged or cut short"):
        read_matrix(path)


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.mtx"])
@pytest.mark.parametrize("content", [b"", b"hello, this is a letter\n", bytes(1000)])
def test_garbage_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged or cut short"):
        read_matrix(path)


@pytest.mark.parametrize("name", WRITERS)
def test_every_damaged_byte_is_noticed_or_harmless(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 100):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        message = refusal(read_matrix, path)
        assert message is None or name in message


@pytest.mark.parametrize("name", ["sparse.mtx", "symmetric.mtx", "dense.mtx"])
def test_text_that_crashed_the_reader(tmp_path, name):
    """A last line that ends in a blank without a line feed brought the whole interpreter down."""
    path = tmp_path / name
    WRITERS[name](path)
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    matrix = read_matrix(path)
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, M)


def test_files_of_the_wrong_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_matrix(tmp_path / "missing.npz")
    with pytest.raises(IsADirectoryError, match="is a folder, not a matrix file"):
        read_matrix(tmp_path)
    (tmp_path / "table.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"must be one of .*; the ending '.csv' is not known"):
        read_matrix(tmp_path / "table.csv")
    np.savez(tmp_path / "two.npz", a=M, b=M)
    with pytest.raises(ValueError, match=r"must hold one dense array .*, got the arrays \['a', 'b'\]"):
        read_matrix(tmp_path / "two.npz")
    decompose(M, 1, max_iter=1, random_state=0).save(tmp_path / "solution.npz")
    with pytest.raises(ValueError, match=r"is a saved Solution, not a matrix"):
        read_matrix(tmp_path / "solution.npz")
    (tmp_path / "solution.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(ValueError, match="npz archive with the ending"):
        read_matrix(tmp_path / "archive.npy")


def test_pickled_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"objects.npy is not a readable npy file"):
        read_matrix(tmp_path / "objects.npy")


def write_half(path):
    with write_aside(path) as file:
        file.write(b"new")
        raise OSError("the disk is full")


def test_write_aside_replaces_only_when_complete(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="the disk is full"):
        write_half(path)
    assert path.read_bytes() == b"old"
    with write_aside(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_write_aside_follows_a_symbolic_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with write_aside(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_check_output(tmp_path, monkeypatch):
    assert check_output(tmp_path / "new.npz") == tmp_path / "new.npz"
    with pytest.raises(FileNotFoundError, match=r"The output folder .*nowhere does not exist"):
        check_output(tmp_path / "nowhere" / "x.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(OSError, match="is longer than 255 bytes"):
        check_output(tmp_path / ("x" * 300))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not an ordinary file"):
        check_output(tmp_path / "pipe")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_output(tmp_path / "x.npz")
